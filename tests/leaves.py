"""All tensors inside a problem, a state or a memory, to compare two of them bit for bit."""

from dataclasses import fields, is_dataclass

import torch

from proxlearn.problems.operators import Operator
from proxlearn.problems.problem import Problem


def leaves(obj):
    """The tensors of an object, in a fixed order; of an operator its data, not what it caches."""
    if isinstance(obj, torch.Tensor):
        return [obj]
    if isinstance(obj, Problem):
        return leaves((obj.f, obj.r))
    if isinstance(obj, Operator):
        named = sorted(vars(obj).items())
        own = [t for name, t in named if isinstance(t, torch.Tensor) and name[0] != "_"]
        own = [t.values() if t.layout == torch.sparse_csr else t for t in own]
        return own + leaves(getattr(obj, "operators", ()))
    if is_dataclass(obj):
        return [t for field in fields(obj) for t in leaves(getattr(obj, field.name))]
    if isinstance(obj, (tuple, list)):
        return [t for part in obj for t in leaves(part)]
    if isinstance(obj, dict):
        return [t for part in obj.values() for t in leaves(part)]
    if obj is None or isinstance(obj, (int, float, str)) or callable(obj):
        return []
    raise TypeError(f"tensors of {type(obj).__name__} are not known to be found")


def same(one, other):
    """True where every tensor has the same type and the same bits."""
    pairs = zip(leaves(one), leaves(other), strict=True)
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)
