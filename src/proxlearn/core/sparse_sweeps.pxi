# Sweeps of coordinate descent over sparse columns, and what they keep.
#
# The columns are kept times the roots of s, and so is the change of the predictions, which is all that a
# sweep reads and writes. With an intercept, or where columns are centred, each column has its weighted mean
# subtracted, so that the best intercept follows every step.

cdef double PARALLEL = 1e-12  # Two directions whose Gram matrix has a smaller determinant, relative to its diagonal, count as one. Not measured.


cdef class SparseSweeps:
    """A point of the model in sparse_descent.pxi, and sweeps that lower it."""

    cdef Py_ssize_t room, value_room
    cdef double *copied     # (entries,): the columns times the roots of s
    cdef double *values     # those, or the columns themselves where all s are 1
    cdef Py_ssize_t *first  # (k,): where each column begins in them
    cdef double *root       # (m,)
    cdef double *moved      # (m,): the roots of s times A (v - v0) without the means
    cdef double *image      # (m,): the same for a direction
    cdef double *numbers    # (12, room): the arrays (k,) that follow
    cdef double *h          # the curvature of each coordinate
    cdef double *mean       # what is subtracted from the entries of each column
    cdef double *pull       # g, of centred columns
    cdef double *origin     # v0
    cdef double *step       # of conjugate gradients
    cdef double *left       # their residual
    cdef double *way        # their direction
    cdef double *product    # A^T diag(s) A times it
    cdef double *slope      # g at v
    cdef double *goal       # where the step ends
    cdef double *last       # where the last accelerated step ended
    cdef double *before     # that step
    cdef double *last_moved # (m,): the predictions there, as in `moved`
    cdef double *before_moved  # (m,): those of that step
    cdef double last_shifted, before_shifted
    cdef bint moving        # True where there is such a step
    cdef Py_ssize_t filled  # numbers in `copied`
    cdef Py_ssize_t scaled  # columns whose curvatures and means are known, all s being 1
    cdef Py_ssize_t *known_order # (k,): a copy of `order`
    cdef Py_ssize_t *known  # (k,): those columns
    cdef Py_ssize_t *order  # coordinates that a sweep visits
    cdef double total       # the sum of s
    cdef double shifted     # <mean, v - v0>
    cdef bint centred
    cdef Py_ssize_t ones    # the position of the intercept, or -1
    cdef Py_ssize_t flips   # coordinates that the last sweep moved to a kink or off it

    def __dealloc__(self):
        free(self.copied)
        free(self.first)
        free(self.root)
        free(self.moved)
        free(self.image)
        free(self.numbers)
        free(self.order)
        free(self.known)
        free(self.known_order)
        free(self.last_moved)
        free(self.before_moved)

    cdef int prepare(self, Sparse A, double *s, bint unit, bint keep, double *g, double *v) except -1 nogil:
        """Make room, scale the columns, and stand at v0."""
        cdef Py_ssize_t p
        cdef double *numbers
        if A.k > self.room:
            self.room = A.room
            self.numbers = numbers = <double *> resized(self.numbers, 12 * self.room, sizeof(double))
            self.h, self.mean, self.pull = numbers, numbers + self.room, numbers + 2 * self.room
            self.origin, self.step = numbers + 3 * self.room, numbers + 4 * self.room
            self.left, self.way = numbers + 5 * self.room, numbers + 6 * self.room
            self.product, self.slope = numbers + 7 * self.room, numbers + 8 * self.room
            self.goal, self.last, self.before = numbers + 9 * self.room, numbers + 10 * self.room, numbers + 11 * self.room
            self.first = <Py_ssize_t *> resized(self.first, self.room, sizeof(Py_ssize_t))
            self.order = <Py_ssize_t *> resized(self.order, self.room, sizeof(Py_ssize_t))
            self.known = <Py_ssize_t *> resized(self.known, self.room, sizeof(Py_ssize_t))
            self.known_order = <Py_ssize_t *> resized(self.known_order, self.room, sizeof(Py_ssize_t))
            self.scaled = 0
        if self.root == NULL:
            self.root = <double *> resized(NULL, A.m, sizeof(double))
            self.moved = <double *> resized(NULL, A.m, sizeof(double))
            self.image = <double *> resized(NULL, A.m, sizeof(double))
            self.last_moved = <double *> resized(NULL, A.m, sizeof(double))
            self.before_moved = <double *> resized(NULL, A.m, sizeof(double))
        memset(self.moved, 0, A.m * sizeof(double))
        memcpy(self.pull, g, A.k * sizeof(double))
        memcpy(self.origin, v, A.k * sizeof(double))
        self.shifted, self.ones = 0.0, -1
        for p in range(A.k):
            if A.is_ones(A.index[p]):
                self.ones = p
        self.centred = self.ones >= 0 or A.center != NULL
        self.scale(A, s, unit, keep)
        return 0

    cdef int scale(self, Sparse A, double *s, bint unit, bint keep) except -1 nogil:
        """The columns times the roots of s, which are all 1 if `unit`; their means and curvatures.

        With `keep`, s is that of the last call, and what is known of the columns serves again.
        """
        cdef Py_ssize_t p = 0, i, j, begin, length, at
        cdef double square, sum
        cdef double *out
        if keep:
            while p < self.scaled and p < A.k and self.known[p] == A.index[p]:
                p += 1
        if p == 0:
            self.total, self.filled = sum_of(s, A.m), 0
            for i in range(A.m):
                self.root[i] = sqrt(s[i])
        else:
            self.filled = 0 if unit else self.first[p - 1] + A.starts[A.index[p - 1] + 1] - A.starts[A.index[p - 1]]
        if not unit and A.working_entries() > self.value_room:
            self.value_room = <Py_ssize_t> (1.5 * A.working_entries())
            self.copied = <double *> resized(self.copied, self.value_room, sizeof(double))
        self.values = A.data if unit else self.copied
        for p in range(p, A.k):
            j = self.known[p] = A.index[p]
            self.mean[p] = self.h[p] = 0.0
            if p == self.ones:
                continue
            begin, length = A.starts[j], A.starts[j + 1] - A.starts[j]
            self.first[p] = begin if unit else self.filled
            if not unit:
                scale_column(A.data + begin, A.rows + begin, length, self.root, self.values + self.filled)
                self.filled += length
            out = self.values + self.first[p]
            square = dot(out, out, length)
            if self.centred:
                sum = sparse_dot(out, A.rows + begin, length, self.root)
                self.mean[p] = sum / self.total if self.total > 0.0 else 0.0
                square = max(square - self.mean[p] * sum, 0.0)
            self.h[p] = square
        self.scaled = A.k
        if self.ones >= 0:
            for p in range(A.k):
                if p != self.ones:
                    self.pull[p] -= (self.mean[p] - A.shift(A.index[p])) * self.pull[self.ones]
        return 0

    cdef double sweep(self, Sparse A, Separable r, double *v, Py_ssize_t count) noexcept nogil:
        """Minimise over the coordinates order[:count] in turn; the largest violation that was met."""
        cdef SparseModel model
        cdef double worst
        model.starts, model.rows, model.data = A.starts, A.rows, self.values
        model.first, model.index, model.h, model.mean, model.pull = self.first, A.index, self.h, self.mean, self.pull
        model.l1, model.l2, model.lower, model.upper = r.l1, r.l2, r.lower, r.upper
        model.v, model.moved, model.shifted, model.total = v, self.moved, self.shifted, self.total
        worst = sparse_sweep(&model, self.order, count, &self.flips, self.centred)
        self.shifted = model.shifted
        return worst

    cdef double gradient(self, Sparse A, Py_ssize_t p) noexcept nogil:
        """Minus the slope of the smooth part at v."""
        cdef Py_ssize_t j = A.index[p]
        cdef double product = sparse_dot(
            self.values + self.first[p], A.rows + A.starts[j], A.starts[j + 1] - A.starts[j], self.moved
        )
        return self.pull[p] - product + self.shifted * self.mean[p] * self.total

    cdef double multiply(self, Sparse A, double *step, Py_ssize_t count, double *z) noexcept nogil:
        """Add A step, times the roots of s and without the means, to z; returns <mean, step>."""
        cdef Py_ssize_t i, p, j
        cdef double means = 0.0
        for i in range(count):
            p = self.order[i]
            j = A.index[p]
            if step[p] != 0.0:
                sparse_axpy(step[p], self.values + self.first[p], A.rows + A.starts[j], A.starts[j + 1] - A.starts[j], z)
                means += self.mean[p] * step[p]
        return means

    cdef void stand(self, Sparse A, double *v) noexcept nogil:
        """Let accelerated steps begin at v."""
        memcpy(self.last, v, A.k * sizeof(double))
        memcpy(self.last_moved, self.moved, A.m * sizeof(double))
        self.last_shifted, self.moving = self.shifted, False

    cdef void leave_out(self, Sparse A, Py_ssize_t p, double step, double *moved, double *shifted) noexcept nogil:
        """Take `step` of coordinate p out of predictions."""
        cdef Py_ssize_t j = A.index[p]
        if step == 0.0:
            return
        sparse_axpy(-step, self.values + self.first[p], A.rows + A.starts[j], A.starts[j + 1] - A.starts[j], moved)
        shifted[0] -= self.mean[p] * step

    cdef void accelerate(self, Sparse A, Separable r, double *v) noexcept nogil:
        """Go to the lowest point of the plane through v, along the last sweeps and the last such step.

        This is how conjugate gradients combine a preconditioned gradient with the step before. Coordinates
        at a kink stay there, and coordinates that would cross one end on it.
        """
        cdef double t, q, shift, change
        cdef bint lower
        cdef Py_ssize_t p
        if not self.moving:
            memset(self.before, 0, A.k * sizeof(double))
            memset(self.before_moved, 0, A.m * sizeof(double))
            self.before_shifted = 0.0
        shift = self.find_plane(A, r, v, &t, &q)
        combine(t, q, self.before_moved, self.image, A.m)
        shift = t * shift + q * self.before_shifted
        change = self.bend_step(A, r, v, t, q, &shift) + quadratic_change(self.moved, self.image, A.m)
        change -= self.total * shift * (self.shifted + 0.5 * shift)
        lower = change < 0.0
        if lower:
            self.shifted += shift
        for p in range(A.k):
            if lower and self.step[p] != 0.0:
                v[p] = self.goal[p]
            self.before[p] = v[p] - self.last[p]
            self.last[p] = v[p]
        take_step(1.0 if lower else 0.0, self.image, self.moved, self.last_moved, self.before_moved, A.m)
        self.before_shifted = self.shifted - self.last_shifted
        self.last_shifted, self.moving = self.shifted, True

    cdef double find_plane(self, Sparse A, Separable r, double *v, double *t, double *q) noexcept nogil:
        """Let `step`, with the predictions `image`, be the last sweeps, and t step + q before lead to the lowest point.

        Returns <mean, step>.
        """
        cdef double *e = self.step
        cdef double *d = self.before
        cdef double products[5]
        cdef double eg = 0.0, dg = 0.0, ee = 0.0, ed = 0.0, dd = 0.0, slope, size
        cdef double shift = self.shifted - self.last_shifted
        cdef Py_ssize_t p, j
        differences(self.moved, self.last_moved, self.image, A.m)
        for p in range(A.k):
            e[p] = v[p] - self.last[p] if p != self.ones else 0.0
            if e[p] == 0.0 and d[p] == 0.0:
                continue
            j = A.index[p]
            if r.at_kink(j, v[p]):
                self.leave_out(A, p, e[p], self.image, &shift)
                self.leave_out(A, p, d[p], self.before_moved, &self.before_shifted)
                e[p] = d[p] = 0.0
                continue
            slope = self.pull[p] - r.slope_at(j, v[p])
            eg += e[p] * slope
            dg += d[p] * slope
            ee += r.l2[j] * e[p] * e[p]
            ed += r.l2[j] * e[p] * d[p]
            dd += r.l2[j] * d[p] * d[p]
        step_products(self.moved, self.before_moved, self.image, products, A.m)
        ee += products[0] - self.total * shift * shift
        ed += products[1] - self.total * shift * self.before_shifted
        dd += products[2] - self.total * self.before_shifted * self.before_shifted
        eg -= products[3] - self.total * shift * self.shifted
        dg -= products[4] - self.total * self.before_shifted * self.shifted
        t[0] = q[0] = 0.0
        size = ee * dd - ed * ed
        if dd > 0.0 and size > PARALLEL * ee * dd:
            t[0], q[0] = (eg * dd - dg * ed) / size, (ee * dg - ed * eg) / size
        elif ee > 0.0:
            t[0] = eg / ee
        return shift

    cdef double bend_step(self, Sparse A, Separable r, double *v, double t, double q, double *shift) noexcept nogil:
        """Let `step` be t step + q before, bent where it crosses kinks, and `goal` its end.

        Returns how much the model changes but for the square of the predictions.
        """
        cdef double *e = self.step
        cdef double change = 0.0, low, high
        cdef Py_ssize_t p, j
        for p in range(A.k):
            e[p] = t * e[p] + q * self.before[p]
            if e[p] == 0.0:
                continue
            j = A.index[p]
            r.side(j, v[p], &low, &high)
            self.goal[p] = min(max(v[p] + e[p], low), high)
            if self.goal[p] != v[p] + e[p]:
                self.leave_out(A, p, v[p] + e[p] - self.goal[p], self.image, shift)
                e[p] = self.goal[p] - v[p]
            change += e[p] * (r.slope_at(j, v[p]) + 0.5 * r.l2[j] * e[p] - self.pull[p])
        return change
