# A direction into the dual cone of non-negative least squares, for a single dense problem.
#
# `strictly_feasible` in dual_cone.py says what it is for and covers all other cases; its calls of NumPy take
# longer than the solution of a small problem.


cdef void add_squares(Dense A, double *squares) noexcept nogil:
    """squares_j += |a_j|^2 for float64 in either order, without centring."""
    cdef Py_ssize_t i, j
    cdef double *row
    for i in range(A.n if A.tall else A.m):
        row = A.double_ + i * A.ld
        if A.tall:
            squares[i] += dot(row, row, A.m)
        else:
            for j in range(A.n):
                squares[j] += row[j] * row[j]


cdef bint point_inside_by_sum(Solver solver, Dense A) except -1:
    """Let the sum of the columns, each of length 1, be the direction; False where it is none.

    Every coordinate has a lower bound alone and no other penalty, and the weights of the samples are 1.
    """
    cdef Py_ssize_t j, m = A.m, n = A.n
    cdef cnp.npy_intp size = m + 4 * n
    cdef double *p
    cdef double norm
    if A.double_ == NULL or A.center != NULL or A.intercept:
        return False
    room = cnp.PyArray_SimpleNew(1, &size, cnp.NPY_DOUBLE)
    p = <double *> cnp.PyArray_DATA(room)
    memset(p, 0, size * sizeof(double))
    solver.direction, solver.slope, solver.side, solver.length = p, p + m, p + m + n, p + m + 2 * n
    add_squares(A, solver.length)
    for j in range(n):
        solver.length[j] = sqrt(solver.length[j])
        solver.side[j] = solver.length[j] > 0.0
        p[m + 3 * n + j] = -1.0 / solver.length[j] if solver.length[j] > 0.0 else 0.0
    A.multiply(p + m + 3 * n, solver.direction)
    A.correlate(solver.direction, solver.slope)
    norm = sqrt(dot(solver.direction, solver.direction, m))
    for j in range(n):
        if solver.side[j] > 0.0 and not solver.slope[j] < -1e-12 * solver.length[j] * norm:
            solver.direction = NULL
            return False
    solver.kept = room
    solver.moved = <double *> resized(solver.moved, n, sizeof(double))
    return True
