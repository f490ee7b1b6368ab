"""Pictures and signals behind operators: blur, Fourier, masks, projections, wavelets.

The operators work on batches of vectors, (B, n) to (B, m), in float32 or float64, on any device,
and PyTorch can differentiate through them. ``A @ B`` is a product, ``A + B`` a sum, ``A.T`` the
adjoint, and `Stack` puts several below each other.
"""

from proxlearn.imaging.basis import Band, Basis
from proxlearn.imaging.blur import (
    Blur,
    disk_kernel,
    gaussian_kernel,
    motion_kernel,
    open_blur,
    place,
)
from proxlearn.imaging.cosine import Cosine
from proxlearn.imaging.deblurring import deblur
from proxlearn.imaging.fourier import Fourier
from proxlearn.imaging.masking import Mask
from proxlearn.imaging.products import Products
from proxlearn.imaging.recovery import Recovery, sparse_recovery
from proxlearn.imaging.tomography import Projection, projection
from proxlearn.imaging.variation import total_variation
from proxlearn.imaging.wavelets import Wavelet
from proxlearn.problems.compose import Adjoint, Product, Stack, Sum
from proxlearn.problems.transform import Transform

__all__ = [
    "Adjoint",
    "Band",
    "Basis",
    "Blur",
    "Cosine",
    "Fourier",
    "Mask",
    "Product",
    "Products",
    "Projection",
    "Recovery",
    "Stack",
    "Sum",
    "Transform",
    "Wavelet",
    "deblur",
    "disk_kernel",
    "gaussian_kernel",
    "motion_kernel",
    "open_blur",
    "place",
    "projection",
    "sparse_recovery",
    "total_variation",
]
