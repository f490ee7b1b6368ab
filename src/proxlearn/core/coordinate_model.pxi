# The model of a separable penalty, solved by coordinate descent and Newton steps.
#
# Sweeps of coordinate descent find the active coordinates; a Newton step on them then is exact.

cdef enum:
    LEAST_SWEEPS = 8    # Sweeps before a Newton step, which needs nearly the right active variables.
    MOST_SWEEPS = 100   # Sweeps in a row before all variables are looked at again.
    MOST_IDLE = 20      # Rounds in a row that do not reduce the violations: rounding stands in the way.
    FAST_ROUNDS = 3     # Rounds before the active-set method takes over.
    FEW = 24            # Variables up to which LAPACK's calls take longer than the work.
    MOST_ROUNDS = 200   # Rounds of sweeps and a Newton step; a model that needs more is left as it is.

# Times of the two methods, in units of a multiplication of a sweep over the model: a factorisation does
# its a^3 / 3 multiplications about four times as fast (LAPACK against one column at a time).
cdef double FACTORISE = 1.0 / 12
cdef double UPDATE = 0.5  # A variable that is appended to a factor, in units of one that is removed.
cdef double NEAR = 0.1  # A factor is near the active variables if this part of them differs at most.
cdef double RIDGE = 1e-14  # Relative to the diagonal; nothing where columns are independent.


cdef class ActiveSet


@cython.final
cdef class CoordinateModel(Model):
    """The model of a separable penalty, with its numbers (k,) for the variables."""

    cdef double *l1
    cdef double *l2
    cdef double *lower
    cdef double *upper
    cdef Py_ssize_t *factored  # those of the last factorisation, in its order
    cdef char *in_factor     # (k,): 1 for those
    cdef char *mark          # (k,)
    cdef Py_ssize_t factored_count  # of H + l2
    cdef ActiveSet exact

    def __cinit__(self):
        self.exact = ActiveSet()
        self.factored_count = -1
        self.l1 = self.l2 = self.lower = self.upper = NULL
        self.factored = NULL
        self.in_factor = self.mark = NULL

    def __dealloc__(self):
        free(self.l1)
        free(self.l2)
        free(self.lower)
        free(self.upper)
        free(self.factored)
        free(self.in_factor)
        free(self.mark)

    cdef int reserve(self, Py_ssize_t room) except -1 nogil:
        self.l1 = <double *> resized(self.l1, room, sizeof(double))
        self.l2 = <double *> resized(self.l2, room, sizeof(double))
        self.lower = <double *> resized(self.lower, room, sizeof(double))
        self.upper = <double *> resized(self.upper, room, sizeof(double))
        self.mark = <char *> resized(self.mark, room, 1)
        self.in_factor = <char *> resized(self.in_factor, room, 1)
        memset(self.in_factor + self.room, 0, room - self.room)
        self.factored = <Py_ssize_t *> resized(self.factored, room, sizeof(Py_ssize_t))
        return 0

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

    cdef void forget_factor(self) noexcept nogil:
        self.factored_count = -1
        if self.room > 0:
            memset(self.in_factor, 0, self.room)

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
        cdef double h = self.H[p * self.ld + p], d = h + self.l2[p], w = self.w[p]
        cdef double z = self.c[p] + h * w, new, change
        if d > 0:
            if z > self.l1[p]:
                new = (z - self.l1[p]) / d
            elif z < -self.l1[p]:
                new = (z + self.l1[p]) / d
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
        axpy(-change, self.H + p * self.ld, self.c, self.k)
        return change * change * d

    cdef double solve(self, double tol) except -1 nogil:
        """Sweeps go on while they promise to end sooner than a Newton step."""
        cdef Py_ssize_t rounds, sweep, p, i, count, idle = 0
        cdef double worst = 0.0, least = INFINITY, most, v, last
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
                if (sweep >= LEAST_SWEEPS or self.has_factor(count)) and self.newton_pays(count, tol / v, v / last):
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

    cdef bint has_factor(self, Py_ssize_t count) noexcept nogil:
        """True where the factor differs from that of the active variables in a few at most."""
        if self.factored_count <= 0 or count == 0:
            return False
        return self.count_gone(count) + self.count_fresh(count) <= NEAR * count

    cdef double factor_cost(self, Py_ssize_t count) noexcept nogil:
        """Multiplications that a factor for the active variables costs, in units of those of a sweep.

        A factor that differs in a few variables is updated, each for count^2 multiplications.
        """
        cdef double a = count, anew = FACTORISE * a * a * a
        if self.factored_count < 0:
            return anew
        return min(anew, (self.count_gone(count) + UPDATE * self.count_fresh(count)) * a * a)

    cdef Py_ssize_t count_fresh(self, Py_ssize_t count) noexcept nogil:
        """Active variables that the factor does not have."""
        cdef Py_ssize_t i, fresh = 0
        for i in range(count):
            fresh += not self.in_factor[self.active[i]]
        return fresh

    cdef Py_ssize_t count_gone(self, Py_ssize_t count) noexcept nogil:
        """Variables of the factor that are not active."""
        return self.factored_count - (count - self.count_fresh(count))

    cdef bint factorise(self, Py_ssize_t count) except -1 nogil:
        """Cholesky factor of H + l2 on the active variables, which are put in its order."""
        cdef Py_ssize_t i
        cdef bint done = False
        self.make_room_for_factor(count, self.factored_count)
        if self.factored_count >= 0 and self.factor_cost(count) < FACTORISE * count * count * count:
            done = self.update_factor(count)
        if not done:
            done = self.factorise_anew(count)
        if done:
            memcpy(self.active, self.factored, count * sizeof(Py_ssize_t))
            memset(self.in_factor, 0, self.room)
            for i in range(count):
                self.in_factor[self.factored[i]] = 1
        return done

    cdef bint update_factor(self, Py_ssize_t count) except -1 nogil:
        """Take variables out of the factor that are no longer active, and append those that now are."""
        cdef Py_ssize_t i, t, p, kept = self.factored_count
        cdef int a, fresh, ld = self.factor_room, info = 0
        cdef double unit = 1.0, minus = -1.0
        cdef double *L = self.factor
        memset(self.mark, 0, self.room)
        for i in range(count):
            self.mark[self.active[i]] = 1
        i = kept - 1
        while i >= 0:
            if not self.mark[self.factored[i]]:
                remove_variable(L, ld, kept, i)
                memmove(self.factored + i, self.factored + i + 1, (kept - 1 - i) * sizeof(Py_ssize_t))
                kept -= 1
            i -= 1
        for i in range(kept):
            self.mark[self.factored[i]] = 0
        fresh = 0
        for i in range(count):
            if self.mark[self.active[i]]:
                self.factored[kept + fresh] = self.active[i]
                fresh += 1
        if fresh > 0:
            # The rows L21 = H21 L11^-T, and the factor of H22 - L21 L21^T.
            a = kept
            for t in range(count):
                for i in range(max(kept, t), count):
                    L[t * ld + i] = self.H[self.factored[t] * self.ld + self.factored[i]]
            for i in range(kept, count):
                p = self.factored[i]
                L[i * ld + i] += self.l2[p] + RIDGE * self.H[p * self.ld + p]
            if a > 0:
                for i in range(kept, count):
                    dtrsv("L", "N", "N", &a, L, &ld, L + i, &ld)
                dsyrk("L", "N", &fresh, &a, &minus, L + kept, &ld, &unit, L + kept * ld + kept, &ld)
            dpotrf("L", &fresh, L + kept * ld + kept, &ld, &info)
        self.factored_count = count if info == 0 else -1
        return info == 0

    cdef bint factorise_anew(self, Py_ssize_t count) except -1 nogil:
        """The factor from nothing.

        Nearly dependent columns get a ridge, which grows until the factorisation succeeds. The
        direction stays one of descent, and the sweeps correct what the ridge changed.
        """
        cdef Py_ssize_t i, t
        cdef int a = count, ld = self.factor_room, info = 1
        cdef double ridge = RIDGE
        cdef double *column
        cdef double *L = self.factor
        self.factored_count = -1
        while ridge < 1.0:
            for t in range(count):
                column = self.H + self.active[t] * self.ld
                for i in range(t, count):
                    L[t * ld + i] = column[self.active[i]]
                L[t * ld + t] += self.l2[self.active[t]] + ridge * column[self.active[t]]
                if L[t * ld + t] <= 0.0:
                    L[t * ld + t] = 1.0
            if count <= FEW:
                info = small_cholesky(L, ld, count)
            else:
                dpotrf("L", &a, L, &ld, &info)
            if info == 0:
                memcpy(self.factored, self.active, count * sizeof(Py_ssize_t))
                self.factored_count = count
                return True
            ridge *= 1e3
        return False

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
