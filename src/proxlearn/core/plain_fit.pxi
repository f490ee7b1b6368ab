# A fit of an estimator to small dense data in one call: with an intercept and weights of the samples.
#
#     minimise over x and c    1/2 sum_i s_i (a_i^T x + c - b_i)^2 + l1 sum_j |x_j| + l2/2 sum_j x_j^2,
#     perhaps subject to x >= 0
#
# For every x the best c is mean(b) - mean(A)^T x, with the weights s. So A and b are centred, weighted by the
# roots of s, and solved without c.


cdef double *shares_of(weights, Py_ssize_t m) except NULL:
    """The weights of m samples divided by their sum, and their roots: 2 m numbers, which the caller frees."""
    cdef double *s = <double *> cnp.PyArray_DATA(weights)
    cdef double *share = <double *> realloc(NULL, 2 * m * sizeof(double))
    cdef double total = sum_of(s, m)
    cdef Py_ssize_t i
    if share == NULL:
        raise MemoryError(f"no memory for the weights of {m} samples")
    for i in range(m):
        share[i], share[m + i] = s[i] / total, sqrt(s[i])
    return share


cdef double centre_target(double *b, Py_ssize_t m, const double *share, const double *root) noexcept nogil:
    """Centre b and multiply it by `root`; returns its mean. A constant b becomes 0, see reduction.py."""
    cdef double middle = sum_of(b, m) / m if share == NULL else dot(share, b, m)
    cdef double rounding = 8.0 * DBL_EPSILON * fabs(middle)
    cdef bint constant = True
    cdef Py_ssize_t i
    for i in range(m):
        b[i] -= middle
        constant = constant and (fabs(b[i]) <= rounding or (share != NULL and share[i] == 0.0))
        if root != NULL:
            b[i] *= root[i]
    if constant:
        memset(b, 0, m * sizeof(double))
    return middle


cdef bint fits_plain(A, b, weights) except -1:
    """True where `fit_plain` can take A, b and the weights of the samples, which have been validated."""
    if not is_plain_matrix(A) or cnp.PyArray_SIZE(A) > MOST_COPIED:
        return False
    for row in (b,) if weights is None else (b, weights):
        if not is_plain_vector(row, A):
            return False
    return True


def fit_plain(A, b, weights, l1, l2, bint nonnegative, bint intercept, double tol, max_iter):
    """x (n,), the intercept, and the rest of what `solve_plain` returns; None where another way is needed.

    A (m, n) is dense and finite, b (m,) and the weights (m,) of the samples, or None, are of float64, l1 > 0
    and l2 >= 0 are floats.
    """
    cdef double *share = NULL
    cdef double *root = NULL
    cdef double *means = NULL
    cdef double middle = 0.0
    cdef Py_ssize_t m
    cdef cnp.npy_intp n
    if not (isinstance(l1, float) and isinstance(l2, float) and l1 > 0.0 and fits_plain(A, b, weights)):
        return None
    m, n = cnp.PyArray_DIM(A, 0), cnp.PyArray_DIM(A, 1)
    mean = cnp.PyArray_ZEROS(1, &n, cnp.NPY_DOUBLE, False)
    try:
        if weights is not None:
            share = shares_of(weights, m)
            root = share + m
        if intercept:
            means = <double *> cnp.PyArray_DATA(mean)
        if intercept or weights is not None or not cnp.PyArray_IS_F_CONTIGUOUS(A):
            A, b = in_columns(A, share, root, means), b.copy()
        if intercept:
            middle = centre_target(<double *> cnp.PyArray_DATA(b), m, share, root)
        elif weights is not None:
            b *= np.sqrt(weights)
    finally:
        free(share)
    plain = plain_squares(A, b, l1, l2, nonnegative)
    if plain is None or not (<PlainSquares> plain).moderate or not 0.0 < tol < INFINITY:
        return None
    found = solve_in_form(plain, A, b, (<PlainSquares> plain).products, tol, max_iter, now())
    if found is None:
        return None
    x = found[0]
    return (x, middle - float(x @ mean) if intercept else 0.0, *found[1:])
