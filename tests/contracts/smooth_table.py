"""The smooth terms that the contract runs over, each next to a formula written independently."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from contracts.operator_table import BUILDERS, gaussian, with_zeros
from proxlearn.problems.operators import Dense
from proxlearn.problems.smooth import (
    Autograd,
    Huber,
    LeastSquares,
    Logistic,
    NoSmooth,
    Poisson,
    Quadratic,
    Smooth,
    Softmax,
)

B = 3
OPERATORS = ("dense", "scipy-csr", "torch-csr", "linear-operator", "tensor-product")
SHAPES = {"": (6, 4), "-wide": (3, 8), "-m1": (1, 5), "-n1": (5, 1), "-lanczos": (90, 70)}


@dataclass(frozen=True)
class Row:
    """A smooth term of B instances and ``reference(i, x)``, the i-th value at x (n,)."""

    f: Smooth
    reference: Callable[[int, Tensor], Tensor]


def labels(m: int, classes: int) -> Tensor:
    return torch.randint(classes, (B, m), generator=torch.Generator().manual_seed(4))


def least_squares(op, A):
    b = gaussian(B, op.shape[0], seed=2)
    return Row(LeastSquares(op, b), lambda i, x: ((A[i] @ x - b[i]) ** 2).sum() / 2)


def huber(op, A):
    b, delta = gaussian(B, op.shape[0], seed=2), torch.tensor([0.2, 0.3, 0.4], dtype=torch.float64)

    def reference(i, x):
        e = A[i] @ x - b[i]
        line = delta[i] * (e.abs() - delta[i] / 2)
        return torch.where(e.abs() <= delta[i], e**2 / 2, line).sum()

    return Row(Huber(op, b, delta), reference)


def logistic(op, A):
    b = labels(op.shape[0], 2)
    return Row(
        Logistic(op, b.double()),
        lambda i, x: torch.log1p(torch.exp((1 - 2 * b[i]) * (A[i] @ x))).mean(),
    )


def poisson(op, A):
    b = labels(op.shape[0], 5).double()

    def reference(i, x):
        z = A[i] @ x
        return (torch.exp(z) - b[i] * z + torch.xlogy(b[i], b[i]) - b[i]).mean()

    return Row(Poisson(op, b), reference)


def softmax(classes):
    def build(op, A):
        y = labels(op.shape[0], classes)
        one_hot = torch.stack([(y == c).double() for c in range(classes)], 1)

        def reference(i, x):
            scores = A[i] @ x.reshape(classes, -1).T  # (m, C)
            return torch.nn.functional.cross_entropy(scores, y[i])

        return Row(Softmax(op, one_hot, classes), reference)

    return build


GLMS = {
    "least-squares": least_squares,
    "huber": huber,
    "logistic": logistic,
    "poisson": poisson,
    "softmax-2": softmax(2),
    "softmax-4": softmax(4),
}


def shared(glm, builder, shape):
    A = with_zeros(*shape) if min(shape) > 2 else gaussian(*shape)
    return lambda: glm(BUILDERS[builder](A), A.expand(B, *shape))


def batched(glm, shape=(6, 4)):
    A = torch.stack([gaussian(*shape, seed=s) * (1 + s) for s in range(B)])
    return lambda: glm(Dense(A), A)


def quadratic(batch, n=5):
    def build():
        root = torch.stack([gaussian(n, n - 1, seed=s) for s in range(batch)])
        Q, c = root @ root.mT, gaussian(B, n, seed=9)
        each = Q.expand(B, n, n)
        return Row(Quadratic(Dense(Q), c), lambda i, x: 0.5 * x @ each[i] @ x - torch.dot(c[i], x))

    return build


def autograd():
    scale = 1 + torch.arange(B, dtype=torch.float64)[:, None]

    def log_cosh(x: Tensor, scale: Tensor) -> Tensor:
        return torch.logaddexp(scale * x, -scale * x).sum(-1)

    f = Autograd(log_cosh, 4, scale[:, 0] ** 2, (scale,))
    return Row(f, lambda i, x: (torch.log(torch.cosh((1 + i) * x)) + torch.log(scale[0] * 2)).sum())


def no_smooth():
    return Row(NoSmooth(4), lambda i, x: 0 * x.sum())


ROWS: dict[str, Callable[[], Row]] = {
    **{f"{g}/{o}": shared(build, o, (6, 4)) for g, build in GLMS.items() for o in OPERATORS},
    **{f"{g}/batch": batched(build) for g, build in GLMS.items()},
    **{
        f"{g}/dense{name}": shared(build, "dense", shape)
        for g, build in GLMS.items()
        for name, shape in SHAPES.items()
        if name
    },
    "quadratic/shared": quadratic(1),
    "quadratic/batch": quadratic(B),
    "quadratic/lanczos": quadratic(1, 80),
    "autograd": autograd,
    "no-smooth": no_smooth,
}
