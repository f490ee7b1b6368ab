# The second-order model of F on a working set of sparse columns, without its Hessian.
#
#     minimise  -<g, v - v0> + 1/2 sum_i s_i (A (v - v0))_i^2 + r(v)        g = -df/dx at v0
#
# Sweeps of coordinate descent find the coordinates that are off their kinks and their signs; as soon as few
# of them change, a Newton step by conjugate gradients ends what sweeps would take long for.

# The constants here and those of such models in improver.pxi were chosen on simulated designs, 2026-11-19: l1
# logistic regression with random entries (3000 x 2500, 12,000 x 4000, 1000 x 6000), words (4000 x 6000, 1500
# x 9000, 15,000 x 10,000) and rare binary columns (1500 x 250) at 0.1, 0.01 and 0.001 of the largest lambda,
# which are no rows of a benchmark.

cdef enum:
    MOST_PRODUCTS = 100  # Most iterations of conjugate gradients in a Newton step; each takes a product with A and with A^T.
    MOST_DESCENTS_OF_COLUMNS = 60  # Rounds of sweeps and a Newton step.
    MOST_HALVINGS = 6    # Of a Newton step that crosses kinks.
    SWEEPS_IN_A_ROW = 8  # Sweeps over the coordinates off their kinks before a Newton step.

cdef double PAYS = 8.0  # Multiplications of a dense model that cost what one with sparse columns does.
cdef double LEFT = 1e-3  # Conjugate gradients reduce the residual to this part,
cdef double LEFT_WHILE_CHANGING = 0.03  # and after a sweep in which coordinates reached or left a kink to this one.
cdef double CROSSED = 0.05  # Conjugate gradients end where this part of the coordinates would cross a kink.
cdef double FLIPS = 0.03  # A Newton step waits until in a sweep this part of the coordinates reaches or leaves a kink.


cdef class SparseDescent(SparseSweeps):
    """Minimises such models; what it needs of the columns is kept from one call to the next."""

    cdef bint failed        # True where its target was out of reach

    cdef double run(
        self, Sparse A, Separable r, double *s, bint unit, double *g, double *v, double target, double most, double until
    ) except -1.0 nogil:
        """Minimise until the violations are about `target`, or `most` sweeps are done, which are returned.

        s (m,) are all 1 if `unit`. g (k,) belongs to v (k,), which becomes the minimiser.
        """
        cdef Py_ssize_t rounds, sweep, p, count, all_but_one
        cdef double worst, sweeps = 2.0
        cdef bint stepped = False
        self.prepare(A, s, unit, False, g, v)
        for rounds in range(MOST_DESCENTS_OF_COLUMNS):
            all_but_one = count = self.list_all(A)
            worst = self.sweep(A, r, v, count)
            sweeps += 1.0
            # Before a Newton step the violations that a sweep leaves can be many times those that it meets.
            if (worst <= target and (stepped or self.flips == 0)) or sweeps >= most or now() >= until:
                break
            count = self.list_off_kinks(A, r, v)
            for sweep in range(SWEEPS_IN_A_ROW):
                worst = self.sweep(A, r, v, count)
                sweeps += <double> count / max(1, all_but_one)
                if worst <= target or sweeps >= most or self.flips <= FLIPS * count:
                    break
            if (worst > target or not stepped) and sweeps < most:
                sweeps += self.newton_step(A, r, v, target)
                stepped = True
        else:
            self.failed = True
        if self.ones >= 0:  # the intercept at its best value
            v[self.ones] += self.pull[self.ones] / self.total if self.total > 0.0 else 0.0
            for p in range(A.k):
                if p != self.ones:
                    v[self.ones] -= (self.mean[p] - A.shift(A.index[p])) * (v[p] - self.origin[p])
        return sweeps

    cdef Py_ssize_t list_all(self, Sparse A) noexcept nogil:
        """List all coordinates but the intercept."""
        cdef Py_ssize_t p, count = 0
        for p in range(A.k):
            if p != self.ones:
                self.order[count] = p
                count += 1
        return count

    cdef Py_ssize_t list_off_kinks(self, Sparse A, Separable r, double *v) noexcept nogil:
        """List the coordinates that are not at a kink."""
        cdef Py_ssize_t p, count = 0
        for p in range(A.k):
            if p != self.ones and not r.at_kink(A.index[p], v[p]):
                self.order[count] = p
                count += 1
        return count

    cdef Py_ssize_t newton_step(self, Sparse A, Separable r, double *v, double target) noexcept nogil:
        """The step on the coordinates off their kinks; returns how many products it took.

        Coordinates that would cross a kink stay on it. While the model rises by that, half of the step is tried, and
        at last the part of it that ends at the first kink.
        """
        cdef Py_ssize_t i, p, count = self.list_off_kinks(A, r, v), products, halving
        cdef double first, means, part = 1.0
        products = self.conjugate_gradients(A, r, v, count, target)
        for halving in range(MOST_HALVINGS + 1):
            first = self.bend(A, r, v, count, part)
            if first < 0.0:
                return products
            memset(self.image, 0, A.m * sizeof(double))
            means = self.multiply(A, self.way, count, self.image)
            products += 1
            if first == 1.0 or part <= first or self.change(A, r, v, count, means) <= 0.0:
                break
            part = 0.5 * part if halving + 1 < MOST_HALVINGS else first * part
        axpy(1.0, self.image, self.moved, A.m)
        self.shifted += means
        for i in range(count):
            p = self.order[i]
            v[p] = self.goal[p]
        return products

    cdef double bend(self, Sparse A, Separable r, double *v, Py_ssize_t count, double part) noexcept nogil:
        """Let `way` be the part of the step, bent where it crosses a kink, and `goal` its end.

        Returns the part of it up to the first kink, at most 1, and -1 where the step is not finite.
        """
        cdef Py_ssize_t i, p
        cdef double low, high, first = 1.0
        for i in range(count):
            p = self.order[i]
            r.side(A.index[p], v[p], &low, &high)
            self.goal[p] = v[p] + part * self.step[p]
            if not isfinite(self.goal[p]):
                return -1.0
            if self.goal[p] < low or self.goal[p] > high:
                self.goal[p] = low if self.goal[p] < low else high
                first = min(first, (self.goal[p] - v[p]) / (part * self.step[p]))
            self.way[p] = self.goal[p] - v[p]
        return first

    cdef double change(self, Sparse A, Separable r, double *v, Py_ssize_t count, double means) noexcept nogil:
        """How much the model rises along `way`, whose predictions are `image`."""
        cdef Py_ssize_t i, p, j
        cdef double total = 0.5 * (dot(self.image, self.image, A.m) - means * means * self.total), way
        for i in range(count):
            p = self.order[i]
            j, way = A.index[p], self.way[p]
            total += way * (r.slope_at(j, v[p]) + 0.5 * r.l2[j] * way - self.slope[p])
        return total

    cdef Py_ssize_t conjugate_gradients(
        self, Sparse A, Separable r, double *v, Py_ssize_t count, double target
    ) noexcept nogil:
        """Solve (A_S^T diag(s) A_S + l2) step = g - r'(v) on S = order[:count]; returns the products.

        The residual ends near `target`, at a part of its first length, or where many coordinates cross a kink. Leaves g at v in `slope`.
        """
        cdef Py_ssize_t i, p, j, products = 0, crossed
        cdef double old, new = 0.0, length, worst = 0.0, enough, means, h, low, high
        for i in range(count):
            p = self.order[i]
            j = A.index[p]
            self.step[p] = 0.0
            self.slope[p] = self.gradient(A, p)
            self.left[p] = self.slope[p] - r.slope_at(j, v[p])
            self.way[p] = self.left[p] / self.divisor(r, j, p)
            new += self.left[p] * self.way[p]
            worst = max(worst, fabs(self.left[p]))
        enough = max(0.3 * target, (LEFT if self.flips == 0 else LEFT_WHILE_CHANGING) * worst)
        while worst > enough and new > 0.0 and products < MOST_PRODUCTS:
            memset(self.image, 0, A.m * sizeof(double))
            means = self.multiply(A, self.way, count, self.image) * self.total
            products += 1
            length = 0.0
            for i in range(count):
                p = self.order[i]
                j = A.index[p]
                h = sparse_dot(self.values + self.first[p], A.rows + A.starts[j], A.starts[j + 1] - A.starts[j], self.image)
                h += r.l2[j] * self.way[p] - self.mean[p] * means
                self.product[p] = h
                length += self.way[p] * h
            if not length > 0.0:
                break
            old, new, worst, crossed = new, 0.0, 0.0, 0
            for i in range(count):
                p = self.order[i]
                self.step[p] += old / length * self.way[p]
                r.side(A.index[p], v[p], &low, &high)
                crossed += not low <= v[p] + self.step[p] <= high
                self.left[p] -= old / length * self.product[p]
                new += self.left[p] * self.left[p] / self.divisor(r, A.index[p], p)
                worst = max(worst, fabs(self.left[p]))
            if crossed > CROSSED * count:
                break
            for i in range(count):
                p = self.order[i]
                self.way[p] = self.left[p] / self.divisor(r, A.index[p], p) + new / old * self.way[p]
        return products

    cdef double divisor(self, Separable r, Py_ssize_t j, Py_ssize_t p) noexcept nogil:
        """The curvature of coordinate p, by which conjugate gradients are preconditioned."""
        cdef double h = self.h[p] + r.l2[j]
        return h if h > 0.0 else 1.0
