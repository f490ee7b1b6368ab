# Smooth losses of the predictions z = A x.
#
#     f(x) = sum_i s_i phi(z_i; b_i)       s_i >= 0 are the weights of the samples
#
# A loss keeps the dual point that belongs to z. In a file of its own, a loss says its value,
# its gradient (through the dual point u = -s phi'(z)), its curvature and its conjugate.


cdef class Loss:
    """Sum over the samples of s_i phi(z_i; b_i)."""

    cdef Py_ssize_t m
    cdef double *s  # (m,): weights of the samples
    cdef double *b  # (m,): targets or labels
    cdef double *u  # (m,): the dual point, minus the derivative with respect to z
    cdef bint quadratic  # True where the second-order model is the loss itself
    cdef object kept

    def __cinit__(self, b, s):
        cdef const double[::1] targets = b
        cdef const double[::1] weights = s
        self.m, self.kept = len(b), [b, s]
        self.b, self.s = <double *> &targets[0], <double *> &weights[0]
        self.u = <double *> resized(NULL, self.m, sizeof(double))

    def __dealloc__(self):
        free(self.u)

    cdef double value(self, double *z, double *d, double t) noexcept nogil:
        """f at predictions z + t d; d may be NULL."""
        return 0.0

    cdef void differentiate(self, double *z) noexcept nogil:
        """Compute the dual point u at predictions z."""
        pass

    cdef void curvature(self, double *D) noexcept nogil:
        """D_i = s_i phi''(z_i) where the dual point was computed last."""
        pass

    cdef void shift(self, double *v) noexcept nogil:
        """Move the dual point by -D v: to first order, predictions z + v have this gradient."""
        pass

    cdef double dual_value(self, double scale) noexcept nogil:
        """-sum_i s_i phi*(-scale u_i / s_i), the loss's part of the dual objective."""
        return 0.0

    cdef double best_scale(self, double largest) noexcept nogil:
        """The multiple of u, between 0 and `largest`, at which the dual value is greatest."""
        return min(largest, 1.0)


cdef class Squares(Loss):
    """phi(z) = (z - b)^2 / 2, with u = s (b - z)."""

    cdef double *e  # (m,): b - z

    def __cinit__(self, b, s):
        self.quadratic = True
        self.e = <double *> resized(NULL, self.m, sizeof(double))

    def __dealloc__(self):
        free(self.e)

    cdef double value(self, double *z, double *d, double t) noexcept nogil:
        return 0.5 * squares_value(self.s, self.b, z, d, t, self.m)

    cdef void differentiate(self, double *z) noexcept nogil:
        squares_state(self.s, self.b, z, self.e, self.u, self.m)

    cdef void curvature(self, double *D) noexcept nogil:
        memcpy(D, self.s, self.m * sizeof(double))

    cdef void shift(self, double *v) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.m):
            self.e[i] -= v[i]
            self.u[i] = self.s[i] * self.e[i]

    cdef double dual_value(self, double scale) noexcept nogil:
        return scale * (dot(self.u, self.b, self.m) - 0.5 * scale * dot(self.u, self.e, self.m))

    cdef double best_scale(self, double largest) noexcept nogil:
        cdef double square = dot(self.u, self.e, self.m)
        if square <= 0.0:
            return min(largest, 1.0)
        return max(0.0, min(largest, dot(self.u, self.b, self.m) / square))


cdef class Logistic(Loss):
    """phi(z) = log(1 + exp(-b z)) with labels b of -1 and 1, and u = s b t, t = 1/(1 + exp(b z))."""

    cdef double *t
    cdef double *h  # (m,): t (1 - t), the curvature

    def __cinit__(self, b, s):
        self.quadratic = False
        self.t = <double *> resized(NULL, self.m, sizeof(double))
        self.h = <double *> resized(NULL, self.m, sizeof(double))

    def __dealloc__(self):
        free(self.t)
        free(self.h)

    cdef double value(self, double *z, double *d, double t) noexcept nogil:
        return logistic_value(self.s, self.b, z, d, t, self.m)

    cdef void differentiate(self, double *z) noexcept nogil:
        logistic_state(self.s, self.b, z, self.t, self.h, self.u, self.m)

    cdef void curvature(self, double *D) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.m):
            D[i] = self.s[i] * self.h[i]

    cdef void shift(self, double *v) noexcept nogil:
        cdef Py_ssize_t i
        cdef double t
        for i in range(self.m):
            t = self.t[i] - self.b[i] * self.h[i] * v[i]
            self.t[i] = max(0.0, min(1.0, t))
            self.u[i] = self.s[i] * self.b[i] * self.t[i]

    cdef double dual_value(self, double scale) noexcept nogil:
        return entropy(self.s, self.t, scale, self.m) if 0.0 <= scale <= 1.0 else -INFINITY
