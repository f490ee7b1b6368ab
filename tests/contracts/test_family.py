"""What every family promises: the same draw again, each instance by itself, nothing global."""

import random

import numpy as np
import pytest
import torch

import proxlearn as pl
from leaves import leaves, same
from proxlearn.errors import InputError
from proxlearn.training import families

SEEDS = [0, 1, 123456789]


@pytest.fixture(params=sorted(families.NAMES))
def family(request):
    return families.get(request.param)


def test_same_seed_same_bits(family):
    for seed in SEEDS:
        first = family.sample(2, seed)
        assert same(first, family.sample(2, seed))
        assert same(first, family.sample(2, torch.Generator().manual_seed(seed)))


def test_different_seeds_differ(family):
    draws = [family.sample(2, seed) for seed in SEEDS]
    assert not any(same(draws[i], draws[j]) for i, j in [(0, 1), (0, 2), (1, 2)])


def test_global_random_state_is_untouched(family):
    def states():
        return torch.get_rng_state(), str(np.random.get_state()), random.getstate()  # noqa: NPY002

    before = states()
    family.sample(2, 0)
    after = states()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


def test_global_random_state_has_no_influence(family):
    first = family.sample(2, 0)
    torch.rand(3)
    assert same(first, family.sample(2, 0))


def test_first_problems_of_a_larger_batch_are_those_of_a_smaller(family):
    large = family.sample(5, 0)
    assert large.batch == 5
    assert same(large.select(torch.arange(3)), family.sample(3, 0))


def test_instances_are_drawn_one_after_the_other(family):
    generator = torch.Generator().manual_seed(3)
    batch = family.sample(3, 3)
    sized = getattr(family, "fixed", lambda _: family)(generator)  # sizes are the batch's
    for i in range(3):
        one = sized.sample(1, generator)
        x = 0.1 * torch.randn(1, one.n, generator=torch.Generator().manual_seed(i))
        x = one.r.prox(x, torch.ones(1, 1))
        ours = batch.select(torch.tensor([i]))
        assert torch.equal(ours.objective(x), one.objective(x))


def test_instances_of_a_batch_differ(family):
    problem = family.sample(3, 0)
    zero = torch.zeros(3, problem.n)
    seen = problem.f.grad(zero)
    if problem.f.gradients_are_free:  # all that can differ is the penalty
        seen = problem.r.prox(zero, torch.ones(3, 1))
    assert (seen[0] != seen[1]).any()
    assert (seen[1] != seen[2]).any()


def test_dtype_and_device(family):
    single = family.sample(2, 0)
    double = family.sample(2, 0, dtype=torch.float64, device="cpu")
    assert single.dtype == torch.float32
    assert double.dtype == torch.float64
    assert double.device == torch.device("cpu")
    assert all(t.dtype == torch.float64 for t in leaves(double) if t.is_floating_point())
    assert same(double, single.to(torch.float64))


@pytest.mark.slow
def test_problems_can_be_solved(family):
    problem = family.sample(3, 0, dtype=torch.float64)
    solution = pl.solve(problem, tol=1e-4, max_iter=5000)
    assert solution.solved, solution
    assert (solution.objective < problem.objective(torch.zeros(3, problem.n).double())).all()


def test_families_are_frozen_and_found_by_name(family):
    assert families.get(family) is family
    with pytest.raises(AttributeError):
        family.m = 3


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match=r"unknown family 'lasso'.*gaussian-lasso"):
        families.get("lasso")


def test_gaussian_lasso_is_that_of_the_paper():
    family = families.GaussianLasso()
    A, b = zip(*(family.draw(torch.Generator().manual_seed(s)) for s in range(20)), strict=True)
    A, b = torch.stack(A).double(), torch.stack(b).double()
    assert A.shape == (20, 250, 500)
    assert (A.norm(dim=1) - 1).abs().max() < 1e-6
    entries = A.flatten() * 250**0.5  # unit columns of normal numbers: variance 1/250
    assert abs(entries.mean()) < 0.01
    assert abs(entries.square().mean() - 1) < 1e-6
    assert abs(entries.pow(4).mean() - 3) < 0.05  # normal, not uniform (1.8) or signs (1)
    problem = family.sample(20, 0)
    assert torch.equal(problem.r.lam, torch.full((20,), 0.1))
    assert problem.r.weights is None


def test_gaussian_lasso_target_is_a_of_fifty_normal_numbers():
    family = families.GaussianLasso()
    values, counts = [], torch.zeros(500)
    for seed in range(60):
        truth = family.truth(torch.Generator().manual_seed(seed))
        assert (truth != 0).sum() == 50
        values.append(truth[truth != 0])
        counts += truth != 0
    values = torch.cat(values)  # 3,000 numbers
    assert abs(values.mean()) < 0.08
    assert abs(values.std() - 1) < 0.06
    assert abs(values.pow(4).mean() - 3) < 0.6
    assert (counts > 0).sum() > 490  # uniform positions: an entry is missed with chance 0.9^60

    generator = torch.Generator().manual_seed(0)
    A, b = family.draw(generator)
    again = torch.Generator().manual_seed(0)
    torch.randn(250, 500, generator=again)
    assert (A @ family.truth(again) - b).abs().max() < 1e-5


def test_gaussian_logistic_is_that_of_the_paper():
    family = families.GaussianLogistic()
    problem = family.sample(8, 0)
    A, b = problem.f.A.A, problem.f.b
    assert A.shape == (8, 1000, 50)
    assert abs(A.mean()) < 0.01
    assert abs(A.std() - 1) < 0.01  # features are not normalised
    assert torch.equal(problem.r.lam, torch.full((8,), 0.1))
    generator = torch.Generator().manual_seed(0)
    for i in range(8):
        assert torch.equal(torch.randn(1000, 50, generator=generator), A[i])
        truth = torch.zeros(50)
        where = torch.randperm(50, generator=generator)[:20]
        truth[where] = torch.randn(20, generator=generator)
        assert torch.equal(b[i], (A[i] @ truth >= 0).float())
    # F of the appendix: the mean log loss of the labels, plus lambda times the l1 norm.
    x = torch.randn(8, 50, generator=generator).double() / 5
    h = torch.sigmoid(torch.einsum("bmn,bn->bm", A.double(), x))
    F = -torch.where(b == 1, h, 1 - h).log().mean(1) + 0.1 * x.abs().sum(1)
    assert torch.allclose(problem.to(torch.float64).objective(x), F, rtol=1e-6)


@pytest.mark.parametrize(
    "name",
    ["gaussian-least-squares", pytest.param("gaussian-ridge-logistic", marks=pytest.mark.slow)],
)
def test_smooth_families_are_smooth_and_ill_conditioned(name):
    problem = families.get(name).sample(4, 0, dtype=torch.float64)
    assert isinstance(problem.r, pl.penalties.Zero)
    x = pl.solve(problem, tol=1e-8, max_iter=5000).x
    for i in range(4):
        one = problem.select(torch.tensor([i]))
        H = torch.autograd.functional.hessian(lambda x, f=one.f: f.value(x).sum(), x[i : i + 1])
        curvature = torch.linalg.eigvalsh(H[0, :, 0])
        L = problem.lipschitz()[i]
        assert curvature[-1] <= L * (1 + 1e-9)
        assert L / curvature[0] > 100


def test_ridge_logistic_is_its_formula():
    family = families.GaussianRidgeLogistic(m=20, n=5, ridge=0.3)
    A, b = family.draw(torch.Generator().manual_seed(0))
    x = torch.randn(1, 5, generator=torch.Generator().manual_seed(1)).double()
    A, b = A.double(), b.double()
    h = torch.sigmoid(A @ x[0])
    F = -torch.where(b == 1, h, 1 - h).log().mean() + 0.15 * x.square().sum()
    grad = A.T @ (h - b) / 20 + 0.3 * x[0]
    problem = family.sample(1, 0, dtype=torch.float64)
    torch.testing.assert_close(problem.objective(x)[0], F, rtol=1e-7, atol=0)
    torch.testing.assert_close(problem.f.grad(x)[0], grad, rtol=1e-6, atol=1e-7)


def test_weighted_medians_are_solved_by_sorting():
    problem = families.WeightedMedian(n=6).sample(2, 0, dtype=torch.float64)
    c, order = problem.r.centres.sort(-1)
    passed = problem.r.weights.gather(-1, order).cumsum(-1)
    half = (passed >= passed[..., -1:] / 2).to(torch.int64).argmax(-1, keepdim=True)
    solution = pl.solve(problem, tol=1e-12, max_iter=5000)
    assert solution.solved
    torch.testing.assert_close(solution.x, c.gather(-1, half)[..., 0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian-simplex", "gaussian-nnls"])
def test_true_answers_are_feasible(name):
    family = families.get(name)
    truth = family.truth(torch.Generator().manual_seed(0))
    assert family.sample(1, 0).r.value(truth[None]) == 0
    assert (truth != 0).sum() == family.nonzeros


def test_an_empty_batch_is_refused_in_words():
    with pytest.raises(InputError, match="batch is 0"):
        families.get("gaussian-lasso").sample(0, 0)
