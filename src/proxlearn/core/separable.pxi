# Separable penalties: four numbers for each coordinate.
#
#     r(x) = sum_j l1_j |x_j| + l2_j/2 x_j^2 + (0 if lower_j <= x_j <= upper_j else infinity)
#
# Lasso, weighted lasso, elastic net, non-negative and box-constrained problems are all of this form.
# A kink of r_j is a point where it is not differentiable: 0 where l1_j > 0, and the two bounds.


cdef class Separable(Penalty):
    """The four arrays of a separable penalty, each (n,); a number stands for n equal ones."""

    cdef double *filled  # (6, n): the arrays that were given as numbers, and multiples of l1 and l2
    cdef double *unit_l1  # l1 and l2 as they were set
    cdef double *unit_l2
    cdef double *l1
    cdef double *l2
    cdef double *lower
    cdef double *upper

    def __cinit__(self, Py_ssize_t n, l1, l2, lower, upper):
        self.n = self.blocks = n
        self.filled = <double *> resized(NULL, 6 * n, sizeof(double))
        self.set(l1, l2, lower, upper)

    def __dealloc__(self):
        free(self.filled)

    def set(self, l1, l2, lower, upper):
        """Take other arrays or numbers."""
        self.kept = (l1, l2, lower, upper)
        self.unit_l1 = self.l1 = numbers_of(l1, self.filled, self.n)
        self.unit_l2 = self.l2 = numbers_of(l2, self.filled + self.n, self.n)
        self.lower = numbers_of(lower, self.filled + 2 * self.n, self.n)
        self.upper = numbers_of(upper, self.filled + 3 * self.n, self.n)
        self.homogeneous = self.is_homogeneous()

    cdef bint multiply(self, double factor) noexcept nogil:
        cdef Py_ssize_t j
        self.l1, self.l2 = self.filled + 4 * self.n, self.filled + 5 * self.n
        for j in range(self.n):
            self.l1[j] = factor * self.unit_l1[j]
            self.l2[j] = factor * self.unit_l2[j]
        return True

    cdef bint is_separable(self) noexcept nogil:
        return True

    cdef bint is_smooth(self) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.n):
            if self.l1[j] > 0.0 or self.lower[j] > -INFINITY or self.upper[j] < INFINITY:
                return False
        return True

    @cython.final
    cdef double minimiser(self, Py_ssize_t j, double h, double g, double x) noexcept nogil:
        """The minimiser over coordinate j of r_j and a quadratic with slope -g at x and curvature h."""
        cdef double d = h + self.l2[j], z = g + h * x, new
        if d > 0:
            new = (z - copysign(self.l1[j], z)) / d if fabs(z) > self.l1[j] else 0.0
        elif self.l1[j] > 0:
            new = 0.0
        else:
            return x
        new = min(max(new, self.lower[j]), self.upper[j])
        return new if isfinite(new) else x

    cdef Model model(self):
        return CoordinateModel()

    cdef void project(self, double *x) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.n):
            x[j] = min(max(x[j], self.lower[j]), self.upper[j])

    cdef void prox(self, double *v, double *p, double *x) noexcept nogil:
        cdef Py_ssize_t j
        cdef double size
        for j in range(self.n):
            size = max(fabs(v[j]) - p[j] * self.l1[j], 0.0) / (1.0 + p[j] * self.l2[j])
            x[j] = min(max(copysign(size, v[j]) if size > 0.0 else 0.0, self.lower[j]), self.upper[j])

    cdef void levels(self, double *level) noexcept nogil:
        memcpy(level, self.l1, self.n * sizeof(double))

    cdef bint is_free(self, Py_ssize_t j) noexcept nogil:
        return self.l1[j] == 0 and self.l2[j] == 0 and Separable.is_unbounded(self, j)

    cdef bint is_unbounded(self, Py_ssize_t j) noexcept nogil:
        return self.lower[j] == -INFINITY and self.upper[j] == INFINITY

    cdef Py_ssize_t needed_at(self, double *x, Py_ssize_t *picked) noexcept nogil:
        cdef Py_ssize_t j, count = 0
        for j in range(self.n):
            if x[j] != 0.0 or Separable.is_free(self, j):
                picked[count] = j
                count += 1
        return count

    cdef Py_ssize_t expand(self, Py_ssize_t *blocks, Py_ssize_t count, Py_ssize_t *columns) noexcept nogil:
        memcpy(columns, blocks, count * sizeof(Py_ssize_t))
        return count

    cdef double value(self, Py_ssize_t *index, double *v, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t p, j
        cdef double total = 0.0
        for p in range(k):
            j = index[p]
            total += self.l1[j] * fabs(v[p]) + 0.5 * (self.l2[j] * v[p]) * v[p]
        return total

    cdef double survey(self, double *c, double *score, double *largest) noexcept nogil:
        cdef double ratio = survey(c, self.l1, self.l2, self.lower, self.upper, score, largest, self.n)
        return 1.0 / ratio if ratio > 0.0 else INFINITY

    cdef void anticipate(self, double *c, double fell, double *score) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.n):
            score[j] = max(fabs(c[j]) - (2.0 - fell) * self.l1[j], 0.0)

    cdef double violations(
        self, Py_ssize_t *index, double *v, double *g, Py_ssize_t k, char *needed
    ) noexcept nogil:
        cdef Py_ssize_t p
        cdef double worst = 0.0, size
        for p in range(k):
            size = self.violation(index[p], v[p], g[p])
            worst = max(worst, size)
            if needed != NULL:
                needed[p] = size > 0 or not self.at_kink(index[p], v[p])
        return worst

    cdef double distance(self, double *x, double *c) noexcept nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0, size
        for j in range(self.n):
            size = self.violation(j, x[j], c[j])
            total += size * size
        return sqrt(total)

    cdef double dual_scale(self, double *c) noexcept nogil:
        cdef Py_ssize_t j
        cdef double t = INFINITY
        for j in range(self.n):
            if c[j] == 0 or self.l2[j] > 0 or (self.upper[j] if c[j] > 0 else -self.lower[j]) < INFINITY:
                continue
            if self.l1[j] < t * fabs(c[j]):
                t = self.l1[j] / fabs(c[j])
        return t

    def has_one_sided(self):
        cdef Py_ssize_t j
        for j in range(self.n):
            if (self.upper[j] == INFINITY) != (self.lower[j] == -INFINITY):
                if self.l1[j] == 0 and self.l2[j] == 0:
                    return True
        return False

    cdef bint is_homogeneous(self) noexcept nogil:
        """True where there is no quadratic part, and no bounds but 0."""
        cdef Py_ssize_t j
        for j in range(self.n):
            if self.l2[j] > 0 or 0 < fabs(self.lower[j]) < INFINITY or 0 < fabs(self.upper[j]) < INFINITY:
                return False
        return True

    cdef double conjugate(self, double *c, double t) noexcept nogil:
        """r*(t c) = sum_j max over x of t c_j x - r_j(x), for a feasible t."""
        cdef Py_ssize_t j
        cdef double total = 0.0, v, x, excess
        for j in range(self.n):
            v = t * c[j]
            excess = max(fabs(v) - self.l1[j], 0.0)
            x = 0.0
            if excess > 0.0:
                if self.l2[j] > 0:
                    x = copysign(excess / self.l2[j], v)
                elif v > 0:
                    x = self.upper[j]
                else:
                    x = self.lower[j]
                # Rounding of t can leave an excess where the bound is infinite: t c_j = l1_j there.
                if fabs(x) == INFINITY:
                    x = 0.0
            x = min(max(x, self.lower[j]), self.upper[j])
            if x != 0.0:
                total += x * (v - copysign(self.l1[j], x)) - 0.5 * (self.l2[j] * x) * x
        return total

    @cython.final
    cdef double violation(self, Py_ssize_t j, double x, double c) noexcept nogil:
        """How far the optimality condition of coordinate j is violated, where c = -df/dx_j.

        The distance of c to the subdifferential of r_j at x.
        """
        cdef double e = c - self.l2[j] * x
        cdef double up = e - (self.l1[j] if x >= 0 else -self.l1[j])
        cdef double down = -(e - (self.l1[j] if x > 0 else -self.l1[j]))
        if x < self.upper[j] and up > 0:
            return up
        if x > self.lower[j] and down > 0:
            return down
        return 0.0

    @cython.final
    cdef bint at_kink(self, Py_ssize_t j, double x) noexcept nogil:
        return (x == 0.0 and self.l1[j] > 0) or x <= self.lower[j] or x >= self.upper[j]

    @cython.final
    cdef double slope_at(self, Py_ssize_t j, double x) noexcept nogil:
        """The derivative of r_j at an x off its kinks."""
        return self.l2[j] * x + (copysign(self.l1[j], x) if x != 0.0 else 0.0)

    @cython.final
    cdef void side(self, Py_ssize_t j, double x, double *low, double *high) noexcept nogil:
        """The kinks between which x lies, where r_j has one formula."""
        low[0], high[0] = self.lower[j], self.upper[j]
        if self.l1[j] > 0.0 and x > 0.0:
            low[0] = max(low[0], 0.0)
        elif self.l1[j] > 0.0:
            high[0] = min(high[0], 0.0)
