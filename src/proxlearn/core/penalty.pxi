# Separable penalties: four numbers for each coordinate.
#
#     r(x) = sum_j l1_j |x_j| + l2_j/2 x_j^2 + (0 if lower_j <= x_j <= upper_j else infinity)
#
# Lasso, weighted lasso, elastic net, non-negative and box-constrained problems are all of this form.
# A kink of r_j is a point where it is not differentiable: 0 where l1_j > 0, and the two bounds.


cdef class Separable:
    """The four arrays of a separable penalty, each (n,)."""

    cdef Py_ssize_t n
    cdef double *l1
    cdef double *l2
    cdef double *lower
    cdef double *upper
    cdef object kept

    def __cinit__(self, l1, l2, lower, upper):
        self.set(l1, l2, lower, upper)

    def set(self, const double[::1] l1, const double[::1] l2, const double[::1] lower, const double[::1] upper):
        """Take other arrays of the same length."""
        self.n, self.kept = len(l1), [l1, l2, lower, upper]
        self.l1, self.l2 = <double *> &l1[0], <double *> &l2[0]
        self.lower, self.upper = <double *> &lower[0], <double *> &upper[0]

    cdef bint is_free(self, Py_ssize_t j) noexcept nogil:
        """True where the penalty ignores the coordinate, as it does an intercept."""
        return self.l1[j] == 0 and self.l2[j] == 0 and self.lower[j] == -INFINITY and self.upper[j] == INFINITY

    cdef double dual_scale(self, double *c) noexcept nogil:
        """The largest t >= 0 for which r*(t c) is finite, with c = A^T u; infinite where all are."""
        cdef Py_ssize_t j
        cdef double t = INFINITY
        for j in range(self.n):
            if c[j] == 0 or self.l2[j] > 0 or (self.upper[j] if c[j] > 0 else -self.lower[j]) < INFINITY:
                continue
            if self.l1[j] < t * fabs(c[j]):
                t = self.l1[j] / fabs(c[j])
        return t

    def has_one_sided(self):
        """True where a coordinate has no penalty but one bound, as in non-negative least squares."""
        cdef Py_ssize_t j
        for j in range(self.n):
            if self.l1[j] == 0 and self.l2[j] == 0 and self.upper[j] == INFINITY and self.lower[j] > -INFINITY:
                return True
        return False

    cdef bint is_homogeneous(self) noexcept nogil:
        """True where r* is 0 wherever it is finite: no quadratic part, and no bounds but 0."""
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

    cdef bint at_kink(self, Py_ssize_t j, double x) noexcept nogil:
        return (x == 0.0 and self.l1[j] > 0) or x <= self.lower[j] or x >= self.upper[j]
