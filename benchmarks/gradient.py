"""What one gradient and objective cost, against the two bare matrix products they are made of.

The products are timed in every form PyTorch offers, interleaved with ours in the same rounds, and
the fastest form of each is the reference. "ratio" is the median over the rounds; "of best" divides
the best round by the best round, which a busy computer disturbs less. The bar is a ratio of at
most 1.3 for a dense batch of 64 x 250 x 500 in float32.

    python benchmarks/gradient.py --threads 1
"""

import argparse
import random
import statistics
import time
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table

from proxlearn.problems.operators import Dense
from proxlearn.problems.smooth import LeastSquares, Logistic

BAR = 1.3


@dataclass(frozen=True)
class Case:
    loss: type
    batch: int
    m: int
    n: int
    dtype: torch.dtype
    shared: bool = False

    def __str__(self):
        A = f"{self.m}x{self.n} for {self.batch}" if self.shared else self.sizes
        return f"{self.loss.__name__} {A} {str(self.dtype)[6:]}"

    @property
    def sizes(self):
        return f"{self.batch}x{self.m}x{self.n}"


BARRED = Case(LeastSquares, 64, 250, 500, torch.float32)
CASES = [
    BARRED,
    Case(LeastSquares, 64, 250, 500, torch.float64),
    Case(LeastSquares, 64, 250, 500, torch.float32, shared=True),
    Case(LeastSquares, 1, 250, 500, torch.float32),
    Case(LeastSquares, 256, 64, 128, torch.float32),
    Case(LeastSquares, 4, 1000, 2000, torch.float32),
    Case(Logistic, 64, 1000, 50, torch.float32),
]

BATCHED_FORWARD = {
    "matmul column": lambda A, x: torch.matmul(A, x[:, :, None]),
    "matmul row view": lambda A, x: torch.matmul(A, x[:, None].mT),
    "bmm column": lambda A, x: torch.bmm(A, x[:, :, None]),
    "bmm row": lambda A, x: torch.bmm(x[:, None], A.mT),
    "einsum": lambda A, x: torch.einsum("bmn,bn->bm", A, x),
    "loop": lambda A, x: [torch.mv(M, v) for M, v in zip(A, x, strict=True)],
}
BATCHED_ADJOINT = {
    "matmul column": lambda A, r: torch.matmul(A.mT, r[:, :, None]),
    "bmm column": lambda A, r: torch.bmm(A.mT, r[:, :, None]),
    "bmm row": lambda A, r: torch.bmm(r[:, None], A),
    "einsum": lambda A, r: torch.einsum("bmn,bm->bn", A, r),
    "loop": lambda A, r: [torch.mv(M.T, v) for M, v in zip(A, r, strict=True)],
}
SHARED_FORWARD = {
    "matmul": lambda A, x: x @ A.T,
    "matmul columns": lambda A, x: A @ x.T,
    "einsum": lambda A, x: torch.einsum("mn,bn->bm", A, x),
}
SHARED_ADJOINT = {
    "matmul": lambda A, r: r @ A,
    "matmul columns": lambda A, r: A.T @ r.T,
    "einsum": lambda A, r: torch.einsum("mn,bm->bn", A, r),
}


def measure(case, rounds):
    """Milliseconds of every contender in every round, {name: [ms, ...]}."""
    generator = torch.Generator().manual_seed(0)
    shape = (case.m, case.n) if case.shared else (case.batch, case.m, case.n)
    A = torch.randn(shape, generator=generator).to(case.dtype)
    x = torch.randn(case.batch, case.n, generator=generator).to(case.dtype)
    r = torch.randn(case.batch, case.m, generator=generator).to(case.dtype)
    f = case.loss(Dense(A), (r > 0).to(case.dtype))
    flat = case.shared or case.batch == 1  # as one matrix, which is faster than a batch of one
    M = A.reshape(A.shape[-2:]) if flat else A
    forward, adjoint = (
        (SHARED_FORWARD, SHARED_ADJOINT) if flat else (BATCHED_FORWARD, BATCHED_ADJOINT)
    )
    contenders = {("ours", "evaluate"): lambda: f.evaluate(x)}
    contenders |= {("A x", k): lambda g=g: g(M, x) for k, g in forward.items()}
    contenders |= {("A^T r", k): lambda g=g: g(M, r) for k, g in adjoint.items()}
    times = {name: [] for name in contenders}
    order, shuffle = list(contenders), random.Random(0).shuffle
    for round in range(rounds + 3):
        shuffle(order)  # nobody always runs after the same neighbour
        for name in order:
            began = time.perf_counter()
            contenders[name]()
            elapsed = 1e3 * (time.perf_counter() - began)
            if round >= 3:  # the first rounds warm caches and thread pools
                times[name].append(elapsed)
    return times


def fastest(times, product):
    named = [name for name in times if name[0] == product]
    return min(named, key=lambda name: statistics.median(times[name]))


def row(case, rounds):
    times = measure(case, rounds)
    ours = times["ours", "evaluate"]
    forward, adjoint = fastest(times, "A x"), fastest(times, "A^T r")
    bare = [a + b for a, b in zip(times[forward], times[adjoint], strict=True)]
    ratios = [a / b for a, b in zip(ours, bare, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    verdict = ""
    if case == BARRED:
        met = middle <= BAR
        verdict = f"[green]<= {BAR}[/]" if met else f"[red]> {BAR}[/]"
    return (
        str(case),
        f"{statistics.median(ours):.3f}",
        f"{statistics.median(bare):.3f}",
        f"{forward[1]}, {adjoint[1]}",
        f"{middle:.2f}",
        f"{low:.2f}-{high:.2f}",
        f"{min(ours) / min(bare):.2f}",
        verdict,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    parser.add_argument("--rounds", type=int, default=60, help="rounds for each size")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    table = Table(title=f"gradient and objective / two bare products, {args.threads} thread(s)")
    for title in (
        "problem",
        "ours ms",
        "bare ms",
        "fastest forms",
        "ratio",
        "quartiles",
        "of best",
        "bar",
    ):
        table.add_column(
            title, justify="left" if title in ("problem", "fastest forms") else "right"
        )
    with torch.no_grad():
        for case in CASES:
            table.add_row(*row(case, args.rounds))
    Console(width=max(Console().width, 120)).print(table)


if __name__ == "__main__":
    main()
