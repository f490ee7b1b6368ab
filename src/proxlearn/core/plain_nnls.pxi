# What non-negative least squares needs beside plain_squares.pxi: a dual point that is feasible.

cdef bint point_inside_plain(Plain *p) noexcept nogil:
    """Let the sum of the columns, each of length 1, lead into the dual cone, as `point_inside_by_sum` does.

    False where it does not.
    """
    cdef Py_ssize_t j
    cdef double norm
    cdef double *a
    memset(p.direction, 0, p.m * sizeof(double))
    for j in range(p.n):
        a = p.A + j * p.m
        p.length[j] = sqrt(dot(a, a, p.m))
        if p.length[j] > 0.0:
            axpy(-1.0 / p.length[j], a, p.direction, p.m)
    correlate_tall_double(p.A, p.m, p.direction, p.slope, p.m, p.n)
    norm = sqrt(dot(p.direction, p.direction, p.m))
    for j in range(p.n):
        if p.length[j] > 0.0 and not p.slope[j] < -1e-12 * p.length[j] * norm:
            return False
    return True


cdef void move_inside_plain(Plain *p, double uu) noexcept nogil:
    """Move u into the dual cone of NNLS, beyond its boundary by what rounding may have taken from c."""
    cdef Py_ssize_t j
    cdef double far = 0.0, margin = 8.0 * DBL_EPSILON * sqrt(uu)
    for j in range(p.n):
        if p.length[j] > 0.0:
            far = max(far, (p.c[j] + margin * p.length[j]) / -p.slope[j])
    axpy(far, p.direction, p.u, p.m)
