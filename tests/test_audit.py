"""The audit: what it measures is what the paper's conditions say."""

import math
from dataclasses import dataclass

import pytest
import torch

import proxlearn as pl
from proxlearn.cli import main
from proxlearn.evaluation import audit
from proxlearn.methods.scheme import Coefficients

RESCALED = {
    "gaussian-lasso": {"A", "b", "lam"},
    "gaussian-elastic-net": {"A", "b", "lam"},
    "gaussian-group-lasso": {"A", "b", "lam"},
    "gaussian-nnls": {"A", "b", "lam"},
    "gaussian-box": {"A", "b", "lam"},
    "gaussian-simplex": {"A", "b", "lam"},
    "gaussian-logistic": {"A"},
    "gaussian-softmax": {"A"},
    "weighted-median": set(),
}


@dataclass(frozen=True)
class Biased:
    """ISTA with b1 = size / (k + 1)^power in every coordinate, and b2 twice that."""

    size: float
    power: int

    looks_at = "y"
    gradients = 1

    def init(self, problem, x0):
        return problem.safe_step()

    def __call__(self, view, step):
        bias = torch.full_like(view.x, self.size / (view.k + 1) ** self.power)
        return Coefficients(p=0.5 * step, b1=bias, b2=2 * bias), step


@pytest.fixture(scope="module")
def case():
    return audit.sample("gaussian-lasso", 3, 0)


@pytest.mark.slow
@pytest.mark.parametrize("family", RESCALED)
def test_the_case_in_other_units_is_the_same_case(family):
    case = audit.sample(family, 2, 0)
    assert {what for what, other in case.rescaled.items() if other is not None} == RESCALED[family]
    for what in RESCALED[family]:
        s, t = audit.RESCALINGS[what]
        other = case.rescaled[what]
        at_start = other.problem.objective(other.start)
        torch.testing.assert_close(at_start, t**2 * case.problem.objective(case.start))
        at_minimiser = other.problem.certificate(other.minimiser)
        torch.testing.assert_close(at_minimiser.objective, other.minimum)
        known = at_minimiser.gap.isfinite()
        assert (at_minimiser.gap[known] <= 1e-9 * other.minimum.abs()[known]).all()
        L, scaled = case.problem.lipschitz(), other.problem.lipschitz()
        torch.testing.assert_close(scaled, s**2 * L)


def test_a_minimiser_is_a_fixed_point_of_the_prox_methods_alone(case):
    for name in ("ista", "fista-restart", "lasso", "lasso-pa"):
        assert audit.drift(case, pl.optimizers.get(name), 30) < 1e-13
    assert audit.drift(case, pl.optimizers.get("subgradient"), 30) > 1e-3


@pytest.mark.slow
def test_biases_that_stay_move_the_minimiser(case):
    staying = audit.measure(case, pl.Scheme(Biased(1e-3, 0)), 20)
    assert staying.drift > 1e-3
    unit = case.minimiser.norm(dim=-1).mean().item()
    expected = 1e-3 * math.sqrt(case.problem.n) / unit
    assert staying.bias["b1"] == pytest.approx((expected, expected))
    vanishing = audit.measure(case, pl.Scheme(Biased(1e-3, 2)), 20)
    assert vanishing.bias["b2"] == pytest.approx((2 * expected, 2 * expected / 400))
    assert vanishing.step == pytest.approx((0.5, 0.5))


def test_a_method_that_breaks_down_drifts_without_bound(case):
    assert audit.drift(case, pl.Scheme(Biased(1e300, -4)), 20) == math.inf


@pytest.mark.slow
def test_iterations_are_those_that_a_comparison_counts(case):
    counted = audit.reach(case, pl.optimizers.get("fista-restart"), 100)
    record = {"tol": 0, "max_iter": 100, "record": True}
    solution = pl.solve(case.problem, "fista-restart", x0=case.start, **record)
    below = solution.history.objective <= case.minimum * (1 + audit.LEVEL)
    assert counted.tolist() == below.double().argmax(0).tolist()
    few = audit.reach(case, pl.optimizers.get("fista-restart"), 5)
    assert few.isinf().all()


def test_started_at_the_minimiser_nothing_is_left_to_do(case):
    there = audit.Case(case.problem, case.minimiser, case.minimum, case.minimiser)
    assert audit.reach(there, pl.optimizers.get("ista"), 5).tolist() == [0, 0, 0]


@pytest.mark.slow
def test_the_compact_rule_knows_no_units_and_the_papers_rule_does():
    found = audit.audit(["lasso", "lasso-pa"], count=3, iterations=80)
    compact, paper = found["lasso"], found["lasso-pa"]
    for k in compact.rescaled.values():
        assert torch.equal(k, compact.iterations)
    assert compact.share == 1
    assert any((k > paper.iterations).any() for k in paper.rescaled.values())
    assert 0 < paper.step[0] < paper.step[1] <= 2


def test_the_jacobian_of_ista_counts_the_coordinates_that_are_not_zero(case):
    few = audit.jacobian(case, pl.rules.Ista(), 1)
    x = pl.solve(case.problem, "ista", x0=case.start, tol=0, max_iter=1, polish=False).x
    share = (x != 0).double().mean(-1).max().item()
    assert few == pytest.approx(math.sqrt(2 * share), rel=1e-6)
    assert few <= audit.jacobian(case, pl.rules.Ista(), 10) <= math.sqrt(2)


def test_the_jacobian_of_a_learned_rule_sees_inputs_that_training_does_not(case):
    rule = pl.load("lasso-pa").rule
    settings = {**vars(rule.settings), "detach_inputs": True}
    detached = type(rule)(type(rule.settings)(**settings))
    detached.load_state_dict(rule.state_dict())
    norm = audit.jacobian(case, rule, 5)
    assert 1 < norm < 100
    assert audit.jacobian(case, detached, 5) == pytest.approx(norm)


def test_outside_the_scheme_there_are_no_coefficients(case):
    found = audit.measure(case, pl.optimizers.get("subgradient"), 3)
    assert found.jacobian is None
    assert found.step is None
    assert found.bias is None


def run(capsys, *arguments):
    code = main(["audit", *arguments, "--count", "2", "--max-iter", "40"])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.slow
def test_the_table_fits_a_screen(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = run(capsys, "ista,lasso, lasso-pa,adam")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert max(len(line) for line in lines) <= 100
    cells = {line.split()[0]: line.split()[1:] for line in lines[4:8]}
    assert list(cells) == ["ista", "lasso", "lasso-pa", "adam"]
    assert cells["ista"][1:] == ["0%", *[">40"] * 4, "1", "1.4", "0", "0"]
    assert cells["lasso"][1] == "100%"
    assert cells["adam"][-4:] == ["-", "-", "-", "-"]


@pytest.mark.slow
def test_what_cannot_be_measured_is_said_in_one_line(capsys):
    code, out, err = run(capsys, "ista,nesterov,lasso-nothing")
    assert code == 1
    assert " ista " in out
    first, second = err.splitlines()
    assert first.startswith("warning: nesterov was not measured: 'nesterov' minimises a smooth f")
    assert "unknown optimizer 'lasso-nothing'" in second
    code, out, err = run(capsys, "lasso-nothing")
    assert (code, out) == (2, "")
    assert err.startswith("error: unknown optimizer 'lasso-nothing'")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[","], ["ista", "--family", "nothing"]])
def test_bad_input(capsys, arguments):
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert err.count("\n") == 1
