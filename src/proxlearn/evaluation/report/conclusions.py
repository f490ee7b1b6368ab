"""What the paper concludes from its figures in words, judged by the rows like its numbers.

Converged is 1e-6 in the mean gap, or another level (`Results.converged`). Norms have settled where
they stay within a tenth of their last value. A curve fluctuates where it rises above twice the
smallest gap before, and is stable where it does not; gaps below 1e-6 count as 1e-6, so that
rounding is no fluctuation.
"""

from collections.abc import Mapping
from functools import reduce

import numpy as np

from proxlearn.evaluation.report.counts import Count, Results
from proxlearn.evaluation.report.verdicts import (
    BASELINES,
    GENERIC,
    LESS,
    PUBLISHED,
    RIGHT,
    SEEDS,
    SLACK,
    STEPS,
    Verdict,
    against,
    beside_fista,
    both,
    by_preset,
    in_each_unit,
    joined,
    median,
    runs,
    trained,
    verdict,
    verdict_by_step,
)

FLOOR = 1e-6
"""Gaps below it do not fluctuate."""
LARGE = {**GENERIC, **BASELINES}
"""What Figure 8 compares L2O-PA with."""
FEWER = "PBA12 was trained on a fifth of the paper's minibatches, of smaller problems"
"""Where our training differs from the paper's, so that a verdict is on our weights."""
SETTLED = 10
"""Figure 2: iterations after which the norms have settled."""
SCALED = "in the units of the training"
"""The setting of Figure 4 whose problems have the training's L and lambda."""
LONG = 10_000
"""Iterations of Figure 9."""
TWICE = 2.0
"""Largest rise of an objective, as a factor, that counts as stable."""


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
    places = ("", "")
    names = {**GENERIC, "pa": "L2O-PA"}
    seeds = {
        name: trained(results, "lasso-bsds", f"lasso-{name}", 1e-2, places).by_preset
        for name in names
    }
    found = trained(results, "lasso-bsds", "lasso-pa", results.converged, places)
    ours, tight = found.by_preset, found.by_preset[RIGHT]
    other = results.to("lasso-bsds", "", "fista-restart", results.converged)
    holds = {
        step: reduce(both, [*(_fails(seeds[name][step]) for name in GENERIC), _arrives(ours[step])])
        for step in STEPS
    }
    ends = _ends(results, "lasso-bsds", "")
    scaled = results.share("lasso-bsds", SCALED, "lasso-pa", results.converged)
    scaled = f"{SCALED} on {scaled}" if scaled else ""
    reached = ", ".join(f"{label} {by_preset(seeds[name])}" for name, label in names.items())
    return Verdict(
        "BSDS500: L2O-DM and RNNprop struggle to reach 1e-2, L2O-PA converges",
        "lasso-bsds",
        "not reached; converges",
        f"to 1e-2: {reached}; L2O-PA to {results.level}: {by_preset(ours)}",
        f"to {results.level}: {other}",
        verdict_by_step(holds),
        joined(against(tight, other), ends, scaled),
        str(found),
    )


def _fails(count: Count) -> bool | None:
    return count.value is None if count.measured else None


def _arrives(count: Count) -> bool | None:
    return count.value is not None if count.measured else None


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
    found = trained(results, "lasso-large", "lasso-pa", results.converged, ("", ""))
    ours, right = found.by_preset, found.by_preset[RIGHT]
    restarted = results.to("lasso-large", "", "fista-restart", results.converged)
    others = {
        label: trained(
            results,
            "lasso-large",
            f"lasso-{name}" if name in GENERIC else name,
            results.converged,
            ("", ""),
        ).by_preset[PUBLISHED]
        for name, label in LARGE.items()
    }
    ahead = {
        step: reduce(both, [count.before(other) for other in others.values()])
        for step, count in ours.items()
    }
    return Verdict(
        "LASSO 2500x5000: L2O-PA, trained at 250x500, is ahead of all others",
        "lasso-large",
        "first",
        f"L2O-PA {by_preset(ours)}; "
        + ", ".join(f"{label} {count}" for label, count in others.items()),
        str(restarted),
        verdict_by_step(ahead),
        joined(against(right, restarted), LESS) if right.measured else "",
        str(found),
    )


def _stable(results: Results) -> Verdict:
    """Figure 9: over a long horizon L2O-PA is stable, L2O-DM and RNNprop fluctuate."""
    labels = {"pa": "L2O-PA", **GENERIC}
    rises = {step: {n: _rises(results, n, step) for n in labels} for step in STEPS}
    holds = {step: _steady(by_rule) for step, by_rule in rises.items()}
    restarted = _rise(results.curve("cifar10", RIGHT, "fista-restart"))
    known = None not in rises[RIGHT].values()
    same = rises[RIGHT] == rises[PUBLISHED]
    words = [f"{labels[n]} {_times(rise)}" for n, rise in rises[RIGHT].items()]
    theirs = [f"{labels[n]} {_times(rise)}" for n, rise in rises[PUBLISHED].items()]
    published = all(
        results.curve("cifar10", PUBLISHED, f"published-lowlambda-{n}-0") is not None
        for n in GENERIC
    )
    return Verdict(
        "CIFAR-10: over 10,000 iterations L2O-PA is stable, L2O-DM and RNNprop fluctuate",
        "cifar10",
        "stable; fluctuate",
        joined(", ".join(words), "" if same else f"published step: {', '.join(theirs)}"),
        _times(restarted),
        verdict_by_step(holds),
        joined("the largest rise above the smallest gap before", "" if published else LESS)
        if known
        else "",
        str(trained(results, "cifar10", "lowlambda-pa", 1e-2)) if known else "",
    )


def _rises(results: Results, name: str, step: str) -> float | None:
    """The median over the seeds of the largest rise of a method, with either step."""
    found = runs(results, "cifar10", f"lowlambda-{name}")[step]
    rises = [_rise(results.curve("cifar10", *run)) for run in found]
    if not rises or None in rises:
        return None
    return sorted(rise for rise in rises if rise is not None)[len(rises) // 2]


def _steady(rises: Mapping[str, float | None]) -> bool | None:
    """Whether L2O-PA is stable, and the others fluctuate."""
    if None in rises.values():
        return None
    stable = {name: rise <= TWICE for name, rise in rises.items() if rise is not None}
    return stable["pa"] and not any(stable[name] for name in GENERIC)


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
