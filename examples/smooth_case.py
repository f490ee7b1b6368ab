"""The smooth case, r = 0: the learned rule x+ = x - p_k grad f(x) - b_k beside classic methods.

Trains the rule of the paper's smooth theorem (diagonal p_k, and b_k, both from the LSTM: "pb1" of
the scheme) and the one with momentum in place of b_k ("pa") on small least-squares problems, then
counts gradients on fresh ones. About a minute on one core.

The theorem asks for b_k -> 0, which nothing in the network enforces: "pb1" falls at first, and then
rests where p_k grad f = -b_k. "pa" can only rest at a minimiser.

    python examples/smooth_case.py [--steps MINIBATCHES]
"""

import argparse

import proxlearn as pl
from proxlearn.evaluation.comparison import Comparison, compare
from proxlearn.evaluation.lbfgs import lbfgs

FAMILY = pl.families.GaussianLeastSquares(m=60, n=20, spread=3.0)
ITERATIONS = 300
LEVELS = (1e-3, 1e-6)


def learn(rule: str, steps: int) -> pl.Learned:
    """The rule trained on `steps` minibatches of 16 problems."""
    config = pl.TrainConfig.paper(
        rule=rule,
        settings={"activation": "softplus"},
        steps=steps,
        batch=16,
        validation=16,
        schedule="cosine",
        loss="log-mean-gap",
    )
    return pl.train(FAMILY, config)


def measure(steps: int, count: int = 32, seed: int = 0) -> Comparison:
    """Nesterov, L-BFGS and the learned rules on `count` fresh problems."""
    problem = FAMILY.sample(count, seed)
    learned = {f"learned {rule}": learn(rule, steps) for rule in ("pb1", "pa")}
    result = compare(problem, {"nesterov": pl.optimizers.get("nesterov"), **learned}, ITERATIONS)
    return result.with_run("lbfgs", lbfgs(problem, ITERATIONS))


def main(arguments: list[str] | None = None) -> None:
    """Print gradients to each level, and where each method stands in the end."""
    parser = argparse.ArgumentParser(description="Learned rules on smooth problems.")
    parser.add_argument("--steps", type=int, default=60, help="minibatches of training (60)")
    result = measure(parser.parse_args(arguments).steps)
    print(f"gradients to a mean relative gap, {len(result.optimum)} problems")
    print(f"{'method':14}{'1e-3':>8}{'1e-6':>8}{f'gap after {ITERATIONS}':>18}")
    for name in result.runs:
        counts = [result.iterations_to(name, eps) for eps in LEVELS]
        cells = "".join(f"{'-' if k is None else k:>8}" for k in counts)
        print(f"{name:14}{cells}{result.mean_gap(name)[-1]:18.1e}")


if __name__ == "__main__":
    main()
