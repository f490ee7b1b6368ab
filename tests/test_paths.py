"""Regularisation paths: certified points, the right largest lam, warm starts that pay."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import enet_path, lasso_path

import proxlearn as pl
from proxlearn.problems.penalties import Zero
from proxlearn.solving.paths import lam_max


def data(m=60, n=120, batch=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(m, n, generator=generator, dtype=torch.float64)
    truth = torch.zeros(n, dtype=torch.float64)
    truth[:6] = torch.tensor([3.0, -2.0, 1.5, -1.0, 1.0, 0.5])
    shape = (m,) if batch is None else (batch, m)
    noise = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return A, A @ truth + 0.5 * noise


def test_lasso_path_is_scikit_learns():
    A, b = data()
    path = pl.path(pl.lasso(A, b, lam=1.0), n_lams=20, eps=0.01, tol=1e-10)
    _, expected, _ = lasso_path(
        A.numpy(), b.numpy(), alphas=path.lams.numpy() / len(b), tol=1e-12, max_iter=100_000
    )
    np.testing.assert_allclose(path.lams[0], (A.T @ b).abs().max(), rtol=1e-12)
    np.testing.assert_allclose(path.lams[-1] / path.lams[0], 0.01, rtol=1e-12)
    np.testing.assert_allclose(path.x.T, expected, atol=1e-4)
    assert path.solved
    assert (path.gap <= 1e-10 * path.objective).all()
    assert path.x.shape == (20, 120)
    assert path.lams.shape == (20,)


def test_elastic_net_keeps_its_ratio():
    A, b = data()
    m, ratio = len(b), 0.7
    problem = pl.elastic_net(A, b, lam=ratio, lam2=1 - ratio)
    path = pl.path(problem, n_lams=10, eps=0.01, tol=1e-10)
    _, expected, _ = enet_path(
        A.numpy(),
        b.numpy(),
        l1_ratio=ratio,
        alphas=path.lams.numpy() / (m * ratio),
        tol=1e-12,
        max_iter=100_000,
    )
    np.testing.assert_allclose(path.lams[0], (A.T @ b).abs().max(), rtol=1e-12)
    np.testing.assert_allclose(path.x.T, expected, atol=1e-4)


PROBLEMS = {
    "lasso": lambda A, b: pl.lasso(A, b, 1.0),
    "weighted": lambda A, b: pl.lasso(A, b, 1.0, weights=torch.linspace(0.5, 2, A.shape[1])),
    "intercept": lambda A, b: pl.lasso(with_ones(A), b, 1.0, weights=all_but_last(A)),
    "elastic-net": lambda A, b: pl.elastic_net(A, b, 1.0, 0.5),
    "group-lasso": lambda A, b: pl.group_lasso(A, b, 1.0, torch.arange(A.shape[1]) // 3),
    "logistic": lambda A, b: pl.logistic(A, (b > 1).double(), 1.0),
    "logistic-intercept": lambda A, b: pl.logistic(
        with_ones(A), (b > 1).double(), 1.0, weights=all_but_last(A)
    ),
    "softmax-intercepts": lambda A, b: pl.softmax(
        with_ones(A), (b > -1).double() + (b > 2), 1.0, weights=all_but_last(A).repeat(3)
    ),
}


def with_ones(A):
    return torch.cat([A, torch.ones_like(A[:, :1])], 1)


def all_but_last(A):
    return torch.cat([A.new_ones(A.shape[1]), A.new_zeros(1)])


@pytest.mark.parametrize("name", PROBLEMS)
def test_lam_max_is_where_the_last_coordinate_vanishes(name):
    A, b = data(40, 30)
    problem = PROBLEMS[name](A, b)
    top = float(lam_max(problem))
    path = pl.path(problem, [1.001 * top, 0.99 * top], tol=1e-9, max_iter=20_000)
    penalised = torch.ones(problem.n, dtype=torch.bool)
    if (free := problem.r.free()) is not None:
        penalised = ~free[0]
    assert path.solved
    assert (path.x[0, penalised] == 0).all()
    assert (path.x[1, penalised] != 0).any()


def test_the_ratio_of_float32_numbers_is_kept_in_float64():
    A, b = (array.numpy().astype(np.float32) for array in data(5, 30))
    lam, lam2 = np.float32(0.7), np.float32(0.3)
    path = pl.path(pl.elastic_net(A, b, lam, lam2), [6.0, 0.4], tol=1e-9)
    for x, value, objective in zip(path.x, path.lams, path.objective, strict=True):
        x, r = x.astype(float), A.astype(float) @ x.astype(float) - b
        own = float(np.squeeze(value)) / float(lam)
        F = r @ r / 2 + own * (float(lam) * abs(x).sum() + float(lam2) / 2 * x @ x)
        assert np.squeeze(objective) == pytest.approx(F, rel=1e-13)


def test_groups_of_numbers_whose_squares_overflow_have_a_largest_lam():
    rng = np.random.default_rng(0)
    A, B = 1e150 * rng.standard_normal((7, 5)), 1e40 * rng.standard_normal((7, 3))
    top = np.max(np.linalg.norm(A.T @ B / 1e190, axis=1)) * 1e190
    assert lam_max(pl.multitask_lasso(A, B, lam=1.0)) == pytest.approx(top, rel=1e-12)


def test_each_instance_of_a_batch_gets_the_path_it_gets_alone():
    A, b = data(batch=3)
    together = pl.path(pl.lasso(A, b, 1.0), n_lams=5, eps=0.05, tol=1e-10)
    assert together.x.shape == (5, 3, 120)
    assert together.lams.shape == together.gap.shape == together.grad_evals.shape == (5, 3)
    for i in range(3):
        alone = pl.path(pl.lasso(A, b[i], 1.0), n_lams=5, eps=0.05, tol=1e-10)
        torch.testing.assert_close(alone.lams, together.lams[:, i])
        torch.testing.assert_close(alone.x, together.x[:, i], atol=1e-4, rtol=0)


@pytest.mark.slow
def test_warm_starts_save_gradients():
    A, b = data(60, 120)
    problem = pl.lasso(A, b, 1.0)
    path = pl.path(problem, n_lams=15, eps=0.03, polish=False)
    cold = [pl.solve(pl.lasso(A, b, lam), polish=False) for lam in path.lams]
    assert path.grad_evals.sum() < 0.9 * sum(int(s.grad_evals) for s in cold)


def test_a_target_that_nothing_explains_has_a_path_of_zeros():
    A, _ = data(10, 6)
    path = pl.path(pl.lasso(A, torch.zeros(10), 1.0), n_lams=3)
    assert path.solved
    assert (path.x == 0).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lams": [1.0, 0.0]}, "lams holds 0"),
        ({"lams": [[[1.0]]]}, "lams has shape"),
        ({"lams": []}, "lams has shape"),
        ({"n_lams": 0}, "n_lams is 0"),
        ({"n_lams": "a"}, "n_lams is 'a'; expected a whole number"),
        ({"eps": "a"}, "eps is 'a'; expected a number"),
        ({"threads": "a"}, "threads is 'a'; expected a whole number"),
        ({"threads": 0}, "threads is 0; expected a whole number"),
        ({"eps": 0.0}, "eps is 0"),
        ({"x0": [1.0, 2.0]}, "x0 has shape"),
    ],
)
def test_bad_options_get_one_line(options, words):
    A, b = data(10, 6)
    with pytest.raises(pl.InputError, match=words):
        pl.path(pl.lasso(A, b, 1.0), **options)


def test_a_penalty_without_lam_is_refused():
    A, b = data(10, 6)
    problem = pl.lasso(A, b, 1.0)
    for r in (Zero(), pl.nnls(A, b).r):
        with pytest.raises(pl.InputError, match="has no lam to vary"):
            pl.path(pl.Problem(problem.f, r))
    with pytest.raises(pl.InputError, match="ratio to lam2 is unknown"):
        pl.path(pl.elastic_net(A, b, 0.0, 1.0))
