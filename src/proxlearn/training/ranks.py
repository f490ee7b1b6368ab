"""Several processes under torchrun, or one without it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from proxlearn.errors import InputError


@dataclass(frozen=True)
class Ranks:
    """The rank of this process, and the number of processes."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """True for the rank that validates and writes."""
        return self.rank == 0

    @classmethod
    @contextmanager
    def join(cls, device: str) -> Iterator["Ranks"]:
        """The group that torchrun started this process in (gloo on CPUs, nccl on GPUs)."""
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            yield cls()
            return
        joined_here = not dist.is_initialized()
        if joined_here:
            try:
                store, rank, count = next(rendezvous("env://"))
            except ValueError as error:
                raise InputError(
                    f"RANK and WORLD_SIZE are set, and PyTorch says: {error}; start several "
                    "processes with torchrun, or unset them for one"
                ) from None
            store = PrefixStore(_generation(), store)
            backend = "nccl" if device.startswith("cuda") else "gloo"
            dist.init_process_group(backend, store=store, rank=rank, world_size=count)
        try:
            yield cls(dist.get_rank(), dist.get_world_size())
            dist.barrier()  # A rank that exits while others still work can abort at its exit.
        finally:
            if joined_here:
                dist.destroy_process_group()

    def mean(self, flat: Tensor) -> Tensor:
        """The mean of a vector over the ranks: one all-reduce."""
        if self.count == 1:
            return flat
        total = flat.clone()
        dist.all_reduce(total)
        return total / self.count


def _generation() -> str:
    """The restarts of torchrun so far, where that is the same number in all processes.

    The store that torchrun keeps over restarts still holds the addresses of the dead. On several
    hosts each counts its own; there TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 gives every start a store.
    """
    one_host = os.environ.get("GROUP_WORLD_SIZE", "1") == "1"
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if one_host else "all"
