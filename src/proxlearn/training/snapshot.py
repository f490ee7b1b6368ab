"""A training's files: the checkpoint it resumes from, its log, and the finished weights."""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import proxlearn
from proxlearn.errors import InputError
from proxlearn.files import replacing
from proxlearn.methods.checkpoint import Learned, describe, read_tensors, weights, write_tensors
from proxlearn.training.config import TrainConfig
from proxlearn.training.families import Family

if TYPE_CHECKING:
    from proxlearn.training.training_loop import Training

WHOLE = ("step", "skipped", "bad_in_a_row")
NUMBERS = ("loss", "validation", "best", "seconds")
COUNTERS = (*WHOLE, "loss", "validation", "best", "log")


def write(run: "Training", out: Path) -> None:
    """Everything that the rest of a training depends on, in one file, whole or not at all."""
    if not run.ranks.first:
        return
    tensors = {f"rule.{k}": t for k, t in weights(run.rule).items()}
    tensors |= {f"best.{k}": t for k, t in run.best_weights.items()}
    for i, p in enumerate(run.rule.parameters()):
        tensors |= {f"adam.{i}.{name}": value for name, value in run.adam.state[p].items()}
    state = {name: getattr(run, name) for name in COUNTERS}
    state |= {"identity": _identity(run), "seconds": run.report().seconds}
    write_tensors(_beside(out, "resume"), tensors, {"training": json.dumps(state)})


def restore(run: "Training", out: Path | None) -> None:
    """Go on from the checkpoint beside `out`; from the beginning if there is none."""
    if out is None:
        raise InputError("resume needs `out`, the file whose training is to go on")
    file = _beside(out, "resume")
    if not file.exists():
        return
    tensors, metadata = read_tensors(file)
    try:
        state = json.loads(metadata["training"])
        identity = {**state["identity"], "config": completed(state["identity"]["config"])}
        same = identity == json.loads(json.dumps(_identity(run)))
    except (KeyError, ValueError, TypeError):
        raise InputError(f"{file} is not a training's checkpoint; remove it") from None
    if not same:
        raise InputError(
            f"{file} belongs to a training with another family or configuration; "
            "use the same ones, or remove it to start afresh"
        )
    if not _complete(run, tensors, state):
        raise InputError(f"{file} is damaged: it does not hold a whole training; remove it")
    run.rule.load_state_dict(_part(tensors, "rule."))
    run.best_weights = _part(tensors, "best.")
    for i, p in enumerate(run.rule.parameters()):
        run.adam.state[p] = _part(tensors, f"adam.{i}.")
    for name in COUNTERS:
        setattr(run, name, state[name])
    run.spent = state["seconds"]


def _complete(run: "Training", tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> bool:
    """True where a checkpoint holds finite weights of the right shapes, and every counter."""
    shapes = {k: t.shape for k, t in weights(run.rule).items()}
    for prefix in ("rule.", "best."):
        found = _part(tensors, prefix)
        if {k: t.shape for k, t in found.items()} != shapes:
            return False
        if not all(bool(t.isfinite().all()) for t in found.values()):
            return False
    for i, p in enumerate(run.rule.parameters()):
        if any(t.shape not in (p.shape, ()) for t in _part(tensors, f"adam.{i}.").values()):
            return False
    whole = all(type(state.get(name)) is int and state[name] >= 0 for name in WHOLE)
    numbers = all(isinstance(state.get(name), (int, float)) for name in NUMBERS)
    return whole and numbers and isinstance(state.get("log"), list)


def finish(run: "Training", out: Path | None, card: dict[str, Any]) -> Learned:
    """The best weights with their card; written with the log, the checkpoint removed."""
    run.rule.load_state_dict(run.best_weights)
    report = run.report()
    learned = Learned(
        run.rule,
        {
            "licence": "BSD-3-Clause",
            **card,
            "rule": describe(run.rule),
            **_identity(run),
            "status": "finished" if run.status == "running" else run.status,
            "training": {
                "steps": run.step,
                "ranks": run.ranks.count,
                "skipped_minibatches": run.skipped,
                "validation_score": run.best,
                "minutes": round(report.seconds / 60, 1),
            },
            "versions": {
                "proxlearn": proxlearn.__version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
        },
    )
    if out is not None and run.ranks.first:
        with replacing(_beside(out, "jsonl")) as log:
            log.write_text("".join(json.dumps(line) + "\n" for line in run.log))
        learned.save(out)
        _beside(out, "resume").unlink(missing_ok=True)
    return learned


def describe_family(family: Family) -> dict[str, Any]:
    """Name and parameters of a family, as a card holds them."""
    return {"name": type(family).__name__, **asdict(family)}


def describe_config(config: TrainConfig) -> dict[str, Any]:
    """A configuration, as a card holds it."""
    return {**asdict(config), "settings": dict(config.settings)}


def completed(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration from a card, with the defaults of settings that did not exist then."""
    known = json.loads(json.dumps(describe_config(TrainConfig())))
    return {**known, **config}


def _identity(run: "Training") -> dict[str, Any]:
    """The settings in which a checkpoint and a training must agree."""
    return {"family": describe_family(run.family), "config": describe_config(run.config)}


def _beside(out: Path, suffix: str) -> Path:
    return out.with_name(f"{out.stem}.{suffix}")


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k[len(prefix) :]: t for k, t in tensors.items() if k.startswith(prefix)}
