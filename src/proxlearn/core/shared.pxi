# Many least squares problems that share A, the penalty and everything else but b.
#
# The Gram matrix is there once; problems are solved one after the other by the active-set method of
# gram_active_set.h, and certified by shared_problems.h. Whatever that does not prove is left to the loop.

cdef extern from "shared_problems.h" nogil:
    enum: MOST_TOGETHER
    ctypedef struct Family:
        long n, wide, ld, m, tall
        int one_sign
        const double *H
        const double *columns
        const double *l1
        const double *l2
        const double *either
        const double *norms
        const double *price
        const double *factor
        const double *inverse
        const float *G
        const float *curve
        long small
        double radius, level, rounding, part
        long most_new
    ctypedef struct State:
        long k, valid, rounds, barred_count
        long *S
        long *barred
        double *x
        double *sign
        double *c
        double *score
        double *price
        double *L
        double *inverse
        double *goal
        double *second
        double *work
        long *found
        float *small
    ctypedef struct Proof:
        const double *direction
        const double *slope
        const double *limits
        int one_sided, quadratic
        double tol
    ctypedef struct Certificate:
        double objective, bound, gap
    long count_together(long m) noexcept
    void correlate_together(
        const double *panels, const double **b, double *Q, long m, long wide, long count
    ) noexcept
    bint run_active_set(const Family *P, State *s, const double *q, double size, long most_rounds) noexcept
    bint continue_active_set(
        const Family *P, State *s, const double *q, double size, long most_rounds
    ) noexcept
    Certificate certify_gram(
        const Family *P, State *s, const Proof *D, const double *q, double square
    ) noexcept
    Certificate certify_shared(
        const Family *P, State *s, const Proof *D, const double *b, double size, double *u, int directly
    ) noexcept
    bint is_stationary_shared(
        const Family *P, State *s, const Proof *D, const double *q, double hidden
    ) noexcept
    double unseen(const Family *P, const State *s, double size) noexcept
    double squared_distance(const double *a, const double *b, long n) noexcept
    bint refine(const Family *P, State *s) noexcept
    long extend_factor(const Family *P, State *s) noexcept


cdef enum:
    UNPROVEN = -1  # The status of a problem that the loop has to solve.


cdef int multiply_columns_of(
    const double *columns, Py_ssize_t tall, Py_ssize_t m, Py_ssize_t n, double *H, Py_ssize_t ld
) except -1:
    """H = A^T A for columns that begin `tall` apart."""
    cdef double **column = <double **> resized(NULL, n, sizeof(double *))
    cdef double *room = <double *> resized(NULL, gram_room(m, n), sizeof(double))
    cdef Py_ssize_t j
    for j in range(n):
        column[j] = <double *> columns + j * tall
    gram_of_columns(column, NULL, m, 0, n, H, ld, room)
    free(column)
    free(room)
    mirror(H, ld, 0, n)
    return 0


def gram_of_rows(const double[:, ::1] columns):
    """The Gram matrix of the rows of an array, by BLAS where that is faster."""
    cdef Py_ssize_t n = columns.shape[0], m = columns.shape[1]
    cdef double[:, ::1] H
    if n > GRAM_MOST or n == 0 or m == 0:
        return np.asarray(columns) @ np.asarray(columns).T
    H = np.empty((n, n))
    multiply_columns_of(&columns[0, 0], m, m, n, &H[0, 0], n)
    return np.asarray(H)


cdef class SharedProblems:
    """What the problems share, prepared by shared_matrix.py; `solve` takes their right-hand sides.

    One object serves one thread: it has the memory of one active-set method.
    """

    cdef Family family
    cdef Proof proof
    cdef State state
    cdef const double *panels
    cdef double *Q      # (MOST_TOGETHER, wide)
    cdef double *u      # (tall,)
    cdef double sum_weight
    cdef const double *nearest  # (m,): A x at the feasible point nearest to 0
    cdef Py_ssize_t reported  # columns that x has; one less than n where the last is the slack
    cdef object kept

    def __cinit__(self, shared, double tol):
        self.proof.tol = tol
        if shared is not None:
            self.take(shared)

    cdef int take(self, shared) except -1:
        """Read what shared_matrix.py has prepared."""
        cdef const double[:, ::1] H = shared.H
        cdef const double[:, ::1] columns = shared.columns
        cdef const double[:, :, ::1] panels = shared.panels
        cdef const double[:, ::1] rows = shared.rows
        cdef const double[::1] dual
        cdef const double[::1] slope
        cdef const double[:, ::1] factor
        cdef const double[::1] inverse
        cdef const double[::1] nearest = shared.nearest
        cdef const float[:, ::1] unit
        cdef const float[::1] curve
        cdef Family *P = &self.family
        self.kept = shared
        P.n, P.wide, P.m, P.tall = H.shape[0], H.shape[1], panels.shape[1], columns.shape[1]
        P.H, P.columns, self.panels = &H[0, 0], &columns[0, 0], &panels[0, 0, 0]
        P.l1, P.l2, P.either = &rows[0, 0], &rows[1, 0], &rows[2, 0]
        P.norms, P.price = &rows[3, 0], &rows[4, 0]
        P.ld, P.one_sign = (P.n + LANES - 1) // LANES * LANES, shared.one_sign
        self.proof.limits = &rows[5, 0]
        P.factor = P.inverse = NULL
        if shared.factor is not None:
            factor, inverse = shared.factor, shared.inverse
            P.factor, P.inverse = &factor[0, 0], &inverse[0]
        P.G, P.curve, P.small = NULL, NULL, 0
        if shared.unit is not None:
            unit, curve = shared.unit, shared.curve
            P.G, P.curve, P.small = &unit[0, 0], &curve[0], unit.shape[1]
        P.radius, P.level, P.rounding = shared.radius, shared.level, shared.rounding
        P.most_new, P.part = shared.most_new, shared.part
        self.proof.direction = self.proof.slope = NULL
        if shared.direction is not None:
            dual, slope = shared.direction, shared.slope
            self.proof.direction, self.proof.slope = &dual[0], &slope[0]
        self.proof.one_sided, self.proof.quadratic = shared.one_sided, shared.quadratic
        self.sum_weight, self.reported = shared.sum_weight, shared.reported
        self.nearest = &nearest[0]
        return self.allocate(P.n, P.wide, P.tall)

    cdef int allocate(self, Py_ssize_t n, Py_ssize_t wide, Py_ssize_t tall) except -1:
        cdef State *s = &self.state
        self.Q = <double *> resized(NULL, MOST_TOGETHER * wide, sizeof(double))
        self.u = <double *> resized(NULL, tall, sizeof(double))
        s.S = <long *> resized(NULL, n, sizeof(long))
        s.barred = <long *> resized(NULL, n, sizeof(long))
        s.x = <double *> resized(NULL, n + LANES, sizeof(double))
        s.sign = <double *> resized(NULL, n + LANES, sizeof(double))
        s.c = <double *> resized(NULL, wide, sizeof(double))
        s.score = <double *> resized(NULL, wide, sizeof(double))
        s.price = <double *> resized(NULL, wide, sizeof(double))
        s.L = <double *> resized(NULL, n * self.family.ld, sizeof(double))
        s.inverse = <double *> resized(NULL, n, sizeof(double))
        s.goal = <double *> resized(NULL, n + LANES, sizeof(double))
        s.second = <double *> resized(NULL, n + LANES, sizeof(double))
        s.work = <double *> resized(NULL, n + LANES, sizeof(double))
        s.found = <long *> resized(NULL, n + 1, sizeof(long))
        s.small = <float *> resized(NULL, 4 * self.family.small + 1, sizeof(float))
        return 0

    def __dealloc__(self):
        cdef State *s = &self.state
        for pointer in (<size_t> self.Q, <size_t> self.u, <size_t> s.S, <size_t> s.barred, <size_t> s.x,
                        <size_t> s.sign, <size_t> s.c, <size_t> s.score, <size_t> s.price, <size_t> s.L,
                        <size_t> s.inverse, <size_t> s.goal, <size_t> s.second, <size_t> s.work,
                        <size_t> s.found, <size_t> s.small):
            free(<void *> <size_t> pointer)

    def solve(
        self, const double[:, ::1] targets, double[:, ::1] x, double[:, ::1] numbers, bint single,
        long max_iter, double seconds,
    ):
        """Solve for each row of `targets`.

        Rows of `numbers` become objective, gap, status, iterations and passes; the status is
        UNPROVEN where the answer could not be certified.
        """
        cdef Py_ssize_t first, i, count = targets.shape[0], some = count_together(self.family.m), left
        cdef const double *b[MOST_TOGETHER]
        cdef double until = now() + seconds, next_look = now() + 0.1
        cdef int p
        for first in range(0, count, some):
            left = min(some, count - first)
            for p in range(MOST_TOGETHER):
                b[p] = &targets[min(first + p, count - 1), 0]
            with nogil:
                correlate_together(self.panels, b, self.Q, self.family.m, self.family.wide, left)
                for p in range(left):
                    i = first + p
                    self.one(b[p], self.Q + p * self.family.wide, &numbers[i, 0], single, max_iter)
                    self.write(&x[i, 0])
            look_for_interrupt(&next_look)
            if now() >= until:
                numbers[first + some:, 2] = UNPROVEN
                x[first + some:] = 0.0
                break

    cdef void write(self, double *out) noexcept nogil:
        """x with all its coordinates."""
        cdef Py_ssize_t p
        memset(out, 0, self.reported * sizeof(double))
        for p in range(self.state.k):
            if self.state.S[p] < self.reported:
                out[self.state.S[p]] = self.state.x[p]

    cdef void one(
        self, const double *b, double *q, double *numbers, bint single, long max_iter
    ) noexcept nogil:
        """Solve and certify the problem of b, with q = A^T b."""
        cdef Family *P = &self.family
        cdef State *s = &self.state
        cdef Py_ssize_t j
        cdef double square = dot(b, b, P.m), size, level, allowed
        cdef Certificate found
        cdef int attempt = 0
        level = 0.5 * square
        if P.radius > 0.0:
            level = 0.5 * squared_distance(b, self.nearest, P.m)
            for j in range(P.n):
                q[j] += self.sum_weight * P.radius
            square += self.sum_weight * P.radius * P.radius
        size = sqrt(square)
        numbers[2], numbers[4] = UNPROVEN, 1.0
        run_active_set(P, s, q, size, max_iter)
        numbers[3] = s.rounds
        if P.G != NULL and not self.proof.quadratic:
            found = certify_gram(P, s, &self.proof, q, square)
            allowed = max(self.proof.tol * found.objective, DBL_EPSILON * level)
            if found.objective >= VISIBLE * square and found.gap <= allowed:
                numbers[0], numbers[1], numbers[2] = found.objective, found.gap, SOLVED
        while numbers[2] != SOLVED:
            found = certify_shared(P, s, &self.proof, b, size, self.u, attempt > 0)
            allowed = max(self.proof.tol * found.objective, DBL_EPSILON * level)
            numbers[0], numbers[1] = found.objective, found.gap
            if found.gap <= allowed:
                numbers[2] = SOLVED
            elif found.gap == INFINITY:
                self.without_bound(q, numbers, size, attempt, allowed)
            if numbers[2] == SOLVED or attempt == 3 or not isfinite(found.objective):
                break
            numbers[4] += 1.0
            if attempt > 0 and not refine(P, s):
                break
            attempt += 1
        if single and numbers[2] == SOLVED:
            self.round(b, q, numbers, found.bound, level)

    cdef void without_bound(
        self, double *q, double *numbers, double size, int attempt, double allowed
    ) noexcept nogil:
        """Where no dual point is known, F itself or small violations decide."""
        cdef double hidden = unseen(&self.family, &self.state, size)
        if attempt > 0:
            hidden = 8.0 * DBL_EPSILON * sqrt(dot(self.u, self.u, self.family.m))
        if numbers[0] <= allowed:
            numbers[1], numbers[2] = numbers[0], SOLVED
        elif is_stationary_shared(&self.family, &self.state, &self.proof, q, hidden):
            numbers[2] = SOLVED

    cdef void round(
        self, const double *b, double *q, double *numbers, double bound, double level
    ) noexcept nogil:
        """Round x to float32, and certify what comes out with the bound that is there, or by its violations.

        On the simplex, the rounding error of each variable is added to the next smaller one, so
        that the sum stays as it is up to the rounding of the smallest one.
        """
        cdef State *s = &self.state
        cdef Py_ssize_t p, turn, largest
        cdef double left = 0.0, new
        cdef Certificate found
        memcpy(s.work, s.x, s.k * sizeof(double))
        for turn in range(s.k):
            largest = turn
            if self.family.radius > 0.0:
                for p in range(s.k):
                    if s.work[p] > s.work[largest] or s.work[largest] < 0.0:
                        largest = p
            new = s.x[largest]
            if self.family.radius > 0.0:
                new = max(new + left, 0.0)
                left += s.x[largest]
            s.x[largest] = <float> new
            left -= s.x[largest]
            s.work[largest] = -1.0
        found = certify_shared(&self.family, s, &self.proof, b, 0.0, self.u, numbers[1] == INFINITY)
        numbers[0] = found.objective
        if numbers[1] == INFINITY:
            numbers[2] = UNPROVEN
            self.without_bound(q, numbers, 0.0, 1, max(self.proof.tol * found.objective, DBL_EPSILON * level))
            if numbers[2] == UNPROVEN:
                numbers[2] = MAX_ITER
        else:
            numbers[1] = fabs(found.objective - bound)
            if numbers[1] > max(self.proof.tol * found.objective, DBL_EPSILON * level):
                numbers[2] = MAX_ITER
