# What `plain_squares.pxi` solves: the problem as it was given, and as a copy in the form that is read there.
#
# A small A in rows, with weights of the samples or an intercept becomes columns, weighted and centred; that
# takes as long as two passes. A large A is left to the loop, which reads it in its place.

cdef enum:
    MOST_COPIED = 131072  # Entries of A up to which it is copied: 1 MiB. Other values were not tried.

LARGEST_COPY = MOST_COPIED


cdef class PlainSquares:
    """A problem as it was given, after its numbers were looked at."""

    cdef readonly object A, b, products
    cdef readonly double l1, l2, largest
    cdef readonly bint nonnegative, moderate
    cdef readonly Py_ssize_t n


cdef bint is_plain_matrix(A) noexcept:
    """True where A (m, n) is an array of float64 in one piece, in rows or columns."""
    return (cnp.PyArray_CheckExact(A) and is_readable(A) and cnp.PyArray_TYPE(A) == cnp.NPY_DOUBLE
            and cnp.PyArray_NDIM(A) == 2 and cnp.PyArray_SIZE(A) > 0)


cdef bint is_plain_vector(b, A) noexcept:
    """True where b (m,) is an array of float64 in one piece, as long as the columns of A (m, n)."""
    return (cnp.PyArray_CheckExact(b) and is_readable(b) and cnp.PyArray_NDIM(b) == 1
            and cnp.PyArray_TYPE(b) == cnp.NPY_DOUBLE and cnp.PyArray_DIM(b, 0) == cnp.PyArray_DIM(A, 0))


def plain_squares(A, b, l1, l2, bint nonnegative):
    """The problem of these numbers, or None where it has another form or needs checks that say what is wrong.

    A (m, n) and b (m,) must be arrays of float64 in one piece, l1 a float > 0 and l2 a float >= 0, all of
    them finite. One pass over A finds its largest magnitude and A^T b.
    """
    if not (isinstance(l1, float) and isinstance(l2, float) and 0.0 < l1 < INFINITY and 0.0 <= l2 < INFINITY):
        return None
    return examined(A, b, l1, l2, nonnegative)


def plain_nnls(A, b):
    """The same for non-negative least squares."""
    return examined(A, b, 0.0, 0.0, True)


cdef examined(A, b, double l1, double l2, bint nonnegative):
    """The problem after one pass over A; None where A and b are of another form, or not finite."""
    cdef PlainSquares plain
    cdef cnp.npy_intp m, n
    cdef double numbers[3]
    A, b = without_class(A), without_class(b)
    if not (is_plain_matrix(A) and is_plain_vector(b, A)):
        return None
    m, n = cnp.PyArray_DIM(A, 0), cnp.PyArray_DIM(A, 1)
    plain = PlainSquares.__new__(PlainSquares)
    plain.products = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_DOUBLE)
    numbers[0], numbers[1], numbers[2] = products_of(A, b, plain.products), l1, l2
    if not (isfinite(numbers[0]) and isfinite(largest_double(<double *> cnp.PyArray_DATA(b), m))):
        return None
    plain.A, plain.b, plain.n, plain.nonnegative = A, b, n, nonnegative
    plain.largest, plain.l1, plain.l2 = numbers[0], l1, l2
    plain.moderate = are_all_moderate(numbers, 3) and are_all_moderate(<double *> cnp.PyArray_DATA(b), m)
    return plain


cdef without_class(array):
    """An array of a subclass of NumPy's as a plain one, unless entries are masked; others unchanged."""
    if cnp.PyArray_CheckExact(array) or not cnp.PyArray_Check(array):
        return array
    return array if isinstance(array, np.ma.MaskedArray) and array.mask.any() else np.asarray(array)


cdef double products_of(A, b, products) noexcept:
    """Put A^T b into `products`, and return the largest magnitude of A's entries, as `examine` does."""
    cdef Py_ssize_t m = cnp.PyArray_DIM(A, 0), n = cnp.PyArray_DIM(A, 1)
    cdef double *entries = <double *> cnp.PyArray_DATA(A)
    cdef double *u = <double *> cnp.PyArray_DATA(b)
    if cnp.PyArray_IS_F_CONTIGUOUS(A):
        return examine(entries, m, u, <double *> cnp.PyArray_DATA(products), m, n)
    return examine_rows(entries, u, <double *> cnp.PyArray_DATA(products), m, n)


cdef in_columns(A, const double *share, const double *root, double *means):
    """A copy of A in columns. Its rows are multiplied by `root`; it is centred where there are `means`.

    The means are weighted by `share`.
    """
    cdef cnp.npy_intp shape[2]
    shape[0], shape[1] = cnp.PyArray_DIM(A, 0), cnp.PyArray_DIM(A, 1)
    copy = cnp.PyArray_EMPTY(2, shape, cnp.NPY_DOUBLE, True)
    copy_all_columns(<double *> cnp.PyArray_DATA(A), not cnp.PyArray_IS_F_CONTIGUOUS(A), shape[0], shape[1],
                     share, root, means, <double *> cnp.PyArray_DATA(copy))
    return copy


def solve_plain(PlainSquares plain, tol, max_iter):
    """x (n,), objective and gap (1,), the status, iterations and passes (1,), and the seconds of a solve.

    None where the numbers have to be scaled first, and where the tolerance or the number of iterations needs
    the checks that say what is wrong.
    """
    cdef double began = now()
    A, b, products = plain.A, plain.b, plain.products
    if not plain.moderate or not isinstance(tol, float) or not isinstance(max_iter, int):
        return None
    if not 0.0 < tol < INFINITY or not 0 < max_iter < 2**31:
        return None
    if not (is_plain_matrix(A) and is_plain_vector(b, A) and cnp.PyArray_DIM(A, 1) == plain.n):
        return None  # NumPy allows changing the shape of an array in place
    if not cnp.PyArray_IS_F_CONTIGUOUS(A):
        if cnp.PyArray_SIZE(A) > MOST_COPIED:
            return solve_by_loop(plain, A, b, products, tol, max_iter, began)
        A = in_columns(A, NULL, NULL, NULL)
    return solve_in_form(plain, A, b, products, tol, max_iter, began)


cdef solve_in_form(PlainSquares plain, A, b, products, double tol, Py_ssize_t max_iter, double began):
    """The same for an A in columns."""
    cdef Plain p
    cdef cnp.npy_intp n = plain.n
    p.m, p.n = cnp.PyArray_DIM(A, 0), n
    p.A, p.b = <double *> cnp.PyArray_DATA(A), <double *> cnp.PyArray_DATA(b)
    p.q = <double *> cnp.PyArray_DATA(products)
    p.l1, p.l2, p.nonnegative, p.tol = plain.l1, plain.l2, plain.nonnegative, tol
    p.largest = plain.largest
    x = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_DOUBLE)
    p.x = <double *> cnp.PyArray_DATA(x)
    if pays_plain(&p) and prove_plain(&p, max_iter):
        return (x, one_double(p.objective), one_double(p.gap), SOLVED,
                one_integer(p.iterations), one_integer(p.iterations + 1), now() - began)
    return solve_by_loop(plain, A, b, products, tol, max_iter, began)


cdef solve_by_loop(PlainSquares plain, A, b, products, double tol, Py_ssize_t max_iter, double began):
    """The same for an A in float64 in either order."""
    numbers = (plain.l1, plain.l2, 0.0 if plain.nonnegative else -INFINITY, INFINITY)
    found = solve_as_given(A, plain.largest, b, Squares, 1.0, numbers, products, tol, max_iter, INFINITY)
    if found is None:
        return None
    x, _, F, gap, status, iterations, passes = found
    if not (isfinite(F) and isfinite(largest_double(<double *> cnp.PyArray_DATA(x), plain.n))):
        status = NUMERICAL_ERROR
    return (x, one_double(F), one_double(gap), status,
            one_integer(iterations), one_integer(<long> ceil(passes)), now() - began)
