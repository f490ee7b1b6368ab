"""The compiled loop against PyTorch, the reference: the same answers, certificates and counts."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse
import torch

import proxlearn as pl
from proxlearn.compiled import cache, losses
from proxlearn.compiled.data import dense_instance
from proxlearn.compiled.engine import data_of, options, run
from proxlearn.compiled.lanczos import ritz
from proxlearn.compiled.newton import MANY
from proxlearn.errors import InputError
from proxlearn.operators import Dense
from proxlearn.penalties import L1, Box, ElasticNet, NonNegativeElasticNet
from proxlearn.problem import Problem
from proxlearn.rules import CompactRule
from proxlearn.scheme import Scheme
from proxlearn.shards import Settings, collect, solve_batch
from proxlearn.smooth import LeastSquares, Logistic


@pytest.fixture(scope="module", autouse=True)
def loops():
    """All loops, each made by one of the test processes."""
    for name in cache.VARIANTS:
        if not cache.ready(name):
            cache.make(name)
    for name in cache.VARIANTS:
        while not cache.ready(name):
            time.sleep(0.5)
            cache.make(name)


def data(B, m, n, seed=0, dtype=torch.float64):
    """A (B, m, n) with unit columns, b from a few of them."""
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(B, m, n, generator=generator, dtype=torch.float64)
    A /= A.norm(dim=1, keepdim=True)
    x = torch.randn(B, n, generator=generator, dtype=torch.float64)
    x *= torch.rand(B, n, generator=generator) < 0.15
    b = (A @ x[:, :, None])[:, :, 0] + 0.01 * torch.randn(B, m, generator=generator).double()
    return A.to(dtype), b.to(dtype)


def labels(b):
    return (b > 0).to(b.dtype)


def weights(n):
    return 0.5 + torch.rand(1, n, generator=torch.Generator().manual_seed(1)).double()


B, M, N = 6, 30, 50
A, b = data(B, M, N)
lam = torch.full((B,), 0.05, dtype=torch.float64)
one = torch.ones(1, 1, dtype=torch.float64)
sparse = scipy.sparse.random(M, N, 0.3, random_state=0, format="csr")

PENALTIES = {
    "l1": L1(lam),
    "weighted l1": L1(lam, weights(N)),
    "elastic net": ElasticNet(lam, 0.3 * lam),
    "weighted elastic net": ElasticNet(lam, 0.3 * lam, weights(N)),
    "non-negative l1": NonNegativeElasticNet(lam, 0 * lam),
    "non-negative elastic net": NonNegativeElasticNet(lam, 0.3 * lam, weights(N)),
    "box": Box(-0.2 * one, 0.3 * one),
}
LOSSES = {
    "least squares": LeastSquares(Dense(A), b),
    "least squares, shared A": LeastSquares(Dense(A[0]), b),
    "least squares, sparse A": LeastSquares(pl.lasso(sparse, b[0], 0.1).f.A, b),
    "logistic": Logistic(Dense(A), labels(b)),
    "logistic, shared A": Logistic(Dense(A[0]), labels(b)),
    "logistic, sparse A": Logistic(pl.logistic(sparse, labels(b[0]), 0.1).f.A, labels(b)),
}


def problem_of(loss, penalty):
    scale = 0.05 if loss.startswith("logistic") else 1.0  # the mean of losses is that small
    r = PENALTIES[penalty]
    if isinstance(r, L1):
        r = L1(scale * r.lam, r.weights)
    elif isinstance(r, (ElasticNet, NonNegativeElasticNet)):
        r = type(r)(scale * r.lam, scale * r.lam2, r.weights)
    return Problem(LOSSES[loss], r)


@pytest.mark.parametrize("optimizer", ["general", "fista-restart"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_answers_of_both_engines_agree(loss, penalty, optimizer):
    problem = problem_of(loss, penalty)
    compiled = pl.solve(problem, optimizer, tol=1e-9, engine="compiled")
    reference = pl.solve(problem, optimizer, tol=1e-12, engine="torch")
    assert compiled.solved
    assert reference.solved
    scale = reference.objective.abs()
    assert bool(((compiled.objective - reference.objective).abs() <= 1e-9 * scale).all())
    certificate = problem.certificate(compiled.x)
    assert torch.allclose(certificate.objective, compiled.objective, rtol=1e-12)
    # The gap is no smaller than the distance to the optimum, and no larger than promised.
    assert bool((compiled.gap >= compiled.objective - reference.objective - 1e-12 * scale).all())
    assert bool((compiled.gap <= 1e-9 * scale).all())


@pytest.mark.parametrize("optimizer", ["general", "lasso", "fista-restart"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_iterates_of_both_engines_agree(loss, optimizer):
    """Without polish and safeguard, for a few iterations: float32 against float64."""
    problem = problem_of(loss, "weighted l1")
    problem.lipschitz()  # the same step for both
    rule = pl.optimizers.get(optimizer).rule
    x0 = torch.zeros(B, N, dtype=torch.float64)
    compiled = run(problem, rule, x0, options(problem, rule, 1e-30, 8, False, False))[0]
    seen = []
    pl.solve(
        problem, optimizer, tol=0, max_iter=8, safeguard=False, polish=False, engine="torch",
        callback=lambda progress: seen.append(progress.x.clone()),
    )  # fmt: skip
    # The loop answers with the best of its points.
    distance = torch.stack([(compiled - x).abs().amax(-1) for x in seen]).amin(0)
    assert bool((compiled != 0).any())
    assert bool((distance <= 1e-4 * compiled.abs().amax(-1)).all())


@pytest.mark.parametrize("hidden", [3, 8, 17])
def test_networks_of_any_width(hidden):
    """Also those that do not fill whole tiles."""
    generator = torch.Generator().manual_seed(hidden)
    rule = CompactRule(CompactRule.Settings(hidden=hidden), generator)
    for part in (rule.head_weight, rule.head_bias):
        part.data = 0.5 * torch.randn(part.shape, generator=generator)
    problem = problem_of("least squares", "l1")
    problem.lipschitz()
    x0 = torch.zeros(B, N, dtype=torch.float64)
    compiled = run(problem, rule, x0, options(problem, rule, 1e-30, 1, False, False))[0]
    reference = pl.solve(
        problem, Scheme(rule), tol=0, max_iter=1, safeguard=False, engine="torch"
    ).x  # fmt: skip
    assert bool((reference != 0).any())
    assert torch.allclose(compiled, reference, atol=1e-5)


@pytest.mark.parametrize(("alike", "part"), [(0.0, 30), (0.0, 100), (3.0, 100)])
def test_many_active_coordinates(alike, part):
    """Conjugate gradients find them; where columns are alike, later attempts have a factor."""
    A = data(2, 500, 600, seed=3)[0]
    A = A + alike * A[:, :, :1]
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(2, 600, 1, generator=generator).double()
    b = (A @ (x * (torch.rand(2, 600, 1, generator=generator) < 0.5)))[:, :, 0]
    problem = pl.lasso(A, b, (A.mT @ b[:, :, None]).abs().amax((1, 2)) / part)
    compiled = pl.solve(problem, "fista-restart", engine="compiled")
    reference = pl.solve(problem, "fista-restart", tol=1e-9, engine="torch")
    assert reference.solved
    assert compiled.solved
    assert alike or int((reference.x != 0).sum(-1).min()) > MANY
    best = reference.objective
    assert bool((compiled.objective <= best * (1 + 1e-6)).all())
    assert bool((compiled.objective - compiled.gap <= best * (1 + 1e-12)).all())


def test_conjugate_gradients_end_the_polish_of_many():
    problem = pl.families.GaussianLasso(m=1000, n=2000, nonzeros=200).sample(2, 5)
    compiled = pl.solve(problem, "lasso", engine="compiled")
    assert compiled.solved
    assert int((compiled.x != 0).sum(-1).min()) > MANY
    assert int(compiled.iterations.max()) <= 12
    assert int(compiled.grad_evals.max()) <= 25


@pytest.mark.parametrize("kind", ["wide", "alike"])
def test_an_attempt_does_not_wait_for_a_set_that_never_settles(kind):
    """Hundreds of coordinates are not zero for long, and a dozen in the end."""
    if kind == "wide":
        problem = pl.families.GaussianLasso(m=100, n=3000, nonzeros=10).sample(4, 6)
    else:
        A = data(4, 100, 500, seed=7)[0]
        A = A + A[:, :, :1]
        b = A[:, :, :10].sum(-1)
        problem = pl.lasso(A, b, (A.mT @ b[:, :, None]).abs().amax((1, 2)) / 50)
    compiled = pl.solve(problem, "fista-restart", engine="compiled")
    reference = pl.solve(problem, "fista-restart", tol=1e-9, max_iter=10000, engine="torch")
    assert reference.solved
    assert compiled.solved
    assert int(compiled.iterations.max()) <= 64
    assert int(compiled.grad_evals.max()) <= 150
    assert torch.allclose(compiled.objective, reference.objective, rtol=1e-6)


@pytest.mark.parametrize(
    ("family", "optimizer"),
    [("gaussian-lasso", "lasso"), ("gaussian-logistic", "logistic"),
     ("gaussian-lasso", "fista-restart"), ("gaussian-logistic", "fista-restart")],
)  # fmt: skip
def test_counts_and_bits_in_the_paper_families(family, optimizer):
    """As many iterations as the reference, although the loop estimates its own step."""
    generator = torch.Generator().manual_seed(5)
    problem = pl.families.get(family).sample(8, generator).to(torch.float32)
    assert not problem.f.A.norm_is_known
    compiled = pl.solve(problem, optimizer, engine="compiled")
    assert not problem.f.A.norm_is_known
    reference = pl.solve(problem, optimizer, engine="torch")
    assert compiled.solved
    assert compiled.iterations.double().mean() <= 1.2 * reference.iterations.double().mean() + 1
    assert torch.allclose(compiled.x, reference.x, atol=1e-3)
    assert compiled.x.dtype == torch.float32
    again = pl.solve(problem, optimizer, engine="compiled")
    assert torch.equal(again.x, pl.solve(problem, optimizer, engine="compiled").x)
    alone = pl.solve(problem.select(torch.tensor([3])), optimizer, engine="compiled")
    assert torch.equal(alone.x[0], again.x[3])


def test_the_norm_is_estimated_from_below_and_closely():
    for m, n in ((250, 500), (1000, 50), (40, 60)):
        A, b = data(4, m, n, dtype=torch.float32)
        d = data_of(pl.lasso(A, b, 0.1))[0]
        for i in range(4):
            one = dense_instance(d, i)
            for g, least in ((A[i].T @ b[i], 0.85), (torch.zeros(n), 0.75)):
                ratio = ritz(one, m, g.numpy()) / float(torch.linalg.matrix_norm(A[i], 2)) ** 2
                assert least <= ratio <= 1.001


def test_threads_change_nothing(monkeypatch):
    problem = problem_of("least squares", "l1")
    alone = pl.solve(problem, "general", engine="compiled")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    together = pl.solve(problem, "general", engine="compiled")
    assert torch.equal(alone.x, together.x)


@pytest.mark.parametrize("scale", [1e-12, 1e-30, 1e12, 1e30, 1e150])
def test_data_of_any_size_are_solved(scale):
    problem = pl.lasso(A * scale, b, 0.05 * scale)
    assert pl.solve(problem, "general", engine="compiled").solved


def test_what_float32_cannot_finish_goes_on_in_float64():
    U, _, V = torch.linalg.svd(A[0], full_matrices=False)
    hard = U @ torch.diag(torch.logspace(0, -4, M, dtype=torch.float64)) @ V
    problem = pl.lasso(hard, hard.sum(1), 1e-6)
    solution = pl.solve(problem, "general", tol=1e-10, max_iter=20_000, engine="compiled")
    assert solution.solved
    certificate = problem.certificate(solution.x[None])
    assert float(certificate.gap) <= 1e-10 * float(certificate.objective)


@pytest.mark.parametrize("kind", ["zero", "nan", "huge"])
def test_bad_weights_end_solved(kind):
    rule = pl.load(pl.zoo.path("lasso")).rule
    for parameter in rule.parameters():
        parameter.data = {
            "zero": torch.zeros_like(parameter),
            "nan": torch.full_like(parameter, torch.nan),
            "huge": torch.full_like(parameter, 1e30),
        }[kind]
    method = pl.Scheme(rule)
    for loss in ("least squares", "logistic"):
        solution = pl.solve(problem_of(loss, "l1"), method, engine="compiled")
        assert solution.solved


def test_start_and_limit(monkeypatch):
    problem = problem_of("least squares", "l1")
    solution = pl.solve(problem, "general", engine="compiled")
    again = pl.solve(problem, "general", x0=solution.x, engine="compiled")
    assert again.solved
    assert float(again.iterations.double().mean()) < float(solution.iterations.double().mean())
    few = pl.solve(problem, "fista-restart", tol=1e-13, max_iter=1, polish=False, engine="compiled")
    assert {str(s) for s in few.status} == {"MAX_ITER"}
    assert bool((few.iterations <= 1).all())
    assert bool(few.gap.isfinite().all())


def test_zero_is_found_at_once():
    problem = pl.lasso(A, b, 100.0)
    solution = pl.solve(problem, "general", engine="compiled")
    assert solution.solved
    assert not bool(solution.x.any())


def test_words_for_what_it_cannot_do(monkeypatch):
    problem = problem_of("least squares", "l1")
    with pytest.raises(InputError, match="unknown engine 'numba'"):
        pl.solve(problem, engine="numba")
    with pytest.raises(InputError, match="compact rules and 'fista-restart'"):
        pl.solve(problem, "ista", engine="compiled")
    with pytest.raises(InputError, match="neither records nor calls back"):
        pl.solve(problem, engine="compiled", record=True)
    with pytest.raises(InputError, match="does not solve LeastSquares with NonNegative"):
        pl.solve(pl.nnls(A, b), "fista-restart", engine="compiled")
    monkeypatch.setattr("proxlearn.engines._there", lambda: False)
    with pytest.raises(InputError, match="needs numba"):
        pl.solve(problem, engine="compiled")
    assert pl.solve(problem, engine="auto").solved


def test_auto_takes_the_loop_when_it_is_there(monkeypatch):
    problem = problem_of("least squares", "l1")
    used = []
    monkeypatch.setattr("proxlearn.engines.solve_compiled", lambda *a, **k: used.append(1))
    monkeypatch.setattr("proxlearn.solver.solve_compiled", lambda *a, **k: used.append(1))
    monkeypatch.setattr(cache, "loaded", lambda name: True)
    pl.solve(problem, engine="auto")
    assert used == [1]
    begun = []
    monkeypatch.setattr(cache, "loaded", lambda name: False)
    monkeypatch.setattr(cache, "ready", lambda name: False)
    monkeypatch.setattr(cache, "make_in_background", begun.append)
    pl.solve(problem, engine="auto")  # too small to be worth it
    assert begun == []
    monkeypatch.setattr("proxlearn.engines.WORTH", 1)
    pl.solve(problem, engine="auto")
    assert begun == ["dense-float64"]
    assert used == [1]


def test_small_solves_do_not_load_numba():
    code = (
        "import sys, proxlearn as pl; pl.solve(pl.lasso([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0], 1)); "
        "print('numba' in sys.modules)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PROXLEARN_ENGINE"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "False\n"


def test_another_process_finds_the_loop_on_disk():
    """Unless the sources have changed since this process began."""
    pl.solve(problem_of("least squares", "l1"), "fista-restart", engine="compiled")
    command = [sys.executable, "-m", "proxlearn.compiled", "dense-float64"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "dense-float64: there\n"
    wrong = subprocess.run([*command[:-1], "denser"], capture_output=True, text=True, check=False)
    assert "'denser' is no compiled loop" in wrong.stderr


def test_shards_name_their_engine(tmp_path):
    np.savez(tmp_path / "problems.npz", kind="lasso", lam=0.05, A=A.numpy(), b=b.numpy())
    found = {}
    for engine in ("torch", "compiled"):
        settings = Settings(shard_size=4, engine=engine)
        solve_batch(str(tmp_path / "problems.npz"), tmp_path / engine, settings)
        found[engine] = collect(tmp_path / engine / "problems")
    assert set(found["compiled"]["status"]) == {"SOLVED"}
    assert np.allclose(found["compiled"]["x"], found["torch"]["x"], atol=1e-5)
    with pytest.raises(InputError, match="begun with other settings: engine"):
        solve_batch(str(tmp_path / "problems.npz"), tmp_path / "torch", settings)


@pytest.mark.parametrize("loss", [losses.SQUARES, losses.LOGISTIC])
@pytest.mark.parametrize("m", [1, 4, 7, 100, 20000])
def test_the_losses_in_float32(loss, m):
    rng = np.random.default_rng(m)
    z, b = rng.standard_normal(m), (rng.random(m) < 0.5).astype(float)
    u, u32 = np.empty(m), np.empty(m, np.float32)
    value = losses.dloss(loss, z, b, u)
    single = losses.dloss32(loss, z.astype(np.float32), b.astype(np.float32), m, u32)[0]
    assert single == pytest.approx(value, rel=5e-7)
    assert np.allclose(u32, u, rtol=1e-5, atol=1e-6)
    dual = losses.dual_loss(loss, u, b, 0.9)
    sums = float(u @ u), float(u @ b)
    rough = losses.dual_loss32(loss, u32, b.astype(np.float32), 0.9, *sums)
    assert rough == pytest.approx(dual, rel=1e-6, abs=1e-6)


def test_the_functions_of_the_loop():
    from proxlearn.compiled import maths

    rng = np.random.default_rng(0)
    for v in np.exp(rng.uniform(-80, 80, 200)).astype(np.float32):
        assert maths.log32(v) == pytest.approx(np.log(float(v)), rel=1e-6, abs=1e-6)
    for t in rng.uniform(-80, 80, 200).astype(np.float32):
        assert maths.exp32(t) == pytest.approx(np.exp(float(t)), rel=1e-6)
    for k in (1, 2, 5, 8, 9, 22):
        C, w, H = rng.standard_normal((k, 700)), rng.random(700), np.zeros((k, k))
        maths.gram(C, w[:0], 0, k, H)
        assert np.allclose(H, C @ C.T)
        maths.gram(C, w, 0, k, H)
        assert np.allclose(H, (C * w) @ C.T)
        H[k // 2 :] = H[:, k // 2 :] = 0
        maths.gram(C, w, k // 2, k, H)
        assert np.allclose(H, (C * w) @ C.T)
        v = rng.standard_normal(k)
        answer = np.linalg.solve(H, v)
        start = np.tril(H)
        assert maths.cholesky(start, k // 2, 0)
        assert maths.cholesky(start, k, k // 2)
        assert maths.cholesky(H, k, 0)
        assert np.allclose(np.tril(start), np.tril(H))
        maths.cholesky_solve(H, k, v)
        assert np.allclose(v, answer)
    assert not maths.cholesky(-np.eye(3), 3, 0)
