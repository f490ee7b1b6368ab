"""The benchmark of everyday problems: right gaps, honest searches, narrow tables."""

import json
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import everyday
from measure import clock, defaults, gaps, growth, tables
from measure.calibration import Cache, Found, search
from measure.data import simulated
from measure.further import FURTHER
from measure.race import Entry, Rules, row
from measure.rows import KINDS, OPTIONS, SIZES, Row, make, rows
from measure.solvers import PACKAGES, PEERS, celer, scikit, spams, variants
from measure.solvers.ours import Proxlearn
from measure.solvers.prototype import Prototype
from measure.solvers.variant import Variant
from measure.task import Answer

import conic as cp

SINGLE = [kind for kind in KINDS if kind not in ("path", "cv", "logistic-path")]


@cache
def tiny(kind, sparse=False):
    data = simulated("tiny", 30, 8, 0.5)
    if sparse:
        data.X[np.abs(data.X) < 0.5] = 0
        object.__setattr__(data, "X", sp.csc_matrix(data.X))
    return make(f"{kind} tiny 0.1", kind, data, 0.1, points=4)


def minimised(task):
    """The minimiser, by a conic solver."""
    w, c = cp.Variable(task.n), cp.Variable()
    z = task.X @ w + (c if task.intercept else 0)
    if task.loss == "logistic":
        f = cp.sum(cp.logistic(-cp.multiply(task.y, z))) / task.m
    else:
        f = 0.5 * cp.sum_squares(z - task.y)
    r = task.lam * cp.norm1(w) + 0.5 * task.l2_ratio * task.lam * cp.sum_squares(w)
    problem = cp.Problem(cp.Minimize(f + r), [w >= 0] if task.positive else [])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    coef = np.maximum(w.value, 0) if task.positive else w.value
    return Answer.one(coef, c.value if task.intercept else 0.0), problem.value


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", SINGLE)
def test_a_gap_is_small_at_the_minimiser_and_never_below_the_suboptimality(kind, sparse):
    task = tiny(kind, sparse)
    answer, optimum = minimised(task)
    assert task.gap(answer) < 1e-5  # the conic solver's point is slightly infeasible in the dual
    draw = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 10.0):
        coef = answer.coefs[0] + size * draw.standard_normal(task.n)
        coef = np.abs(coef) if task.positive else coef
        shift = answer.intercepts[0] + size * draw.standard_normal() * task.intercept
        value = objective(task, coef, shift)
        assert task.gap(Answer.one(coef, shift)) >= (value - optimum) / value * (1 - 1e-6) > 0


def objective(task, w, c):
    z = task.X @ w + c
    if task.loss == "logistic":
        f = np.logaddexp(0, -task.y * z).mean()
    else:
        f = 0.5 * np.square(z - task.y).sum()
    return f + task.lam * (np.abs(w).sum() + 0.5 * task.l2_ratio * w @ w)


@pytest.mark.parametrize("kind", SINGLE)
def test_lam_max_is_the_smallest_lam_without_non_zeros(kind):
    data, options = simulated("tiny", 30, 8, 0.5), OPTIONS[kind]
    for share, zero in ((1.001, True), (0.98, False)):
        task = make("x", kind, data, share)
        c = 0.0
        if options.get("intercept"):
            chance = (task.y > 0).mean()
            logistic = task.loss == "logistic"
            c = np.log(chance / (1 - chance)) if logistic else task.y.mean()
        assert (task.gap(Answer.one(np.zeros(task.n), c)) < 1e-9) == zero


def test_gaps_refuse_what_is_not_feasible_or_not_finite():
    X, y = np.eye(2), np.ones(2)
    assert gaps.squares(X, y, np.array([-1e-9, 0]), 0.0, 0.1, positive=True) == np.inf
    assert gaps.squares(X, y, np.array([np.nan, 0]), 0.0, 0.1) == np.inf
    assert gaps.logistic(X, y, np.zeros(2), np.nan, 0.1, intercept=True) == np.inf


def test_balanced_dual_variables_are_feasible_even_for_a_bad_intercept():
    draw = np.random.default_rng(0)
    y = np.where(draw.random(50) < 0.1, 1.0, -1.0)
    for c in (0.0, 30.0, -700.0):
        t = gaps.balanced(y, draw.standard_normal(50), c)
        assert abs((y * t).sum()) < 1e-12
        assert ((t >= 0) & (t <= 1)).all()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("module", [scikit, celer, spams], ids=lambda m: m.NAME)
def test_every_setting_of_a_peer_solves_the_same_problem(module, kind, sparse):
    # skglm is left out: compiling it takes half a minute for each kind.
    task = tiny(kind, sparse)
    for variant in module.variants(task):
        prepared, tol = variant.prepare(task), variant.grid[-1] if len(variant.grid) == 1 else 1e-9
        gap = variant.gap(task, prepared, tol, variant.run(prepared, tol))
        assert gap < 1e-4, variant.settings


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ours_solves_every_kind(kind):
    task = tiny(kind)
    entries = row(task, {"proxlearn": Proxlearn()}, Rules(budget=0, peers=()), Cache(None))
    assert [e.name for e in entries] == ["proxlearn"]
    assert entries[0].gap <= 1e-6
    assert len(entries[0].seconds) >= 3


class Careless:
    """A cross-validation with the right fit and errors that are 5% off."""

    def cv(self, X, y, alphas, folds, tol):
        task = tiny("cv")
        variant = celer.variants(task)[0]
        found = variant.run(variant.prepare(task), 1e-9)
        return 1.05 * found.mse, found.coef, found.intercept


@pytest.mark.slow
def test_a_cross_validation_is_judged_by_its_fit_and_its_errors():
    task = tiny("cv")
    alone = row(task, {"proxlearn": Careless()}, Rules(budget=0, peers=()), Cache(None))[0]
    assert alone.gap <= 1e-6
    assert alone.found.note == "only its last fit is judged"
    beside = row(task, {"proxlearn": Careless()}, Rules(budget=0, peers=("celer",)), Cache(None))
    assert beside[0].gap == np.inf
    assert min(e.gap for e in beside if e.name == "celer") <= 1e-6


def settling(seconds=0.0):
    """A solver whose gap is its tolerance, after some time."""
    task = tiny("lasso")
    answer, _ = minimised(task)

    def run(prepared, tol):
        began = time.process_time()
        while time.process_time() - began < seconds:
            pass
        return Answer(answer.coefs * (1 + tol), answer.intercepts)

    return task, Variant("celer", "fake", lambda task: task, run)


def test_a_search_finds_the_loosest_tolerance():
    task, variant = settling()
    target = task.gap(variant.run(task, 2e-3))
    found = search(variant, task, target, limit=5.0)
    assert found.tol == pytest.approx(1e-3)
    assert found.gap <= target


@pytest.mark.slow
def test_a_search_is_given_up_at_its_limit():
    task, variant = settling(seconds=30)
    began = time.perf_counter()
    found = search(variant, task, 1e-3, limit=0.2)
    assert found.tol is None
    assert found.note == "over 0.2 s"
    assert time.perf_counter() - began < 10


def test_a_solver_that_raises_or_crashes_is_reported():
    task = tiny("lasso")
    broken = Variant("celer", "fake", lambda task: task, lambda task, tol: [][0])
    assert search(broken, task, 1e-6, 1.0).note.startswith("IndexError")
    crash = Variant(
        "celer", "fake", lambda task: task, lambda task, tol: sys.modules["os"]._exit(3)
    )
    assert search(crash, task, 1e-6, 1.0).note == "crashed"


def test_the_cache_keeps_results_and_forgets_searches_given_up_earlier(tmp_path):
    file, task = tmp_path / "cache.json", tiny("lasso")
    variant = celer.variants(task)[0]
    cache = Cache(file)
    key = cache.key(variant, "celer", task, 1e-6)
    cache.put(key, Found(1e-4, 0.5, 1e-7))
    assert Cache(file).get(key, 20.0) == Found(1e-4, 0.5, 1e-7)
    cache.put(key, Found(None, 1.0, np.inf, "over 1 s", 1.0))
    assert Cache(file).get(key, 1.0).note == "over 1 s"
    assert Cache(file).get(key, 20.0) is None
    other = make(task.name, "lasso", simulated("tiny", 30, 8, 0.4), 0.1)
    assert cache.key(variant, "celer", other, 1e-6) != key


def test_runs_take_turns_and_short_ones_are_repeated():
    order = []
    seconds, results = clock.in_turns(
        [lambda: order.append("a"), lambda: order.append("b") or 7], least=[3, 1], budget=0, most=9
    )
    assert [len(s) for s in seconds] == [3, 1]
    assert results == [None, 7]
    assert order == ["a", "b", "a", "b", "a", "a"]


def entry(name, seconds, gap=1e-7, note="", limit=20.0):
    variant = Variant(name, "s", None, None)
    found = Found(1e-6 if seconds else None, 1.0, gap, note, limit)
    return Entry(variant, found, seconds=seconds, gap=gap if seconds else np.inf)


def recorded(*entries, place=None):
    place = place or Row("lasso", "100x10000", 0.01)
    return tables.record(place, tiny("lasso"), list(entries), "proxlearn", "min", 1e-6)


def test_ratios_are_times_over_ours_and_bounds_where_a_peer_was_given_up():
    held = recorded(
        entry("proxlearn", [0.2, 0.1]),
        entry("celer", [0.5]),
        entry("celer", [0.3]),
        entry("SPAMS", [], note="over 20 s"),
    )
    assert held["best_peer"] == "celer"
    assert held["ratio"] == pytest.approx(3.0)
    head = tables.headers([held])
    assert tables.line(held, head) == ["100x10000", "0.01", "100", "-", "3.00", "-", ">200", "3.00"]
    json.dumps(held, allow_nan=False)


def test_a_row_that_ours_does_not_solve_counts_as_below_one():
    given_up = entry("SPAMS", [], note="over 20 s")
    held = recorded(entry("proxlearn", [0.1], gap=1e-3), entry("celer", [0.5]), given_up)
    assert not held["solved"]
    assert tables.line(held, tables.headers([held]))[3:] == ["-", "-", "-", "-", "failed"]
    assert tables.summary([held])[-1][:5] == ["all", "1", "1", "0", "0"]


def test_the_report_fits_80_columns():
    peers = [entry(n, [1234.5]) for n in (*tables.COLUMNS, "prototype")]
    held = [
        recorded(entry("proxlearn", [0.01]), *peers, place=Row(kind, "100x10000", 0.001))
        for kind in KINDS
    ]
    text = tables.report(held)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("\n| ") == 0
    assert tables.report(held, tables.markdown).count("\n| ---") == len(KINDS) + 1


def test_rows_cover_every_kind_and_data_set():
    names = [r.name for r in rows()]
    assert len(names) == len(set(names))
    assert {r.data for r in rows()} == set(SIZES)
    assert {r.kind for r in rows(quick=True)} == set(KINDS)
    assert [r.name for r in rows(("lasso",), "diab")] == [
        f"lasso diabetes {s}" for s in ("0.5", "0.1", "0.01", "0.001")
    ]


@pytest.mark.slow
def test_the_command_writes_tables_and_results(tmp_path, capsys):
    out, page = tmp_path / "out.json", tmp_path / "page.md"
    arguments = ["--quick", "--kind", "lasso", "--only", "diabetes", "--peers", "scikit-learn"]
    files = ["--cache", tmp_path / "cache.json", "--json", out, "--markdown", page]
    assert everyday.main([*arguments, *map(str, files)]) == 0
    held = json.loads(out.read_text())
    assert held["versions"]["scikit-learn"] == everyday.installed("scikit-learn")
    assert {"command", "date", "machine"} < set(held)
    assert held["results"][0]["best_peer"] == "scikit-learn"
    assert "| diabetes | 0.1 |" in page.read_text()
    assert "Best peer's time over ours" in capsys.readouterr().out


def test_unknown_names_list_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        everyday.main(["--kind", "ridge"])
    assert "expected some of lasso,lasso-c" in capsys.readouterr().err


PROTOTYPE = """
import numba
import numpy as np

@numba.njit(cache=True)
def zeros(n):
    return np.zeros(n)

def lasso(X, y, lam, tol):
    return zeros(X.shape[1])
"""


@pytest.mark.slow
def test_a_prototype_races_in_the_rows_it_supports_and_its_folder_stays_clean(tmp_path):
    file = tmp_path / "method.py"
    file.write_text(PROTOTYPE)
    own = {"prototype": Prototype(file)}
    rules = Rules(target=1.0, budget=0, peers=())
    assert row(tiny("lasso"), own, rules, Cache(None))[0].seconds
    assert row(tiny("lasso-c"), own, rules, Cache(None))[0].found.note == "not supported"
    assert list(tmp_path.iterdir()) == [file]


def test_growth_is_the_slope():
    assert growth.exponent([1, 2, 4], [1.0, 4.0, 16.0]) == pytest.approx(2)
    assert np.isnan(growth.exponent([1, 2], [1.0, np.nan]))


def test_default_calls_are_scored_with_their_own_objective():
    data = simulated("tiny", 30, 8, 0.5)
    for call in (
        defaults.Call("Lasso", "tiny", {"alpha": 0.1}),
        defaults.Call("ElasticNet", "tiny", {"alpha": 0.1}),
        defaults.Call("LogisticRegression", "tiny", {"C": 1.0}),
    ):
        y = data.labels if call.estimator == "LogisticRegression" else data.target
        model = defaults.estimator("proxlearn", call, len(y)).fit(data.X, y)
        assert defaults.gap_left(call, data, y, model) <= 1e-6


def test_peers_have_packages_whose_versions_are_recorded():
    assert set(PEERS) == set(tables.COLUMNS)
    assert all(everyday.installed(module.PACKAGE) for module in PEERS.values())
    assert variants(tiny("lasso"), ("celer",))[0].solver == "celer"


@pytest.mark.parametrize("kind", FURTHER)
def test_further_kinds_have_one_objective_for_all(kind):
    """The objective here is that of proxlearn's certificate, and every peer can reach it.

    skglm is left out: compiling it takes half a minute for each kind.
    """
    task = FURTHER[kind].make("tiny", simulated("tiny", 40, 14), 0.1)
    value, gap = FURTHER[kind].certified(task)
    ours = np.ravel(FURTHER[kind].ours(task, 1e-9))
    assert FURTHER[kind].objective(task, ours) == pytest.approx(value, rel=1e-8)
    assert gap <= 1e-8 * value
    for variant in variants(task, tuple(name for name in PACKAGES if name != "skglm")):
        found = variant.run(variant.prepare(task), variant.grid[-8 % len(variant.grid)])
        assert -1e-9 <= variant.gap(task, None, 0.0, found) <= 1e-3, variant.settings
