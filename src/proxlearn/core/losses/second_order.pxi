# The second-order model of a loss at predictions z0, as a loss of its own.
#
#     q(z) = sum_i -u_i (z_i - z0_i) + D_i/2 (z_i - z0_i)^2      with u and D of the loss at z0


@cython.final
cdef class SecondOrder(Loss):
    """What `take` was given: q(z), whose dual point is u - D (z - z0)."""

    cdef double *origin  # (m,): z0
    cdef double *slope   # (m,): u at z0

    def __cinit__(self, b, s):
        self.quadratic = True

    cdef void take(self, double *z0, double *u, double *D) noexcept nogil:
        """Become the model at z0 of a loss with this dual point and curvature, which the caller keeps."""
        self.origin, self.slope, self.s = z0, u, D

    cdef double value(self, double *z, double *d, double t) noexcept nogil:
        cdef Py_ssize_t i
        cdef double total = 0.0, e
        for i in range(self.m):
            e = z[i] - self.origin[i] + (t * d[i] if d != NULL else 0.0)
            total += (0.5 * self.s[i] * e - self.slope[i]) * e
        return total

    cdef void differentiate(self, double *z) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.m):
            self.u[i] = self.slope[i] - self.s[i] * (z[i] - self.origin[i])
