"""What the paper says of one method beside another, judged by the rows.

A method is ahead of another where it converges in fewer iterations. Learning more brings nothing
where it saves no more than a tenth of the iterations. Times are those of the run time experiment:
milliseconds a problem, of the machine and the day it was run on.
"""

from collections.abc import Iterable
from functools import reduce

from proxlearn.evaluation.report.counts import Count, Results
from proxlearn.evaluation.report.verdicts import (
    BASELINES,
    GENERIC,
    LESS,
    OPEN,
    PUBLISHED,
    RIGHT,
    SEEDS,
    SLACK,
    Verdict,
    ablated,
    both,
    in_each_unit,
    median,
    trained,
    verdict,
    verdict_by_step,
)

TIMES = {
    "LASSO": ("lasso-pa", "0.485 ms against 3.858"),
    "Spambase": ("logistic-pa", "7.845 ms against 101.6"),
}
"""Table 2: the model of each place, and the stated times to 1e-3."""

FEWER = "PBA was trained on a fifth of the paper's minibatches, of smaller problems"
BRIEF = "Ada-LISTA was trained in 150 steps, in which its parameters hardly move"
"""Where our training is not the paper's, so that a verdict is on our weights."""


def compare(results: Results) -> list[Verdict]:
    """All of them, in the order of the paper."""
    return [
        _without_b(results),
        _in_distribution(results),
        _unrolled(results),
        *(_time(results, place) for place in TIMES),
        *(_adamhd_stalls(results, place) for place in TIMES),
        _cross_learned(results),
    ]


def _without_b(results: Results) -> Verdict:
    """Figure 1: a learned b shows no significant benefit, PBA against PA."""
    counts, preset = ablated(results, ("pa", "pba"))
    pa, pba = counts["pa"], counts["pba"]
    holds = pa.at_most(SLACK * pba.value) if pba.value is not None else pa.no_later(pba)
    return Verdict(
        "LASSO: learning b as well (PBA) brings nothing over PA",
        "ablation",
        "no significant benefit",
        f"PA {pa}, PBA {pba}",
        str(results.to("ablation", "", "fista-restart", results.converged)),
        verdict(holds if pa.measured and pba.measured else None),
        FEWER if preset == "shipped" and pba.measured else "",
        f"{preset}: 1 seed" if pa.measured else "",
    )


def _in_distribution(results: Results) -> Verdict:
    """Figure 3: on the problems of its training L2O-PA is ahead of all methods without layers."""
    seeds = trained(results, "lasso", "lasso-pa", results.converged, ("", ""))
    others = {
        label: _either(results, "lasso", "", f"lasso-{name}", results.converged)
        for name, label in GENERIC.items()
    }
    others |= {
        label: results.to("lasso", "", name, results.converged) for name, label in BASELINES.items()
    }
    ours = seeds.by_preset
    ahead = {step: _ahead(count, others.values()) for step, count in ours.items()}
    words = ", ".join(f"{label} {count}" for label, count in others.items())
    return Verdict(
        "LASSO: L2O-PA converges before L2O-DM, RNNprop, ISTA, FISTA, Adam and AdamHD",
        "lasso",
        "competitive",
        f"L2O-PA {ours[RIGHT]}; {words}",
        str(results.to("lasso", "", "fista-restart", results.converged)),
        verdict_by_step(ahead),
        LESS if ours[RIGHT].measured and not _published(results, "lasso", "", "lasso") else "",
        str(seeds),
    )


def _published(results: Results, experiment: str, setting: str, problems: str) -> bool:
    """Whether the generic methods were run with weights of the published preset."""
    names = [f"published-{problems}-{name}-0" for name in GENERIC]
    return all(results.to(experiment, setting, n, results.converged).measured for n in names)


def _ahead(ours: Count, others: Iterable[Count]) -> bool | None:
    """Whether a method converges, and before all others."""
    if ours.measured and ours.value is None:
        return False
    return reduce(both, [ours.before(other) for other in others])


def _either(results: Results, experiment: str, setting: str, model: str, level: float) -> Count:
    """A competitor by the median of the published preset, or else by the shipped weights."""
    found = trained(results, experiment, model, level, (setting, setting))
    return found.by_preset[PUBLISHED]


def _unrolled(results: Results) -> Verdict:
    """Figure 3: after as many iterations as Ada-LISTA has layers, L2O-PA is as close."""
    names = ("published-lasso-ada-lista-0", "lasso-ada-lista")
    curves = {name: results.curve("lasso", "", name) for name in names}
    name = next((n for n, curve in curves.items() if curve is not None), None)
    pa, restarted = (results.curve("lasso", "", n) for n in ("lasso-pa", "fista-restart"))
    known = name is not None and pa is not None and len(pa) >= len(curves[name])
    layers = len(curves[name]) - 1 if known and name else 0
    gaps = [float(c[layers]) if known else 0.0 for c in (pa, curves.get(name or "", pa), restarted)]
    return Verdict(
        "LASSO: after as many iterations as Ada-LISTA has layers, L2O-PA is as close to F*",
        "lasso",
        "competitive",
        f"{layers} layers: Ada-LISTA {gaps[1]:.2g}, L2O-PA {gaps[0]:.2g}" if known else OPEN,
        f"{gaps[2]:.2g}" if known else "",
        verdict(gaps[0] <= gaps[1] if known else None),
        BRIEF if name == names[1] and known else "",
        "shipped: 1 seed" if known else "",
    )


def _hyper(results: Results, place: str) -> str:
    """AdamHD with the published values, where that was run."""
    measured = results.to("runtime", place, "published-adamhd", 1e-3).measured
    return "published-adamhd" if measured else "adamhd"


def _time(results: Results, place: str) -> Verdict:
    """Table 2: to 1e-3 L2O-PA takes less time than AdamHD, though an iteration takes more."""
    (model, stated), other = TIMES[place], _hyper(results, place)
    counts = {n: results.to("runtime", place, n, 1e-3) for n in (model, other, "fista-restart")}
    spent = {n: _spent(results, place, n, c) for n, c in counts.items() if c.measured}
    words, holds, note = OPEN, None, ""
    if model in spent and other in spent:
        ours, theirs = (_milliseconds(counts[n], spent[n]) for n in (model, other))
        words = f"L2O-PA {ours}, AdamHD {theirs}"
        each = {n: spent[n] / max(_iterations(counts[n]), 1) for n in spent}
        note = f"an iteration takes {each[model] / each[other]:.2g} times as long as AdamHD's"
        arrived = counts[model].value is not None
        holds = spent[model] < spent[other] if arrived else None
        if not arrived and counts[other].value is not None:
            holds = False
    bar = "fista-restart"
    return Verdict(
        f"{place}: L2O-PA takes less time than AdamHD to a gap of 1e-3",
        "runtime",
        stated,
        words,
        _milliseconds(counts[bar], spent[bar]) if bar in spent else "",
        verdict(holds),
        note,
        "corrected: 1 seed" if model in spent else "",
    )


def _milliseconds(count: Count, spent: float) -> str:
    return f"{'over ' if count.value is None else ''}{spent:.3g} ms"


def _iterations(count: Count) -> int:
    return count.looked if count.value is None else count.value


def _spent(results: Results, place: str, name: str, count: Count) -> float:
    return results.milliseconds("runtime", place, name, _iterations(count))


def _adamhd_stalls(results: Results, place: str) -> Verdict:
    """Table 2: AdamHD does not reach 1e-6."""
    found = results.to("runtime", place, _hyper(results, place), 1e-6)
    return Verdict(
        f"AdamHD on {place} does not reach a gap of 1e-6",
        "runtime",
        "not reached",
        str(found),
        str(results.to("runtime", place, "fista-restart", 1e-6)),
        verdict(found.value is None if found.measured else None),
        f"within {found.looked} iterations; the paper does not say how many it ran"
        if found.measured
        else "",
    )


def _cross_learned(results: Results) -> Verdict:
    """Figure 10: trained on LASSO, ahead of L2O-DM and RNNprop that were trained on logistic."""
    ours = in_each_unit(results, "cross", "lasso-pa", results.converged)
    others = {}
    for name, label in GENERIC.items():
        model = f"logistic-{name}"
        seeds = [f"published-{model}-{seed}" for seed in SEEDS]
        counts = [results.to("cross", PUBLISHED, n, results.converged) for n in seeds]
        counts += [results.to("cross", RIGHT, model, results.converged)]
        others[label] = median([c for c in counts if c.measured][:3] or counts)
    ahead = {step: _ahead(count, others.values()) for step, count in ours.items()}
    words = ", ".join(f"{label} {count}" for label, count in others.items())
    return Verdict(
        "L2O-PA, trained on LASSO, is ahead of L2O-DM and RNNprop trained on logistic regression",
        "cross",
        "faster",
        f"L2O-PA {ours[RIGHT]}, with the published step {ours[PUBLISHED]}; {words}",
        str(results.to("cross", RIGHT, "fista-restart", results.converged)),
        verdict_by_step(ahead),
        LESS
        if ours[RIGHT].measured and not _published(results, "cross", PUBLISHED, "logistic")
        else "",
        str(trained(results, "cross", "lasso-pa", results.converged)),
    )
