"""The paper's stated figures beside ours, each with a verdict that follows from the rows.

Iterations are to a mean relative gap at x over all instances. A stated number of iterations is
reproduced where ours is at most a tenth larger; "almost N times faster than FISTA" where our ratio
is at least half of N, "more than N times" where it is at least N. What the paper calls converged,
without a level, is 1e-6 here, and every verdict that depends on it is given for 1e-8 as well. What
it concludes without numbers is in `conclusions`, comparisons of methods are in `comparisons`.
"""

import json
import statistics
from dataclasses import replace
from functools import reduce
from pathlib import Path

from proxlearn.evaluation.report.comparisons import compare
from proxlearn.evaluation.report.conclusions import conclude
from proxlearn.evaluation.report.counts import Count, Results, first_below
from proxlearn.evaluation.report.verdicts import (
    OPEN,
    PUBLISHED,
    RIGHT,
    SLACK,
    STEPS,
    Verdict,
    ablated,
    against,
    beside_fista,
    both,
    by_preset,
    each,
    in_each_unit,
    joined,
    median,
    runs,
    trained,
    verdict,
    verdict_by_step,
)

CONVERGED, TIGHT = 1e-6, 1e-8
"""What converged means: the level of the verdicts, and that of their column for a tighter one."""

STATED = {
    ("LASSO", "lasso-pa"): {1e-3: 21, 1e-6: 42},
    ("Spambase", "logistic-pa"): {1e-3: 10, 1e-6: 33},
}
"""Table 2: iterations of L2O-PA to each gap."""
ADAMHD = {"LASSO": 477, "Spambase": 390}
"""Table 2: iterations of AdamHD to 1e-3."""
WITHIN = {"logistic": 10, "ionosphere": 100}
"""Section 4.2: iterations in which L2O-PA converges."""
FASTER = {
    "logistic": ("almost 100", 50),
    "ionosphere": ("more than 10", 10),
    "spambase": ("almost 20", 10),
}
"""Section 4.2 and the appendix: how many times faster than FISTA, and the ratio that is needed."""
VARIANTS = ("p", "a", "pa", "pba", "pba1", "pba2", "pba12")
"""Figure 1: what is learned."""
FEWER = "all but PA were trained on a fifth of the paper's minibatches, of smaller problems"
"""Where our training differs from the paper's, so that a verdict is on our weights."""
PLACES = {
    "logistic": "synthetic logistic regression",
    "ionosphere": "Ionosphere",
    "spambase": "Spambase",
}


def judge(folder: Path, converged: float = CONVERGED) -> list[Verdict]:
    """All claims, from the rows in a folder; `converged` is the mean gap that the word means."""
    results = Results(folder, converged)
    found, tighter = _judge(results), _judge(results.at(TIGHT))
    judged = [
        v if v == t else replace(v, tight=t.verdict) for v, t in zip(found, tighter, strict=True)
    ]
    older = {name: earlier_problems(folder, name) for name in {v.experiment for v in judged}}
    return [replace(v, note=joined(v.note, older[v.experiment])) for v in judged]


def _judge(results: Results) -> list[Verdict]:
    """All claims at one level of convergence."""
    return [
        *_ablation(results),
        *_iterations(results),
        *_adamhd(results),
        *_within(results),
        *_faster(results),
        _cifar_early(results),
        _cifar_late(results),
        *conclude(results),
        *compare(results),
    ]


def earlier_problems(folder: Path, experiment: str) -> str:
    """A note where the rows of an experiment are of other problems than it has now."""
    from proxlearn.evaluation import experiments  # needs PyTorch

    file = folder / f"{experiment}.json"
    if experiment not in experiments.NAMES or not file.is_file():
        return ""
    card = json.loads(file.read_text(encoding="utf-8"))
    now = {s.name: s.at(card["scale"]).text for s in experiments.get(experiment).settings}
    then = {p["setting"]: p["data"] for p in card["panels"] if p["setting"] in now}
    changed = dict.fromkeys(text for name, text in then.items() if text != now[name])
    if not changed:
        return ""
    return f"the rows are of problems that the experiment had before: {' and '.join(changed)}"


def _ablation(results: Results) -> list[Verdict]:
    """All variants converge, and learning b1 or b2 does not help."""
    counts, preset = ablated(results, VARIANTS)
    fewer = FEWER if counts["p"].measured and preset == "shipped" else ""
    restarted = str(results.to("ablation", "", "fista-restart", results.converged))
    biased = ("pba1", "pba2", "pba12")
    ends = [None if not c.measured else c.value is not None for c in counts.values()]
    better = [counts["pba"].no_later(counts[v]) for v in biased]
    words = {v: f"{v.upper()} {count}" for v, count in counts.items()}
    ours = ", ".join(words.values())
    fixed = ", ".join(words[v] for v in ("pba", *biased))
    weights = f"{preset}: 1 seed" if counts["p"].measured else ""
    return [
        Verdict("LASSO: all learned variants converge", "ablation", "all converge", ours,
                restarted, verdict(reduce(both, ends)), fewer, weights),
        Verdict("LASSO: fixing b1 = b2 = 0 (PBA) is better than learning them", "ablation",
                "PBA before PBA1, PBA2, PBA12", fixed, restarted, verdict(reduce(both, better)),
                fewer, weights),
    ]  # fmt: skip


def _iterations(results: Results) -> list[Verdict]:
    """Table 2: L2O-PA needs the stated iterations to each gap."""
    found = []
    for (place, optimizer), levels in STATED.items():
        for level, stated in levels.items():
            seeds = trained(results, "runtime", optimizer, level, (place, place))
            ours = seeds.by_preset
            other = results.to("runtime", place, "fista-restart", level)
            holds = {step: count.at_most(SLACK * stated) for step, count in ours.items()}
            found.append(
                Verdict(
                    f"L2O-PA on {place}: iterations to a gap of {level:.0e}".replace("e-0", "e-"),
                    "runtime",
                    str(stated),
                    by_preset(ours),
                    str(other),
                    verdict_by_step(holds),
                    against(ours[RIGHT], other),
                    str(seeds),
                )
            )
    return found


def _adamhd(results: Results) -> list[Verdict]:
    """A baseline, reproduced within a quarter: a slower one would flatter the others.

    It is judged with the values of the paper's code, where that was run, and the tuned one is
    shown beside it.
    """
    found = []
    for place, stated in ADAMHD.items():
        tuned = results.to("runtime", place, "adamhd", 1e-3)
        as_published = results.to("runtime", place, "published-adamhd", 1e-3).measured
        name = "published-adamhd" if as_published else "adamhd"
        ours = results.to("runtime", place, name, 1e-3)
        other = results.to("runtime", place, "fista-restart", 1e-3)
        holds = both(ours.at_most(1.25 * stated), ours.at_least(0.75 * stated))
        note = ""
        if holds is False:
            quicker = ours.at_most(stated)
            note = f"a {'faster' if quicker else 'slower'} baseline than the paper's"
        claim = f"AdamHD on {place}: iterations to a gap of 1e-3"
        words = f"published values: {ours}; tuned: {tuned}" if as_published else str(ours)
        found.append(
            Verdict(claim, "runtime", str(stated), words, str(other), verdict(holds), note)
        )
    return found


def _within(results: Results) -> list[Verdict]:
    """Section 4.2: L2O-PA converges within the stated iterations."""
    found = []
    for experiment, stated in WITHIN.items():
        ours = in_each_unit(results, experiment, "logistic-pa", results.converged)
        other = results.to(experiment, RIGHT, "fista-restart", results.converged)
        right, published = (ours[step].at_most(stated) for step in STEPS)
        found.append(
            Verdict(
                f"L2O-PA on {PLACES[experiment]} converges within {stated} iterations",
                experiment,
                f"within {stated}",
                each(ours),
                str(other),
                verdict_by_step({RIGHT: right, PUBLISHED: published}),
                against(ours[RIGHT], other),
                str(trained(results, experiment, "logistic-pa", results.converged)),
            )
        )
    return found


def _faster(results: Results) -> list[Verdict]:
    """Section 4.2: L2O-PA is faster than FISTA by the stated factor."""
    found = []
    for experiment, (stated, needed) in FASTER.items():
        level = results.converged
        ours = in_each_unit(results, experiment, "logistic-pa", level)
        fista = {step: results.to(experiment, step, "fista", level) for step in STEPS}
        other = results.to(experiment, RIGHT, "fista-restart", level)
        holds = {step: _times_faster(fista[step], ours[step], needed) for step in STEPS}
        found.append(
            Verdict(
                f"L2O-PA on {PLACES[experiment]} is {stated} times faster than FISTA",
                experiment,
                f"{stated}x (judged: at least {needed}x)",
                "; ".join(f"{step}: {_ratio(fista[step], ours[step])}" for step in STEPS),
                _ratio(other, ours[RIGHT]),
                verdict_by_step(holds),
                against(ours[RIGHT], other),
                str(trained(results, experiment, "logistic-pa", level)),
            )
        )
    return found


def _times_faster(other: Count, ours: Count, needed: float) -> bool | None:
    if ours.value is None:
        # The other one was faster, or neither is known to have arrived.
        return False if other.value is not None and ours.looked >= other.value else None
    return other.at_least(needed * max(ours.value, 1))


def _ratio(other: Count, ours: Count) -> str:
    """How many times the iterations the other one takes."""
    if not (other.measured and ours.measured):
        return OPEN
    if ours.value is None:
        return "L2O-PA did not converge"
    if other.value is None:
        return f"over {other.looked / max(ours.value, 1):.3g}x"
    return f"{other.value / max(ours.value, 1):.3g}x"


def _cifar_early(results: Results) -> Verdict:
    """What 25 iterations reach takes FISTA more than 1000."""
    seeds = {step: _after(results, found, 25) for step, found in _pictures(results).items()}
    known = all(seeds.values())

    def count(step: str, name: str) -> Count:
        curve = results.curve("cifar10", step, name)
        counts = [first_below(curve, level) for level in seeds[step]]
        return median(counts or [Count(None, -1)])

    fista = {step: count(step, "fista") for step in STEPS}
    restarted = count(RIGHT, "fista-restart")
    gaps = [f"{statistics.median(seeds[step]):.2g} ({step})" for step in STEPS if known]
    reached = f"L2O-PA's gap after 25 iterations is {' and '.join(gaps)}" if known else ""
    return Verdict(
        "CIFAR-10: what L2O-PA reaches in 25 iterations takes FISTA more than 1000",
        "cifar10",
        "1000+",
        "; ".join(f"{step}: {found}" for step, found in fista.items()),
        str(restarted),
        verdict_by_step({step: found.at_least(1000) for step, found in fista.items()}),
        joined(against(Count(25, 25), restarted), reached) if known else "",
        str(trained(results, "cifar10", "lowlambda-pa", 1e-2)),
    )


def _pictures(results: Results) -> dict[str, list[tuple[str, str]]]:
    return runs(results, "cifar10", "lowlambda-pa")


def _after(results: Results, found: list[tuple[str, str]], k: int) -> list[float]:
    """The gap of every run after k iterations."""
    curves = [results.curve("cifar10", *run) for run in found]
    return [float(curve[k]) for curve in curves if len(curve) > k]


def _cifar_late(results: Results) -> Verdict:
    """1e-2 in 300 iterations against more than 2500."""
    ours = in_each_unit(results, "cifar10", "lowlambda-pa", 1e-2)
    fista = {step: results.to("cifar10", step, "fista", 1e-2) for step in STEPS}
    other = results.to("cifar10", RIGHT, "fista-restart", 1e-2)
    quick = {step: ours[step].at_most(SLACK * 300) for step in STEPS}
    return Verdict(
        "CIFAR-10: to a gap of 1e-2 L2O-PA takes 300 iterations and FISTA more than 2500",
        "cifar10",
        "300 against 2500+",
        beside_fista(ours, fista),
        str(other),
        verdict_by_step({step: both(quick[step], fista[step].at_least(2500)) for step in STEPS}),
        joined(against(ours[RIGHT], other), _from_fista(results)),
        str(trained(results, "cifar10", "lowlambda-pa", 1e-2)),
    )


def _from_fista(results: Results) -> str:
    """The same counts with gaps to the best value of FISTA as published, in words.

    The paper does not say which optimal value it took, and FISTA's was at hand.
    """
    fista = results.curve("cifar10", PUBLISHED, "fista")
    ours = [results.curve("cifar10", *run) for run in _pictures(results)[PUBLISHED]]
    if fista is None or not ours:
        return ""
    best = fista.min()
    level = 1e-2 * (1 + best) + best  # the gap to F* of what is 1e-2 above FISTA's best value
    counts = median([first_below(curve, level) for curve in ours]), first_below(fista, level)
    return "with gaps to FISTA's best value as published: {} against {}".format(*counts)
