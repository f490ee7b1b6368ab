"""Loops of other packages on the same operator, followed iterate by iterate.

pyproximal has FISTA, ADMM and the primal-dual method of Chambolle and Pock; deepinv has FISTA. They
get our products with A and A^T, the step 1/L, and ADMM the step that our untrained rule starts
with. None of them certifies its answer: all methods are measured by the true objective, against
an optimum that the first of ours certified to 1e-6, which costs them nothing. The clock stands
still while F and the picture's quality are computed. A package that is not installed is left out
and named.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import proxlearn as pl
from proxlearn.methods.checkpoint import build

GAP = 1e-3
MOMENTS = (0.1, 0.3, 1.0)
LONGEST = 8.0
"""Seconds after which a method is given up."""
MOST = 5000
INNER = 10
"""Iterations of LSQR in a step of ADMM, which pyproximal proposes."""


class EnoughError(Exception):
    """The run has shown what was asked."""


class Probe:
    """What is called with every iterate: its iteration, time, relative suboptimality and PSNR."""

    def __init__(self, problem: pl.Problem, optimum: float, quality: Callable[[Tensor], float]):
        self.problem, self.optimum, self.quality = problem, optimum, quality
        self.count, self.paused, self.began = 0, 0.0, time.process_time()
        self.steps: list[tuple[float, float, float]] = []

    def __call__(self, x: Tensor) -> None:
        now = time.process_time()
        seconds = now - self.began - self.paused
        x = x.reshape(1, -1)
        F = float(self.problem.objective(x)[0])
        gap = (F - self.optimum) / self.optimum
        self.steps.append((seconds, gap, self.quality(x)))
        self.paused += time.process_time() - now
        if (gap <= GAP and seconds > MOMENTS[-1]) or seconds > LONGEST:
            raise EnoughError

    def row(self, best: float) -> list[str]:
        """Iterations and seconds to `GAP`, PSNR at the moments and at the optimum."""
        close = [(k, step[0]) for k, step in enumerate(self.steps, 1) if step[1] <= GAP]
        cells = [str(close[0][0]), f"{close[0][1]:.2f}"] if close else ["none", ""]
        for moment in MOMENTS:
            before = [step[2] for step in self.steps if step[0] <= moment]
            cells.append(f"{before[-1]:.2f}" if before else "")
        return [*cells, f"{best:.2f}"]


def follow(
    problem: pl.Problem, ours: dict[str, Any], quality: Callable[[Tensor], float]
) -> dict[str, Any]:
    """A row for each method of ours and theirs on one instance."""
    best = next(iter(ours.values()))
    reference = pl.solve(problem, best, tol=1e-6, max_iter=MOST, polish=False)
    optimum = float(reference.objective[0])
    runs: dict[str, Callable[[Probe], Any]] = {
        name: lambda probe, method=method: pl.solve(
            problem, method, tol=GAP / 100, max_iter=MOST, polish=False,
            callback=lambda p: probe(p.x) if len(p.x) else None,
        )
        for name, method in ours.items()
    }  # fmt: skip
    for name, loops in (("pyproximal", pyproximal_loops), ("deepinv", deepinv_loops)):
        try:
            runs |= loops(problem)
        except ImportError as error:
            print(f"{name} is left out: {error}")
    rows = {}
    for name, run in runs.items():
        probe = Probe(problem, optimum, quality)
        with contextlib.suppress(EnoughError):
            run(probe)
        rows[name] = probe.row(quality(reference.x.reshape(1, -1)))
    return {"methods": rows, "gap of the optimum": float(reference.gap[0]) / optimum}


def pyproximal_loops(problem: pl.Problem) -> dict[str, Callable[[Probe], Any]]:
    """FISTA, ADMM with an inner solver, and primal-dual."""
    import pylops
    import pyproximal
    from pyproximal.optimization.primal import ADMM, ProximalGradient
    from pyproximal.optimization.primaldual import PrimalDual
    from scipy.sparse.linalg import LinearOperator

    f, A = problem.f, problem.f.A
    b = f.b[0].numpy()

    def vector(product: Callable[[Tensor], Tensor]) -> Callable[[Any], Any]:
        return lambda x: product(torch.from_numpy(np.asarray(x, np.float64)).reshape(1, -1))[
            0
        ].numpy()

    linear = LinearOperator(
        A.shape, matvec=vector(A.forward), rmatvec=vector(A.adjoint), dtype=np.float64
    )
    op = pylops.aslinearoperator(linear)
    penalty = pyproximal.L1(sigma=float(problem.r.lam[0]))
    step, zero = float(1 / problem.lipschitz()[0]), np.zeros(problem.n)
    gamma = step
    if f.has_proximal:
        memory = build({"kind": "splitting"}).init(problem, torch.zeros_like(f.A.adjoint(f.b)))
        gamma = step * float(memory.log_gamma.exp())

    def fista(probe: Probe) -> None:
        ProximalGradient(
            pyproximal.L2(Op=op, b=b), penalty, x0=zero, tau=step, niter=MOST,
            acceleration="fista", callback=lambda x: probe(torch.from_numpy(x)),
        )  # fmt: skip

    def admm(probe: Probe) -> None:
        ADMM(
            pyproximal.L2(Op=op, b=b, niter=INNER, warm=True), penalty, x0=zero, tau=gamma,
            niter=MOST, callback=lambda x, z: probe(torch.from_numpy(z)), callbackz=True,
        )  # fmt: skip

    def primal_dual(probe: Probe) -> None:
        length = 0.99 * step**0.5
        PrimalDual(
            penalty, pyproximal.L2(b=b), op, x0=zero, tau=length, mu=length, niter=MOST,
            callback=lambda x: probe(torch.from_numpy(x)),
        )  # fmt: skip

    return {
        "pyproximal FISTA": fista,
        "pyproximal ADMM": admm,
        "pyproximal primal-dual": primal_dual,
    }


def deepinv_loops(problem: pl.Problem) -> dict[str, Callable[[Probe], Any]]:
    """FISTA, whose prox says where it is."""
    from deepinv.optim import FISTA, L2
    from deepinv.optim.prior import L1Prior
    from deepinv.physics import LinearPhysics

    A = problem.f.A
    physics = LinearPhysics(A=lambda x, **_: A.forward(x), A_adjoint=lambda y, **_: A.adjoint(y))

    class Watched(L1Prior):
        def prox(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            found: Tensor = super().prox(x, *args, **kwargs)
            self.probe(found)
            return found

    def fista(probe: Probe) -> None:
        prior = Watched()
        prior.probe = probe
        model = FISTA(
            data_fidelity=L2(), prior=prior, lambda_reg=float(problem.r.lam[0]),
            stepsize=float(1 / problem.lipschitz()[0]), max_iter=MOST, early_stop=False,
        )  # fmt: skip
        zero = torch.zeros_like(A.adjoint(problem.f.b))
        model(problem.f.b, physics, init=(zero, zero))

    return {"deepinv FISTA": fista}
