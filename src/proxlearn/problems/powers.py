"""Exact multiplication by powers of two."""

import numpy as np
import torch
from torch import Tensor


def exponents(sizes: Tensor) -> Tensor:
    """The e with 2^(e-1) <= size < 2^e for every size (B,) >= 0, integers; 0 for a size of 0."""
    return torch.from_numpy(np.frexp(sizes.cpu().numpy())[1].astype(np.int64)).to(sizes.device)


def extreme(sizes: Tensor) -> Tensor:
    """The exponents of the sizes (B,) whose eighth power leaves the range of the dtype, else 0."""
    limit = np.finfo(sizes.cpu().numpy().dtype).maxexp // 8
    found = exponents(sizes)
    return torch.where(found.abs() > limit, found, 0)


def times_power(t: Tensor, e: Tensor) -> Tensor:
    """t (B, ...) times 2^e with integers e (B,): exact where the result is a normal number."""
    third = torch.div(e, 3, rounding_mode="trunc")
    for part in (third, third, e - 2 * third):  # 2^e itself may leave the range
        one = np.ones(1, dtype=torch.empty(0, dtype=t.dtype).numpy().dtype)
        factor = torch.from_numpy(np.ldexp(one, part.cpu().numpy())).to(t.device)
        t = t * factor.reshape(-1, *[1] * (t.ndim - 1))
    return t
