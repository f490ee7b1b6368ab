# The model of a separable penalty, solved by coordinate descent and Newton steps.
#
# Sweeps of coordinate descent find the active coordinates; a Newton step on them then is exact.

# On simulated data (LASSO, elastic net and l1 logistic regression of 300 x 290, 150 x 900 and 900 x 200,
# sparse ones of 3000 x 2500; CPU time, 2026-11-19) 4 or 16 in place of LEAST_SWEEPS take 1.03 times as long,
# 1 or 6 in place of FAST_ROUNDS 1.01 times. The other three are limits, which few problems reach.
cdef enum:
    LEAST_SWEEPS = 8    # Sweeps before a Newton step, which needs nearly the right active variables.
    MOST_SWEEPS = 100   # Sweeps over the active variables before all variables are looked at again.
    MOST_IDLE = 20      # Rounds in a row that do not reduce the violations; then rounding prevents it.
    FAST_ROUNDS = 3     # Rounds of sweeps and a Newton step before the active-set method takes over.
    MOST_ROUNDS = 200   # Rounds of sweeps and a Newton step; a model that needs more stays unsolved.


cdef class ActiveSet


@cython.final
cdef class CoordinateModel(CoordinateFactor):
    """The model of a separable penalty, with its numbers (k,) for the variables."""

    cdef double *l1
    cdef double *lower
    cdef double *upper
    cdef double *own    # (k,): the diagonal of H,
    cdef double *whole  # (k,): and with l2
    cdef ActiveSet exact

    def __cinit__(self):
        self.exact = ActiveSet()
        self.l1 = self.lower = self.upper = self.own = self.whole = NULL

    def __dealloc__(self):
        free(self.l1)
        free(self.lower)
        free(self.upper)
        free(self.own)
        free(self.whole)

    cdef int reserve(self, Py_ssize_t room) except -1 nogil:
        self.l1 = <double *> resized(self.l1, room, sizeof(double))
        self.lower = <double *> resized(self.lower, room, sizeof(double))
        self.upper = <double *> resized(self.upper, room, sizeof(double))
        self.own = <double *> resized(self.own, room, sizeof(double))
        self.whole = <double *> resized(self.whole, room, sizeof(double))
        return CoordinateFactor.reserve(self, room)

    cdef void penalise(self, Penalty r, Py_ssize_t *index, Py_ssize_t *live, Py_ssize_t k) noexcept nogil:
        cdef double *l1 = (<Separable> r).l1
        cdef double *l2 = (<Separable> r).l2
        cdef double *lower = (<Separable> r).lower
        cdef double *upper = (<Separable> r).upper
        cdef Py_ssize_t i, j
        for i in range(k):
            j = index[live[i]]
            self.l1[i], self.l2[i], self.lower[i], self.upper[i] = l1[j], l2[j], lower[j], upper[j]

    cdef double slope(self) noexcept nogil:
        cdef Py_ssize_t i
        cdef double total = 0.0, w, new, d
        for i in range(self.k):
            w, new = self.start[i], self.w[i]
            d = new - w
            # Terms that nearly cancel are subtracted first, so that a tiny slope keeps its sign.
            if w * new > 0:
                total += (copysign(self.l1[i], w) - self.pull[i]) * d
            else:
                total += self.l1[i] * (fabs(new) - fabs(w)) - self.pull[i] * d
            total += 0.5 * (self.l2[i] * (new + w)) * d
        return total

    cdef double penalty_change(self, double part) noexcept nogil:
        cdef Py_ssize_t i
        cdef double old = 0.0, new = 0.0, w
        for i in range(self.k):
            w = self.start[i]
            old += self.l1[i] * fabs(w) + 0.5 * (self.l2[i] * w) * w
            w += part * (self.w[i] - w)
            new += self.l1[i] * fabs(w) + 0.5 * (self.l2[i] * w) * w
        return new - old

    cdef bint at_kink(self, Py_ssize_t p) noexcept nogil:
        cdef double w = self.w[p]
        return (w == 0.0 and self.l1[p] > 0) or w <= self.lower[p] or w >= self.upper[p]

    cdef double violation(self) noexcept nogil:
        """The largest violation of the model's optimality conditions."""
        cdef Py_ssize_t p
        cdef double worst = 0.0, e, w, up, down
        for p in range(self.k):
            w = self.w[p]
            e = self.c[p] - self.l2[p] * w
            up = e - (self.l1[p] if w >= 0 else -self.l1[p])
            down = -(e - (self.l1[p] if w > 0 else -self.l1[p]))
            if w < self.upper[p] and up > worst:
                worst = up
            if w > self.lower[p] and down > worst:
                worst = down
        return worst

    cdef double update(self, Py_ssize_t p) noexcept nogil:
        """Minimise over variable p; returns how much the model fell, to first order."""
        cdef double w = self.w[p], z = self.c[p] + self.own[p] * w, new, change
        if self.whole[p] > 0:
            if z > self.l1[p]:
                new = (z - self.l1[p]) / self.whole[p]
            elif z < -self.l1[p]:
                new = (z + self.l1[p]) / self.whole[p]
            else:
                new = 0.0
        elif self.l1[p] > 0:
            new = 0.0
        else:
            return 0.0
        new = min(max(new, self.lower[p]), self.upper[p])
        change = new - w
        if change == 0.0 or not isfinite(new):
            return 0.0
        self.w[p] = new
        axpy(-change, self.H + p * self.ld, self.c, whole_lanes(self.k))
        return change * change * self.whole[p]

    cdef void read_diagonal(self) noexcept nogil:
        """Keep the diagonal of H for the sweeps, and make the ends of its columns 0 up to whole vectors."""
        cdef Py_ssize_t p, wide = whole_lanes(self.k)
        cdef double *column
        for p in range(self.k):
            column = self.H + p * self.ld
            self.own[p], self.whole[p] = column[p], column[p] + self.l2[p]
            memset(column + self.k, 0, (wide - self.k) * sizeof(double))
        memset(self.c + self.k, 0, (wide - self.k) * sizeof(double))

    cdef double solve(self, double tol) except -1 nogil:
        """Sweep, and take a Newton step where that promises to end sooner than more sweeps."""
        cdef Py_ssize_t rounds, sweep, p, i, count, idle = 0
        cdef double worst = 0.0, least = INFINITY, most, v, last
        self.read_diagonal()
        if self.has_factor(self.collect()):
            self.newton_step()
        for rounds in range(MOST_ROUNDS):
            most = 0.0
            for p in range(self.k):
                most = max(most, self.update(p))
            count, last = self.collect(), INFINITY
            for sweep in range(MOST_SWEEPS if count > 0 else 0):
                v = self.active_violation(count)
                if v <= 0.3 * tol:
                    # An exact model often saves a pass over A.
                    if self.newton_cost(count) < self.entries:
                        self.newton_step()
                    break
                if sweep >= LEAST_SWEEPS or self.has_factor(count):
                    if self.newton_pays(count, tol / v, v / last):
                        self.newton_step()
                        break
                last = v
                for i in range(count):
                    self.update(self.active[i])
            worst = self.violation()
            idle = 0 if worst < 0.9 * least else idle + 1
            least = min(least, worst)
            if worst <= tol or most == 0.0 or idle >= MOST_IDLE:
                break
            if rounds >= FAST_ROUNDS:
                return self.exact.solve(self, tol)
        return worst

    cdef double active_violation(self, Py_ssize_t count) noexcept nogil:
        """The largest violation of the variables that were not at a kink before the sweeps."""
        cdef Py_ssize_t i, p
        cdef double worst = 0.0, e
        for i in range(count):
            p = self.active[i]
            if not self.at_kink(p):
                e = self.c[p] - self.l2[p] * self.w[p]
                if self.w[p] != 0.0:
                    e -= copysign(self.l1[p], self.w[p])
                worst = max(worst, fabs(e))
        return worst

    cdef bint newton_pays(self, Py_ssize_t count, double wanted, double rate) noexcept nogil:
        """True where a Newton step costs less than the sweeps that are still needed.

        Violations must fall to the part `wanted` of what they are, and fell to the part `rate` in
        the last sweep.
        """
        cdef double sweeps
        sweeps = log(wanted) / log(rate) if rate < 1.0 else INFINITY
        return self.newton_cost(count) < sweeps * count * self.k

    cdef double newton_cost(self, Py_ssize_t count) noexcept nogil:
        """Multiplications of a Newton step on `count` variables, in units of those of a sweep."""
        cdef double a = count
        return 2.0 * a * a + self.factor_cost(count)

    cdef Py_ssize_t collect(self) noexcept nogil:
        """List the variables that are not at a kink."""
        cdef Py_ssize_t p, count = 0
        for p in range(self.k):
            if not self.at_kink(p):
                self.active[count] = p
                count += 1
        return count

    cdef int newton_step(self) except -1 nogil:
        """A Newton step on the variables that are not at a kink.

        Variables that would cross a kink stay on it. If the model rises by that, the step ends
        at the first kink that a variable meets.
        """
        cdef Py_ssize_t count = self.collect(), i, p, who = -1
        cdef int a = count, one = 1, ld
        cdef double *d = self.direction
        cdef double w, new, low, high, first = 1.0, kink = 0.0, part, change = 0.0
        if count == 0 or not self.factorise(count):
            return 0
        ld = self.factor_room
        for i in range(count):
            p = self.active[i]
            d[i] = self.c[p] - self.l2[p] * self.w[p]
            if self.w[p] != 0.0:
                d[i] -= copysign(self.l1[p], self.w[p])
        if count <= FEW:
            small_solve(self.factor, ld, count, d)
        else:
            dtrsv("L", "N", "N", &a, self.factor, &ld, d, &one)
            dtrsv("L", "T", "N", &a, self.factor, &ld, d, &one)
        for i in range(count):
            p = self.active[i]
            w = self.w[p]
            low, high = self.lower[p], self.upper[p]
            if self.l1[p] > 0:
                if w > 0:
                    low = max(low, 0.0)
                else:
                    high = min(high, 0.0)
            new = w + d[i]
            if not isfinite(new):
                return 0
            if new < low or new > high:
                new = low if new < low else high
                part = (new - w) / d[i]
                if part < first:
                    first, who, kink = part, i, new
            self.goal[i] = new
            self.step[i] = new - w
            change += self.l1[p] * (fabs(new) - fabs(w)) - self.c[p] * self.step[i]
            change += self.l2[p] * self.step[i] * (w + 0.5 * self.step[i])
        self.multiply(count)
        for i in range(count):
            change += 0.5 * self.step[i] * self.product[self.active[i]]
        if who >= 0 and change > 0:
            for i in range(count):
                p = self.active[i]
                self.goal[i] = kink if i == who else self.w[p] + first * d[i]
                self.step[i] = self.goal[i] - self.w[p]
            self.multiply(count)
        for i in range(count):
            self.w[self.active[i]] = self.goal[i]
        axpy(-1.0, self.product, self.c, self.k)
        return 0
