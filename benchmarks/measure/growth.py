"""Growth of the time with m, n and the number of problems: slopes of log(time) over log(size)."""

from functools import partial

import numpy as np
from sklearn.linear_model import enet_path

from measure import tables
from measure.calibration import Cache
from measure.clock import in_turns
from measure.data import simulated
from measure.race import Rules, row
from measure.rows import Row, make

SHARE = 0.1
BASE_M, BASE_N = 250, 500
DOUBLINGS = 4
COUNTS = (1, 4, 16, 64)
BATCH = (100, 200)
"""m and n of the problems that share A."""


def exponent(sizes, seconds) -> float:
    """The slope by least squares; not a number unless all sizes were solved."""
    if not np.isfinite(seconds).all():
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def sizes_of(grows: str, doublings: int) -> list[tuple[int, int]]:
    steps = [2**k for k in range(doublings + 1)]
    if grows == "m":
        return [(BASE_M * k, BASE_N) for k in steps]
    return [(BASE_M, BASE_N * k) for k in steps]


def single(grows: str, own: dict, rules: Rules, cache: Cache, report, options) -> dict:
    """Seconds of each solver for one problem while m or n is doubled."""
    seconds: dict[str, list[float]] = {}
    sizes = sizes_of(grows, 2 if options.quick else DOUBLINGS)
    for m, n in sizes:
        name = f"growth {m}x{n} {SHARE:g}"
        task = make(name, "lasso", simulated(name, m, n), SHARE)
        entries = row(task, own, rules, cache, report.say)
        held = tables.record(Row("lasso", f"{m}x{n}", SHARE), task, entries, "proxlearn",
                             options.statistic, options.target)  # fmt: skip
        times = {k: v["seconds"] for k, v in held["ratios"].items() if not v["bound"]}
        times["proxlearn"] = held["seconds"] if held["solved"] else None
        for solver in ("proxlearn", *tables.COLUMNS, "prototype"):
            seconds.setdefault(solver, []).append(times.get(solver) or np.nan)
    return {"grows": grows, "sizes": [s[grows == "n"] for s in sizes], "seconds": seconds}


def many(own: dict, options, cpu: bool) -> dict:
    """Seconds for problems that share A: one call of ours, and scikit-learn one by one."""
    m, n = BATCH
    data = simulated("batch", m, n)
    draw = np.random.default_rng(0)
    seconds: dict[str, list[float]] = {"proxlearn": [], "scikit-learn": []}
    lam = SHARE * np.abs(data.X.T @ data.target).max()
    counts = COUNTS[:2] if options.quick else COUNTS
    for count in counts:
        Y = data.target + 0.3 * data.target.std() * draw.standard_normal((count, m))

        def loop(Y=Y) -> None:
            for y in Y:
                enet_path(data.X, y, l1_ratio=1.0, alphas=[lam / m], tol=1e-7, check_input=False,
                          copy_X=False, precompute=False, max_iter=10**6)  # fmt: skip

        ours = partial(own["proxlearn"].batch, data.X, Y, lam, options.target)
        for name, spent in zip(seconds, in_turns([ours, loop], cpu=cpu)[0], strict=True):
            seconds[name].append(min(spent))
    return {"grows": "problems", "sizes": list(counts), "seconds": seconds}


def main(options, report) -> int:
    own = report.adapters()
    rules = Rules(options.target, options.cap, peers=options.peers, cpu=report.cpu)
    cache = Cache(options.cache)
    results = [single(grows, own, rules, cache, report, options) for grows in ("m", "n")]
    results.append(many(own, options, report.cpu))
    lines = []
    for found in results:
        for solver, seconds in found["seconds"].items():
            if np.isfinite(seconds).any():
                first, last = found["sizes"][0], found["sizes"][-1]
                slope = exponent(found["sizes"], seconds)
                ms = [f"{1e3 * s:.3g}" for s in (seconds[0], seconds[-1])]
                lines.append([found["grows"], solver, str(first), str(last), *ms, f"{slope:.2f}"])
    head = ["grows", "solver", "from", "to", "first ms", "last ms", "exponent"]
    report.finish("growth", "Time against one size", head, lines, results, left=2)
    return 0
