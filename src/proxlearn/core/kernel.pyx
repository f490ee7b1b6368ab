# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""The compiled core. The loop is in loop.pxi; each other file holds one kind of object."""

import numpy as np

cimport cython
cimport numpy as cnp

from cpython.exc cimport PyErr_CheckSignals
from libc.float cimport DBL_EPSILON, DBL_MIN
from libc.math cimport INFINITY, NAN, ceil, copysign, fabs, isfinite, log, log2, pow, sqrt
from libc.stdlib cimport free, getenv, realloc
from libc.string cimport memcpy, memmove, memset
from posix.stdlib cimport posix_memalign
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec
from scipy.linalg.cython_blas cimport dgemm, dgemv, dsyrk, dtrsv
from scipy.linalg.cython_lapack cimport dpotrf, dpotri, dpotrs, dsterf, dsyev


cnp.import_array()


cdef extern from "maths.h" nogil:
    double dot(const double *a, const double *b, long n) noexcept
    double sum_of(const double *a, long n) noexcept
    void subtract_columns(const double *H, long ld, const double *d, long count, double *y, long n) noexcept
    void add_four(double **a, const double *t, double *y, long n) noexcept
    void axpy(double t, const double *a, double *y, long n) noexcept
    double survey(
        double *c, double *l1, double *l2, double *lower, double *upper, double *violation, double *largest,
        long n
    ) noexcept
    void add_pairs(
        const Py_ssize_t *at, const double *value, double d, long old, long count, double *H, long ld
    ) noexcept
    void root_scaled(const double *D, const double *a, double *out, long n) noexcept
    void small_solve(const double *L, long ld, long n, double *d) noexcept
    void remove_variable(double *L, long ld, long a, long i) noexcept
    double largest_float(float *a, long n) noexcept
    double largest_double(double *a, long n) noexcept
    void correlate_tall_float(float *a, long ld, double *u, double *c, long m, long n) noexcept
    void correlate_flat_float(float *a, long ld, double *u, double *c, long m, long n) noexcept
    void multiply_tall_float(float *a, long ld, double *x, double *z, long m, long n) noexcept
    void multiply_tall_double(double *a, long ld, double *x, double *z, long m, long n) noexcept
    void multiply_flat_float(float *a, long ld, double *x, double *z, long m, long n) noexcept
    void copy_column_float(float *a, long stride, double shift, double *out, long m) noexcept
    void copy_column_double(double *a, long stride, double shift, double *out, long m) noexcept


cdef extern from "columns.h" nogil:
    enum: LANES
    void column_moments(const double *a, const double *s, const double *u, double *out, long m, long n) noexcept
    double examine(const double *a, long ld, const double *u, double *c, long m, long n) noexcept
    void correlate_tall_double(const double *a, long ld, const double *u, double *c, long m, long n) noexcept
    void add_columns(
        const double *H, long ld, const Py_ssize_t *item, const double *weight, long count, double *y, long n
    ) noexcept


cdef extern from "gram_single.h" nogil:
    long gram_single_room(long count) noexcept
    void gram_in_single(double **column, long m, long count, double *H, long ld, double *room) noexcept


cdef extern from "copied_columns.h" nogil:
    void copy_all_columns(
        const double *A, int rows, long m, long n, const double *share, const double *root, double *means,
        double *out
    ) noexcept
    double examine_rows(const double *A, const double *u, double *c, long m, long n) noexcept


cdef extern from "cholesky.h" nogil:
    enum: CHOLESKY_BLOCK
    long cholesky_extend(double *L, long ld, long k, long known, double least) noexcept


cdef extern from "sparse_columns.h" nogil:
    double sparse_dot(const double *data, const int *rows, long count, const double *u) noexcept
    void sparse_axpy(double t, const double *data, const int *rows, long count, double *u) noexcept
    ctypedef struct SparseModel:
        const int *starts
        const int *rows
        const double *data
        const double *h
        const double *mean
        const double *pull
        const double *l1
        const double *l2
        const double *lower
        const double *upper
        const Py_ssize_t *first
        const Py_ssize_t *index
        double *v
        double *moved
        double shifted
        double total
    double sparse_sweep(
        SparseModel *s, const Py_ssize_t *order, long count, Py_ssize_t *flips, int centred
    ) noexcept
    void scale_column(
        const double *data, const int *rows, long count, const double *factor, double *out
    ) noexcept


cdef extern from "sweep_steps.h" nogil:
    void differences(const double *here, const double *last, double *e, long m) noexcept
    void step_products(const double *here, const double *d, double *e, double *out, long m) noexcept
    double quadratic_change(const double *here, const double *e, long m) noexcept
    void take_step(double part, const double *e, double *here, double *last, double *d, long m) noexcept
    void combine(double t, double q, const double *d, double *e, long m) noexcept


cdef extern from "gram.h" nogil:
    enum: GRAM_MOST
    enum: GRAM_MOST_ONCE
    long gram_room(long m, long count) noexcept
    void gram_of_columns(
        double **column, double *D, long m, long known, long count, double *H, long ld, double *room
    ) noexcept


cdef double now() noexcept nogil:
    """Seconds of a clock that never goes back."""
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return t.tv_sec + 1e-9 * t.tv_nsec


cdef int look_for_interrupt(double *next_look) except -1 nogil:
    """Let Ctrl-C end a long solve: ten times a second, at `next_look`, ask Python whether there was one."""
    if now() > next_look[0]:
        with gil:
            PyErr_CheckSignals()
        next_look[0] = now() + 0.1
    return 0


include "selection.pxi"
include "data.pxi"
include "dense.pxi"
include "sparse.pxi"
include "classes.pxi"
include "tasks.pxi"
include "losses/loss.pxi"
include "losses/squares.pxi"
include "losses/logistic.pxi"
include "losses/huber.pxi"
include "losses/poisson.pxi"
include "losses/softmax.pxi"
include "penalty.pxi"
include "model.pxi"
include "separable.pxi"
include "coordinate_factor.pxi"
include "coordinate_model.pxi"
include "active_set.pxi"
include "descent.pxi"
include "sparse_sweeps.pxi"
include "sparse_descent.pxi"
include "sparse_squares.pxi"
include "groups.pxi"
include "residual_descent.pxi"
include "row_descent.pxi"
include "block_model.pxi"
include "group_blocks.pxi"
include "group_descent.pxi"
include "group_model.pxi"
include "row_model.pxi"
include "point.pxi"
include "certificate.pxi"
include "start.pxi"
include "compact_start.pxi"
include "improver.pxi"
include "loop.pxi"
include "solver_runs.pxi"
include "inward.pxi"
include "shared.pxi"
include "plain_squares.pxi"
include "plain_given.pxi"
include "plain_fit.pxi"
include "plain_nnls.pxi"
include "one_on_simplex.pxi"


cdef bint is_readable(array) noexcept:
    """True for NumPy arrays of float32 or float64 whose numbers lie in one piece, in either order."""
    return (cnp.PyArray_Check(array) and cnp.PyArray_TYPE(array) in (cnp.NPY_DOUBLE, cnp.NPY_FLOAT)
            and (cnp.PyArray_IS_C_CONTIGUOUS(array) or cnp.PyArray_IS_F_CONTIGUOUS(array))
            and cnp.PyArray_ISBEHAVED_RO(array))


include "rare_entries.pxi"


def largest_magnitude(array):
    """The largest absolute value of an array; 0 where it is empty.

    NaN if one of its entries is NaN or infinite, and for what is no array of float32 or float64 that
    is contiguous in either order.
    """
    if not is_readable(array):
        return NAN
    if cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT:
        return largest_float(<float *> cnp.PyArray_DATA(array), cnp.PyArray_SIZE(array))
    return largest_double(<double *> cnp.PyArray_DATA(array), cnp.PyArray_SIZE(array))


def largest_and_products(A, u):
    """The largest magnitude of A (m, n) and A^T u (n,), from one pass over A in Fortran order.

    None for other arrays than of float64 in that order, and where not all of it is finite.
    """
    cdef cnp.npy_intp n
    cdef double largest
    if not (is_readable(A) and cnp.PyArray_NDIM(A) == 2 and cnp.PyArray_TYPE(A) == cnp.NPY_DOUBLE
            and cnp.PyArray_IS_F_CONTIGUOUS(A) and cnp.PyArray_DIM(A, 1) > 0
            and is_finite_vector(u, cnp.PyArray_DIM(A, 0), A.dtype)):
        return None
    n = cnp.PyArray_DIM(A, 1)
    products = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_DOUBLE)
    largest = examine(<double *> cnp.PyArray_DATA(A), cnp.PyArray_DIM(A, 0), <double *> cnp.PyArray_DATA(u),
                      <double *> cnp.PyArray_DATA(products), cnp.PyArray_DIM(A, 0), n)
    return (largest, products) if isfinite(largest) else None


def moments(const double[::1, :] A, const double[::1] s, const double[::1] u):
    """The sums of s_i a_ij, s_i a_ij^2 and u_i a_ij in three rows (3, n), from one pass over A (m, n)."""
    cdef double[:, ::1] out = np.empty((3, A.shape[1]))
    with nogil:
        column_moments(&A[0, 0], &s[0], &u[0], &out[0, 0], A.shape[0], A.shape[1])
    return np.asarray(out)


def is_matrix(array):
    """True for a NumPy array (m, n) of float32 or float64 that is contiguous in either order."""
    return is_readable(array) and cnp.PyArray_NDIM(array) == 2


def is_finite_vector(array, Py_ssize_t length, dtype):
    """True for a NumPy array (length,) of this dtype whose numbers lie in one piece and are finite."""
    if not (cnp.PyArray_CheckExact(array) and is_readable(array) and cnp.PyArray_NDIM(array) == 1
            and cnp.PyArray_DIM(array, 0) == length and length > 0 and array.dtype is dtype):
        return False
    return isfinite(largest_magnitude(array))


def environment(bytes name):
    """An environment variable as `os.environ` has it, which takes ten times as long; "" without it."""
    cdef const char *value = getenv(name)
    return "" if value == NULL else (<bytes> value).decode(errors="surrogateescape")


cdef double SMALL = 2.0**-200  # Sizes of numbers whose squares, and the products of these, stay well
cdef double LARGE = 2.0**200   # inside the range of float64.
MODERATE = (SMALL, LARGE)


cdef bint are_all_moderate(const double *numbers, Py_ssize_t count) noexcept nogil:
    """True where all finite numbers are 0 or of moderate size."""
    cdef Py_ssize_t i
    cdef double size
    for i in range(count):
        size = fabs(numbers[i])
        if (size < SMALL and size != 0.0) or (LARGE < size < INFINITY):
            return False
    return True


def are_moderate(*arrays):
    """The same for numbers and arrays of float64."""
    cdef double number
    for array in arrays:
        if isinstance(array, float):
            number = array
            if not are_all_moderate(&number, 1):
                return False
        elif not are_all_moderate(<double *> cnp.PyArray_DATA(array), cnp.PyArray_SIZE(array)):
            return False
    return True


def solve_as_given(
    A, double largest, b, loss, double s, tuple numbers, products, double tol, Py_ssize_t max_iter,
    double seconds
):
    """Solve one problem whose numbers need no preparation: x, and numbers as of `Single.solve`.

    A (m, n) is dense with entries up to `largest`, b (m,) what the compiled class `loss` takes, s the
    weight of every sample, and `numbers` are l1, l2, lower and upper of a separable penalty. `products`
    may be A^T b for least squares, which saves a pass. Returns None where numbers have to be scaled first,
    where A or b is not of float64 in one piece, and for least squares with one-sided constraints whose dual
    needs another direction than the sum of the columns.
    """
    cdef double values[6]
    cdef Solver solver
    cdef Separable r
    cdef cnp.npy_intp n
    if not (is_readable(A) and cnp.PyArray_NDIM(A) == 2 and cnp.PyArray_TYPE(A) == cnp.NPY_DOUBLE
            and is_readable(b) and cnp.PyArray_TYPE(b) == cnp.NPY_DOUBLE):
        return None
    values[0], values[1] = largest, s
    values[2], values[3], values[4], values[5] = numbers
    if not (are_all_moderate(values, 6)
            and are_all_moderate(<double *> cnp.PyArray_DATA(b), cnp.PyArray_SIZE(b))):
        return None
    n = cnp.PyArray_DIM(A, 1)
    r = Separable(n, *numbers)
    f = loss(b, s)
    rare = None if (<Loss> f).quadratic else rare_entries(A)
    solver = Solver(Dense(A) if rare is None else Sparse(*rare, cnp.PyArray_DIM(A, 0)), f, r)
    if solver.f.quadratic and r.has_one_sided():
        if not (s == 1.0 and r.upper[0] == INFINITY and point_inside_by_sum(solver, <Dense> solver.A)):
            return None
    if products is not None and solver.f.quadratic and s == 1.0:
        solver.take_products(vector(products, n))
    solver.solve(tol, max_iter, seconds)
    x = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_DOUBLE)
    memcpy(cnp.PyArray_DATA(x), solver.x, n * sizeof(double))
    return x, 0.0, solver.objective, solver.gap, solver.status, solver.iterations, solver.passes


cdef one_double(double number):
    """An array (1,) of float64."""
    cdef cnp.npy_intp one = 1
    array = cnp.PyArray_SimpleNew(1, &one, cnp.NPY_DOUBLE)
    (<double *> cnp.PyArray_DATA(array))[0] = number
    return array


cdef one_integer(cnp.int64_t number):
    """An array (1,) of int64."""
    cdef cnp.npy_intp one = 1
    array = cnp.PyArray_SimpleNew(1, &one, cnp.NPY_INT64)
    (<cnp.int64_t *> cnp.PyArray_DATA(array))[0] = number
    return array


def arrays_of(*numbers):
    """An array (1,) of each number: int64 of whole numbers, float64 of others."""
    return [one_integer(number) if isinstance(number, int) else one_double(number) for number in numbers]
