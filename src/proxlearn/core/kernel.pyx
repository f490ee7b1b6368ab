# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled kernel: a placeholder that shows the build."""

include "placeholder.pxi"


def dot(double[::1] x, double[::1] y):
    """The inner product of two vectors of equal length, by BLAS."""
    if x.shape[0] != y.shape[0]:
        raise ValueError(f"x has {x.shape[0]} entries and y has {y.shape[0]}")
    cdef double result
    with nogil:
        result = inner(x, y)
    return result
