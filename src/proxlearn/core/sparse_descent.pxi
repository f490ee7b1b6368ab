# Coordinate descent over sparse columns, with a separable penalty.

cdef enum:
    MOST_PRODUCTS = 200  # Most iterations of conjugate gradients in a Newton step; each takes a product with A and with A^T.

cdef double PAYS = 8.0  # Multiplications of a dense model that cost what one with sparse columns does.


@cython.final
cdef class SparseDescent(Descent):
    """Sweeps over sparse columns; the residual is the dual point of the loss."""

    cdef double *mean    # (k,): what is subtracted from the entries of each column
    cdef double *image   # (m,): A times a direction
    cdef double moved    # multiple of s by which centred columns have moved the dual point
    cdef double total    # the sum of s
    cdef Py_ssize_t ones # the position of the intercept, or -1
    cdef double offset   # how far the sweeps have moved the intercept

    def __dealloc__(self):
        free(self.mean)
        free(self.image)

    cdef bint pays(self, Data A, Penalty r, Loss f) noexcept nogil:
        cdef double k = A.k
        return (
            not self.failed and r.is_separable() and k * k > PAYS * A.working_entries()
            and (f.quadratic or A.center == NULL)
        )

    cdef double price(self, Data A) noexcept nogil:
        return PAYS * A.working_entries()

    cdef int prepare(self, Data A, Penalty r, Loss f) except -1 nogil:
        if A.k > self.room:
            self.mean = <double *> resized(self.mean, A.room, sizeof(double))
        Descent.prepare(self, A, r, f)
        if self.image == NULL:
            self.image = <double *> resized(NULL, A.m, sizeof(double))
        self.total = sum_of(f.s, A.m)
        self.measure(<Sparse> A, f.s)
        return 0

    cdef void measure(self, Sparse A, double *s) noexcept nogil:
        """The mean of each column and the curvature of its coordinate, sum_i s_i (a_ij - mean_j)^2.

        With an intercept, whose best value follows each step, every column is centred.
        """
        cdef Py_ssize_t p, e, j
        cdef double square, product
        self.ones = -1
        for p in range(A.k):
            if A.is_ones(A.index[p]):
                self.ones = p
        for p in range(A.k):
            j = A.index[p]
            square = product = 0.0
            if p != self.ones:
                for e in range(A.starts[j], A.starts[j + 1]):
                    square += s[A.rows[e]] * A.data[e] * A.data[e]
                    product += s[A.rows[e]] * A.data[e]
            self.mean[p] = A.shift(j) if self.ones < 0 else product / self.total if self.total > 0.0 else 0.0
            self.h[p] = max(square - self.mean[p] * self.mean[p] * self.total, 0.0)

    cdef double sweep(self, Data A, Penalty r, Loss f, double *v, Py_ssize_t count) noexcept nogil:
        cdef double worst = self.visit(<Sparse> A, <Separable> r, f, v, count)
        if self.ones >= 0:
            v[self.ones] += self.offset
            self.offset = 0.0
        return worst

    cdef double visit(self, Sparse A, Separable r, Loss f, double *v, Py_ssize_t count) noexcept nogil:
        """The sweep over all columns but the intercept, which follows them."""
        cdef Py_ssize_t i, p, j, e, first
        cdef double g, new, change, worst = 0.0, center, weighted
        for i in range(count):
            p = self.order[i]
            if p == self.ones:
                continue
            j = A.index[p]
            first, center = A.starts[j], self.mean[p]
            g = sparse_dot(A.data + first, A.rows + first, A.starts[j + 1] - first, f.u)
            g += self.moved * center * self.total
            worst = max(worst, r.violation(j, v[p], g))
            new = r.minimiser(j, self.h[p], g, v[p])
            change = new - v[p]
            if change == 0.0:
                continue
            v[p] = new
            self.moved += center * change
            self.offset -= center * change
            for e in range(first, A.starts[j + 1]):
                weighted = f.s[A.rows[e]] * A.data[e]
                f.u[A.rows[e]] -= weighted * change
        return worst

    cdef int settle(self, Data A, Loss f, double *v, double *z) except -1 nogil:
        cdef double step
        Descent.settle(self, A, f, v, z)
        self.moved = self.offset = 0.0
        if self.ones >= 0:  # the intercept at its best value
            step = sum_of(f.u, A.m) / self.total if self.total > 0.0 else 0.0
            v[self.ones] += step
            self.moved = -step
        return 0

    cdef bint may_move(self, Data A, Penalty r, double *v, Py_ssize_t b) noexcept nogil:
        return not (<Separable> r).at_kink(A.index[b], v[b])

    cdef int extrapolate(self, Data A, Penalty r, Loss f, double *v, double *z) except -1 nogil:
        cdef double here
        cdef Py_ssize_t p
        self.settle(A, f, v, z)
        here = f.value(z, NULL, 0.0) + r.value(A.index, v, A.k)
        if not self.mix(A.k):
            return 0
        for p in range(A.k):
            self.mixed[p] = min(max(self.mixed[p], (<Separable> r).lower[A.index[p]]), (<Separable> r).upper[A.index[p]])
        A.predict(self.mixed, z)
        if f.value(z, NULL, 0.0) + r.value(A.index, self.mixed, A.k) < here:
            memcpy(v, self.mixed, A.k * sizeof(double))
            self.settle(A, f, v, z)
        return 0

    cdef Py_ssize_t newton_step(self, Data A, Penalty r, Loss f, double *v, double *z, double target) except -1 nogil:
        """The step by conjugate gradients, which need no Hessian.

        Coordinates that would cross a kink stay on it. If F rises by that, the step ends at the
        first kink that a coordinate meets.
        """
        cdef Py_ssize_t p, k = A.k, products
        cdef double here, first = 1.0, low, high
        cdef double *step = self.history
        cdef double *goal = self.mixed
        self.settle(A, f, v, z)
        here = f.value(z, NULL, 0.0) + r.value(A.index, v, k)
        products = self.conjugate_gradients(A, <Separable> r, f, v, step, target)
        for p in range(k):
            (<Separable> r).side(A.index[p], v[p], &low, &high)
            goal[p] = v[p] + step[p]
            if not isfinite(goal[p]):
                return products
            if goal[p] < low or goal[p] > high:
                goal[p] = low if goal[p] < low else high
                first = min(first, (goal[p] - v[p]) / step[p])
        A.predict(goal, z)
        if first < 1.0 and f.value(z, NULL, 0.0) + r.value(A.index, goal, k) > here:
            for p in range(k):
                (<Separable> r).side(A.index[p], v[p], &low, &high)
                goal[p] = min(max(v[p] + first * step[p], low), high)
        memcpy(v, goal, k * sizeof(double))
        self.settle(A, f, v, z)
        return products

    cdef Py_ssize_t conjugate_gradients(
        self, Data A, Separable r, Loss f, double *v, double *step, double target
    ) noexcept nogil:
        """Solve (A_S^T diag(s) A_S + l2) step = g - r'(v) on the coordinates S off their kinks; returns the products.

        The residual ends at `target` or at a thousandth of its first length; f.u is the dual point at v.
        """
        cdef Py_ssize_t p, i, j, k = A.k, products = 0
        cdef double *left = step + k
        cdef double *way = left + k
        cdef double *product = way + k
        cdef double old, new, length, worst, enough = target
        A.correlate_working(f.u, left)
        memset(step, 0, k * sizeof(double))
        worst = new = 0.0
        for p in range(k):
            j = A.index[p]
            left[p] = 0.0 if r.at_kink(j, v[p]) else left[p] - r.slope_at(j, v[p])
            way[p] = left[p] / self.divisor(r, j, p)
            new += left[p] * way[p]
            worst = max(worst, fabs(left[p]))
        enough = max(target, 1e-3 * worst)
        while worst > enough and new > 0.0 and products < MOST_PRODUCTS:
            A.predict(way, self.image)
            for i in range(A.m):
                self.image[i] *= f.s[i]
            A.correlate_working(self.image, product)
            products += 1
            length = 0.0
            for p in range(k):
                product[p] += r.l2[A.index[p]] * way[p]
                length += way[p] * product[p]
            if not length > 0.0:
                break
            old, new, worst = new, 0.0, 0.0
            for p in range(k):
                j = A.index[p]
                if r.at_kink(j, v[p]):
                    continue
                step[p] += old / length * way[p]
                left[p] -= old / length * product[p]
                new += left[p] * left[p] / self.divisor(r, j, p)
                worst = max(worst, fabs(left[p]))
            for p in range(k):
                j = A.index[p]
                if not r.at_kink(j, v[p]):
                    way[p] = left[p] / self.divisor(r, j, p) + new / old * way[p]
        return products

    cdef double divisor(self, Separable r, Py_ssize_t j, Py_ssize_t p) noexcept nogil:
        """The curvature of coordinate p, by which conjugate gradients are preconditioned."""
        cdef double h = (self.total if p == self.ones else self.h[p]) + r.l2[j]
        return h if h > 0.0 else 1.0
