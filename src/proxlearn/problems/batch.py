"""Batches: every tensor leads with the instance axis, of length B, or 1 where it is shared.

`select` and `convert` walk through dataclasses, tuples and dictionaries of such tensors, so that a
problem, an optimizer's state and a rule's memory are sliced and moved by the same two functions.
A dataclass field with ``metadata=SHARED`` has no instance axis. An object with its own `select` or
`convert` method (an operator) is asked to do it itself.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
SHARED = {"shared": True}


def select(obj: T, index: Tensor) -> T:
    """The instances `index` (a vector of positions) of a batched object."""
    chosen: T = _map(obj, lambda t: t if t.shape[0] == 1 else t[index], "select", index)
    return chosen


def convert(obj: T, dtype: torch.dtype, device: torch.device | str | None = None) -> T:
    """The same object with its floating-point tensors in `dtype`, everything on `device`."""

    def cast(t: Tensor) -> Tensor:
        return t.to(device=device, dtype=dtype if t.is_floating_point() else None)

    moved: T = _map(obj, cast, "convert", dtype, device)
    return moved


def detach(obj: T) -> T:
    """The same object without the history that autograd keeps."""
    cut: T = _map(obj, lambda t: t.detach(), "")
    return cut


def blend(mask: Tensor, yes: T, no: T) -> T:
    """The instances of `yes` where `mask` (B,) holds, those of `no` elsewhere; of one structure."""
    others = iter(leaves(no))

    def pick(t: Tensor) -> Tensor:
        other = next(others)
        if t is other:
            return t
        return torch.where(mask.reshape(-1, *[1] * (t.ndim - 1)), t, other)

    mixed: T = _map(yes, pick, "")
    return mixed


def finite(obj: Any, batch: int) -> Tensor:
    """Instances of a batched object whose numbers are all finite, (B,)."""
    fine = [t.reshape(len(t), -1).isfinite().all(-1).expand(batch) for t in leaves(obj)]
    return torch.stack(fine).all(0) if fine else torch.ones(batch, dtype=torch.bool)


def leaves(obj: Any) -> list[Tensor]:
    """The tensors of an object, in order."""
    found: list[Tensor] = []

    def collect(t: Tensor) -> Tensor:
        found.append(t)
        return t

    _map(obj, collect, "")
    return found


def _map(obj: Any, fn: Callable[[Tensor], Tensor], method: str, *args: Any) -> Any:
    if isinstance(obj, Tensor):
        return fn(obj)
    if method and hasattr(obj, method):
        return getattr(obj, method)(*args)
    if is_dataclass(obj) and not isinstance(obj, type):
        changed = {}
        for field in fields(obj):
            value = getattr(obj, field.name)
            if method == "select" and field.metadata.get("shared"):
                continue
            changed[field.name] = _map(value, fn, method, *args)
        return replace(obj, **changed)
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return type(obj)(*(_map(o, fn, method, *args) for o in obj))
    if isinstance(obj, (tuple, list)):
        return type(obj)(_map(o, fn, method, *args) for o in obj)
    if isinstance(obj, dict):
        return {k: _map(o, fn, method, *args) for k, o in obj.items()}
    return obj
