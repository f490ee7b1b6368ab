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
    FIRST_COLUMNS = 10   # Columns that join at least; the square root of n where that is more. 4 and 25: 1.00 and 1.02 of the time (improver.pxi).
    # Blocks of a tall A join up to so many times the support: of a multi-task problem 500 x 300 at 0.02
    # lambda_max (benchmarks/everyday.py, 2026-11-18) 5.7 ms instead of 11.2. On wide data it took up to twice
    # as long.
    TALL_BLOCK_GROWTH = 3
    MOST_STUCK = 2       # Working sets that sweeps do not solve, and nothing joins: models with a Hessian take over.


# A working set is solved until its violations are PART of the largest violation outside, since a better
# answer would not last. On the simulated data of coordinate_model.pxi 0.15 and 0.6 in place of 0.3 take 1.11
# and 1.04 times as long, and on elastic nets of 150 x 900 up to 2.2 times (2026-11-19). Where A has more than
# VERY_WIDE columns a row a pass costs more than the model, and a better answer saves some: 63 x 2308, 77 x
# 7129 and 100 x 10,000 at 0.01 of the largest lambda took 0.75 to 1.0 of the time, LASSO and elastic net,
# with 0.1 in place of 0.3 (2026-11-18); 200 x 1000 and 500 x 600 up to 1.3 times as long.
cdef double PART = 0.3
cdef double PART_OF_VERY_WIDE = 0.1
cdef double VERY_WIDE = 16.0
cdef double LAST_TO_JOIN = 0.01  # Where so few join, sweeps aim at the tolerance.


# Where most columns of a tall A are in the solution, all of them join at once: their Gram matrix is needed
# anyway, and one certificate ends the solve. That is foreseen where |c_j| is STRONG times l1_j for most
# columns and A has TALL times as many rows as columns. Measured on 2026-11-18 on simulated data (LASSO, eight
# shapes from 300 x 290 to 20,000 x 60, five lambdas each): where it is foreseen, growing working sets take
# 1.01 to 1.54 times as long; with fewer rows, 0.47 to 0.82 times as long, even with 95% strong columns.
cdef double STRONG = 4.0
cdef double MOST_COLUMNS = 0.75
cdef double TALL = 2.0
# Where F falls by fewer units in its last place, it goes up and down by rounding: LASSO of 20 x 5 with a lam
# of 1e-16 did so for 1000 iterations (2026-11-19).
cdef double STANDS_STILL = 4.0
cdef double TALL_GROWTH = 2.0  # New columns for each one of the support, where least squares has m >= n: up to 15% less time.

# Sparse columns with a loss that is not quadratic cost little to have in the working set, and much to join
# later. PART_OF_SPARSE of the violated ones join at least. Where few are violated (FEW_TO_JOIN of the working
# set), those join, too, that will be if their c_j changes by LIKELY of l1_j. Chosen on the designs of
# sparse_descent.pxi, categories with products, and 30,000 x 200 rare binary columns, without and with
# intercept (2026-11-19): none in place of 0.08 or 0.15 for PART_OF_SPARSE takes 1.05 times as long, 0.3 1.02
# times; none in place of 0.1 for LIKELY 1.03 times, 0.3 1.02 times. Other values of FEW_TO_JOIN were not
# tried.
cdef double PART_OF_SPARSE = 0.1
cdef double FEW_TO_JOIN = 0.1
cdef double LIKELY = 0.1


# Least squares with sparse columns, where sweeps pay (sparse_squares.pxi has the designs): all columns join
# at once where MOST_VIOLATED of them are violated, which halves the time where it happens, and all violated
# ones where they have no more than FEW_ENTRIES of the entries, so that sweeps over them cost less than
# certificates. These are solved to VIOLATED_PART of the largest violation, since most of what is missing is
# there. Other values were not tried.
cdef double MOST_VIOLATED = 0.5
cdef double FEW_ENTRIES = 0.34
cdef double VIOLATED_PART = 0.01


cdef class Loop(Improver):
    """One problem f(A x) + r(x), solved from where it stands."""

    cdef readonly Py_ssize_t iterations
    cdef readonly int status
    cdef double spent       # passes over A before the next solve
    cdef Py_ssize_t led     # iterations of a start before the next solve

    def solve(self, double tol, Py_ssize_t max_iter, double seconds=INFINITY, double anticipate=1.0):
        """Run until the gap is at most tol times the objective.

        A gap of machine precision times F at 0, or at the feasible point nearest to it, is always
        enough. `anticipate` is the factor by which l1 fell since the last solve.
        """
        cdef double until = now() + seconds
        self.next_look = now() + 0.1
        self.iterations, self.led = self.led, 0
        self.passes, self.spent = self.spent, 0.0
        with nogil:
            self.status = self.run(tol, max_iter, until, anticipate)
        return self.status

    cdef int run(self, double tol, Py_ssize_t max_iter, double until, double anticipate) except -1 nogil:
        cdef double target = 0.0, outside, last = INFINITY, aimed
        cdef Py_ssize_t joined, stalled = 0, waited = 0
        self.damping, self.radius = 0.0, self.f.trusted
        self.promised = 0.0
        self.bound, self.bounded = 0.0, False  # the losses and the penalty are never negative
        self.arrive(until)
        while True:
            self.certify()
            if not isfinite(self.objective):
                return NUMERICAL_ERROR
            if self.gap <= self.allowed(tol) and tol > 0 and self.is_exact() and self.is_feasible(tol):
                if not self.borrowed:
                    return SOLVED
                self.correlated = False  # the data may have changed since; only what is computed here proves
                continue
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
            self.promised = 0.0
            if joined > 0 and self.members == self.r.blocks:
                target, stalled = 0.1 * tol * self.scale, 0  # nothing is outside
                if tol > 0.0 and self.is_sparse_squares() and self.sweeps_pay():
                    self.promised, target = tol, INFINITY
            elif joined > 0 and joined == self.members and self.is_sparse_squares() and self.sweeps_pay() and self.has_few_entries():
                target, stalled = VIOLATED_PART * outside, 0
            elif joined > 0:
                target, stalled = min(self.part_outside() * outside, 0.2 * self.scale), 0
                if not self.growing and self.sweeps_pay():
                    target = min(target, self.last_target(tol, outside))
            else:
                aimed = self.last_target(tol, 0.0)
                target *= 0.01 if self.worst <= target and (self.f.quadratic or aimed >= self.worst) else 1.0
                target = min(aimed, target if target > 0 else INFINITY)
                if self.stuck >= MOST_STUCK:
                    self.sparse_descent.failed, self.stuck = True, 0
                stalled = stalled + 1 if self.objective >= (1.0 - STANDS_STILL * DBL_EPSILON) * last else 0
            # Where no gap can be known, columns whose violations are nothing but rounding could join for
            # ever.
            if not self.bounded and tol > 0 and (joined == 0 or self.direction == NULL and self.objective >= 0.999 * last):
                if self.is_stationary(tol):
                    waited += 1
                    if waited >= self.patience():
                        self.gap = INFINITY
                        return SOLVED
            if stalled >= 3:
                if not self.leave_out_penalty(tol):
                    return MAX_ITER
                stalled = 0
                continue
            last = self.objective
            self.improve(max(target, 1e-16 * self.scale), 0.1, until)

    cdef double last_target(self, double tol, double outside) noexcept nogil:
        """Violations at which the gap will meet the tolerance.

        Newton steps pass it by far, so that it may be too small for them. Sweeps over the residual
        should end as soon as they can: violations e make a gap of about e r(x) / scale.
        """
        cdef double penalty
        if not self.sweeps_pay() and (self.r.is_separable() or not self.f.quadratic):
            return 0.1 * tol * self.scale
        outside = max(outside, self.worst)
        if self.gap < INFINITY and outside > 0.0:
            return max(0.1 * tol * self.scale, outside * max(0.003 if self.gap > 0.03 * self.objective or not self.f.quadratic else 0.0, 0.7 * self.allowed(tol) / self.gap))
        penalty = self.r.value(self.A.index, self.v, self.A.k)
        return tol * self.scale * max(0.1, min(0.8 * self.objective / penalty, 5.0) if penalty > 0.0 else 0.1)

    cdef double part_outside(self) noexcept nogil:
        """The part of the largest violation outside to which a working set is solved."""
        return PART_OF_VERY_WIDE if self.f.quadratic and self.r.is_separable() and self.n > VERY_WIDE * self.m else PART

    cdef Py_ssize_t patience(self) noexcept nogil:
        """How often small violations have to be seen before they end a solve that has no gap.

        Near the solution, a dual point can be made orthogonal to unpenalised columns, and a gap
        says more; so such a problem gets three more rounds.
        """
        return 1 if self.free_count == 0 or self.f.quadratic else 4

    cdef int arrive(self, double until) except -1 nogil:
        """Improve x on the columns that are there at the start: its support, and unpenalised ones."""
        cdef double constant
        self.left_out = False
        self.list_free()
        if self.A.intercept and self.A.k == 1 and self.v[0] == 0.0 and not self.correlated:
            constant = self.f.best_constant()
            if isfinite(constant):
                self.x[self.A.index[0]] = self.v[0] = constant
                return 0
        if not self.correlated and self.A.k > 0:
            self.evaluate()
            self.improve(-1e-3, 0.1, until)
        return 0

    cdef Py_ssize_t grow(self, double anticipate, double *outside) except -1 nogil:
        """Let the blocks that violate their optimality conditions most join the working set."""
        cdef Py_ssize_t p, count, support = 0, want
        cdef double growth = self.growth(), likely
        outside[0], self.growing = 0.0, True
        if self.members == 0 and self.needs_most():
            return self.join_all()
        for p in range(self.A.k):
            support += self.v[p] != 0.0
        if anticipate > 1.0:
            self.look_ahead(anticipate)
        count = self.list_scored(outside)
        want = max(<Py_ssize_t> FIRST_COLUMNS, max(<Py_ssize_t> sqrt(self.n), <Py_ssize_t> (growth * support)))
        if self.is_curved_and_sparse():
            want = max(want, <Py_ssize_t> (PART_OF_SPARSE * count))
        if self.members == 0 and self.joins_violated(count):
            want = count
        self.growing = min(count, want) > LAST_TO_JOIN * (self.A.k + min(count, want))
        if 0 < count <= FEW_TO_JOIN * self.A.k and self.is_curved_and_sparse() and self.sweeps_pay():
            self.look_ahead(1.0 + LIKELY)
            count = self.list_scored(&likely)
        want = (want * self.r.blocks + self.n - 1) // self.n
        if self.r.is_smooth():
            want = self.r.blocks  # all of them are in the solution
        if count > want:
            keep_largest(self.score, self.picked, count, want)
            count = want
        sort_numbers(self.picked, count)
        self.join(count)
        return count

    cdef void look_ahead(self, double anticipate) noexcept nogil:
        """Score the blocks outside the working set that will be violated if l1 falls by this factor, or c rises as much."""
        cdef Py_ssize_t p
        self.r.anticipate(self.c, anticipate, self.score)
        for p in range(self.members):
            self.score[self.member[p]] = 0.0

    cdef Py_ssize_t list_scored(self, double *largest) noexcept nogil:
        """List the blocks with a score, and their scores; finds the largest one."""
        cdef Py_ssize_t j, count = 0
        largest[0] = 0.0
        for j in range(self.r.blocks):
            if self.score[j] > 0.0:
                largest[0] = max(largest[0], self.score[j])
                self.score[count] = self.score[j]
                self.picked[count] = j
                count += 1
        return count

    cdef bint is_curved_and_sparse(self) noexcept nogil:
        """True for sparse columns and a loss of one output that is not quadratic."""
        return not self.f.quadratic and self.one_output and self.r.is_separable() and self.A.working_entries() < INFINITY

    cdef double growth(self) noexcept nogil:
        """How many new columns may join for each one of the support."""
        if self.m < self.n:
            return 1.0
        if not self.r.is_separable():
            return TALL_BLOCK_GROWTH
        return TALL_GROWTH if self.f.quadratic or self.is_curved_and_sparse() else 1.0

    cdef bint is_sparse_squares(self) noexcept nogil:
        """True for least squares with sparse columns and a separable penalty."""
        return self.f.quadratic and self.one_output and self.r.is_separable() and self.A.working_entries() < INFINITY

    cdef bint has_few_entries(self) noexcept nogil:
        """True where the working set has a small part of the entries of A."""
        return self.A.working_entries() <= FEW_ENTRIES * self.A.entries()

    cdef bint joins_violated(self, Py_ssize_t count) noexcept nogil:
        """True where sweeps over all `count` violated columns, which are listed, cost less than certificates."""
        cdef double entries
        if not self.is_sparse_squares() or self.sparse_descent.failed:
            return False
        entries = self.A.entries_of(self.picked, count)
        return entries <= FEW_ENTRIES * self.A.entries() and <double> count * count > SWEEPS_PAY * entries

    cdef bint needs_most(self) noexcept nogil:
        """True where least squares with a separable penalty will have most columns in its solution."""
        cdef Py_ssize_t j, strong = 0
        if self.is_sparse_squares():
            if self.sparse_descent.failed or <double> self.n * self.n <= SWEEPS_PAY * self.A.entries():
                return False
            for j in range(self.n):
                strong += self.score[j] > 0.0
            return strong >= MOST_VIOLATED * self.n
        if not (self.f.quadratic and self.m >= TALL * self.n and self.r.is_separable() and self.A.working_entries() == INFINITY):
            return False
        for j in range(self.n):
            strong += self.score[j] > (1.0 - 1.0 / STRONG) * fabs(self.c[j])
        return strong >= MOST_COLUMNS * self.n

    cdef Py_ssize_t join_all(self) except -1 nogil:
        """Let all blocks join the working set, which is empty."""
        cdef Py_ssize_t j
        for j in range(self.r.blocks):
            self.picked[j] = j
        self.join(self.r.blocks)
        return self.r.blocks
