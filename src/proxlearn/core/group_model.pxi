# The model of a group penalty: violations of its optimality conditions, and Newton steps on the groups that
# are not 0. group_blocks.pxi minimises over one group.


@cython.final
cdef class GroupModel(GroupBlocks):
    """The blocks with Newton's method."""

    cdef double violation(self, bint active) noexcept nogil:
        cdef Py_ssize_t b, i
        cdef double worst = 0.0, norm, total, e
        for b in range(self.blocks):
            norm, total = self.norm(b), 0.0
            if active and norm == 0.0 and self.level[b] > 0.0:
                continue
            for i in range(self.first[b], self.first[b + 1]):
                if self.w[i] == 0.0:
                    e = 0.0 if active and self.l1[i] > 0.0 else max(fabs(self.c[i]) - self.l1[i], 0.0)
                else:
                    e = self.c[i] - copysign(self.l1[i], self.w[i]) - self.level[b] * (self.w[i] / norm)
                total += e * e
            total = sqrt(total)
            worst = max(worst, total - self.level[b] if norm == 0.0 else total)
        return worst

    cdef double newton_cost(self, Py_ssize_t count) noexcept nogil:
        cdef double a = count
        return FACTORISE * a * a * a + 2.0 * a * a + a * self.k

    cdef Py_ssize_t collect(self) noexcept nogil:
        """List the variables that are not 0, and those that are 0 but at no kink of the penalty there."""
        cdef Py_ssize_t p, b, count = 0
        for p in range(self.k):
            b = self.block_of[p]
            if self.w[p] != 0.0 or (self.l1[p] == 0.0 and (self.level[b] == 0.0 or self.norm(b) > 0.0)):
                self.active[count] = p
                count += 1
        return count

    cdef bint factorise(self, Py_ssize_t count) except -1 nogil:
        """The Cholesky factor of the Hessian of the active variables.

        The penalty level |w_b| has the Hessian level/|w_b| (I - w_b w_b'/|w_b|^2). A ridge grows until
        the factorisation succeeds.
        """
        cdef Py_ssize_t i, t, p, q, b
        cdef int a = count, ld, info = 1
        cdef double ridge = RIDGE, norm, scale
        cdef double *L
        cdef double *column
        self.make_room_for_factor(count, 0)
        ld, L = self.factor_room, self.factor
        while ridge < 1.0:
            for t in range(count):
                p = self.active[t]
                b = self.block_of[p]
                column = self.H + p * self.ld
                for i in range(t, count):
                    L[t * ld + i] = column[self.active[i]]
                norm = self.norm(b)
                if norm > 0.0 and self.level[b] > 0.0:
                    scale = self.level[b] / norm
                    for i in range(t, count):
                        q = self.active[i]
                        if self.block_of[q] != b:
                            break
                        L[t * ld + i] -= scale * (self.w[p] / norm) * (self.w[q] / norm)
                    L[t * ld + t] += scale
                L[t * ld + t] += ridge * column[p]
                if L[t * ld + t] <= 0.0:
                    L[t * ld + t] = 1.0
            dpotrf("L", &a, L, &ld, &info)
            if info == 0:
                return True
            ridge *= 1e3
        return False

    cdef bint newton_step(self) except -1 nogil:
        """A Newton step on the active variables.

        Variables with an l1 that would change their sign become 0, and so do groups that would turn
        round. Where the model rises, the step is halved, up to twelve times.
        """
        cdef Py_ssize_t count = self.collect(), i, p, b
        cdef int a = count, one = 1, ld, halving
        cdef double *d = self.direction
        cdef double part = 1.0
        if count == 0 or not self.factorise(count):
            return False
        ld = self.factor_room
        for i in range(count):
            p = self.active[i]
            d[i] = self.c[p]
            if self.w[p] != 0.0:
                b = self.block_of[p]
                d[i] -= copysign(self.l1[p], self.w[p]) + self.level[b] * (self.w[p] / self.norm(b))
        dtrsv("L", "N", "N", &a, self.factor, &ld, d, &one)
        dtrsv("L", "T", "N", &a, self.factor, &ld, d, &one)
        for i in range(count):
            if not isfinite(d[i]):
                return False
        for halving in range(12):
            self.propose(count, part)
            self.multiply(count)
            if self.falls(count):
                for i in range(count):
                    self.w[self.active[i]] = self.goal[i]
                axpy(-1.0, self.product, self.c, self.k)
                return True
            part *= 0.5
        return False

    cdef void propose(self, Py_ssize_t count, double part) noexcept nogil:
        """goal = w + part d, with 0 for variables and groups that would cross it."""
        cdef Py_ssize_t i = 0, t, p, b
        cdef double along
        while i < count:
            b, t, along = self.block_of[self.active[i]], i, 0.0
            while t < count and self.block_of[self.active[t]] == b:
                p = self.active[t]
                self.goal[t] = self.w[p] + part * self.direction[t]
                if self.l1[p] > 0.0 and self.goal[t] * self.w[p] < 0.0:
                    self.goal[t] = 0.0
                along += self.goal[t] * self.w[p]
                t += 1
            if along <= 0.0 and self.level[b] > 0.0:
                memset(self.goal + i, 0, (t - i) * sizeof(double))
            while i < t:
                self.step[i] = self.goal[i] - self.w[self.active[i]]
                i += 1

    cdef bint falls(self, Py_ssize_t count) noexcept nogil:
        """True where the model is not higher at the goal than at w, up to rounding."""
        cdef Py_ssize_t i = 0, p, b
        cdef double change = 0.0, size = 0.0, old, new, dots, term
        while i < count:
            b = self.block_of[self.active[i]]
            old, new, dots = self.norm(b), 0.0, 0.0
            while i < count and self.block_of[self.active[i]] == b:
                p = self.active[i]
                new += self.goal[i] * self.goal[i]
                dots += self.step[i] * (self.goal[i] + self.w[p])
                term = (0.5 * self.product[p] - self.c[p]) * self.step[i]
                if self.w[p] * self.goal[i] > 0.0:
                    term += copysign(self.l1[p], self.w[p]) * self.step[i]
                else:
                    term += self.l1[p] * (fabs(self.goal[i]) - fabs(self.w[p]))
                change += term
                size += fabs(term)
                i += 1
            new = sqrt(new)
            if old + new > 0.0:
                term = self.level[b] * (dots / (old + new))
                change += term
                size += fabs(term)
        return change <= 1e-15 * size

    cdef double slope(self) noexcept nogil:
        cdef Py_ssize_t b, i
        cdef double total = 0.0, old, new, dots, d, w
        for b in range(self.blocks):
            old = new = dots = 0.0
            for i in range(self.first[b], self.first[b + 1]):
                w, d = self.start[i], self.w[i] - self.start[i]
                if w * self.w[i] > 0.0:
                    total += (copysign(self.l1[i], w) - self.pull[i]) * d
                else:
                    total += self.l1[i] * (fabs(self.w[i]) - fabs(w)) - self.pull[i] * d
                old += w * w
                new += self.w[i] * self.w[i]
                dots += d * (w + self.w[i])
            if old + new > 0.0:
                total += self.level[b] * (dots / (sqrt(old) + sqrt(new)))
        return total

    cdef double penalty_change(self, double part) noexcept nogil:
        cdef Py_ssize_t b, i
        cdef double total = 0.0, old, new, w, moved
        for b in range(self.blocks):
            old = new = 0.0
            for i in range(self.first[b], self.first[b + 1]):
                w = self.start[i]
                moved = w + part * (self.w[i] - w)
                total += self.l1[i] * (fabs(moved) - fabs(w))
                old += w * w
                new += moved * moved
            total += self.level[b] * (sqrt(new) - sqrt(old))
        return total
