"""Truncated backpropagation through the iterations, validation, the best weights kept."""

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.methods.checkpoint import Learned, weights
from proxlearn.problems.batch import detach
from proxlearn.problems.problem import Problem
from proxlearn.problems.tensors import check_device, start_point
from proxlearn.solving.dual_points import DualAverage
from proxlearn.solving.solution import Solution
from proxlearn.solving.solver import solve
from proxlearn.training import families, snapshot
from proxlearn.training.config import TrainConfig
from proxlearn.training.families import Family
from proxlearn.training.memory import keep_freed_memory
from proxlearn.training.ranks import Ranks
from proxlearn.training.validation import score

VALIDATION_STREAM = 2**31
"""The step number from which validation problems are drawn; no training step has it."""
PATIENCE = 20
"""Bad minibatches in a row after which training gives up."""
COLLAPSE = 1.0
"""Decades by which the validation may worsen before training goes back to the best weights."""


@dataclass(frozen=True)
class Report:
    """The state of a training after a step, for whoever watches it."""

    step: int
    steps: int
    loss: float
    validation: float
    best: float
    skipped: int
    seconds: float


def train(
    family: str | Family,
    config: TrainConfig | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = 120.0,
    device: str = "cpu",
    watch: Callable[[Report], None] | None = None,
    card: Mapping[str, Any] | None = None,
) -> Learned:
    """Learn a rule from problems of a family.

    Under torchrun every rank draws its own problems and the gradients are averaged. Training that
    cannot recover from bad minibatches stops with the status "diverged" on its card and the best
    weights so far.

    Parameters
    ----------
    family : str or Family
        Which problems, by name or as an object.
    config : TrainConfig, optional
        How to train.
    out : path, optional
        The file for the weights. A log (``.jsonl``) and a checkpoint (``.resume``) lie beside it.
    resume : bool
        Whether training goes on from the checkpoint, to the same bits.
    checkpoint_seconds : float
        Time between checkpoints.
    device : str
        The device of PyTorch on which the rule is trained.
    watch : callable, optional
        Called with a `Report` after each step.
    card : mapping, optional
        Further entries of the card.

    Returns
    -------
    Learned

    Examples
    --------
    >>> import proxlearn as pl
    >>> family = pl.families.GaussianLasso(m=10, n=20, nonzeros=2)
    >>> config = pl.TrainConfig(steps=2, horizon=10, unroll=10, batch=4)
    >>> pl.train(family, config).card["status"]
    'finished'
    """
    chosen, config = families.get(family), config or TrainConfig()
    if not isinstance(config, TrainConfig):
        raise InputError(
            f"config is of type {type(config).__name__}; expected a TrainConfig, as in "
            "proxlearn.TrainConfig(rule='compact')"
        )
    check_device(device)
    keep_freed_memory()
    with Ranks.join(device) as ranks:
        run = Training(chosen, config, ranks, device)
        file = None if out is None else Path(out)
        if resume:
            snapshot.restore(run, file)
        last_write = time.monotonic()
        while run.step < config.steps and run.status == "running":
            run.minibatch()
            if watch is not None and ranks.first:
                watch(run.report())
            if file is not None and time.monotonic() - last_write >= checkpoint_seconds:
                snapshot.write(run, file)
                last_write = time.monotonic()
        return snapshot.finish(run, file, dict(card or {}))


class Training:
    """The mutable part of a training: weights, Adam's state, the best so far."""

    def __init__(self, family: Family, config: TrainConfig, ranks: Ranks, device: str):
        self.family, self.config, self.ranks, self.device = family, config, ranks, device
        self.rule = config.new_rule().to(device)
        self.optimizer = self.rule.optimizer()
        self.adam = torch.optim.Adam(self.rule.parameters(), lr=config.lr)
        self.step, self.skipped, self.bad_in_a_row, self.status = 0, 0, 0, "running"
        self.loss = self.validation = self.best = math.inf
        self.best_weights = {k: t.clone() for k, t in weights(self.rule).items()}
        self.log: list[dict[str, float]] = []
        self.held_out: list[tuple[Problem, Tensor]] | None = None
        self.spent, self.began = 0.0, time.monotonic()

    def minibatch(self) -> None:
        """One minibatch: segments with an Adam step after each, then a validation if one is due."""
        problem = self.problems(self.step, self.config.batch, self.ranks.rank)
        target = self.target(problem)
        for group in self.adam.param_groups:
            group["lr"] = self.learning_rate()
        state, losses = self.optimizer.init(problem, start_point(problem, None)), []
        for _ in range(self.segments()):
            state, loss = self.segment(problem, detach(state), target)
            if not self.update(loss):
                self.skipped += 1
                self.bad_in_a_row += 1
                break
            losses.append(float(loss.detach()))
        else:
            self.bad_in_a_row = 0
            self.loss = sum(losses) / len(losses)
        self.step += 1
        if self.step % self.config.validate_every == 0 or self.step == self.config.steps:
            self.validate()
            self.recover()
        self.log.append({"step": self.step, "loss": self.loss, "validation": self.validation})
        if self.config.stop_after and self.stale():
            self.status = "finished"
        if self.bad_in_a_row >= PATIENCE:
            self.status = "diverged"

    def stale(self) -> bool:
        """Whether the last `stop_after` validations were no better than an earlier one."""
        better = [entry["step"] for entry in self.log if entry["validation"] == self.best]
        waited = self.step - better[0] >= self.config.stop_after * self.config.validate_every
        # Only the first rank validates, and knows.
        flag = self.ranks.mean(torch.tensor([float(self.ranks.first and waited)]).to(self.device))
        return bool(flag[0] > 0)

    def segments(self) -> int:
        """How many segments of the horizon this step runs."""
        if self.config.layerwise:
            return 1
        full = self.config.horizon // self.config.unroll
        if self.step >= self.config.warmup:
            return full
        return 1 + (full - 1) * self.step // self.config.warmup

    def learning_rate(self) -> float:
        """Constant, or half a cosine."""
        if self.config.schedule == "constant":
            return self.config.lr
        return self.config.lr * 0.5 * (1 + math.cos(math.pi * self.step / self.config.steps))

    def length(self) -> int:
        """Iterations in a segment of this step."""
        config = self.config
        if not config.layerwise:
            return config.unroll
        return min(1 + 4 * config.horizon * self.step // (3 * config.steps), config.horizon)

    def target(self, problem: Problem) -> Tensor | None:
        """The reference of the loss: none, F* (B,), or x* (B, n)."""
        if self.config.loss in ("objective", "log-certified-gap"):
            return None
        if self.config.loss == "distance":
            found: Tensor = self.solved(problem).x
            return found.to(problem.dtype)
        return self.optimum(problem)

    def solved(self, problem: Problem) -> Solution:
        """A solution to a gap of 2e-5, by the compiled core where that covers the problem."""
        return solve(problem, "fista-restart", tol=2e-5, max_iter=self.config.reference)

    def segment(self, problem: Problem, state: Any, target: Tensor | None) -> tuple[Any, Tensor]:
        """Some iterations with a graph, and the loss, by default the mean over y_1, ..., y_K."""
        if self.config.loss == "log-certified-gap":
            return self.certified_segment(problem, state)
        values, bounds = [], []
        certify = self.config.loss == "log-both-gaps"
        for k in range(self.length()):
            state = self.optimizer.step(problem, state)
            if k > 0:  # an iteration evaluates f at the y it starts from
                assert state.at is not None
                values.append(state.at.value + problem.r.value(state.at.point))
                if certify:
                    bounds.append(problem.lower_bound(state.at))
        if target is not None and self.config.loss == "distance":
            missed = (state.x - target).square().sum(-1)
            return state, (missed / target.square().sum(-1).clamp(min=1e-12)).mean()
        last = problem.f.evaluate(state.y)
        F = torch.stack([*values, last.value + problem.r.value(state.y)])
        if certify:
            bounds.append(problem.lower_bound(last))
        if target is None:
            return state, F.mean()
        # F* is known to some digits only: a smaller value replaces it.
        torch.minimum(target, F.detach().nan_to_num(nan=torch.inf).amin(0), out=target)
        gap = (F - target) / target
        if self.config.loss == "log-both-gaps":
            certified = (F - torch.stack(bounds)) / target
            both = (gap + self.config.floor).log() + (certified + self.config.floor).log()
            return state, 0.5 * both.mean()
        if self.config.loss == "log-mean-gap":
            gap = gap.mean(1)
        return state, (gap + self.config.floor).log().mean()

    def certified_segment(self, problem: Problem, state: Any) -> tuple[Any, Tensor]:
        """Some iterations with a graph, and the mean of the logs of the certified gaps at x.

        As in a solve, the mean of the segment's dual points may have the better bound.
        """
        logs, mean = [], DualAverage()
        for k in range(1, self.length() + 1):
            state = self.optimizer.step(problem, state)
            assert state.at is not None
            mean.add(k, state.at)
            upper = problem.upper_bound(state.at, state.x)
            lower = torch.maximum(problem.lower_bound(state.at), mean.bound(problem))
            logs.append(((upper - lower) / upper.detach() + self.config.floor).log())
        return state, torch.stack(logs).mean()

    def update(self, loss: Tensor) -> bool:
        """Backpropagate and take an Adam step; False, and no step, if anything is not finite."""
        self.adam.zero_grad()
        loss.backward()
        parameters = list(self.rule.parameters())
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = self.ranks.mean(torch.cat([g.reshape(-1) for g in grads]))
        norm = flat.norm()
        if not bool(norm.isfinite()):
            return False
        if self.config.clip is not None:
            flat = flat * (self.config.clip / norm).clamp(max=1)
        for p, g in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            p.grad = g.reshape(p.shape)
        self.adam.step()
        return True

    def problems(self, stream: int, count: int, rank: int, family: Family | None = None) -> Problem:
        """Fresh problems of a step and a rank: a seed of their own, whatever came before."""
        generator = torch.Generator().manual_seed(_mix(self.config.seed, stream, rank))
        problem = (family or self.family).sample(count, generator)
        return problem.to(device=self.device) if self.device != "cpu" else problem

    def optimum(self, problem: Problem) -> Tensor:
        """F*, (B,), to about seven digits where FISTA gets there within `reference` iterations."""
        objective: Tensor = self.solved(problem).objective
        return objective.to(problem.dtype)

    @torch.no_grad()
    def validate(self) -> None:
        """The score on a fixed set: the mean over iterations of log10 of the relative gap at x_k.

        The mean over the problems is taken before the logarithm, or after it where the loss is
        "log-gap" or "log-certified-gap", as the loss does. With the score "objective" it is log10
        of the mean of F(y_k) over problems and iterations, which orders weights as that mean does.
        """
        if not self.ranks.first:
            return
        if self.held_out is None:
            self.held_out = [self.hold_out(i) for i in range(self.config.validation_batches)]
        scores = [score(self.optimizer, self.config, *batch) for batch in self.held_out]
        self.validation = sum(scores) / len(scores)
        if self.validation < self.best:
            self.best = self.validation
            self.best_weights = {k: t.clone() for k, t in weights(self.rule).items()}

    def recover(self) -> None:
        """Go back to the best weights, with a fresh Adam, if the validation has collapsed."""
        collapsed = self.ranks.first and self.validation > self.best + COLLAPSE
        best = torch.cat([t.reshape(-1) for t in self.best_weights.values()])
        flag = best.new_ones(1)
        # Only the first rank has validated. The others send zeros, so that its part is the sum.
        sent = self.ranks.mean(torch.cat([flag, best]) * float(collapsed)) * self.ranks.count
        if not bool(sent[0] > 0):
            return
        shapes = {k: t.shape for k, t in self.best_weights.items()}
        parts = sent[1:].split([shape.numel() for shape in shapes.values()])
        named = zip(shapes.items(), parts, strict=True)
        self.rule.load_state_dict({k: part.reshape(shape) for (k, shape), part in named})
        self.adam.state.clear()
        self.skipped += 1

    def hold_out(self, i: int) -> tuple[Problem, Tensor]:
        """One batch of the validation set, and its optimal values."""
        problem = self.problems(
            VALIDATION_STREAM + i, self.config.validation, 0, self.family.of_split("validation")
        )
        return problem, self.optimum(problem)

    def report(self) -> Report:
        """The report of the current step."""
        seconds = self.spent + time.monotonic() - self.began
        steps = self.config.steps
        return Report(
            self.step, steps, self.loss, self.validation, self.best, self.skipped, seconds
        )


def _mix(seed: int, step: int, rank: int) -> int:
    """A seed for (seed, step, rank): a weighted sum, scrambled by splitmix64."""
    z = (seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + rank * 0x94D049BB133111EB) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return (z ^ (z >> 31)) % 2**63
