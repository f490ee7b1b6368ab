"""The non-smooth case, f = 0: a learned proximal-point rule, x+ = prox_{r,p_k}(x - b_k).

r(x) = sum_ij w_ij |x_i - c_ij|, whose minimiser is a weighted median of every coordinate's c_i. The
rule learns a p_k for each coordinate ("p"), or p_k and b_k ("pb1"), and stands beside the proximal
point method with constant p. As in the smooth case, a learned b_k does not vanish by itself, and
the rule then stops short of the minimiser. Seconds on one core.

    python examples/nonsmooth_case.py [--steps MINIBATCHES]
"""

import argparse

import proxlearn as pl
from proxlearn.evaluation.comparison import Comparison, compare
from proxlearn.methods.rules import ProximalPoint

FAMILY = pl.families.WeightedMedian(n=20)
ITERATIONS = 300


def learn(rule: str, steps: int) -> pl.Learned:
    """The rule trained on `steps` minibatches of 16 problems, 20 iterations each."""
    config = pl.TrainConfig.paper(
        rule=rule,
        settings={"activation": "softplus"},
        steps=steps,
        batch=16,
        horizon=20,
        validation=16,
        schedule="cosine",
    )
    return pl.train(FAMILY, config)


def measure(steps: int, count: int = 32, seed: int = 0) -> Comparison:
    """The learned rules and the proximal point method on `count` fresh problems."""
    learned = {f"learned {rule}": learn(rule, steps) for rule in ("p", "pb1")}
    constant = {f"ppa, p = {p:g}": pl.Scheme(ProximalPoint(p)) for p in (1.0, 2.0)}
    return compare(FAMILY.sample(count, seed), {**constant, **learned}, ITERATIONS)


def main(arguments: list[str] | None = None) -> None:
    """Print the mean relative gap of each method along its iterations."""
    parser = argparse.ArgumentParser(description="Learned proximal-point rules.")
    parser.add_argument("--steps", type=int, default=40, help="minibatches of training (40)")
    result = measure(parser.parse_args(arguments).steps)
    columns = (1, 10, 100, ITERATIONS)
    print(f"mean relative gap after k iterations, {len(result.optimum)} problems")
    print(f"{'method':14}" + "".join(f"{f'k = {k}':>10}" for k in columns))
    for name in result.runs:
        gap = result.mean_gap(name)
        print(f"{name:14}" + "".join(f"{gap[k]:10.1e}" for k in columns))


if __name__ == "__main__":
    main()
