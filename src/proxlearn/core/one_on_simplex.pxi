# A single dense problem on the simplex with few columns, prepared and solved by one compiled call.
#
# It prepares what `prepared` in shared.py does for many problems; for one small problem the calls of NumPy
# would take several times as long as the solution.


cdef class OneOnSimplex(SharedProblems):
    """Least squares over x >= 0 with sum x = radius, or with `slack` at most that."""

    cdef double *memory

    def __dealloc__(self):
        free(self.memory)

    cdef int prepare(self, A, double radius, bint slack, long most_new, double part) except -1:
        """Columns, Gram matrix, lengths and, for a tall A, a Cholesky factor."""
        cdef Family *P = &self.family
        cdef Py_ssize_t m = cnp.PyArray_DIM(A, 0), given = cnp.PyArray_DIM(A, 1), n = given + slack, size
        cdef double *room
        P.n, P.m, P.wide, P.tall = n, m, (n + 15) // 16 * 16, (m + LANES - 1) // LANES * LANES
        P.ld, P.one_sign, P.radius, P.level = (n + LANES - 1) // LANES * LANES, True, radius, 0.0
        P.most_new, P.part, P.rounding = most_new, part, (m + 4 * n) * DBL_EPSILON
        size = n * (P.wide + P.tall + P.ld + 1) + 7 * P.wide + P.m
        self.memory = <double *> resized(NULL, size, sizeof(double))
        memset(self.memory, 0, size * sizeof(double))
        room = self.memory
        P.H, room = room, room + n * P.wide
        P.columns, room = room, room + n * P.tall
        P.l1, P.l2, P.either, P.norms = room, room + P.wide, room + 2 * P.wide, room + 3 * P.wide
        P.price, self.proof.limits, room = room + 4 * P.wide, room + 5 * P.wide, room + 6 * P.wide
        self.nearest, room = room, room + m
        self.reported, self.kept = given, A
        self.copy(A, given)
        self.multiply_columns()
        self.find_nearest(0.0 if slack else radius / n)
        if not slack and 2 * n <= m:
            self.factorise(room)
        return self.allocate(P.n, P.wide, P.tall)

    cdef void copy(self, A, Py_ssize_t given) noexcept:
        """The columns, one after the other; that of the slack is 0."""
        cdef Py_ssize_t i, j, m = self.family.m, tall = self.family.tall
        cdef double *columns = <double *> self.family.columns
        cdef double *a = <double *> cnp.PyArray_DATA(A)
        if cnp.PyArray_IS_F_CONTIGUOUS(A):
            for j in range(given):
                memcpy(columns + j * tall, a + j * m, m * sizeof(double))
            return
        for i in range(m):
            for j in range(given):
                columns[j * tall + i] = a[i * given + j]

    cdef int multiply_columns(self) except -1:
        """The Gram matrix, as if a row of A had the square root of the weight in every column."""
        cdef Family *P = &self.family
        cdef Py_ssize_t i, j
        cdef double *H = <double *> P.H
        cdef double least = INFINITY, most = 0.0
        multiply_columns_of(P.columns, P.tall, P.m, P.n, H, P.wide)
        for j in range(P.n):
            most = max(most, H[j * P.wide + j])
            if H[j * P.wide + j] > 0.0:
                least = min(least, H[j * P.wide + j])
        self.sum_weight = max(least, 1e-8 * most) if least < INFINITY else 1.0
        for j in range(P.n):
            for i in range(P.n):
                H[j * P.wide + i] += self.sum_weight
            (<double *> P.norms)[j] = sqrt(H[j * P.wide + j])
            (<double *> P.price)[j] = 1.0 / P.norms[j]
        return 0

    cdef void find_nearest(self, double each) noexcept:
        """A x at the feasible point nearest to 0."""
        cdef Py_ssize_t j
        for j in range(self.family.n if each > 0.0 else 0):
            axpy(each, self.family.columns + j * self.family.tall, <double *> self.nearest, self.family.m)

    cdef void factorise(self, double *room) noexcept:
        """The Cholesky factor by columns and 1 / its diagonal, unless columns depend on each other."""
        cdef Family *P = &self.family
        cdef Py_ssize_t j
        cdef int n = P.n, ld = P.ld, info = 0
        cdef double *inverse = room + P.n * P.ld
        for j in range(P.n):
            memcpy(room + j * P.ld + j, P.H + j * P.wide + j, (P.n - j) * sizeof(double))
        dpotrf("L", &n, room, &ld, &info)
        for j in range(P.n if info == 0 else 0):
            if not room[j * P.ld + j] > 1e-6 * P.norms[j]:
                return
            inverse[j] = 1.0 / room[j * P.ld + j]
        if info == 0:
            P.factor, P.inverse = room, inverse


def solve_on_simplex(
    A, double largest, b, double radius, bint slack, long most_new, double part, double tol, long max_iter
):
    """Solve one problem on the simplex: x, and numbers as of `Single.solve`.

    A (m, n) has entries up to `largest`. Returns None where the numbers have to be scaled first, where A or b
    is not of float64 in one piece, and where the answer is not proven.
    """
    cdef double values[2]
    cdef double numbers[5]
    cdef double *target
    cdef cnp.npy_intp n
    cdef Py_ssize_t j
    cdef OneOnSimplex problem
    if not (is_readable(A) and cnp.PyArray_NDIM(A) == 2 and cnp.PyArray_TYPE(A) == cnp.NPY_DOUBLE
            and is_readable(b) and cnp.PyArray_TYPE(b) == cnp.NPY_DOUBLE):
        return None
    n = cnp.PyArray_DIM(A, 1)
    values[0], values[1] = largest, radius
    if n == 0 or not (are_all_moderate(values, 2)
                      and are_all_moderate(<double *> cnp.PyArray_DATA(b), cnp.PyArray_SIZE(b))):
        return None
    problem = OneOnSimplex(None, tol)
    problem.prepare(A, radius, slack, most_new, part)
    target = vector(b, problem.family.m)
    for j in range(problem.family.wide):
        problem.Q[j] = 0.0
        if j < n:
            problem.Q[j] = dot(problem.family.columns + j * problem.family.tall, target, problem.family.m)
    problem.one(target, problem.Q, numbers, False, max_iter)
    if numbers[2] != SOLVED:
        return None
    x = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_DOUBLE)
    problem.write(<double *> cnp.PyArray_DATA(x))
    return x, 0.0, numbers[0], numbers[1], SOLVED, max(<long> numbers[3], 1), 1.0
