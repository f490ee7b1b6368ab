# What is proven at x: objective, lower bound, gap.
#
# Bounds are computed in float64 from the dual point of x. It is scaled until it is feasible; before that it
# is made orthogonal to unpenalised columns, and moved into the dual cone of one-sided constraints.

# A correlation above ROUNDINGS + sqrt(m) units is taken for a slope, which no gap may leave out. At the end
# of 1,654 simulated fits with unpenalised columns (10 to 1000 rows, eight designs; 2026-11-20) the largest
# was below a fifth of that in 99 of 100 fits of each loss, of softmax in 95. With 1e3 in place of it a slope
# of 85 units that led far away was left out, and a gap of 1.5e-10 stood where 3.8e-10 is true. FARTHER was
# not chosen by a measurement: the minimiser is not known, so that it is an assumption about it and no bound.
cdef double ROUNDINGS = 16.0  # Rounding of a sum of products, in units of that of their length.
cdef double NEARLY = 1e3      # The same for slopes that another step may remove.
cdef double FARTHER = 16.0    # How many times as far as x a minimiser is thought to be on unpenalised columns.
# The part of the allowed gap that a penalty may have to be left out of the bound, the rest being for the gap
# itself. On 2026-11-19, with LASSO, elastic net, Huber, logistic, Poisson and multi-task problems of 20 x 5
# and 200 x 50 and a lam of 1e-300 to 1e-6, 97 of 180 solves to 1e-6 ended MAX_ITER without it, and none with
# it and STANDS_STILL (loop.pxi).
cdef double LEFT_OUT = 0.1
cdef double VISIBLE = 0.02  # An objective below this part of b'b is not computed as a difference from b'b, whose rounding would show.


cdef class Certified(Point):
    """A point, and how far from optimal it can be."""

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
    cdef double rounding    # of a reduced problem, relative to (sum |x_j| norms_j + size)^2
    cdef double size
    cdef double *norms      # (n,), or NULL
    cdef readonly double passes
    cdef bint bounded  # True once a dual point was feasible
    cdef bint balanced # True where `balance` found a factor
    cdef double lost   # by taking A^T u for 0 on the unpenalised columns
    cdef bint left_out  # True where the bound is that of the problem without the penalty of the working set
    cdef bint one_output  # False for several classes or targets

    def __cinit__(self, *_, **__):
        self.one_output = self.A.tasks == 1 and not isinstance(self.A, Classes)

    def __dealloc__(self):
        free(self.free_ones)
        free(self.free_length)
        free(self.free_step)
        free(self.free_gram)
        free(self.moved)

    cdef int certify(self) except -1 nogil:
        """Objective, dual bound and gap at x; c = A^T u for all columns."""
        cdef Py_ssize_t p
        cdef double largest
        if not self.correlated:
            self.A.predict(self.v, self.z)
            self.f.differentiate(self.z)
            self.displaced = False
            if self.free_count > 0:
                self.A.correlate_working(self.f.u, self.g)
                self.balance()
                self.A.correlate(self.f.u, self.c)
                if self.drop_rounding():
                    self.balance_again()
            else:
                self.A.correlate(self.f.u, self.c)
                for p in range(self.A.k):
                    self.g[p] = self.c[self.A.index[p]]
            self.passes += 1
            self.correlated, self.borrowed = True, False
        self.objective = self.penalised_value()
        largest = self.r.survey(self.c, self.score, &self.scale)
        for p in range(self.members):
            self.score[self.member[p]] = 0.0
        for p in range(self.A.k):
            self.d[p] = self.c[self.A.index[p]]
        self.worst = self.r.violations(self.A.index, self.v, self.d, self.A.k, NULL)
        self.lower_bound(largest)
        self.gap = max(self.objective - self.bound, 0.0) + self.hidden_by_rounding()
        return 0

    cdef bint is_exact(self) noexcept nogil:
        """True where rounding does not change the objective of a reduced problem visibly.

        That is the difference of squares like |b|^2, so it must not be small against them.
        """
        if self.norms == NULL:
            return True
        return self.hidden_by_rounding() <= 1e-9 * self.objective and self.objective >= VISIBLE * self.size * self.size

    cdef bint is_feasible(self, double tol) noexcept nogil:
        """True where the residual itself, hardly scaled, is a dual point; asked of reduced problems.

        Their bound is better than that of the scaled residual of the original problem, so that a gap
        below the tolerance can leave conditions violated by much more than the tolerance.
        """
        cdef Py_ssize_t j
        cdef double most = self.worst
        if self.norms == NULL:
            return True
        for j in range(self.r.blocks):
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
        t = self.f.best_scale(largest) if self.r.homogeneous else min(largest, 1.0)
        if t > 0.0:
            self.bounded = True
            value = self.offset + self.f.dual_value(t) - (0.0 if self.r.homogeneous else self.r.conjugate(c, t))
            value -= t * self.lost + self.f.rounding(self.z)
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
        self.correlated, self.displaced = False, True

    cdef bint is_stationary(self, double tol) noexcept nogil:
        """True where the violations are at most tol times the gradient at 0, as vectors.

        The gradient is that at x itself: the dual point of the bound may have been moved.
        """
        self.f.differentiate(self.z)
        self.A.correlate(self.f.u, self.c)
        self.passes += 1
        self.correlated, self.displaced = False, False
        return self.r.distance(self.x, self.c) <= tol * self.gradient_at_zero()

    cdef double gradient_at_zero(self) noexcept nogil:
        """The length of A^T u at predictions of 0."""
        memset(self.dz, 0, self.m * sizeof(double))
        self.f.differentiate(self.dz)
        self.displaced = True
        self.A.correlate(self.f.u, self.c)
        self.passes += 1
        return sqrt(dot(self.c, self.c, self.n))

    cdef bint leave_out_penalty(self, double tol) except -1 nogil:
        """Let the next bounds be those of the problem without the penalty, where that is next to nothing.

        r is never negative, so that a bound on the minimum without it is one with it. A dual point is
        scaled until |c_j| <= l1_j, and where l1_j is not much more than the rounding of c_j that takes
        more from the bound than the penalty is worth. Asked once, where nothing else improves x.
        """
        if self.left_out or not self.r.value(self.A.index, self.v, self.A.k) <= LEFT_OUT * self.allowed(tol):
            return False
        self.left_out, self.correlated = True, False
        self.list_free()
        return self.free_count > 0

    cdef bint takes_part(self, Py_ssize_t j) noexcept nogil:
        """True for the columns to which the dual point is made orthogonal."""
        return self.r.is_unbounded(j) if self.left_out else self.r.is_free(j)

    cdef int list_free(self) except -1 nogil:
        """List the positions of the unpenalised columns, and compute their lengths."""
        cdef Py_ssize_t p, i, count = 0
        for p in range(self.A.k):
            count += self.takes_part(self.A.index[p])
        self.free_count, self.lost = count, 0.0
        if count == 0:
            return 0
        self.free_ones = <Py_ssize_t *> resized(self.free_ones, count, sizeof(Py_ssize_t))
        self.free_length = <double *> resized(self.free_length, count, sizeof(double))
        self.free_step = <double *> resized(self.free_step, count, sizeof(double))
        self.free_gram = <double *> resized(self.free_gram, count * count, sizeof(double))
        i = 0
        for p in range(self.A.k):
            if self.takes_part(self.A.index[p]):
                self.free_ones[i] = p
                i += 1
        self.A.gram(NULL, self.free_ones, count, 0, self.free_gram, count)
        for i in range(count):
            self.free_length[i] = sqrt(self.free_gram[(i // self.A.tasks) * (count + 1)])
        return 0

    cdef int balance(self) except -1 nogil:
        """Make the dual point orthogonal to the unpenalised columns Z, where r* is finite only at 0.

        One Newton step on them, in the dual: u' = u - D Z w with Z' D Z w = Z' u, and once more
        for the rounding of the first. The intercepts of several classes have a direction in which
        nothing changes, and Z' u no part along it: a small ridge makes the matrix regular.
        """
        cdef Py_ssize_t i
        cdef int ld = self.free_count, count = self.free_count // self.A.tasks, info = 1
        cdef double *H = self.free_gram
        cdef double ridge = 1e-15
        self.f.curvature(self.D)
        while info != 0 and ridge < 1e-8:
            self.A.gram(self.D, self.free_ones, ld, 0, H, ld)
            for i in range(count):
                H[i * ld + i] += ridge * H[i * ld + i]
                if H[i * ld + i] <= 0.0:
                    H[i * ld + i] = 1.0
            dpotrf("U", &count, H, &ld, &info)
            ridge *= 10.0
        self.balanced = info == 0
        if self.balanced and self.balance_step(self.g):
            self.A.correlate_working(self.f.u, self.d)
            self.balance_step(self.d)
        return 0

    cdef bint balance_step(self, double *slopes) noexcept nogil:
        """One of these steps, from Z' u in `slopes` (k,); False where it is not finite."""
        cdef Py_ssize_t i, at
        cdef int T = self.A.tasks, ld = self.free_count, count = self.free_count // self.A.tasks, info = 1
        for i in range(ld):
            at = (i % T) * count + i // T  # one right-hand side for each task
            self.free_step[at] = slopes[self.free_ones[i]]
        dpotrs("U", &count, &T, self.free_gram, &ld, self.free_step, &count, &info)
        memset(self.d, 0, self.A.k * sizeof(double))
        for i in range(ld):
            at = (i % T) * count + i // T
            if not isfinite(self.free_step[at]):
                return False
            self.d[self.free_ones[i]] = self.free_step[at]
        self.A.predict(self.d, self.dz)
        self.f.shift(self.dz)
        self.displaced = True
        return True

    cdef int balance_again(self) except -1 nogil:
        """Two more steps, and c at the dual point that they reach."""
        cdef int again
        for again in range(2 if self.balanced else 0):
            self.A.correlate_working(self.f.u, self.d)
            if not self.balance_step(self.d):
                break
        self.A.correlate(self.f.u, self.c)
        self.passes += 1
        self.drop_rounding()
        return 0

    cdef bint drop_rounding(self) except -1 nogil:
        """Set c to 0 on the unpenalised columns where it is the rounding of a sum of m products.

        True where a c_j that stays is so small that another step may help.

        The products themselves are measured: they are far smaller than |a_j| |u| where the large entries
        of a column meet small ones of u. Where c is more than their rounding it stays, the dual point is
        not feasible, and no gap is known: near-dependent columns hide a descent.

        F(y) is at least the dual value plus c_j y_j for these columns. What is set to 0 lowers the bound by
        |c_j x_j|, and more: a minimiser y whose predictions are those of x to rounding has about the same
        y_j, and that of separable data is several times as far. It is lowered for a y_j that moves
        predictions by the `reach` of the loss, too, where x_j is still near 0.
        """
        cdef Py_ssize_t i, j, count = self.free_count
        cdef bint nearly = False
        cdef double unit, reach = self.f.reach() * sqrt(self.m), most = ROUNDINGS + sqrt(self.m)
        self.f.squared_sizes(self.D)
        self.lost = 0.0
        for i in range(count):
            j = self.A.index[self.free_ones[i]]
            if self.free_length[i] == 0.0:
                continue
            unit = DBL_EPSILON * sqrt(self.A.square(self.D, self.free_ones[i]))
            if fabs(self.c[j]) > most * unit or not isfinite(unit):  # lengths that overflow measure nothing
                nearly = nearly or fabs(self.c[j]) <= NEARLY * unit
                continue
            self.lost += (fabs(self.c[j]) + 2.0 * unit) * max(FARTHER * fabs(self.x[j]), reach / self.free_length[i])
            self.c[j] = 0.0
        return nearly

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
        self.objective = self.penalised_value()
        if self.gap < INFINITY:
            self.gap = max(self.objective - self.bound, 0.0) + self.hidden_by_rounding()
        self.correlated = False

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

    def is_reduced(self):
        """True where `reduced` was called."""
        return self.norms != NULL
