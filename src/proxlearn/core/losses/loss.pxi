# Smooth losses of the predictions z = A x.
#
#     f(x) = sum_i s_i phi(z_i; b_i)       s_i >= 0 are the weights of the samples
#
# A loss keeps the dual point u = -s phi'(z) of the last predictions z. Each loss is a file of its own that
# defines its value, its gradient (by u), its curvature and its conjugate.


cdef class Loss:
    """Sum over the samples of s_i phi(z_i; b_i); a number s stands for m equal weights."""

    cdef Py_ssize_t m
    cdef double *s  # (m,): weights of the samples
    cdef double *b  # (m,): targets or labels
    cdef double *u  # (m,): the dual point, minus the derivative with respect to z
    cdef bint quadratic  # True where the second-order model is the loss itself
    cdef bint unit_weights  # True where all s_i are 1
    cdef double trusted  # how far predictions may move in a first step; after a step cut off there, further
    cdef object kept

    def __cinit__(self, b, s, **options):
        cdef Py_ssize_t i
        self.m, self.kept = len(b), (b, s)
        self.b = vector(b, self.m)
        self.u = <double *> resized(NULL, 2 * self.m, sizeof(double))
        if isinstance(s, float):
            self.s = self.u + self.m
            fill(self.s, s, self.m)
        else:
            self.s = vector(s, self.m)
        self.quadratic, self.unit_weights, self.trusted = False, True, INFINITY
        for i in range(self.m):
            if self.s[i] != 1.0:
                self.unit_weights = False

    def __dealloc__(self):
        free(self.u)

    def dual_point(self, const double[::1] z):
        """u at predictions z (m,), as an array."""
        cdef double[::1] out = np.empty(self.m)
        self.differentiate(<double *> &z[0])
        memcpy(&out[0], self.u, self.m * sizeof(double))
        return np.asarray(out)

    def at(self, const double[::1] z, double[::1] u, double[::1] own):
        """f at predictions z (m,); u becomes the dual point there, and `own` what the curvature is made of."""
        cdef double value
        with nogil:
            value = self.value(<double *> &z[0], NULL, 0.0)
            self.differentiate(<double *> &z[0])
            memcpy(&u[0], self.u, self.m * sizeof(double))
            memcpy(&own[0], self.means(), self.m * sizeof(double))
        return value

    cdef double *means(self) noexcept nogil:
        """Probabilities of the wrong labels or means of the counts, (m,), where the dual point was computed last."""
        return self.u

    cdef void take_targets(self, double *b) noexcept nogil:
        """Go on with other targets or labels."""
        self.b = b

    cdef double value(self, double *z, double *d, double t) noexcept nogil:
        """f at predictions z + t d; d may be NULL."""
        return 0.0

    cdef void differentiate(self, double *z) noexcept nogil:
        """Compute the dual point u at predictions z."""
        pass

    cdef void curvature(self, double *D) noexcept nogil:
        """D_i = s_i phi''(z_i) where the dual point was computed last."""
        pass

    cdef void damped_curvature(self, double part, double *D) noexcept nogil:
        """The curvature of a model, in which every sample has at least this part of the largest curvature."""
        cdef Py_ssize_t i
        cdef double most = 0.0
        self.model_curvature(D)
        if part > 0.0:
            for i in range(self.m):
                most = max(most, D[i])
            for i in range(self.m):
                D[i] = max(part * most, D[i])

    cdef void model_curvature(self, double *D) noexcept nogil:
        """The curvature that the second-order model uses: that of the loss, unless a loss overrides it."""
        self.curvature(D)

    cdef void shift(self, double *v) noexcept nogil:
        """Move the dual point by -D v: to first order, predictions z + v have this gradient."""
        pass

    cdef double dual_value(self, double scale) noexcept nogil:
        """-sum_i s_i phi*(-scale u_i / s_i), the loss's part of the dual objective."""
        return 0.0

    cdef double rounding(self, double *z) noexcept nogil:
        """By how much rounding may have made the sum in `dual_value` too large, at the dual point of z.

        0 where the terms are of the size of f, or of f at 0: SOLVED allows for the rounding of these.
        """
        return 0.0

    cdef void squared_sizes(self, double *D) noexcept nogil:
        """D_i = the square of the number that u_i is rounded in proportion to: u_i itself, unless it is a difference."""
        cdef Py_ssize_t i
        for i in range(self.m):
            D[i] = self.u[i] * self.u[i]

    cdef double reach(self) noexcept nogil:
        """How large a minimiser's predictions from unpenalised columns are taken to be, whatever b is.

        0 where predictions have the unit of b, from which their size is estimated.
        """
        return 0.0

    cdef double best_constant(self) noexcept nogil:
        """The minimiser of f over equal predictions; NaN where it is not known in closed form."""
        return NAN

    cdef double best_scale(self, double largest) noexcept nogil:
        """The multiple of u, between 0 and `largest`, at which the dual value is greatest."""
        return min(largest, 1.0)


cdef double LOGARITHMS = 10.0  # Predictions that are logarithms are seldom larger.
