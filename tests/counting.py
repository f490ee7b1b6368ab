"""An operator that counts the products it passes on."""

from proxlearn.problems.operators import Operator


class Counting(Operator):
    """Wraps an operator; slices and conversions of it count into the same `calls`."""

    def __init__(self, inner, calls=None):
        self.inner = inner
        self.calls = {"forward": 0, "adjoint": 0} if calls is None else calls
        self.shape, self.batch = inner.shape, inner.batch
        self.dtype, self.device = inner.dtype, inner.device

    def forward(self, x):
        self.calls["forward"] += 1
        return self.inner.forward(x)

    def adjoint(self, r):
        self.calls["adjoint"] += 1
        return self.inner.adjoint(r)

    def norm(self):
        return self.inner.norm()  # what a norm costs is not counted

    def select(self, index):
        return Counting(self.inner.select(index), self.calls)

    def convert(self, dtype, device=None):
        return Counting(self.inner.convert(dtype, device), self.calls)
