"""Why the learned update is implicit in r: explicit and implicit rules on r(x) = |x|.

An explicit rule, x+ = x - p_k g with g a subgradient at x, moves by p_k however close x is to 0,
since g = sign(x) there: |x| + |x+| >= p_k, so two iterates in a row cannot both be below p_k / 2.
If it is to converge, its steps must vanish, decreed or learned (the paper's appendix on explicit
rules); and steps that vanish too soon never reach a far start. The implicit rule, x+ = x - p_k g+
with g+ a subgradient at x+, is the prox of |x|: with any constant step it ends at 0 exactly.

    python examples/explicit_subgradient.py [--plot FILE.png]
"""

import argparse
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from proxlearn.problems.penalties import L1

ABS = L1(torch.ones(1, dtype=torch.float64))
K = 1000
LEARNED = 20
"""Iterations whose steps are learned."""
STEPS: dict[str, Callable[[int], float]] = {
    "constant 0.1": lambda k: 0.1,
    "constant 0.01": lambda k: 0.01,
    "0.5 / sqrt(k + 1)": lambda k: 0.5 / (k + 1) ** 0.5,
    "1 / (k + 1)": lambda k: 1 / (k + 1),
    "0.5^k / 4": lambda k: 0.5**k / 4,
}


def explicit(x: Tensor, p: Tensor) -> Tensor:
    """x - p g with g a subgradient at x; at 0 all of [-1, 1] are subgradients, here it is 0."""
    return x - p * ABS.subgrad(x)


def implicit(x: Tensor, p: Tensor) -> Tensor:
    """x - p g+ with g+ a subgradient at the new point: the prox."""
    return ABS.prox(x, p.reshape(1, 1))


RULES = {"explicit": explicit, "implicit": implicit}


def starts(count: int = 2001) -> Tensor:
    """All of [-1, 1], (1, count): each coordinate is a start of its own."""
    return torch.linspace(-1, 1, count, dtype=torch.float64)[None]


def run(rule: str, steps: Sequence[float] | Tensor, x: Tensor) -> Tensor:
    """x_1, ..., x_K, (K, count), for the steps p_0, ..., p_K-1."""
    rows = []
    for p in torch.as_tensor(steps, dtype=x.dtype):
        x = RULES[rule](x, p)
        rows.append(x[0])
    return torch.stack(rows)


def learn(rule: str, updates: int = 200) -> Tensor:
    """The steps p_0, ..., p_19 that make the mean of |x_k| over starts and iterations least."""
    log_p = torch.full((LEARNED,), -2.0, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([log_p], lr=0.05)
    for _ in range(updates):
        adam.zero_grad()
        run(rule, log_p.exp(), starts(201)).abs().mean().backward()
        adam.step()
    return log_p.detach().exp()


def main(arguments: list[str] | None = None) -> None:
    """Print two tables; draw the first with --plot."""
    parser = argparse.ArgumentParser(description="Explicit and implicit rules on |x|.")
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    plot = parser.parse_args(arguments).plot
    curves = {}
    print("the largest |x_k| over starts in [-1, 1]")
    print(f"{'rule':10}{'steps p_k':20}{'k = 10':>10}{'k = 100':>10}{'k = 1000':>10}")
    for rule in RULES:
        for name, step in STEPS.items():
            worst = run(rule, [step(k) for k in range(K)], starts()).abs().amax(1)
            curves[f"{rule}, {name}"] = worst
            print(f"{rule:10}{name:20}" + "".join(f"{worst[k - 1]:10.1e}" for k in (10, 100, K)))
    print(f"\nlearned steps of {LEARNED} iterations")
    print(
        f"{'rule':10}" + "".join(f"{f'p_{k}':>10}" for k in (0, 2, 5, 10, 19)) + f"{'|x_20|':>10}"
    )
    for rule in RULES:
        p = learn(rule)
        worst = run(rule, p, starts()).abs().amax(1)
        print(f"{rule:10}" + "".join(f"{v:10.4f}" for v in [*p[[0, 2, 5, 10, 19]], worst[-1]]))
    if plot:
        draw(curves, plot)
        print(f"wrote {plot}")


def draw(curves: dict[str, Tensor], path: str) -> None:
    """Worst |x_k| against k, dashed for the implicit rule."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name, worst in curves.items():
        style = "-" if name.startswith("explicit") else "--"
        axes.loglog(range(1, K + 1), worst.clamp(min=1e-6), style, label=name)
    axes.set(xlabel="iteration", ylabel="largest |x| over starts in [-1, 1], cut at 1e-6")
    axes.legend(fontsize="small")
    figure.savefig(path)


if __name__ == "__main__":
    main()
