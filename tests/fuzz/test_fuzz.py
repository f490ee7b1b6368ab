"""A short run of the fuzz, and that it would notice a wrong answer."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import proxlearn as pl
from fuzz import check
from fuzz.command import main
from fuzz.draw import KINDS, draw
from fuzz.plain import LONG

COUNT = 60


def test_every_solved_is_true(tmp_path, capsys):
    failures = tmp_path / "failures.txt"
    code = main(["--count", str(COUNT), "--seed", "7", "--failures", str(failures)])
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert not failures.exists()
    last = next(line for line in printed.splitlines() if line.startswith("all"))
    assert int(last.split()[1]) == COUNT
    assert int(last.split()[3]) >= 0.7 * int(last.split()[2])  # most are SOLVED


def test_all_constructors_are_drawn_and_an_instance_is_the_same_again():
    drawn = [draw(7, i) for i in range(200)]
    assert {instance.kind for instance in drawn} == set(KINDS)
    texts = " ".join(instance.text for instance in drawn)
    for word in ("float32", "sparse=True", "own=True", "exact fit", "columns 150", "m=1 ", "n=1 "):
        assert word in texts
    again = draw(7, 3).plains()[0]
    assert (again.A == drawn[3].plains()[0].A).all()


def test_the_plain_formula_is_the_problem_s():
    for i in range(120):
        instance = draw(11, i)
        if "150" in instance.text or "common" in instance.text or "entries" in instance.text:
            continue
        if instance.kind == "poisson" and "columns" in instance.text:
            continue  # the rounding of large predictions is large once it is exponentiated
        try:
            problem = instance.build().to(torch.float64)
        except pl.InputError:
            continue
        for k, plain in enumerate(instance.plains()):
            one = problem.select(torch.tensor([k])) if problem.batch > 1 else problem
            step = plain.prox(np.ones(plain.n, LONG), LONG(1)).astype(float)
            x = one.nearest_to_zero() + 0.1 * torch.from_numpy(step)
            x = one.r.prox(x, torch.ones(1, 1, dtype=torch.float64))
            row = x[0].numpy().astype(LONG)
            assert one.objective(x).item() == pytest.approx(float(plain.value(row)), rel=1e-9)
            np.testing.assert_allclose(
                one.f.grad(x)[0], plain.grad(row).astype(float), rtol=1e-6, atol=1e-9
            )


@pytest.mark.parametrize("fault", ["gap", "point", "objective", "crash"])
def test_a_fault_is_noticed(monkeypatch, fault):
    true = pl.solve

    def faulty(problem, **options):
        solution = true(problem, **options)
        if fault == "crash":
            raise ZeroDivisionError
        if fault == "gap":
            return replace(solution, gap=solution.gap + 1 + solution.objective)
        if fault == "objective":
            return replace(solution, objective=0.9 * solution.objective)
        worse = problem.nearest_to_zero().reshape(solution.x.shape)
        return replace(
            solution,
            x=worse,
            objective=problem.certificate(worse.reshape(problem.batch, -1)).objective,
        )

    def fits(instance):
        words = ("B=1 own=False", "plain", "float64 none")
        if instance.kind != "lasso" or not all(word in instance.text for word in words):
            return False
        return bool(np.any(true(instance.build(), tol=1e-6).x))  # 0 would be no worse a point

    number = next(i for i in range(999) if fits(draw(7, i)))
    assert not check.run(7, number, max_iter=200).wrong
    monkeypatch.setattr(pl, "solve", faulty)
    assert check.run(7, number, max_iter=200).wrong


def test_float32_answers_without_a_gap_are_checked_after_rounding():
    """Non-negative least squares whose violations are small until x is rounded to float32."""
    assert main(["--source", "small", "--seed", "4242", "--first", "7475", "--count", "1"]) == 0


def test_a_dual_point_whose_length_overflows_bounds_nothing():
    """Poisson regression with an unpenalised column; the checks of the fuzz did not see how far."""
    A = np.array([[-0.72187792, -0.26711109, 0.0], [0.0, -1.632232, 2.94859062]])
    b, weights = [0.151004237, 1.98333257e-07], [0.50921168, 2.54415342, 0.0]
    solution = pl.solve(pl.poisson(A, b, 0.00014743, weights=weights), tol=1e-6)
    best = pl.solve(pl.poisson(A, b, 0.00014743, weights=weights), tol=1e-6, x0=[2.6, 0, -5.2])
    assert best.solved
    assert solution.objective - solution.gap <= best.objective
    assert not solution.solved or solution.objective <= best.objective * (1 + 2e-6)


@pytest.mark.parametrize("number", [43101, 65265, 78155])
def test_gaps_count_what_unpenalised_columns_lose(number):
    """Poisson regression whose dual point is orthogonal to unpenalised columns to rounding only."""
    assert (
        main(["--source", "small", "--seed", "90210", "--first", str(number), "--count", "1"]) == 0
    )


def test_rounding_at_the_simplex_s_centre_allows_no_gap():
    """Opposite columns beside a target of 1e-81 of their size: A x is rounding at the centre."""
    assert main(["--source", "small", "--seed", "118", "--first", "29675", "--count", "1"]) == 0


def test_gaps_count_what_is_lost_on_separable_data():
    """Softmax whose classes unpenalised columns separate: no minimiser, and x is far from far."""
    assert main(["--seed", "60602", "--source", "small", "--first", "2420", "--count", "1"]) == 0


def test_opposite_columns_of_nnls_do_not_lead_away():
    """Working sets with c and -c in them: F was 1e109, and infinite in float32."""
    assert main(["--source", "large", "--seed", "71101", "--first", "1757", "--count", "1"]) == 0


@pytest.mark.parametrize("number", [172, 3018])
def test_gaps_measure_what_unpenalised_columns_of_classes_lose(number):
    """Softmax with columns of wild entries, and separable data: 5e-6 off with a gap of 2e-8."""
    assert (
        main(["--source", "small", "--seed", "71101", "--first", str(number), "--count", "1"]) == 0
    )


def test_the_rounding_of_an_intercept_does_not_unsolve_a_fit():
    """Data in float32 around 1e6, for which a float32 intercept left 6 times the tolerance."""
    numbers = ["--seed", "71101", "--first", "1687", "--count", "1"]
    assert main(["--source", "estimators", *numbers]) == 0


def test_the_tolerance_of_a_robust_fit_is_relative_to_all_of_its_objective():
    """With the scale's own term, beside which the errors of this exact fit are small."""
    numbers = ["--seed", "19112", "--first", "279", "--count", "1"]
    assert main(["--source", "estimators", *numbers]) == 0


def test_what_was_counted_before_an_interruption_is_printed(monkeypatch, capsys, tmp_path):
    def run(seed, number, **options):
        if number == 2:
            raise KeyboardInterrupt
        return check.Verdict("lasso", f"{number}", ["SOLVED"])

    monkeypatch.setattr("fuzz.command.run", run)
    main(["--count", "9", "--failures", str(tmp_path / "failures.txt")])
    assert "2 problems in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seed", "number"),
    [
        (191126, 3477),  # Poisson's deviance beside counts of 80,000, as the fuzz computes it
        (191126, 6230),  # the largest lam of groups whose squares overflow
        (191126, 11950),  # lam2 / lam of a path in float32
        (261119, 9753),  # an objective from the Gram matrix that is small beside b'b
        (261119, 29878),  # sweeps that failed for the problem before in the batch
        (261119, 31790),  # the length of a group of numbers whose squares underflow
        (261119, 35375),  # an overflow in the start of Huber regression
        (261119, 10615),  # the intercepts of several targets, rounded to float32
        (261119, 42167),  # the same
        (261119, 31631),  # the same at an objective of 3e9
        (261119, 15746),  # a slope of unpenalised columns of classes that is more than rounding
        (261119, 30255),  # a float32 intercept of separable classes
        (261119, 34007),  # squares of A that overflow, with an l2 penalty alone
        (261119, 37438),  # an extrapolated point beside the simplex taken for the best one
        (20261120, 5206),  # the rounding of one class measured by the entries of all of them
        (20261120, 49839),  # dual points of l2 problems whose sum is 0 to rounding only
        (20261120, 35295),  # without a penalty, the gradient at 0 of centred columns, in the fuzz
        (31120, 14462),  # dual points of classes, behind products, whose sum was 0 to rounding only
        (41120, 11711),  # sparse columns without zeros, with means a million times the deviations
        (112002, 3335),  # Huber regression whose scale goes to 0
        (112002, 3735),  # as 35295 above
        (20261120, 35878),  # an answer that is no number is the same with two threads, in the fuzz
    ],
)
def test_what_was_reported_in_november_2026_is_right(seed, number):
    assert main(["--seed", str(seed), "--first", str(number), "--count", "1"]) == 0
