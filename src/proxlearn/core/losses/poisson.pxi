# Poisson regression with a log link: phi(z) = exp(z) - b z + b log b - b, counts b >= 0.
#
# That is half the deviance, 0 at z = log b and never negative. Its conjugate is finite for v >= -b:
# phi*(v) = q log q - q - b log b + b with q = v + b. The dual point of any z has q = exp(z) > 0, and
# its multiples by numbers from 0 to 1 have q between b and exp(z). A dual point that was made orthogonal to
# unpenalised columns may have q < 0; those entries are cut off at 0, and there is no bound at that point.

cdef extern from *:
    """
/* exp(d) - 1 - d, to nearly all digits: a series near 0, where the terms cancel. */
static inline double exp_remainder(double d) {
    double p = 1.0 / 14;
    for (int k = 13; k >= 3; k--) p = (1.0 + p * d) / k;
    double near = 0.5 * d * d * (1.0 + p * d), far = fast_exp(d) - 1.0 - d;
    return fabs(d) < 0.5 ? near : far;
}

/* phi at z, for a count b and its logarithm; infinite where exp overflows. */
static inline double poisson(double z, double b, double log_b) {
    double d = z - log_b;
    double near = b * exp_remainder(d < 40.0 ? d : 40.0), far = fast_exp(z) - b * (1.0 + d);
    double value = b > 0.0 && d < 40.0 ? near : far;
    return z > 709.0 ? INFINITY : value;
}

/* Sum of s_i phi(z_i + t d_i); d may be NULL, which stands for 0. */
static inline double poisson_value(const double *restrict s, const double *restrict b,
                                   const double *restrict log_b, const double *restrict z,
                                   const double *restrict d, double t, long m) {
    double total = 0.0;
    if (d) {
#pragma omp simd reduction(+ : total)
        for (long i = 0; i < m; i++) total += s[i] * poisson(z[i] + t * d[i], b[i], log_b[i]);
    } else {
#pragma omp simd reduction(+ : total)
        for (long i = 0; i < m; i++) total += s[i] * poisson(z[i], b[i], log_b[i]);
    }
    return total;
}

/* mu = exp(z) and u = s (b - mu). */
static inline void poisson_state(const double *restrict s, const double *restrict b,
                                 const double *restrict z, double *restrict mu,
                                 double *restrict u, long m) {
    for (long i = 0; i < m; i++) {
        mu[i] = fast_exp(z[i]);
        u[i] = s[i] * (b[i] - mu[i]);
    }
}

/* Minus the sum of s_i phi*(v_i) where v_i + b_i = q_i = b_i + scale (mu_i - b_i). */
static inline double poisson_dual(const double *restrict s, const double *restrict b,
                                  const double *restrict log_b, const double *restrict mu,
                                  double scale, long m) {
    double total = 0.0, tiny = 1e-300;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < m; i++) {
        double step = scale * (mu[i] - b[i]), q = b[i] + step;
        double far = fast_log(q > tiny ? q : tiny) - log_b[i];
        double t = b[i] > 0.0 ? step / b[i] : 2.0; /* log(q / b) = log(1 + t) keeps its digits */
        double near = twice_artanh(t > -0.5 && t < 1.0 ? t / (2.0 + t) : 0.0);
        total += s[i] * (step - step * log_b[i] - q * (t > -0.5 && t < 1.0 ? near : far));
    }
    return total;
}
    """
    double poisson_value(double *s, double *b, double *log_b, double *z, double *d, double t, long m) noexcept nogil
    void poisson_state(double *s, double *b, double *z, double *mu, double *u, long m) noexcept nogil
    double poisson_dual(double *s, double *b, double *log_b, double *mu, double scale, long m) noexcept nogil


cdef class Poisson(Loss):
    """phi(z) = exp(z) - b z + b log b - b, and u = s (b - exp(z))."""

    cdef double *mu     # (m,): exp(z), or what the dual point was moved to
    cdef double *log_b  # (m,): 0 where b is 0

    def __cinit__(self, b, s):
        self.mu = <double *> resized(NULL, self.m, sizeof(double))
        self.log_b = <double *> resized(NULL, self.m, sizeof(double))
        self.take_targets(self.b)

    def __dealloc__(self):
        free(self.mu)
        free(self.log_b)

    cdef void take_targets(self, double *b) noexcept nogil:
        cdef Py_ssize_t i
        self.b = b
        for i in range(self.m):
            self.log_b[i] = log(b[i]) if b[i] > 0 else 0.0

    cdef double value(self, double *z, double *d, double t) noexcept nogil:
        return poisson_value(self.s, self.b, self.log_b, z, d, t, self.m)

    cdef void differentiate(self, double *z) noexcept nogil:
        poisson_state(self.s, self.b, z, self.mu, self.u, self.m)

    cdef void curvature(self, double *D) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.m):
            D[i] = self.s[i] * self.mu[i]

    cdef void shift(self, double *v) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.m):
            self.mu[i] = max(0.0, self.mu[i] * (1.0 + v[i]))
            self.u[i] = self.s[i] * (self.b[i] - self.mu[i])

    cdef double dual_value(self, double scale) noexcept nogil:
        return poisson_dual(self.s, self.b, self.log_b, self.mu, scale, self.m) if 0.0 <= scale <= 1.0 else -INFINITY
