"""What every penalty promises: an optimal prox under a diagonal metric, conjugate, subgradient."""

import itertools
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import conic as cp
import proxlearn as pl
from contracts.operator_table import gaussian
from contracts.penalty_table import ROWS, B
from proxlearn.errors import InputError
from proxlearn.problems.batch import convert, select
from proxlearn.problems.penalties import L1, Penalty

N = 6
CLOSE = {"rtol": 1e-12, "atol": 1e-12}
over_rows = pytest.mark.parametrize("name", ROWS)
FINITE = [name for name in ROWS if ROWS[name](N).penalty.finite]
CONSTRAINTS = sorted(set(ROWS) - set(FINITE))
SEPARABLE = [name for name in ROWS if ROWS[name](N).penalty.separable]


def points_in_the_domain(row, seed, scale=2.0):
    """(B, n), some coordinates exactly 0 where r allows it."""
    x = scale * gaussian(B, row.n, seed=seed) * (gaussian(B, row.n, seed=seed + 1) > -0.5)
    return torch.as_tensor(np.stack([row.into(i, x[i : i + 1].numpy())[0] for i in range(B)]))


@over_rows
def test_value_is_the_formula(name):
    row = ROWS[name](N)
    for x in (points_in_the_domain(row, 0), 3 * gaussian(B, N, seed=1)):
        expected = [row.value(i, x[i : i + 1].numpy())[0] for i in range(B)]
        np.testing.assert_allclose(row.penalty.value(x), expected, rtol=1e-12)


@pytest.mark.slow
@over_rows
def test_other_units_are_the_same_penalty(name):
    row = ROWS[name](N)
    k, lam = torch.tensor([3, -7, 40]), torch.tensor([-5, 20, 0])
    scaled = row.penalty.in_units(k, lam)
    for x in (points_in_the_domain(row, 0), 3 * gaussian(B, N, seed=1)):
        inner = x * torch.exp2(-k.double())[:, None]
        expected = torch.exp2(-lam.double()) * row.penalty.value(x)
        torch.testing.assert_close(scaled.value(inner), expected, rtol=1e-14, atol=0)
        moved = torch.exp2(k.double())[:, None] * scaled.prox(inner, torch.ones(B, 1).double())
        p = torch.exp2((2 * k - lam).double())[:, None]
        torch.testing.assert_close(moved, row.penalty.prox(x, p), **CLOSE)


@over_rows
def test_sides_are_where_the_conjugate_is_infinite_at_once(name):
    row = ROWS[name](N)
    sides = row.penalty.sides()
    if sides is None:
        return
    sides = sides.double().expand(B, N)
    for j in range(N):
        for sign in (-1.0, 1.0):
            v = torch.zeros(B, N, dtype=torch.float64)
            v[:, j] = 1e-9 * sign
            infinite = row.penalty.conjugate(v).isinf()
            assert torch.equal(infinite, sides[:, j] == sign)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_value_is_infinite_outside_the_set(name):
    row = ROWS[name](N)
    outside = points_in_the_domain(row, 0)
    outside[:, 0] -= 10  # bounded below in every row of the table
    assert (row.penalty.value(outside) == torch.inf).all()


@pytest.mark.slow
@over_rows
@pytest.mark.parametrize(("seed", "scale"), [(0, 1.0), (1, 5.0), (2, 0.1)])
def test_prox_agrees_with_a_conic_solver(name, seed, scale):
    row = ROWS[name](N)
    v, p = scale * gaussian(B, N, seed=seed), row.metric(seed)
    x = row.penalty.prox(v, p).numpy()
    for i in range(B):
        variable = cp.Variable(N)
        r, constraints = row.model(i, variable)
        distance = cp.sum(cp.multiply(1 / p[i].numpy(), cp.square(variable - v[i].numpy())))
        problem = cp.Problem(cp.Minimize(r + 0.5 * distance), constraints)
        tol = 1e-5 * row.conic
        problem.solve("CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
        np.testing.assert_allclose(x[i], variable.value, rtol=row.conic, atol=row.conic)


@over_rows
@pytest.mark.parametrize(
    ("n", "points"), [(1, 4001), (2, 201), pytest.param(3, 41, marks=pytest.mark.slow)]
)
def test_prox_beats_every_point_of_a_grid(name, n, points):
    row = ROWS[name](n)
    v, p = 1.5 * gaussian(B, n, seed=n), row.metric(n, spread=0.5)
    x = row.penalty.prox(v, p).numpy()
    axis = np.linspace(-4, 4, points)
    grid = np.array(list(itertools.product(axis, repeat=n)))
    for i in range(B):
        vi, pi = v[i].numpy(), p[i].numpy()
        mine = row.objective(i, x[i : i + 1], vi, pi)[0]
        others = row.objective(i, row.into(i, grid), vi, pi)
        assert mine <= others.min() + 1e-12
        # Strong convexity: a point with almost the least value is almost the minimiser, so the
        # best of the grid cannot be far away unless the grid missed the minimum altogether.
        best = row.into(i, grid)[others.argmin()]
        room = np.sqrt(2 * max(others.min() - mine, 0)) + 1e-9
        assert (abs(best - x[i]) <= room * np.sqrt(pi)).all()


@over_rows
@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
def test_prox_beats_perturbations(name, spread):
    row = ROWS[name](N)
    v, p = 3 * gaussian(B, N, seed=3), row.metric(4, spread)
    x = row.penalty.prox(v, p).numpy()
    rng = np.random.default_rng(0)
    for i, scale in itertools.product(range(B), [1.0, 1e-2, 1e-4]):
        vi, pi = v[i].numpy(), p[i].numpy()
        moves = scale * rng.standard_normal((300, N)) * (rng.random((300, N)) < 0.5)
        near = row.objective(i, row.into(i, x[i] + moves), vi, pi)
        mine = row.objective(i, x[i : i + 1], vi, pi)[0]
        assert mine <= near.min() + 1e-12 * abs(mine)


@over_rows
def test_moreau_identity(name):
    row = ROWS[name](N)
    for seed, scale in enumerate([0.1, 1.0, 100.0]):
        v, p = scale * gaussian(B, N, seed=seed), row.metric(seed)
        x = row.penalty.prox(v, p)
        u = (v - x) / p
        # A hair inside: u lies on the boundary of the domain of r*, up to the rounding of v - x.
        u = (1 - 1e-10) * u
        total = row.penalty.value(x) + row.penalty.conjugate(u)
        torch.testing.assert_close(total, (x * u).sum(1), rtol=1e-8, atol=1e-8)


@over_rows
def test_fenchel_young_inequality(name):
    row = ROWS[name](N)
    for seed in range(20):
        x, u = points_in_the_domain(row, seed), gaussian(B, N, seed=seed + 70) / 2
        conjugate = row.penalty.conjugate(u)
        assert not conjugate.isnan().any()
        assert (row.penalty.value(x) + conjugate >= (x * u).sum(1) - 1e-12).all()


@pytest.mark.parametrize(
    "name",
    [
        "l1",
        "l1-weighted",
        "l1-intercept",
        "group-l1",
        "zero",
        "absolute-deviation",
        "non-negative-l1",
    ],
)
def test_conjugate_is_infinite_outside_its_domain(name):
    big = torch.full((B, N), 1e3, dtype=torch.float64)
    assert (ROWS[name](N).penalty.conjugate(big) == torch.inf).all()


@over_rows
def test_conjugate_at_zero_is_minus_the_minimum(name):
    penalty = ROWS[name](N).penalty
    zero, one = torch.zeros(B, N, dtype=torch.float64), torch.ones(B, 1, dtype=torch.float64)
    least = penalty.value(penalty.prox(zero, 1e6 * one))
    if name.startswith("absolute"):
        assert (least > 1).all()
    else:
        assert least.tolist() == [0.0] * B
    torch.testing.assert_close(penalty.conjugate(zero), -least, rtol=1e-14, atol=0)


@over_rows
def test_firmly_nonexpansive_in_the_metric_of_p(name):
    row = ROWS[name](N)
    for seed in range(10):
        p = row.metric(seed, spread=2)
        v, w = 3 * gaussian(B, N, seed=seed), 3 * gaussian(B, N, seed=seed + 100)
        d = row.penalty.prox(v, p) - row.penalty.prox(w, p)
        inner, square = (d * (v - w) / p).sum(1), (d * d / p).sum(1)
        assert (square <= inner * (1 + 1e-12) + 1e-12).all()


@pytest.mark.parametrize("name", SEPARABLE)
def test_vector_p_is_a_loop_over_scalars(name):
    row = ROWS[name](N)
    v, p = 2 * gaussian(B, N), row.metric(1)
    x = row.penalty.prox(v, p)
    for j in range(N):
        alone = row.penalty.prox(v, p[:, j : j + 1])
        torch.testing.assert_close(x[:, j], alone[:, j], **CLOSE)


@over_rows
def test_one_p_for_all_coordinates(name):
    row = ROWS[name](N)
    v, p = 2 * gaussian(B, N), row.metric(1)[:, :1]
    torch.testing.assert_close(row.penalty.prox(v, p), row.penalty.prox(v, p.expand(B, N)))


@over_rows
def test_batch_is_a_loop(name):
    row = ROWS[name](N)
    v, p = 2 * gaussian(B, N), row.metric(1)
    x = row.penalty.prox(v, p)
    for i in range(B):
        alone, here = select(row.penalty, torch.tensor([i])), slice(i, i + 1)
        assert alone.batch == 1
        torch.testing.assert_close(alone.prox(v[here], p[here]), x[here], **CLOSE)
        torch.testing.assert_close(alone.value(x[here]), row.penalty.value(x)[here], **CLOSE)


@over_rows
def test_precision_is_kept(name):
    row = ROWS[name](N)
    single = convert(row.penalty, torch.float32)
    v, p = 2 * gaussian(B, N), row.metric(1)
    x = single.prox(v.float(), p.float())
    assert x.dtype == single.value(x).dtype == single.conjugate(x).dtype == torch.float32
    torch.testing.assert_close(x.double(), row.penalty.prox(v, p), rtol=1e-5, atol=1e-5)
    assert torch.isfinite(single.value(x)).all()


@over_rows
def test_prox_can_be_differentiated(name):
    # The derivative of the prox by v and by p is what training sends through the iterations.
    row = ROWS[name](N)
    groups = torch.arange(N) if row.groups is None else torch.as_tensor(row.groups)
    v, each = 2 * gaussian(B, N), row.metric(1)[:, : int(groups.max()) + 1].contiguous()
    function = lambda v, each: row.penalty.prox(v, each[:, groups])  # noqa: E731
    assert torch.autograd.gradcheck(function, (v.requires_grad_(), each.requires_grad_()))


@pytest.mark.parametrize("name", FINITE)
def test_subgradient(name):
    row = ROWS[name](N)
    x = points_in_the_domain(row, 5)
    x[0] = 0
    g = row.penalty.subgrad(x)
    value = row.penalty.value(x)
    for seed in range(20):
        y = x + 10.0 ** (-seed % 4) * gaussian(B, N, seed=seed)
        assert (row.penalty.value(y) >= value + (g * (y - x)).sum(1) - 1e-12).all()
    # The shortest subgradient, and only it, is the slope of r straight down along itself.
    t = 1e-7
    slope = (row.penalty.value(x - t * g) - value) / t
    torch.testing.assert_close(slope, -g.square().sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_have_no_subgradient(name):
    penalty = ROWS[name](N).penalty
    with pytest.raises(InputError, match=f"{type(penalty).__name__} is a constraint"):
        penalty.subgrad(torch.zeros(B, N, dtype=torch.float64))


@pytest.mark.parametrize(
    "name", [n for n in FINITE if n != "zero"] + ["simplex", "box", "non-negative-l1"]
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_dual_scale_is_feasible_and_maximal(name, scale):
    penalty = ROWS[name](N).penalty
    g = scale * gaussian(B, N, seed=6)
    if (free := penalty.free()) is not None:
        g = torch.where(free, torch.zeros_like(g), g)
    s = penalty.dual_scale(g)
    assert ((s > 0) & (s <= 1)).all()
    assert torch.isfinite(penalty.conjugate(-s[:, None] * g)).all()
    more = penalty.conjugate(-1.001 * s[:, None] * g)
    assert (more[s < 1] == torch.inf).all()
    if scale == 1e3 and "l1" in name:
        assert (s < 1).all()


@over_rows
def test_free_coordinates_are_the_unpenalised(name):
    row = ROWS[name](N)
    free = row.penalty.free()
    if name not in ("l1-intercept", "elastic-net-weighted", "sparse-group-l1-intercept"):
        assert free is None
        return
    expected = np.arange(N) == 0 if row.groups is None else row.groups == 0
    assert free.expand(B, N).tolist() == [expected.tolist()] * B


def test_a_weight_of_zero_everywhere_is_no_penalty():
    none = L1(torch.ones(1).double(), torch.zeros(1, N).double())
    v = gaussian(B, N)
    assert torch.equal(none.prox(v, torch.ones(B, 1).double()), v)
    assert none.value(v).tolist() == [0.0] * B
    assert none.free().all()


@pytest.mark.parametrize("name", ["group-l1", "group-l1-weighted"])
def test_group_prox_rejects_a_p_that_differs_inside_a_group(name):
    p = torch.ones(B, N, dtype=torch.float64)
    p[1, 3] = 2
    with pytest.raises(InputError, match="group"):
        ROWS[name](N).penalty.prox(gaussian(B, N), p)


@given(
    name=st.sampled_from(sorted(ROWS)),
    n=st.integers(1, 9),
    exponent=st.integers(-8, 8),
    seed=st.integers(0, 10**6),
)
def test_prox_of_any_size_and_scale(name, n, exponent, seed):
    row = ROWS[name](n)
    v, p = 10.0**exponent * gaussian(B, n, seed=seed), row.metric(seed, spread=3)
    v[:, -1] = v[:, 0]  # a tie
    x = row.penalty.prox(v, p)
    assert torch.isfinite(x).all()
    assert torch.isfinite(row.penalty.value(x)).all()
    for i in range(B):
        near = row.into(i, np.stack([x[i].numpy() * t for t in (0.0, 0.5, 0.999, 1.001, 2.0)]))
        values = row.objective(i, near, v[i].numpy(), p[i].numpy())
        mine = row.objective(i, row.into(i, x[i : i + 1].numpy()), v[i].numpy(), p[i].numpy())
        assert mine[0] <= values.min() * (1 + 1e-9) + 1e-12


class Coupled(Penalty):
    """lam ||x||_2 of all coordinates together, as a user would write it: one p an instance."""

    separable = False
    batch = 1
    seen: ClassVar[list[torch.Size]] = []

    def value(self, x):
        return x.norm(dim=-1)

    def prox(self, v, p):
        self.seen.append(p.shape)
        return v * (1 - p / v.norm(dim=-1, keepdim=True).clamp(min=1e-30)).clamp(min=0)

    def conjugate(self, v):
        return torch.where(v.norm(dim=-1) <= 1, 0.0, torch.inf)


def test_a_learned_rule_gives_a_penalty_that_is_not_separable_one_step_an_instance():
    p = torch.tensor([[1.0, 3.0], [2.0, 2.0]])
    assert Coupled().tie(p).tolist() == [[2.0], [2.0]]
    problem = pl.families.GaussianLasso(m=10, n=20, nonzeros=2).sample(3, 0)
    problem = pl.Problem(problem.f, Coupled())
    for optimizer in ("general", "lasso-pa"):
        Coupled.seen.clear()
        solution = pl.solve(problem, optimizer, safeguard=False, polish=False, max_iter=5, tol=0)
        assert solution.x.isfinite().all()
        assert {shape[-1] for shape in Coupled.seen} == {1}


@over_rows
def test_a_tied_p_is_one_that_the_prox_takes(name):
    penalty = ROWS[name](N).penalty
    p = 0.1 + torch.rand(B, N, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    tied = penalty.tie(p)
    assert penalty.prox(torch.ones_like(p), tied).isfinite().all()
    assert (tied > 0).all()
    if penalty.separable:
        assert torch.equal(tied, p)


@pytest.mark.parametrize("name", ["simplex", "sum_at_most"])
def test_sums_that_are_off_by_more_than_rounding_are_strictly_infinite(name):
    from proxlearn.problems.penalties import Simplex
    from proxlearn.problems.penalties.sum_at_most import SumAtMost

    radius = torch.tensor([7.8e13], dtype=torch.float64)
    r = {"simplex": Simplex, "sum_at_most": SumAtMost}[name](radius)
    x = r.prox(torch.rand(1, 21, dtype=torch.float64) * radius, torch.ones(1, 1))
    assert r.value(x).item() == r.strict_value(x).item() == 0
    near = (1 + 2e-6) * x
    assert r.value(near).item() == 0  # a point that was rounded to float32
    assert r.strict_value(near).item() == np.inf
    assert r.strict_value(x.float().double().float()).item() == 0
