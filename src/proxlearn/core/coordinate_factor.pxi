# The Cholesky factor of a model's Hessian on the variables that are not at a kink, kept from one Newton step
# to the next.

cdef enum:
    # Variables up to which calls of LAPACK take longer than the work. 8 and 64 take 0.98 and 1.01 times as
    # long on the problems of NEAR.
    FEW = 24

# Times of the two methods, in units of a multiplication of a sweep over the model: a factorisation does its
# a^3 / 3 multiplications about four times as fast (LAPACK against one column at a time). cholesky.h is faster
# still; half of this price changed the time of 48 simulated LASSO problems (2026-11-19) by 0.3% on average.
cdef double FACTORISE = 1.0 / 12
cdef double UPDATE = 0.5  # A variable that is appended to a factor, in units of one that is removed.
# A factor is near the active variables if this part of them differs at most. 0.03 and 0.3 take 0.97 and 0.99
# times as long on the 32 problems of improver.pxi, where one chaotic Huber problem makes the difference.
cdef double NEAR = 0.1
# Relative to the diagonal: fifty times its rounding, which is nothing where columns are independent. Not
# measured.
cdef double RIDGE = 1e-14


cdef class CoordinateFactor(Model):
    """A factor of H + l2, which is updated where a few variables differ."""

    cdef double *l2
    cdef Py_ssize_t *factored  # the variables of the last factorisation, in its order
    cdef char *in_factor     # (k,): 1 for those
    cdef char *mark          # (k,)
    cdef Py_ssize_t factored_count
    cdef bint stale  # True where l2 has changed since; the variables are still likely to be the right ones

    def __cinit__(self):
        self.factored_count = -1
        self.l2 = NULL
        self.factored = NULL
        self.in_factor = self.mark = NULL

    def __dealloc__(self):
        free(self.l2)
        free(self.factored)
        free(self.in_factor)
        free(self.mark)

    cdef int reserve(self, Py_ssize_t room) except -1 nogil:
        self.l2 = <double *> resized(self.l2, room, sizeof(double))
        self.mark = <char *> resized(self.mark, room, 1)
        self.in_factor = <char *> resized(self.in_factor, room, 1)
        memset(self.in_factor + self.room, 0, room - self.room)
        self.factored = <Py_ssize_t *> resized(self.factored, room, sizeof(Py_ssize_t))
        return 0

    cdef void forget_factor(self) noexcept nogil:
        self.factored_count = -1
        if self.room > 0:
            memset(self.in_factor, 0, self.room)

    cdef void age_factor(self) noexcept nogil:
        self.stale = True

    @cython.final
    cdef bint has_factor(self, Py_ssize_t count) noexcept nogil:
        """True where the factor has nearly all active variables: a Newton step needs no sweeps first."""
        if self.factored_count <= 0 or count == 0:
            return False
        return self.count_gone(count) + self.count_fresh(count) <= NEAR * count

    @cython.final
    cdef double factor_cost(self, Py_ssize_t count) noexcept nogil:
        """Multiplications that a factor for the active variables costs, in units of those of a sweep.

        A factor that differs in a few variables is updated, each for count^2 multiplications.
        """
        cdef double a = count, anew = FACTORISE * a * a * a
        if self.factored_count < 0 or self.stale:
            return anew
        return min(anew, (self.count_gone(count) + UPDATE * self.count_fresh(count)) * a * a)

    @cython.final
    cdef Py_ssize_t count_fresh(self, Py_ssize_t count) noexcept nogil:
        """Active variables that the factor does not have."""
        cdef Py_ssize_t i, fresh = 0
        for i in range(count):
            fresh += not self.in_factor[self.active[i]]
        return fresh

    @cython.final
    cdef Py_ssize_t count_gone(self, Py_ssize_t count) noexcept nogil:
        """Variables of the factor that are not active."""
        return self.factored_count - (count - self.count_fresh(count))

    @cython.final
    cdef bint factorise(self, Py_ssize_t count) except -1 nogil:
        """Cholesky factor of H + l2 on the active variables, which are put in its order."""
        cdef Py_ssize_t i
        cdef bint done = False
        self.make_room_for_factor(count, self.factored_count)
        if self.factored_count >= 0 and not self.stale:
            if self.factor_cost(count) < FACTORISE * count * count * count:
                done = self.update_factor(count)
        if not done:
            done = self.factorise_anew(count)
        if done:
            memcpy(self.active, self.factored, count * sizeof(Py_ssize_t))
            memset(self.in_factor, 0, self.room)
            for i in range(count):
                self.in_factor[self.factored[i]] = 1
        return done

    @cython.final
    cdef bint update_factor(self, Py_ssize_t count) except -1 nogil:
        """Take variables out of the factor that are no longer active, and append those that now are."""
        cdef Py_ssize_t i, t, p, kept = self.factored_count, fresh, first, ld = self.factor_room
        cdef bint done = True
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
            first = kept & -CHOLESKY_BLOCK
            for t in range(count):
                for i in range(max(first, t + 1), count):
                    L[t * ld + i] = self.H[self.factored[t] * self.ld + self.factored[i]]
            for i in range(kept, count):
                p = self.factored[i]
                L[i * ld + i] = self.H[p * self.ld + p] + (self.l2[p] + RIDGE * self.H[p * self.ld + p])
            done = cholesky_extend(L, ld, count, kept, 0.0) == count
        self.factored_count = count if done else -1
        return done

    @cython.final
    cdef bint factorise_anew(self, Py_ssize_t count) except -1 nogil:
        """The factor from nothing.

        Nearly dependent columns get a ridge, which grows until the factorisation succeeds. The
        direction stays one of descent, and the sweeps correct what the ridge changed.
        """
        cdef Py_ssize_t i, t, ld = self.factor_room
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
            if cholesky_extend(L, ld, count, 0, 0.0) == count:
                memcpy(self.factored, self.active, count * sizeof(Py_ssize_t))
                self.factored_count, self.stale = count, False
                return True
            ridge *= 1e3
        return False
