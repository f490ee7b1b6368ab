"""Time of one training segment against the matrix products that it cannot avoid.

    python benchmarks/training.py [--threads N]

A segment of the paper's rule: 64 LASSO problems of 250x500, 20 iterations forward, backward and an
Adam step. The bare products, measured in the same run: for each iteration A y and A^T r forward and
again backward, and every matrix product of the LSTM and its heads once forward and twice backward
(for the weights and for the inputs). Also printed: the largest memory of the process, and the
processor time of whole minibatches of the published trainings, each with its share of a validation.
"""

import argparse
import resource
import statistics
import time

import torch
from rich.console import Console
from rich.table import Table

import proxlearn as pl
from proxlearn.evaluation.experiments.trainings import TRAININGS
from proxlearn.problems.batch import detach
from proxlearn.problems.tensors import start_point
from proxlearn.training.memory import keep_freed_memory
from proxlearn.training.ranks import Ranks
from proxlearn.training.training_loop import Training

B, M, N, H, UNROLL = 64, 250, 500, 20, 20


def bare_products(A):
    """The products of a segment on operands of the right shapes, nothing else."""
    y, r = torch.randn(B, 1, N), torch.randn(B, 1, M)
    # (outputs, inputs) of every linear map: two cells with inputs and state, hidden layer, heads.
    shapes = [(4 * H, 2), (4 * H, H), (4 * H, H), (4 * H, H), (H, H), (2, H)]
    maps = [(torch.randn(o, i).expand(B, -1, -1), torch.randn(B, i, N)) for o, i in shapes]
    outs = [torch.randn(B, o, N) for o, _ in shapes]

    def run():
        for _ in range(UNROLL):
            for _ in range(2):  # forward and backward
                torch.bmm(y, A.mT)
                torch.bmm(r, A)
            for (W, x), dz in zip(maps, outs, strict=True):
                torch.bmm(W, x)
                torch.bmm(W.mT, dz)
                torch.bmm(dz, x.mT)

    return run


def segment():
    """A training in the middle of its first minibatch, and a function that runs one segment."""
    training = Training(pl.families.GaussianLasso(), pl.TrainConfig.paper(), Ranks(), "cpu")
    problem = training.problems(0, B, rank=0)
    state = detach(training.optimizer.init(problem, start_point(problem, None)))

    def run():
        _, loss = training.segment(problem, state, None)
        assert training.update(loss)

    return run, problem.f.A.A


WHOLE = ("published-lasso-pa-1", "published-logistic-pa-1")


def minibatches(repeats):
    """Processor seconds of a minibatch and of its share of a validation, for each of `WHOLE`."""
    table = Table(title="A minibatch of 64 problems, 100 iterations, 5 segments; processor time")
    for column in ("training", "minibatch", "share of a validation", "together"):
        table.add_column(column)
    for name in WHOLE:
        planned = TRAININGS[name]
        training = Training(planned.family, planned.config, Ranks(), "cpu")
        training.minibatch()
        training.validate()
        step = median_of(training.minibatch, repeats)
        share = median_of(training.validate, repeats) / planned.config.validate_every
        table.add_row(name, *(f"{seconds:.2f} s" for seconds in (step, share, step + share)))
    return table


def median_of(run, repeats):
    """The median processor time of some calls."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    ours, A = segment()
    bare = bare_products(A)
    times = {"segment": [], "bare products": []}
    for _ in range(options.repeats + 1):
        for name, run in [("segment", ours), ("bare products", bare)]:
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
    ratios = [s / b for s, b in zip(times["segment"][1:], times["bare products"][1:], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    table = Table(title=f"Training segment, {B} problems of {M}x{N}, {options.threads} thread(s)")
    for column in ("", "median seconds"):
        table.add_column(column)
    for name, values in times.items():
        table.add_row(name, f"{statistics.median(values[1:]):.3f}")
    table.add_row("ratio (quartiles)", f"{middle:.2f} ({low:.2f} to {high:.2f})")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    table.add_row("peak memory", f"{peak:.2f} GiB")
    Console().print(table)
    Console().print(minibatches(max(1, options.repeats // 2)))


if __name__ == "__main__":
    main()
