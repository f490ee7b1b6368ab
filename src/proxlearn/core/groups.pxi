# Group penalties: coordinates enter and leave together.
#
#     r(x) = sum_j l1_j |x_j| + sum_g level_g |x_g|_2
#
# Every coordinate is in one group. Group l1 has l1 = 0, sparse-group l1 both terms. A coordinate is free
# where its l1_j and the level of its group are 0.


cdef double length(double *v, Py_ssize_t n) noexcept nogil:
    """The length of v, also where the squares of its numbers leave the range of float64."""
    cdef double square = dot(v, v, n), top = 0.0, total = 0.0
    cdef Py_ssize_t i
    if DBL_MIN / DBL_EPSILON < square < INFINITY:
        return sqrt(square)
    for i in range(n):
        top = max(top, fabs(v[i]))
    if not 0.0 < top < INFINITY:
        return top
    for i in range(n):
        total += (v[i] / top) * (v[i] / top)
    return top * sqrt(total)


cdef class Groups(Penalty):
    """l1 (n,), level (G,), and the coordinates of group g: members[starts[g]:starts[g + 1]]."""

    cdef double *filled  # (2, n + G): the arrays that were given as numbers, and multiples of them
    cdef double *unit_l1
    cdef double *unit_level
    cdef double *l1
    cdef double *level
    cdef Py_ssize_t *starts    # (G + 1,)
    cdef Py_ssize_t *members   # (n,)
    cdef Py_ssize_t *group_of  # (n,)
    cdef bint sparse  # True where some l1_j > 0
    cdef Py_ssize_t tasks  # more than 1 where the groups are the rows of a matrix with so many columns
    cdef Py_ssize_t widest  # the size of the largest group
    cdef object layout

    def __cinit__(
        self, const Py_ssize_t[::1] starts, const Py_ssize_t[::1] members, const Py_ssize_t[::1] group_of,
        l1, level, Py_ssize_t tasks=1
    ):
        cdef Py_ssize_t g
        self.layout, self.tasks = [starts, members, group_of], tasks
        self.starts, self.members = <Py_ssize_t *> &starts[0], <Py_ssize_t *> &members[0]
        self.group_of = <Py_ssize_t *> &group_of[0]
        self.n, self.blocks, self.homogeneous = len(members), len(starts) - 1, True
        self.widest = 0
        for g in range(self.blocks):
            self.widest = max(self.widest, self.starts[g + 1] - self.starts[g])
        self.filled = <double *> resized(NULL, 2 * (self.n + self.blocks), sizeof(double))
        self.set(l1, level)

    def __dealloc__(self):
        free(self.filled)

    def set(self, l1, level):
        """Take other arrays or numbers."""
        cdef Py_ssize_t j
        self.kept = (l1, level)
        self.unit_l1 = self.l1 = numbers_of(l1, self.filled, self.n)
        self.unit_level = self.level = numbers_of(level, self.filled + self.n, self.blocks)
        self.sparse = False
        for j in range(self.n):
            if self.l1[j] > 0.0:
                self.sparse = True

    cdef bint multiply(self, double factor) noexcept nogil:
        cdef Py_ssize_t j
        self.l1 = self.filled + self.n + self.blocks
        self.level = self.l1 + self.n
        for j in range(self.n):
            self.l1[j] = factor * self.unit_l1[j]
        for j in range(self.blocks):
            self.level[j] = factor * self.unit_level[j]
        return True

    cdef Model model(self):
        return RowModel(self.tasks) if self.tasks > 1 else GroupModel()

    cdef Descent descent(self):
        return RowDescent() if self.tasks > 1 else GroupDescent()

    cdef bint is_free(self, Py_ssize_t j) noexcept nogil:
        return self.l1[j] == 0.0 and self.level[self.group_of[j]] == 0.0

    cdef Py_ssize_t needed_at(self, double *x, Py_ssize_t *picked) noexcept nogil:
        cdef Py_ssize_t g, i, j, count = 0
        for g in range(self.blocks):
            for i in range(self.starts[g], self.starts[g + 1]):
                j = self.members[i]
                if x[j] != 0.0 or Groups.is_free(self, j):
                    picked[count] = g
                    count += 1
                    break
        return count

    cdef Py_ssize_t expand(self, Py_ssize_t *blocks, Py_ssize_t count, Py_ssize_t *columns) noexcept nogil:
        cdef Py_ssize_t b, i, total = 0
        for b in range(count):
            for i in range(self.starts[blocks[b]], self.starts[blocks[b] + 1]):
                columns[total] = self.members[i]
                total += 1
        return total

    @cython.final
    cdef Py_ssize_t size_at(self, Py_ssize_t j) noexcept nogil:
        """The size of the group of coordinate j."""
        cdef Py_ssize_t g = self.group_of[j]
        return self.starts[g + 1] - self.starts[g]

    cdef double value(self, Py_ssize_t *index, double *v, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t p = 0, size, i
        cdef double total = 0.0
        while p < k:
            size = self.size_at(index[p])
            total += self.level[self.group_of[index[p]]] * length(v + p, size)
            if self.sparse:
                for i in range(p, p + size):
                    total += self.l1[index[i]] * fabs(v[i])
            p += size
        return total

    @cython.final
    cdef double pull(self, double *c, Py_ssize_t g, double part, double *plain) noexcept nogil:
        """The length of the soft-thresholded (|c_j| - part l1_j)_+ of group g; `plain` is that of c_g."""
        cdef Py_ssize_t i, j
        cdef double total = 0.0, whole = 0.0, size
        for i in range(self.starts[g], self.starts[g + 1]):
            j = self.members[i]
            whole += c[j] * c[j]
            size = fabs(c[j]) - part * self.l1[j]
            if size > 0.0:
                total += size * size
        plain[0] = sqrt(whole)
        return sqrt(total)

    cdef double survey(self, double *c, double *score, double *largest) noexcept nogil:
        cdef Py_ssize_t g
        cdef double plain, t = INFINITY
        largest[0] = 0.0
        for g in range(self.blocks):
            score[g] = max(self.pull(c, g, 1.0, &plain) - self.level[g], 0.0)
            largest[0] = max(largest[0], plain)
            if plain > 0.0:
                t = self.group_scale(c, g, plain, t)
        return t

    cdef double dual_scale(self, double *c) noexcept nogil:
        cdef Py_ssize_t g
        cdef double plain, t = INFINITY
        for g in range(self.blocks):
            self.pull(c, g, 1.0, &plain)
            if plain > 0.0:
                t = self.group_scale(c, g, plain, t)
        return t

    @cython.final
    cdef double group_scale(self, double *c, Py_ssize_t g, double plain, double most) noexcept nogil:
        """The largest t <= most with |(t |c_g| - l1_g)_+| <= level_g; `plain` is |c_g| > 0.

        The left side is convex in t, so that Newton's method from a t that is too large goes down to the
        root and never passes it. The last step is rounded towards 0, so that t is feasible.
        """
        cdef Py_ssize_t i, j
        cdef double level = self.level[g], t, size, square, slope, excess
        cdef int step
        if not self.sparse:
            return min(most, level / plain)
        size = INFINITY  # beyond this t a single entry exceeds its l1 by more than the level
        for i in range(self.starts[g], self.starts[g + 1]):
            j = self.members[i]
            if c[j] != 0.0:
                size = min(size, (level + self.l1[j]) / fabs(c[j]))
        t = min(most, size)
        for step in range(100):
            square = slope = 0.0
            for i in range(self.starts[g], self.starts[g + 1]):
                j = self.members[i]
                size = t * fabs(c[j]) - self.l1[j]
                if size > 0.0:
                    square += size * size
                    slope += size * fabs(c[j])
            excess = sqrt(square) - level
            if excess <= 0.0:
                break
            size = excess * sqrt(square) / slope
            if size <= 4.0 * DBL_EPSILON * t:
                t *= 1.0 - 4.0 * DBL_EPSILON
            else:
                t -= size
        return max(t, 0.0)

    cdef void anticipate(self, double *c, double fell, double *score) noexcept nogil:
        cdef Py_ssize_t g
        cdef double plain
        for g in range(self.blocks):
            score[g] = max(self.pull(c, g, 2.0 - fell, &plain) - (2.0 - fell) * self.level[g], 0.0)

    @cython.final
    cdef double violation(
        self, Py_ssize_t *index, Py_ssize_t p, Py_ssize_t size, double *x, double *c, bint gathered
    ) noexcept nogil:
        """The distance of c to the subdifferential of r at x, on the group at position p of `index`.

        x and c are lists of the working set where `gathered`, and else of all coordinates.
        """
        cdef Py_ssize_t i, j, at
        cdef double level = self.level[self.group_of[index[p]]], norm = 0.0, total = 0.0, e
        for i in range(p, p + size):
            at = i if gathered else index[i]
            norm += x[at] * x[at]
        norm = sqrt(norm)
        for i in range(p, p + size):
            j = index[i]
            at = i if gathered else j
            if x[at] == 0.0:
                e = max(fabs(c[at]) - self.l1[j], 0.0)
            else:
                e = c[at] - copysign(self.l1[j], x[at]) - level * (x[at] / norm)
            total += e * e
        return max(sqrt(total) - level, 0.0) if norm == 0.0 else sqrt(total)

    cdef double violations(
        self, Py_ssize_t *index, double *v, double *g, Py_ssize_t k, char *needed
    ) noexcept nogil:
        cdef Py_ssize_t p = 0, size, i
        cdef double worst = 0.0, found
        cdef bint moving
        while p < k:
            size = self.size_at(index[p])
            found = self.violation(index, p, size, v, g, True)
            worst = max(worst, found)
            if needed != NULL:
                moving = found > 0.0
                for i in range(p, p + size):
                    moving = moving or v[i] != 0.0 or Groups.is_free(self, index[i])
                memset(needed + p, moving, size)
            p += size
        return worst

    cdef double distance(self, double *x, double *c) noexcept nogil:
        cdef Py_ssize_t p = 0, size
        cdef double total = 0.0, found
        while p < self.n:
            size = self.size_at(self.members[p])
            found = self.violation(self.members, p, size, x, c, False)
            total += found * found
            p += size
        return sqrt(total)
