"""From a problem to the compiled loop and back."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from proxlearn import operators
from proxlearn.compiled import data
from proxlearn.compiled.cache import DIGEST
from proxlearn.compiled.kernel import Options, build
from proxlearn.compiled.losses import LOGISTIC, SQUARES
from proxlearn.compiled.network import UNITS
from proxlearn.compiled.rule import Separable, Weights
from proxlearn.penalties import L1, Box, ElasticNet, NonNegativeElasticNet
from proxlearn.problem import Problem
from proxlearn.rules import CompactRule
from proxlearn.smooth import LeastSquares, Logistic

MOST = 1024
"""Active coordinates up to which a point is polished here."""
GRAM_UP_TO = 2048
"""Columns of a shared A up to which its Gram matrix is formed."""
PARTS = 8
"""Parts of a batch for each thread, so that all end at about the same time."""

solve_some = build(DIGEST)


def run(problem: Problem, rule: Any, x0: Tensor | None, o: Options) -> tuple[Tensor, Any]:
    """x (B, n), and for each instance: solved, objective, gap, iterations, gradients (B, 5).

    Without a start x0 (B, n) it is 0, the minimiser of every penalty that `suits`.
    """
    B, n = problem.batch, problem.n
    d, m, entries = data_of(problem)
    r, weights, L = Separable(*penalty_of(problem)), weights_of(rule), lipschitz_of(problem)
    answers = np.zeros((B, n)) if x0 is None else x0.double().numpy(force=True).copy()
    numbers = np.zeros((B, 5))
    most = min(n, MOST)

    def some(first: int) -> None:
        last = min(first + size, B)
        solve_some(first, last, d, m, r, weights, L, o, entries, most, answers, numbers)

    threads = min(torch.get_num_threads(), B)
    size = B if threads == 1 else max(1, B // (threads * PARTS))
    if threads == 1:
        some(0)
    else:
        pool = ThreadPoolExecutor(threads)
        try:
            list(pool.map(some, range(0, B, size)))
        finally:  # also when the user interrupts: what has not begun is dropped
            pool.shutdown(cancel_futures=True)
    return torch.from_numpy(answers).to(problem.dtype), numbers


def options(
    problem: Problem, rule: Any, tol: float, max_iter: int, safeguard: bool, polish: bool
) -> Options:
    """The options of `solve` for the loop."""
    learned, rounded = isinstance(rule, CompactRule), problem.dtype == torch.float32
    return Options(learned, bool(safeguard), bool(polish), rounded, float(tol), int(max_iter))


def lipschitz_of(problem: Problem) -> Any:
    """L (B,); 0, for the loop to estimate where it needs it, where each A has its own or a Gram."""
    f = problem.f
    assert isinstance(f, (LeastSquares, Logistic))
    if (f.A.batch > 1 or uses_gram(problem)) and not f.A.norm_is_known:
        return np.zeros(1)
    return _numpy(f.lipschitz().double())


def data_of(problem: Problem) -> tuple[Any, int, float]:
    """The data of f, the rows that the loop sees, and the multiplications of a product."""
    f = problem.f
    assert isinstance(f, (LeastSquares, Logistic))
    A, (m, n) = f.A, f.A.shape
    loss = SQUARES if isinstance(f, LeastSquares) else LOGISTIC
    b = _numpy(f.b.double())
    if isinstance(A, operators.Sparse):
        b32 = _numpy(f.b.float())
        rows, columns = A.A, A.At
        sparse = data.Sparse(
            loss, _numpy(rows.crow_indices()), _numpy(rows.col_indices()),
            _numpy(rows.values().float()), _numpy(columns.crow_indices()),
            _numpy(columns.col_indices()), _numpy(columns.values().double()), b, b32,
        )  # fmt: skip
        return sparse, m, float(A.entries)
    assert isinstance(A, operators.Dense)
    if uses_gram(problem):
        # Of a tall matrix and a small one NumPy's product is the faster one.
        c, bb = b @ _numpy(A.A.double()), np.einsum("ij,ij->i", b, b)[:, None]
        return data.Gram(loss, _numpy(A.gram), _numpy(A.gram.float()), c, bb), 0, n * n / 2
    shared = A.A.ndim == 2
    matrix = _numpy(A.A[None] if shared else A.A)
    if problem.dtype == torch.float32:
        matrix32 = matrix
    else:  # of its own A each instance makes its copy when it is its turn
        matrix32 = _numpy(A.single[None]) if shared else np.empty((0, m, n), np.float32)
    return data.Dense(loss, matrix, matrix32, b, _numpy(f.b.float())), m, float(m * n)


def uses_gram(problem: Problem) -> bool:
    """True for least squares with one A of few columns for several instances."""
    f = problem.f
    return (
        isinstance(f, LeastSquares)
        and isinstance(f.A, operators.Dense)
        and f.A.batch == 1
        and problem.batch > 1
        and problem.n <= GRAM_UP_TO
    )


def variant(problem: Problem) -> str:
    """Which of the compiled loops a problem needs: they differ by the types of the data."""
    f = problem.f
    assert isinstance(f, (LeastSquares, Logistic))
    if isinstance(f.A, operators.Sparse):
        return "sparse"
    return "gram" if uses_gram(problem) else f"dense-{str(problem.dtype).rpartition('.')[2]}"


def suits(problem: Problem) -> bool:
    """True for what the loop is written for."""
    f, r = problem.f, problem.r
    return (
        problem.device.type == "cpu"
        and problem.dtype in (torch.float32, torch.float64)
        and isinstance(f, (LeastSquares, Logistic))
        and isinstance(f.A, (operators.Dense, operators.Sparse))
        and (isinstance(f, LeastSquares) or f.root is None)
        and _fits(r)
    )


def _fits(r: Any) -> bool:
    if isinstance(r, Box):  # where 0 is inside, a coordinate at rest is at 0
        finite = bool(r.lower.isfinite().all()) and bool(r.upper.isfinite().all())
        return finite and bool((r.lower <= 0).all()) and bool((r.upper >= 0).all())
    known = isinstance(r, (L1, ElasticNet, NonNegativeElasticNet))
    return known and bool((r.lam > 0).all()) and r.free() is None


def penalty_of(problem: Problem) -> tuple[Any, ...]:
    """l1, l2, lower and upper of the penalty, each (B or 1, n or 1), float64."""
    r = problem.r
    none = torch.zeros(1, 1, dtype=torch.float64)
    l1, l2, lower, upper = none, none, none - torch.inf, none + torch.inf
    if isinstance(r, L1):
        l1 = r.threshold
    elif isinstance(r, ElasticNet):
        l1, l2 = r.pair()
    elif isinstance(r, NonNegativeElasticNet):
        (l1, l2), lower = r.pair(), none
    elif isinstance(r, Box):
        lower, upper = r.lower, r.upper
    return tuple(_numpy(part.double()) for part in (l1, l2, lower, upper))


def weights_of(rule: Any) -> Weights:
    """The weights of a compact rule as float32 arrays; for other rules some that nobody reads."""
    if not isinstance(rule, CompactRule):
        one = np.zeros((1, 1), np.float32)
        return Weights(one, one, one[0], one, one[0], one, one[0], 0.0)
    by_units = (
        rule.coordinate_weight.mT, rule.instance_weight, rule.first_bias, rule.hidden_weight.mT,
        rule.hidden_bias[:, 0], rule.head_weight.mT, rule.head_bias[:, 0],
    )  # fmt: skip
    first, shared, bias, hidden, second, head, last = (_whole_tiles(w, -1) for w in by_units)
    hidden, head = _whole_tiles(hidden, 0), _whole_tiles(head, 0)
    parts = (first, shared, bias, hidden, second, head, last)
    fields: Any = [*(_numpy(part.float()) for part in parts), float(rule.settings.largest_log_p)]
    return Weights(*fields)


def _whole_tiles(weight: Tensor, axis: int) -> Tensor:
    """With zeros for the units that are missing to whole tiles along an axis."""
    shape = list(weight.shape)
    shape[axis] = -shape[axis] % UNITS
    return torch.cat([weight, weight.new_zeros(shape)], axis)


def _numpy(t: Tensor) -> Any:
    return t.detach().contiguous().numpy()
