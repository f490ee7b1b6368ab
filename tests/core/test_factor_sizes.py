"""Gram matrices and Cholesky factors are summed in blocks: each size gives the minimiser."""

import numpy as np
import pytest

import proxlearn as pl


@pytest.mark.parametrize("order", ["F", "C"])
@pytest.mark.parametrize("k", [1, 7, 8, 9, 16, 23, 24, 25, 40, 161, 330])
@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_all_columns_in_the_support(order, k, l2):
    rng = np.random.default_rng(k)
    A = np.asarray(rng.standard_normal((2 * k + 3, k)), order=order)
    b = A @ rng.choice([-1.0, 1.0], k) + 0.01 * rng.standard_normal(len(A))
    problem = pl.elastic_net(A, b, 0.1, l2) if l2 else pl.lasso(A, b, 0.1)
    found = pl.solve(problem, tol=1e-10)
    assert found.solved
    assert (found.x != 0).all()
    H, pull = A.T @ A + l2 * np.eye(k), A.T @ b - 0.1 * np.sign(found.x)
    np.testing.assert_allclose(found.x, np.linalg.solve(H, pull), rtol=0, atol=1e-5)


def test_a_support_that_shrinks_and_grows():
    """Variables leave the factor and join it again along a path whose l2 penalty falls as well."""
    rng = np.random.default_rng(5)
    A, w = rng.standard_normal((120, 200)), np.zeros(200)
    w[:30] = rng.standard_normal(30)
    A[:, 1:] += 0.7 * A[:, :-1]
    b = A @ w + 0.1 * rng.standard_normal(120)
    lams = np.abs(A.T @ b).max() * np.geomspace(0.9, 0.002, 40)
    for lam2 in (None, 0.1):
        problem = pl.lasso(A, b, lams[0]) if lam2 is None else pl.elastic_net(A, b, lams[0], lam2)
        path = pl.path(problem, lams, tol=1e-8)
        assert path.solved
        for lam, F in zip(lams, path.objective, strict=True):
            share = 0.0 if lam2 is None else lam2 * lam / lams[0]
            alone = pl.elastic_net(A, b, lam, share) if share else pl.lasso(A, b, lam)
            best = pl.solve(alone, tol=1e-8).objective[0]
            np.testing.assert_allclose(F, best, rtol=3e-8)
