# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""The compiled core. The loop is in loop.pxi; each other file holds one kind of object."""

import numpy as np

cimport numpy as cnp

from cpython.exc cimport PyErr_CheckSignals
from libc.float cimport DBL_EPSILON
from libc.math cimport INFINITY, copysign, fabs, isfinite, log, sqrt
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove, memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec
from scipy.linalg.cython_blas cimport dgemm, dgemv, dsyrk, dtrsv
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs


cnp.import_array()


cdef extern from "maths.h" nogil:
    double dot(const double *a, const double *b, long n) noexcept
    double sum_of(const double *a, long n) noexcept
    void axpy(double t, const double *a, double *y, long n) noexcept
    double sparse_dot(const double *data, const int *rows, long count, const double *u) noexcept
    double survey(double *c, double *l1, double *l2, double *lower, double *upper, double *violation, double *largest, long n) noexcept
    void root_scaled(const double *D, const double *a, double *out, long n) noexcept
    double logistic_value(double *s, double *y, double *z, double *d, double t, long m) noexcept
    void logistic_state(double *s, double *y, double *z, double *t, double *h, double *u, long m) noexcept
    double entropy(double *s, double *t, double scale, long m) noexcept
    void remove_variable(double *L, long ld, long a, long i) noexcept
    double largest_float(float *a, long n) noexcept
    double largest_double(double *a, long n) noexcept
    double squares_value(double *s, double *b, double *z, double *d, double t, long m) noexcept
    void squares_state(double *s, double *b, double *z, double *e, double *u, long m) noexcept
    void correlate_tall_float(float *a, long ld, double *u, double *c, long m, long n) noexcept
    void correlate_flat_float(float *a, long ld, double *u, double *c, long m, long n) noexcept
    void copy_column_float(float *a, long stride, double shift, double *out, long m) noexcept
    void copy_column_double(double *a, long stride, double shift, double *out, long m) noexcept


cdef double now() noexcept nogil:
    """Seconds of a clock that never goes back."""
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return t.tv_sec + 1e-9 * t.tv_nsec


include "selection.pxi"
include "data.pxi"
include "loss.pxi"
include "penalty.pxi"
include "model.pxi"
include "loop.pxi"


def largest_magnitude(array):
    """The largest absolute value of an array of float32 or float64, contiguous in either order.

    NaN if one of its entries is NaN or infinite.
    """
    cdef void *entries = cnp.PyArray_DATA(array)
    cdef Py_ssize_t count = array.size
    if array.dtype == np.float32:
        return largest_float(<float *> entries, count)
    return largest_double(<double *> entries, count)


def are_moderate(double low, double high, *arrays):
    """True where all finite numbers of float64 arrays are 0 or have a size from low to high."""
    cdef Py_ssize_t i, count
    cdef double *entries
    cdef double size
    for array in arrays:
        entries, count = <double *> cnp.PyArray_DATA(array), array.size
        for i in range(count):
            size = fabs(entries[i])
            if (size < low and size != 0.0) or (high < size < INFINITY):
                return False
    return True
