# Logistic regression: phi(z) = log(1 + exp(-b z)), labels b of -1 and 1.

cdef extern from *:
    """
/* Sum of s_i log(1 + exp(-y_i (z_i + t d_i))); d may be NULL, which stands for 0. */
static inline double logistic_value(const double *restrict s, const double *restrict y,
                                    const double *restrict z, const double *restrict d, double t,
                                    long m) {
    double total = 0.0;
    if (!d) d = z, t = 0.0;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < m; i++) {
        double v = -y[i] * (z[i] + t * d[i]);
        total += s[i] * ((v > 0 ? v : 0) + fast_log1p(fast_exp(-fabs(v))));
    }
    return total;
}

/* t_i = 1 / (1 + exp(y_i z_i)), the probability of the other class; h_i = t_i (1 - t_i) and
 * u_i = s_i y_i t_i. */
static inline void logistic_state(const double *restrict s, const double *restrict y,
                                  const double *restrict z, double *restrict t,
                                  double *restrict h, double *restrict u, long m) {
    for (long i = 0; i < m; i++) {
        double v = y[i] * z[i];
        double e = fast_exp(-fabs(v));
        double large = 1.0 / (1.0 + e), small = e * large;
        t[i] = v > 0 ? small : large;
        h[i] = small * large;
        u[i] = s[i] * y[i] * t[i];
    }
}

/* Sum of s_i H(scale t_i) with the entropy H(q) = -q log q - (1 - q) log(1 - q). */
static inline double entropy(const double *restrict s, const double *restrict t, double scale,
                             long m) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < m; i++) {
        double q = scale * t[i], p = 1.0 - q;
        double tiny = 1e-300; /* q log q is below 1e-297 there, and p log p too */
        double lq = fast_log(q > tiny ? q : tiny), lp = fast_log(p > tiny ? p : tiny);
        double near = log1m(q < 0.5 ? q : 0.5); /* keeps all digits where q is small */
        total -= s[i] * (q * lq + p * (q < 0.5 ? near : lp));
    }
    return total;
}
    """
    double logistic_value(double *s, double *y, double *z, double *d, double t, long m) noexcept nogil
    void logistic_state(
        double *s, double *y, double *z, double *t, double *h, double *u, long m
    ) noexcept nogil
    double entropy(double *s, double *t, double scale, long m) noexcept nogil


cdef class Logistic(Loss):
    """phi(z) = log(1 + exp(-b z)) with labels b of -1 and 1, and u = s b t, t = 1/(1 + exp(b z))."""

    cdef double *t
    cdef double *h  # (m,): t (1 - t), the curvature

    def __cinit__(self, b, s):
        self.t = <double *> resized(NULL, self.m, sizeof(double))
        self.h = <double *> resized(NULL, self.m, sizeof(double))

    def __dealloc__(self):
        free(self.t)
        free(self.h)

    cdef double value(self, double *z, double *d, double t) noexcept nogil:
        return logistic_value(self.s, self.b, z, d, t, self.m)

    cdef void differentiate(self, double *z) noexcept nogil:
        logistic_state(self.s, self.b, z, self.t, self.h, self.u, self.m)

    cdef double *means(self) noexcept nogil:
        return self.t

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

    cdef double reach(self) noexcept nogil:
        return LOGARITHMS

    cdef double best_constant(self) noexcept nogil:
        """The logarithm of the odds."""
        cdef double sums[2]
        cdef Py_ssize_t i
        sums[0] = sums[1] = 0.0
        for i in range(self.m):
            sums[self.b[i] > 0.0] += self.s[i]
        return log(sums[1] / sums[0])
