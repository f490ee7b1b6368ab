# Huber's loss: phi(z) = (z - b)^2 / 2 where |z - b| <= delta, and delta |z - b| - delta^2 / 2 beyond.
#
# Its conjugate is v^2 / 2 + v b for |v| <= delta, and infinite beyond.

cdef extern from *:
    """
/* Huber's loss of an error e. */
static inline double huber(double e, double delta) {
    double size = fabs(e), inner = size < delta ? size : delta;
    return inner * (size - 0.5 * inner);
}

/* Sum of s_i phi(z_i + t d_i); d may be NULL, which stands for 0. */
static inline double huber_value(const double *restrict s, const double *restrict b,
                                 const double *restrict z, const double *restrict d, double t,
                                 double delta, long m) {
    double total = 0.0;
    if (!d) d = z, t = 0.0;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < m; i++) total += s[i] * huber(b[i] - z[i] - t * d[i], delta);
    return total;
}

/* The error b - z cut off at delta, u = s e, and w = min(1, delta / |b - z|). */
static inline void huber_state(const double *restrict s, const double *restrict b,
                               const double *restrict z, double *restrict e, double *restrict u,
                               double *restrict w, double delta, long m) {
    for (long i = 0; i < m; i++) {
        double error = b[i] - z[i], size = fabs(error);
        double cut = size > delta ? copysign(delta, error) : error;
        w[i] = size > delta ? delta / size : 1.0;
        e[i] = cut;
        u[i] = s[i] * cut;
    }
}
    """
    double huber_value(
        double *s, double *b, double *z, double *d, double t, double delta, long m
    ) noexcept nogil
    void huber_state(
        double *s, double *b, double *z, double *e, double *u, double *w, double delta, long m
    ) noexcept nogil


cdef class Huber(Loss):
    """phi(z) = (z - b)^2 / 2, continued as a straight line where |z - b| exceeds delta."""

    cdef double delta
    cdef double *e     # (m,): b - z, cut off at delta
    cdef double *w     # (m,): min(1, delta / |b - z|), which is 1 on the parabola
    cdef double *side  # (m,): where each sample was at the last model: 0 on the parabola, else -1 or 1

    def __cinit__(self, b, s, double delta):
        self.delta = delta
        self.e = <double *> resized(NULL, self.m, sizeof(double))
        self.w = <double *> resized(NULL, self.m, sizeof(double))
        self.side = <double *> resized(NULL, self.m, sizeof(double))
        memset(self.side, 0, self.m * sizeof(double))

    def __dealloc__(self):
        free(self.e)
        free(self.w)
        free(self.side)

    cdef double value(self, double *z, double *d, double t) noexcept nogil:
        return huber_value(self.s, self.b, z, d, t, self.delta, self.m)

    cdef void differentiate(self, double *z) noexcept nogil:
        huber_state(self.s, self.b, z, self.e, self.u, self.w, self.delta, self.m)

    cdef void curvature(self, double *D) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.m):
            D[i] = self.s[i] if self.w[i] == 1.0 else 0.0

    cdef void model_curvature(self, double *D) noexcept nogil:
        """The curvature of the parabola s w / 2 (z - b)^2 that touches the loss and is never below it.

        Beyond delta, the loss itself has no curvature, and Newton's method is exact without it once no
        sample changes sides any more. So the parabola's curvature there is multiplied by a number that
        falls with the share of the samples that changed sides since the last model.
        """
        cdef Py_ssize_t i, changed = 0
        cdef double side, part
        for i in range(self.m):
            side = 0.0 if self.w[i] == 1.0 else copysign(1.0, self.e[i])
            changed += side != self.side[i]
            self.side[i] = side
        part = max(LEAST_CURVATURE, min(1.0, DISTRUST * changed / self.m))
        for i in range(self.m):
            D[i] = self.s[i] * (1.0 if self.w[i] == 1.0 else part * self.w[i])

    cdef void shift(self, double *v) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.m):
            if self.w[i] == 1.0:
                self.e[i] = max(-self.delta, min(self.delta, self.e[i] - v[i]))
                self.u[i] = self.s[i] * self.e[i]

    cdef double dual_value(self, double scale) noexcept nogil:
        return scale * (dot(self.u, self.b, self.m) - 0.5 * scale * dot(self.u, self.e, self.m))

    cdef double best_scale(self, double largest) noexcept nogil:
        cdef Py_ssize_t i
        cdef double square = dot(self.u, self.e, self.m), most = 0.0
        if square <= 0.0:
            return min(largest, 1.0)
        for i in range(self.m):
            most = max(most, fabs(self.e[i]))
        largest = min(largest, self.delta / most)
        return max(0.0, min(largest, dot(self.u, self.b, self.m) / square))


# The curvature beyond delta is that of the parabola times DISTRUST times the share of the samples that
# changed sides, at most 1 and at least LEAST_CURVATURE. The parabola serves in full where a tenth of the
# samples changed sides. 3 in place of 10 takes 1.18 times as long on six simulated problems, 30, 100 and 300
# take 0.96, 1.00 and 1.04 times as long on 22 (250 x 1200 to 2000 x 100; CPU time, 2026-11-19), and from 0.5
# to 1.8 times on single ones: the number of models until the sides settle is a matter of luck.
cdef double DISTRUST = 10.0
# 1e-4 and 1e-2 in place of LEAST_CURVATURE take 1.03 and 1.02 times as long on the six.
cdef double LEAST_CURVATURE = 1e-3
