"""What the paper concludes from its figures in words, judged by the rows like its numbers.

Converged is 1e-6 in the mean gap, or another level (`Results.converged`). Norms have settled where
they stay within a tenth of their last value. A curve fluctuates where it rises above twice the
smallest gap before, and is stable where it does not; gaps below 1e-6 count as 1e-6, so that
rounding is no fluctuation.
"""

from functools import reduce

import numpy as np

from proxlearn.evaluation.report.counts import Count, Results
from proxlearn.evaluation.report.verdicts import (
    PUBLISHED,
    RIGHT,
    SEEDS,
    SLACK,
    STEPS,
    Verdict,
    against,
    beside_fista,
    both,
    in_each_unit,
    joined,
    median,
    trained,
    verdict,
    verdict_by_step,
)

FLOOR = 1e-6
"""Gaps below it do not fluctuate."""
GENERIC = {"l2o-dm": "L2O-DM", "rnnprop": "RNNprop"}
LARGE = {**GENERIC, "ista": "ISTA", "fista": "FISTA", "adam": "Adam", "adamhd": "AdamHD"}
"""What Figure 8 compares L2O-PA with."""
FEWER = "PBA12 was trained on a fifth of the paper's minibatches, of smaller problems"
LESS = "L2O-DM and RNNprop were trained on less than the paper's"
"""Where our training differs from the paper's, so that a verdict is on our weights."""
SETTLED = 10
"""Figure 2: iterations after which the norms have settled."""
LONG = 10_000
"""Iterations of Figure 9."""
TWICE = 2.0


def conclude(results: Results) -> list[Verdict]:
    """All of them, in the order of the figures."""
    return [
        _biases(results),
        _patches(results),
        _generic(results),
        _large(results),
        _stable(results),
        _cross(results),
    ]


def _biases(results: Results) -> Verdict:
    """Figure 2: b1 and b2 settle soon, at values that are small and not zero."""
    curves = {name: results.curve("bias-norms", "", name) for name in ("b1", "b2")}
    words: list[str] = []
    settled: list[bool | None] = []
    for name, norms in curves.items():
        if norms is None or len(norms) <= SETTLED:
            settled.append(None)
            continue
        late, end = norms[SETTLED:], norms[-1]
        settled.append(bool(end > 0 and late.max() <= SLACK * end and late.min() >= end / SLACK))
        words.append(f"‖{name}‖ {late[0]:.3f} after {SETTLED}, {end:.3f} after {len(norms)}")
    return Verdict(
        f"LASSO: within {SETTLED} iterations b1 and b2 settle at norms that are not 0",
        "bias-norms",
        "both settle",
        "; ".join(words) or "not measured",
        "",
        verdict(reduce(both, settled)),
        FEWER if words else "",
        "shipped: 1 seed" if words else "",
    )


def _patches(results: Results) -> Verdict:
    """Figure 4: L2O-DM and RNNprop do not reach 1e-2, and L2O-PA converges."""
    names = (*GENERIC, "pa")
    counts = {name: results.to("lasso-bsds", "", f"lasso-{name}", 1e-2) for name in names}
    tight = results.to("lasso-bsds", "", "lasso-pa", results.converged)
    other = results.to("lasso-bsds", "", "fista-restart", results.converged)
    failed = [None if not counts[n].measured else counts[n].value is None for n in GENERIC]
    converged = None if not tight.measured else tight.value is not None
    ends = _ends(results, "lasso-bsds", "")
    words = {**GENERIC, "pa": "L2O-PA"}
    reached = ", ".join(f"{words[name]} {count}" for name, count in counts.items())
    return Verdict(
        "BSDS500: L2O-DM and RNNprop struggle to reach 1e-2, L2O-PA converges",
        "lasso-bsds",
        "not reached; converges",
        f"to 1e-2: {reached}; L2O-PA to {results.level}: {tight}",
        f"to {results.level}: {other}",
        verdict(both(reduce(both, failed), converged)),
        joined(against(tight, other), ends),
        "corrected: 1 seed" if tight.measured else "",
    )


def _generic(results: Results) -> Verdict:
    """Figure 5: L2O-DM and RNNprop do not converge on the problems they were trained on.

    They are judged by the median of the seeds of the published preset, once those were run.
    """
    counts = {label: _published(results, name) for name, label in GENERIC.items()}
    published = all(count.measured for count in counts.values())
    if not published:
        counts = {
            label: results.to("logistic", RIGHT, f"logistic-{name}", results.converged)
            for name, label in GENERIC.items()
        }
    failed = [None if not c.measured else c.value is None for c in counts.values()]
    return Verdict(
        "L2O-DM and RNNprop fail to converge on synthetic logistic regression",
        "logistic",
        "not reached",
        ", ".join(f"{label} {count}" for label, count in counts.items()),
        str(results.to("logistic", RIGHT, "fista-restart", results.converged)),
        verdict(reduce(both, failed)),
        LESS if None not in failed and not published else "",
        "" if None in failed else _seeds(results) if published else "shipped: 1 seed",
    )


def _published(results: Results, name: str) -> Count:
    """The median over the seeds of the published preset on synthetic logistic regression."""
    names = [f"published-logistic-{name}-{seed}" for seed in SEEDS]
    counts = [results.to("logistic", PUBLISHED, n, results.converged) for n in names]
    return median([count for count in counts if count.measured] or counts)


def _seeds(results: Results) -> str:
    """The seeds of both methods, in words."""
    found = {
        label: trained(results, "logistic", f"logistic-{name}", results.converged)
        for name, label in GENERIC.items()
    }
    return ", ".join(f"{label} {counts}" for label, counts in found.items())


def _large(results: Results) -> Verdict:
    """Figure 8: on problems a hundred times larger L2O-PA is ahead of all others."""
    ours = results.to("lasso-large", "", "lasso-pa", results.converged)
    restarted = results.to("lasso-large", "", "fista-restart", results.converged)
    others = {
        label: results.to(
            "lasso-large", "", f"lasso-{name}" if name in GENERIC else name, results.converged
        )
        for name, label in LARGE.items()
    }
    ahead = [ours.before(count) for count in others.values()]
    return Verdict(
        "LASSO 2500x5000: L2O-PA, trained at 250x500, is ahead of all others",
        "lasso-large",
        "first",
        f"L2O-PA {ours}; " + ", ".join(f"{label} {count}" for label, count in others.items()),
        str(restarted),
        verdict(reduce(both, ahead)),
        joined(against(ours, restarted), LESS) if ours.measured else "",
        str(trained(results, "lasso-large", "lasso-pa", results.converged, ("", ""))),
    )


def _stable(results: Results) -> Verdict:
    """Figure 9: over a long horizon L2O-PA is stable, L2O-DM and RNNprop fluctuate."""
    labels = {"pa": "L2O-PA", **GENERIC}
    rises = {
        label: _rise(results.curve("cifar10", RIGHT, f"lowlambda-{name}"))
        for name, label in labels.items()
    }
    known = None not in rises.values()
    stable = [rise <= TWICE for rise in rises.values() if rise is not None]
    restarted = _rise(results.curve("cifar10", RIGHT, "fista-restart"))
    return Verdict(
        "CIFAR-10: over 10,000 iterations L2O-PA is stable, L2O-DM and RNNprop fluctuate",
        "cifar10",
        "stable; fluctuate",
        ", ".join(f"{label} {_times(rise)}" for label, rise in rises.items()),
        _times(restarted),
        verdict(stable == [True, False, False] if known else None),
        f"the largest rise above the smallest gap before; {LESS}" if known else "",
        "corrected: 1 seed" if known else "",
    )


def _rise(gap: np.ndarray | None) -> float | None:
    """The largest ratio of a gap to the smallest before it; None where the horizon was shorter."""
    if gap is None or len(gap) <= LONG:
        return None
    gap = np.where(np.isnan(gap), np.inf, np.maximum(gap, FLOOR))
    return float((gap / np.minimum.accumulate(gap)).max())


def _times(rise: float | None) -> str:
    if rise is None:
        return "not measured"
    return f"{rise:.3g}x" if np.isfinite(rise) else "breaks down"


def _cross(results: Results) -> Verdict:
    """Figure 10: trained on LASSO, L2O-PA converges on logistic regression, faster than FISTA."""
    ours = in_each_unit(results, "cross", "lasso-pa", results.converged)
    fista = {step: results.to("cross", step, "fista", results.converged) for step in STEPS}
    restarted = results.to("cross", RIGHT, "fista-restart", results.converged)
    return Verdict(
        "L2O-PA, trained on LASSO, converges on logistic regression, faster than FISTA",
        "cross",
        "faster",
        beside_fista(ours, fista),
        str(restarted),
        verdict_by_step({step: ours[step].before(fista[step]) for step in STEPS}),
        joined(against(ours[RIGHT], restarted), _ends(results, "cross", RIGHT)),
        str(trained(results, "cross", "lasso-pa", results.converged)),
    )


def _ends(results: Results, experiment: str, setting: str) -> str:
    share = results.share(experiment, setting, "lasso-pa", results.converged)
    return "" if share is None else f"L2O-PA ends below {results.level} on {share}"
