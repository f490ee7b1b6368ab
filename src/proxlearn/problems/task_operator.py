"""One A for several tasks, as an operator of PyTorch."""

import torch
from torch import Tensor

from proxlearn.problems.operators import Operator


class ForTasks(Operator):
    """A of shape (m, n) for T tasks: x is the matrix (n, T) row by row, A x (T, m) row by row."""

    def __init__(self, inner: Operator, tasks: int):
        m, n = inner.shape
        self.inner, self.tasks, self.shape = inner, tasks, (m * tasks, n * tasks)
        self.batch, self.dtype, self.device = inner.batch, inner.dtype, inner.device

    def forward(self, x: Tensor) -> Tensor:
        by_task = x.unflatten(-1, (self.inner.shape[1], self.tasks)).mT
        return self.inner.forward(by_task).flatten(-2)

    def adjoint(self, r: Tensor) -> Tensor:
        by_task = r.unflatten(-1, (self.tasks, self.inner.shape[0]))
        return self.inner.adjoint(by_task).mT.flatten(-2)

    def norm(self) -> Tensor:
        return self.inner.norm()

    def select(self, index: Tensor) -> "ForTasks":
        return ForTasks(self.inner.select(index), self.tasks)

    def convert(self, dtype: torch.dtype, device: torch.device | str | None = None) -> "ForTasks":
        return ForTasks(self.inner.convert(dtype, device), self.tasks)

    def without_tasks(self) -> tuple[Operator, int]:
        return self.inner, self.tasks

    @property
    def norm_is_known(self) -> bool:
        return self.inner.norm_is_known

    @property
    def entries(self) -> int:
        return self.inner.entries * self.tasks

    def largest(self) -> Tensor | None:
        return self.inner.largest()

    def times_power(self, e: Tensor) -> "ForTasks":
        return ForTasks(self.inner.times_power(e), self.tasks)

    def numbers(self) -> list[Tensor]:
        return self.inner.numbers()
