# The loop: working sets, a second-order model on each, and a certificate at every point.
#
#     outer        u = -f'(z), c = A^T u for all columns; F(x), the dual bound, the gap
#     working set  the support and the columns that violate the optimality conditions most
#     model        H = A_W^T D A_W and the gradient on the working set
#     inner        coordinate descent and Newton steps on the model (model.pxi)
#     line search  where f is not quadratic
#
# Nothing is SOLVED without a gap, or, where the penalty has none, without small violations, both
# computed in float64 at the x that is returned.

cdef enum:
    SOLVED = 0
    MAX_ITER = 1
    TIME_LIMIT = 2
    NUMERICAL_ERROR = 3

cdef enum:
    FIRST_COLUMNS = 10   # Columns that join at least; the square root of n where that is more.
    MOST_IDLE_MODELS = 6 # Models in a row that do not halve the violations: rounding stands in the way.
    MOST_MODELS = 50     # Models of a loss that is not quadratic, for one working set.


cdef double REUSE = 0.2  # A Hessian serves again while its models reduce the violations to this part.


cdef class Solver:
    """One problem f(A x) + r(x) and where its solution stands. Everything is kept between solves."""

    cdef readonly Data A
    cdef readonly Loss f
    cdef readonly Separable r
    cdef readonly Model model
    cdef Py_ssize_t m, n, room
    cdef double *x          # (n,)
    cdef double *c          # (n,): A^T u
    cdef double *z          # (m,): A x
    cdef double *dz         # (m,)
    cdef double *D          # (m,)
    cdef double *v          # (k,): x on the working set
    cdef double *g          # (k,): -df/dx on the working set
    cdef double *d          # (k,)
    cdef double *score      # (n,)
    cdef char *inside       # (n,): 1 for the columns in the working set
    cdef Py_ssize_t *picked # (n,)
    cdef Py_ssize_t *live   # (k,): positions of the working set that the model has
    cdef char *needed       # (k,): 1 for those that the next model needs
    cdef Py_ssize_t live_count, known
    cdef bint correlated    # True where c belongs to x
    cdef bint unit_weights, homogeneous
    cdef Py_ssize_t free_count
    cdef Py_ssize_t *free_ones  # positions of the unpenalised columns
    cdef double *free_length
    cdef double *free_step
    cdef double *free_gram
    cdef double *direction  # (m,): a strictly feasible direction of the dual, or NULL
    cdef double *slope      # (n,): A^T (s direction)
    cdef double *side       # (n,): 1 for columns with a lower bound alone, -1 for an upper one, else 0
    cdef double *length     # (n,): |a_j|
    cdef double *moved      # (n,): c at the dual point that was moved along it
    cdef readonly double objective, bound, gap, worst, scale
    cdef double offset      # added to the loss: what a reduced problem leaves out
    cdef double rounding    # of a reduced problem, relative to (sum |x_j| norms_j + size)^2
    cdef double size
    cdef double *norms      # (n,), or NULL
    cdef readonly double level  # F at the feasible point nearest to 0
    cdef readonly Py_ssize_t iterations, models
    cdef readonly double passes
    cdef readonly int status
    cdef double next_look   # when to look for Ctrl-C again
    cdef bint bounded  # True once a dual point was feasible
    cdef object kept

    def __cinit__(self, Data A, Loss f, Separable r, const double[::1] start=None):
        cdef Py_ssize_t j
        self.A, self.f, self.r, self.model = A, f, r, Model()
        self.m, self.n, self.room = A.m, A.n, 0
        self.model.entries = A.entries()
        self.x = <double *> resized(NULL, self.n, sizeof(double))
        self.c = <double *> resized(NULL, self.n, sizeof(double))
        self.score = <double *> resized(NULL, self.n, sizeof(double))
        self.picked = <Py_ssize_t *> resized(NULL, self.n, sizeof(Py_ssize_t))
        self.inside = <char *> resized(NULL, self.n, 1)
        self.z = <double *> resized(NULL, self.m, sizeof(double))
        self.dz = <double *> resized(NULL, self.m, sizeof(double))
        self.D = <double *> resized(NULL, self.m, sizeof(double))
        self.unit_weights = True
        for j in range(self.m):
            if f.s[j] != 1.0:
                self.unit_weights = False
        self.homogeneous = r.is_homogeneous()
        self.begin()
        if start is not None:
            self.restart(<double *> &start[0])

    def __dealloc__(self):
        for pointer in (<size_t> self.x, <size_t> self.c, <size_t> self.score, <size_t> self.picked,
                        <size_t> self.inside, <size_t> self.z, <size_t> self.dz, <size_t> self.D,
                        <size_t> self.v, <size_t> self.g, <size_t> self.d, <size_t> self.live,
                        <size_t> self.free_ones, <size_t> self.free_length, <size_t> self.free_step,
                        <size_t> self.free_gram, <size_t> self.moved, <size_t> self.needed):
            free(<void *> <size_t> pointer)

    cdef int restart(self, double *start) except -1 nogil:
        """Forget the working set, and begin at `start`, or at the feasible point nearest to 0."""
        cdef Py_ssize_t j, count = 0
        self.A.clear()
        self.model.k = self.known = self.live_count = 0
        self.model.forget_factor()
        self.correlated = False
        memset(self.inside, 0, self.n)
        for j in range(self.n):
            self.x[j] = 0.0 if start == NULL else start[j]
            self.x[j] = min(max(self.x[j], self.r.lower[j]), self.r.upper[j])
            if self.x[j] != 0.0 or self.r.is_free(j):
                self.picked[count] = j
                count += 1
        return self.join(count)

    cdef int begin(self) except -1 nogil:
        """Begin at the feasible point nearest to 0, where F has the value `level`."""
        self.restart(NULL)
        self.A.predict(self.v, self.z)
        self.level = self.offset + self.f.value(self.z, NULL, 0.0) + self.penalty_value()
        return 0

    def solve_many(
        self,
        const double[:, ::1] targets,
        double[:, ::1] correlations,
        double[::1] offsets,
        double[::1] sizes,
        double[:, ::1] x,
        double[:, ::1] numbers,
        bint single,
        double tol,
        Py_ssize_t max_iter,
        double seconds,
    ):
        """Solve for each row of `targets`, all else being equal, from 0.

        `correlations`, where given, holds A^T (s b) of each problem; `offsets` and `sizes` those of
        reduced problems. Rows of `numbers` become objective, gap, status, iterations and passes.
        """
        cdef Py_ssize_t i
        cdef double until = now() + seconds
        with nogil:
            for i in range(targets.shape[0]):
                self.f.b = <double *> &targets[i, 0]
                if offsets is not None:
                    self.offset, self.size = offsets[i], sizes[i]
                self.begin()
                self.iterations = self.models = 0
                self.passes = 0.0
                if correlations is not None and self.A.k == 0:
                    self.f.differentiate(self.z)
                    memcpy(self.c, &correlations[i, 0], self.n * sizeof(double))
                    self.correlated = True
                    self.passes = 1.0
                self.status = self.run(tol, max_iter, until, 1.0)
                if single:
                    self.round()
                    if self.status == SOLVED and not self.holds(tol):
                        self.status = MAX_ITER
                memcpy(&x[i, 0], self.x, self.n * sizeof(double))
                numbers[i, 0], numbers[i, 1], numbers[i, 2] = self.objective, self.gap, self.status
                numbers[i, 3], numbers[i, 4] = self.iterations, self.passes

    def solution(self, double[::1] out):
        """Copy x."""
        memcpy(&out[0], self.x, self.n * sizeof(double))

    def report(self):
        """Counts of the work done."""
        return {"columns": self.A.k, "sweeps": self.model.sweeps, "newton": self.model.newton_steps,
                "factorisations": self.model.factorisations, "passes": self.passes}

    def round_to_single(self, double tol):
        """Round x to float32; a gap that no longer meets the tolerance is not SOLVED."""
        self.round()
        if self.status == SOLVED and not self.holds(tol):
            self.status = MAX_ITER
        return self.status

    cdef bint holds(self, double tol) noexcept nogil:
        """True where x meets the tolerance, by its gap if one is known."""
        return self.gap <= self.allowed(tol) if self.gap < INFINITY else self.is_stationary(tol)

    cdef double allowed(self, double tol) noexcept nogil:
        """The gap at which a problem is solved."""
        return max(tol * fabs(self.objective), DBL_EPSILON * self.level)

    cdef void round(self) noexcept nogil:
        """Round x to float32, and certify what comes out with the bound that is there."""
        cdef Py_ssize_t j, p
        for j in range(self.n - self.A.intercept):
            self.x[j] = <float> self.x[j]
        for p in range(self.A.k):
            self.v[p] = self.x[self.A.index[p]]
        self.A.predict(self.v, self.z)
        self.objective = self.offset + self.f.value(self.z, NULL, 0.0) + self.penalty_value()
        if self.gap < INFINITY:
            self.gap = max(self.objective - self.bound, 0.0) + self.hidden_by_rounding()
        self.correlated = False

    def predictions(self, double[::1] out):
        """Copy z = A x."""
        memcpy(&out[0], self.z, self.m * sizeof(double))

    def point_inside(self, inward):
        """Take a direction into the interior of the dual cone: what `strictly_feasible` found."""
        cdef double[::1] direction = inward.direction
        cdef double[::1] slope = inward.slope
        cdef double[::1] side = inward.side
        cdef double[::1] length = inward.length
        self.kept = inward
        self.moved = <double *> resized(self.moved, self.n, sizeof(double))
        self.direction, self.slope = &direction[0], &slope[0]
        self.side, self.length = &side[0], &length[0]

    def reduced(self, double offset, double[::1] norms, double size, double rounding, gram):
        """The problem stands for another one: see reduction.py. `gram` is the Gram matrix of all columns."""
        self.kept = (norms, gram)
        self.level += offset - self.offset
        self.offset, self.norms, self.size, self.rounding = offset, &norms[0], size, rounding
        self.A.take_gram(gram)

    def take_gram(self, gram):
        """Use the Gram matrix of all columns, which was computed for many problems."""
        self.A.take_gram(gram)

    def is_reduced(self):
        """True where `reduced` was called."""
        return self.norms != NULL

    def penalise(self, const double[::1] l1, const double[::1] l2, const double[::1] lower, const double[::1] upper):
        """Go on with another penalty, from the solution that is there."""
        cdef Py_ssize_t p
        self.r.set(l1, l2, lower, upper)
        self.homogeneous = self.r.is_homogeneous()
        for p in range(self.model.k):
            self.model.penalise(p, self.r, self.A.index[self.live[p]])
        if not self.homogeneous:
            self.model.forget_factor()

    def solve(self, double tol, Py_ssize_t max_iter, double seconds=INFINITY, double anticipate=1.0):
        """Run until the gap is at most tol times the objective.

        A gap of machine precision times F at 0, or at the feasible point nearest to it, is always
        enough. `anticipate` is the factor by which l1 fell since the last solve.
        """
        cdef double until = now() + seconds
        self.next_look = now() + 0.1
        self.iterations = self.models = 0
        self.passes = 0.0
        with nogil:
            self.status = self.run(tol, max_iter, until, anticipate)
        return self.status

    cdef int run(self, double tol, Py_ssize_t max_iter, double until, double anticipate) except -1 nogil:
        cdef double target = 0.0, outside, last = INFINITY
        cdef Py_ssize_t joined, stalled = 0
        self.bound, self.bounded = 0.0, False  # the losses and the penalty are never negative
        self.list_free()
        if not self.correlated and self.A.k > 0:
            self.evaluate()
            self.improve(-1e-3, 0.1, until)
        while True:
            self.certify()
            if not isfinite(self.objective):
                return NUMERICAL_ERROR
            if self.gap <= self.allowed(tol) and tol > 0 and self.is_exact() and self.is_feasible(tol):
                return SOLVED
            if self.norms != NULL and not self.is_exact() and self.gap <= max(self.allowed(tol), 2.0 * self.hidden_by_rounding()):
                return MAX_ITER  # the problem itself has to be solved
            if self.iterations >= max_iter:
                return MAX_ITER
            if now() >= until:
                return TIME_LIMIT
            self.check_signals()
            self.iterations += 1
            joined = self.grow(anticipate, &outside)
            anticipate = 1.0
            if joined > 0:
                target, stalled = min(0.3 * outside, 0.2 * self.scale), 0
            else:
                target = min(0.1 * tol * self.scale, 0.01 * target if target > 0 else INFINITY)
                if not self.bounded and tol > 0 and self.is_stationary(tol):
                    self.gap = INFINITY
                    return SOLVED
                stalled = stalled + 1 if self.objective >= last else 0
                if stalled >= 3:
                    return MAX_ITER
            last = self.objective
            self.improve(max(target, 1e-16 * self.scale), 0.1, until)

    cdef int check_signals(self) except -1 nogil:
        """Let Ctrl-C end a long solve; looked at ten times a second."""
        if now() > self.next_look:
            with gil:
                PyErr_CheckSignals()
            self.next_look = now() + 0.1
        return 0

    cdef int join(self, Py_ssize_t count) except -1 nogil:
        """Add the columns picked[:count] to the working set."""
        cdef Py_ssize_t p
        if count == 0:
            return 0
        self.A.admit(self.picked, count)
        if self.A.k > self.room:
            self.room = self.A.room
            self.v = <double *> resized(self.v, self.room, sizeof(double))
            self.g = <double *> resized(self.g, self.room, sizeof(double))
            self.d = <double *> resized(self.d, self.room, sizeof(double))
            self.needed = <char *> resized(self.needed, self.room, 1)
            self.live = <Py_ssize_t *> resized(self.live, self.room, sizeof(Py_ssize_t))
        for p in range(self.A.k - count, self.A.k):
            self.inside[self.A.index[p]] = 1
            self.v[p] = self.x[self.A.index[p]]
            self.g[p] = self.c[self.A.index[p]]
        return 0

    cdef void evaluate(self) noexcept nogil:
        """Predictions and dual point at x, and the gradient on the working set."""
        self.A.predict(self.v, self.z)
        self.f.differentiate(self.z)
        self.A.correlate_working(self.f.u, self.g)

    cdef int certify(self) except -1 nogil:
        """Objective, dual bound and gap at x; c = A^T u for all columns."""
        cdef Py_ssize_t j, p
        cdef double ratio
        if not self.correlated:
            self.A.predict(self.v, self.z)
            self.f.differentiate(self.z)
            if self.free_count > 0:
                self.A.correlate_working(self.f.u, self.g)
                self.balance()
                self.A.correlate(self.f.u, self.c)
                self.drop_rounding()
            else:
                self.A.correlate(self.f.u, self.c)
                for p in range(self.A.k):
                    self.g[p] = self.c[self.A.index[p]]
            self.passes += 1
            self.correlated = True
        self.objective = self.offset + self.f.value(self.z, NULL, 0.0) + self.penalty_value()
        ratio = survey(self.c, self.r.l1, self.r.l2, self.r.lower, self.r.upper, self.score, &self.scale, self.n)
        self.worst = 0.0
        for p in range(self.A.k):
            j = self.A.index[p]
            self.score[j] = 0.0
            self.worst = max(self.worst, self.r.violation(j, self.v[p], self.c[j]))
        self.lower_bound(1.0 / ratio if ratio > 0.0 else INFINITY)
        self.gap = max(self.objective - self.bound, 0.0) + self.hidden_by_rounding()
        return 0

    cdef bint is_exact(self) noexcept nogil:
        """True where rounding does not change the objective of a reduced problem visibly.

        That is the difference of squares like |b|^2, so it must not be small against them.
        """
        if self.norms == NULL:
            return True
        return self.hidden_by_rounding() <= 1e-9 * self.objective and self.objective >= 0.02 * self.size * self.size

    cdef bint is_feasible(self, double tol) noexcept nogil:
        """True where the residual itself, hardly scaled, is a dual point; asked of reduced problems.

        Their bound is better than that of the scaled residual of the original problem, so that a gap
        below the tolerance can leave conditions violated by much more than the tolerance.
        """
        cdef Py_ssize_t j
        cdef double most = self.worst
        if self.norms == NULL:
            return True
        for j in range(self.n):
            most = max(most, self.score[j])
        return most <= tol * self.scale

    cdef double hidden_by_rounding(self) noexcept nogil:
        """How far the objective and the bound of a reduced problem may be off."""
        cdef Py_ssize_t p
        cdef double total = self.size
        if self.norms == NULL:
            return 0.0
        for p in range(self.A.k):
            total += fabs(self.v[p]) * self.norms[self.A.index[p]]
        return self.rounding * total * total

    cdef double penalty_value(self) noexcept nogil:
        """r(x); coordinates outside the working set are 0."""
        cdef Py_ssize_t p, j
        cdef double total = 0.0
        for p in range(self.A.k):
            j = self.A.index[p]
            total += self.r.l1[j] * fabs(self.v[p]) + 0.5 * (self.r.l2[j] * self.v[p]) * self.v[p]
        return total

    cdef void lower_bound(self, double largest) noexcept nogil:
        """Raise the lower bound on F* to the dual value, where the dual point can be made feasible.

        `largest` is the largest multiple of the dual point that is.
        """
        cdef double *c = self.c
        cdef double t, value
        if largest <= 0.0 and self.direction != NULL:
            c = self.moved
            self.move_inside(c)
            largest = self.r.dual_scale(c)
        t = self.f.best_scale(largest) if self.homogeneous else min(largest, 1.0)
        if t > 0.0:
            self.bounded = True
            value = self.offset + self.f.dual_value(t) - (0.0 if self.homogeneous else self.r.conjugate(c, t))
            if value > self.bound:
                self.bound = value

    cdef void move_inside(self, double *c) noexcept nogil:
        """Move the dual point along the strictly feasible direction until it is feasible, with c.

        It is moved beyond the boundary of the cone by what rounding may have taken from c, so
        that every multiple of it is feasible, too.
        """
        cdef Py_ssize_t j, i
        cdef double most = 0.0, excess, margin = 8.0 * DBL_EPSILON * sqrt(dot(self.f.u, self.f.u, self.m))
        for j in range(self.n):
            if self.side[j] != 0.0:
                excess = self.side[j] * self.c[j] + margin * self.length[j]
                most = max(most, excess / -(self.side[j] * self.slope[j]))
        for i in range(self.m):
            self.dz[i] = -most * self.direction[i]
        self.f.shift(self.dz)
        for j in range(self.n):
            c[j] = self.c[j] + most * self.slope[j]
        self.correlated = False  # the loss keeps the moved dual point

    cdef bint is_stationary(self, double tol) noexcept nogil:
        """True where the violations are at most tol times the gradient at 0, as vectors.

        The gradient is that at x itself: the dual point of the bound may have been moved.
        """
        cdef Py_ssize_t j
        cdef double total = 0.0, v
        self.f.differentiate(self.z)
        self.A.correlate(self.f.u, self.c)
        self.passes += 1
        self.correlated = False
        for j in range(self.n):
            v = self.r.violation(j, self.x[j], self.c[j])
            total += v * v
        return sqrt(total) <= tol * self.gradient_at_zero()

    cdef double gradient_at_zero(self) noexcept nogil:
        """The length of A^T u at predictions of 0."""
        memset(self.dz, 0, self.m * sizeof(double))
        self.f.differentiate(self.dz)
        self.A.correlate(self.f.u, self.c)
        self.passes += 1
        return sqrt(dot(self.c, self.c, self.n))

    cdef int list_free(self) except -1 nogil:
        """List the positions of the unpenalised columns, and compute their lengths."""
        cdef Py_ssize_t p, i, count = 0
        for p in range(self.A.k):
            count += self.r.is_free(self.A.index[p])
        self.free_count = count
        if count == 0:
            return 0
        self.free_ones = <Py_ssize_t *> resized(self.free_ones, count, sizeof(Py_ssize_t))
        self.free_length = <double *> resized(self.free_length, count, sizeof(double))
        self.free_step = <double *> resized(self.free_step, count, sizeof(double))
        self.free_gram = <double *> resized(self.free_gram, count * count, sizeof(double))
        i = 0
        for p in range(self.A.k):
            if self.r.is_free(self.A.index[p]):
                self.free_ones[i] = p
                i += 1
        self.A.gram(NULL, self.free_ones, count, 0, self.free_gram, count)
        for i in range(count):
            self.free_length[i] = sqrt(self.free_gram[i * count + i])
        return 0

    cdef int balance(self) except -1 nogil:
        """Make the dual point orthogonal to the unpenalised columns Z, where r* is finite only at 0.

        One Newton step on them, in the dual: u' = u - D Z w with Z' D Z w = Z' u, and once more
        for the rounding of the first.
        """
        cdef Py_ssize_t i, again
        cdef int count = self.free_count, one = 1, info = 0
        cdef double *H = self.free_gram
        self.f.curvature(self.D)
        self.A.gram(self.D, self.free_ones, count, 0, H, count)
        for i in range(count):
            H[i * count + i] += 1e-15 * H[i * count + i]
            if H[i * count + i] <= 0.0:
                H[i * count + i] = 1.0
        dpotrf("U", &count, H, &count, &info)
        if info != 0:
            return 0
        for again in range(2):
            if again > 0:
                self.A.correlate_working(self.f.u, self.d)
            for i in range(count):
                self.free_step[i] = (self.d if again > 0 else self.g)[self.free_ones[i]]
            dpotrs("U", &count, &one, H, &count, self.free_step, &count, &info)
            memset(self.d, 0, self.A.k * sizeof(double))
            for i in range(count):
                if not isfinite(self.free_step[i]):
                    return 0
                self.d[self.free_ones[i]] = self.free_step[i]
            self.A.predict(self.d, self.dz)
            self.f.shift(self.dz)
        return 0

    cdef void drop_rounding(self) noexcept nogil:
        """Set c to 0 on the unpenalised columns where it is the rounding of a sum of m products."""
        cdef Py_ssize_t i, j
        cdef double size = sqrt(dot(self.f.u, self.f.u, self.m))
        for i in range(self.free_count):
            j = self.A.index[self.free_ones[i]]
            if fabs(self.c[j]) <= 1e3 * DBL_EPSILON * self.free_length[i] * size:
                self.c[j] = 0.0

    cdef Py_ssize_t grow(self, double anticipate, double *outside) except -1 nogil:
        """Let the columns that violate their optimality condition most join the working set."""
        cdef Py_ssize_t j, p, count = 0, support = 0, want
        outside[0] = 0.0
        for p in range(self.A.k):
            support += self.v[p] != 0.0
        if anticipate > 1.0:
            for j in range(self.n):
                if not self.inside[j]:
                    self.score[j] = max(fabs(self.c[j]) - (2.0 - anticipate) * self.r.l1[j], 0.0)
        for j in range(self.n):
            if self.score[j] > 0.0:
                outside[0] = max(outside[0], self.score[j])
                self.score[count] = self.score[j]
                self.picked[count] = j
                count += 1
        want = max(<Py_ssize_t> FIRST_COLUMNS, max(<Py_ssize_t> sqrt(self.n), support))
        if count > want:
            keep_largest(self.score, self.picked, count, want)
            count = want
        sort_numbers(self.picked, count)
        self.join(count)
        return count

    cdef double survey_working(self) noexcept nogil:
        """The largest violation on the working set; marks the positions that a model needs.

        Those are the positions off their kinks and the violated ones; all of them where f is
        quadratic, since the Gram matrix of the working set is kept.
        """
        cdef Py_ssize_t p, j
        cdef double worst = 0.0, v
        for p in range(self.A.k):
            j = self.A.index[p]
            v = self.r.violation(j, self.v[p], self.g[p])
            worst = max(worst, v)
            self.needed[p] = self.f.quadratic or v > 0 or not self.r.at_kink(j, self.v[p])
        return worst

    cdef bint covers(self) noexcept nogil:
        """True where the last model has all positions that are needed now."""
        cdef Py_ssize_t p, i, missing = 0
        for p in range(self.A.k):
            missing += self.needed[p]
        for i in range(self.live_count):
            missing -= self.needed[self.live[i]]
        return missing == 0

    cdef int build(self, bint again) except -1 nogil:
        """Set up the model on the positions that are needed; `again` keeps the Hessian that is there."""
        cdef Py_ssize_t p, i, k = 0
        if not again:
            for p in range(self.A.k):
                if self.needed[p]:
                    self.live[k] = p
                    k += 1
            self.live_count = k
            self.model.make_room(k)
            if self.f.quadratic:
                if self.known != k:
                    self.A.gram(NULL if self.unit_weights or self.A.has_gram() else self.f.s, self.live, k, self.known, self.model.H, self.model.ld)
                self.known = k
            else:
                self.f.curvature(self.D)
                self.A.gram(self.D, self.live, k, 0, self.model.H, self.model.ld)
                self.model.forget_factor()
            self.model.k = k
        for i in range(self.live_count):
            p = self.live[i]
            self.model.penalise(i, self.r, self.A.index[p])
            self.model.w[i] = self.v[p]
            self.model.c[i] = self.g[p]
        return 0

    cdef int improve(self, double target, double forcing, double until) except -1 nogil:
        """Minimise F over the working set until its violations are at most `target`.

        A negative target is relative to the violations at the start. Each model is solved until
        its violations are `forcing` times those at its start.
        """
        cdef Py_ssize_t t, p, i, idle = 0
        cdef double worst, last = INFINITY, least = INFINITY
        cdef bint again = False
        for t in range(MOST_MODELS):
            worst = self.survey_working()
            if target < 0.0:
                target = -target * worst
            idle = 0 if worst < 0.5 * least else idle + 1
            least = min(least, worst)
            if worst <= target or idle >= MOST_IDLE_MODELS or now() >= until:
                break
            self.check_signals()
            self.correlated = False
            again = t > 0 and worst <= REUSE * last and self.covers()
            self.build(again)
            self.model.solve(target if self.f.quadratic else max(0.1 * target, forcing * worst))
            self.models += 1
            last = worst
            if self.f.quadratic:
                for i in range(self.live_count):
                    p = self.live[i]
                    self.v[p] = self.model.w[i]
                    self.x[self.A.index[p]] = self.v[p]
                break
            if not self.line_search():
                if not again:
                    break
                last = 0.0  # another try with the Hessian of this point
                continue
            self.f.differentiate(self.z)
            self.A.correlate_working(self.f.u, self.g)
        return 0

    cdef bint line_search(self) noexcept nogil:
        """Go towards the model's minimiser as far as F falls; False where it does not."""
        cdef Py_ssize_t i, p, j
        cdef double slope = 0.0, value, new, part = 1.0, w, r_old = 0.0, r_new, noise
        cdef int halving
        memset(self.d, 0, self.A.k * sizeof(double))
        for i in range(self.live_count):
            p = self.live[i]
            w = self.v[p]
            new = self.model.w[i]
            self.d[p] = new - w
            # Terms that nearly cancel are subtracted first, so that a tiny slope keeps its sign.
            if w * new > 0:
                slope += (copysign(self.model.l1[i], w) - self.g[p]) * self.d[p]
            else:
                slope += self.model.l1[i] * (fabs(new) - fabs(w)) - self.g[p] * self.d[p]
            slope += 0.5 * (self.model.l2[i] * (new + w)) * self.d[p]
            r_old += self.model.l1[i] * fabs(w) + 0.5 * (self.model.l2[i] * w) * w
        if not slope < 0.0:
            return False
        self.A.predict(self.d, self.dz)
        value = self.f.value(self.z, NULL, 0.0)
        # A fall of F that rounding hides is taken for granted: the model is exact there.
        noise = 1e-14 * fabs(value) if slope < -1e-11 * fabs(value) else INFINITY
        for halving in range(40):
            r_new = 0.0
            for i in range(self.live_count):
                w = self.v[self.live[i]] + part * self.d[self.live[i]]
                r_new += self.model.l1[i] * fabs(w) + 0.5 * (self.model.l2[i] * w) * w
            new = self.f.value(self.z, self.dz, part)
            if new + r_new - value - r_old <= 1e-3 * part * slope + noise:
                break
            part *= 0.5
        else:
            return False
        for i in range(self.live_count):
            p = self.live[i]
            self.v[p] = self.model.w[i] if part == 1.0 else self.v[p] + part * self.d[p]
            self.x[self.A.index[p]] = self.v[p]
        axpy(part, self.dz, self.z, self.m)
        return True
