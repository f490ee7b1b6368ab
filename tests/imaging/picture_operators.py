"""The operators on pictures that the tests run over, each small enough for its matrix."""

from collections.abc import Callable

import torch

from proxlearn.imaging import (
    Blur,
    Cosine,
    Fourier,
    Mask,
    Products,
    Stack,
    Wavelet,
    gaussian_kernel,
    open_blur,
    projection,
)
from proxlearn.problems.operators import Dense, Operator


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def mask(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(*shape, generator=generator) < 0.6).double()


TABLE: dict[str, Callable[[], Operator]] = {
    "blur": lambda: Blur(gaussian_kernel(1.2), (12, 16)),
    "blur-of-any-kernel": lambda: Blur(normal(3, 4), (8, 9)),
    "blur-batch": lambda: Blur(normal(3, 3, 5), (8, 12)),
    "blur-signal": lambda: Blur(gaussian_kernel(1.0, 1), 15),
    "open-blur": lambda: open_blur(gaussian_kernel(0.8), (8, 10))[0],
    "mask": lambda: Mask(mask(6, 8)),
    "mask-batch": lambda: Mask(mask(3, 6, 8)),
    "fourier": lambda: Fourier(mask(8, 6)),
    "fourier-batch": lambda: Fourier(mask(3, 8, 6), (8, 6)),
    "fourier-signal": lambda: Fourier(mask(9)),
    "coils": lambda: Fourier(mask(8, 6), coils=normal(2, 8, 6, 2)),
    "coils-batch": lambda: Fourier(mask(3, 4, 6), (4, 6), coils=normal(3, 2, 4, 6, 2)),
    "complex-pictures": lambda: Fourier(
        mask(4, 6), coils=normal(2, 4, 6, 2), complex_pictures=True
    ),
    "projection": lambda: projection((7, 9), [0.0, 30.0, 45.0, 90.0, 120.0]),
    "haar": lambda: Wavelet((8, 16), "haar", 3),
    "db2": lambda: Wavelet((8, 8), "db2", 2),
    "db8": lambda: Wavelet((16, 8), "db8", 3),
    "db3-signal": lambda: Wavelet(48, "db3", 3),
    "db4-in-pieces": lambda: Wavelet((128, 2), "db4", 1),
    "wavelet-pair": lambda: Wavelet((4, 8), "db2", 2, copies=2),
    "cosine": lambda: Cosine((6, 10)),
    "cosine-signal": lambda: Cosine(7),
    "product": lambda: Blur(gaussian_kernel(1.0), (8, 8)) @ Wavelet((8, 8), "db2", 2).T,
    "product-of-three": lambda: (
        Mask(mask(3, 8, 8)) @ Blur(gaussian_kernel(0.7), (8, 8)) @ Wavelet((8, 8)).T
    ),
    "sum": lambda: Mask(mask(5, 4)) + Dense(normal(20, 20)),
    "stack": lambda: Stack([Mask(mask(4, 4)), Blur(normal(3, 3, 3), (4, 4)), Dense(normal(5, 16))]),
    "adjoint": lambda: Dense(normal(5, 7)).T,
    "products": lambda: Products(
        lambda x: x.cumsum(-1), lambda r: r.flip(-1).cumsum(-1).flip(-1), (9, 9)
    ),
}


def matrix(A: Operator) -> torch.Tensor:
    """The matrices (batch, m, n), by products with all unit vectors."""
    eye = torch.eye(A.shape[1], dtype=A.dtype)
    return A.forward(eye[None].expand(A.batch, -1, -1)).mT
