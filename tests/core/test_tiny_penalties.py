"""Penalties next to nothing: l1 below the rounding of A^T u, which no scaling makes feasible."""

import numpy as np
import pytest

import proxlearn as pl
from fuzz.check import distance
from fuzz.plain import LONG, Plain

TINY = [1e-300, 1e-30, 1e-15, 1e-13, 1e-11, 1e-9]
PROBLEMS = {
    "lasso": (pl.lasso, "squares"),
    "elastic net": (lambda A, b, lam: pl.elastic_net(A, b, lam, lam), "squares"),
    "huber": (lambda A, b, lam: pl.huber(A, b, lam, 0.1), "huber"),
    "logistic": (pl.logistic, "logistic"),
    "poisson": (pl.poisson, "poisson"),
    "tasks": (lambda A, b, lam: pl.multitask_lasso(A, b[:, None], lam), "squares"),
}


def columns(m, n, loss):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(m, n))
    b = A[:, :5] @ [1.0, 0, -2, 0, 3] + 0.1 * rng.normal(size=m)
    if loss == "logistic":
        b = (np.sin(37 * b) > 0).astype(float)
    return (A / 5, np.round(np.exp(b.clip(-3, 3)))) if loss == "poisson" else (A, b)


def in_words(loss, A, b, lam, lam2):
    """The formula in extended precision."""
    one = np.ones(A.shape[1], LONG)
    rows = lam * one, lam2 * one, -np.inf * one, np.inf * one
    return Plain(loss, A.astype(LONG), b.astype(LONG), *rows, delta=LONG(0.1))


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("shape", [(20, 5), (200, 50)])
def test_a_tiny_penalty_is_solved(name, shape):
    construct, loss = PROBLEMS[name]
    A, b = columns(*shape, loss)
    for lam in TINY[name == "tasks" :]:  # models of groups square their level
        solution = pl.solve(construct(A, b, lam), tol=1e-6)
        assert solution.solved, lam
        F, gap = solution.objective, solution.gap
        assert gap <= 1e-6 * F
        plain = in_words(loss, A, b, LONG(lam), LONG(lam if name == "elastic net" else 0.0))
        x = solution.x.ravel().astype(LONG)
        with np.errstate(all="ignore"):
            above, *_ = distance(plain, x, plain.value(x), LONG(gap.item()) + plain.noise(x))
        assert above <= gap.item() + plain.noise(x), lam


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_a_penalty_that_is_worth_something_is_in_the_bound(tol):
    A, b = columns(30, 10, "squares")
    best = pl.solve(pl.lasso(A, b, 1e-3), tol=1e-12)
    found = pl.solve(pl.lasso(A, b, 1e-3), tol=tol)
    assert best.solved
    assert found.solved
    assert found.objective - found.gap <= best.objective
