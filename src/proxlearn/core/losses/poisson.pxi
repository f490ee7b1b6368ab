# Poisson regression with a log link: phi(z) = exp(z) - b z + b log b - b, counts b >= 0.
#
# That is half the deviance, 0 at z = log b and never negative. Its conjugate is finite for v >= -b:
# phi*(v) = q log q - q - b log b + b with q = v + b. The dual point of any z has q = exp(z) > 0, and
# its multiples by numbers from 0 to 1 have q between b and exp(z). A dual point that was made orthogonal to
# unpenalised columns may have q < 0; those entries are cut off at 0, and there is no bound at that point.

cdef extern from *:
    """
/* exp(d) - 1 - d for |d| < 1/2, where the terms cancel, as a series. */
static inline double exp_remainder(double d) {
    double p = 1.1470745597729725e-11; /* 1/14!, 1/13!, ..., 1/2! */
    p = p * d + 1.6059043836821613e-10;
    p = p * d + 2.0876756987868099e-09;
    p = p * d + 2.505210838544172e-08;
    p = p * d + 2.755731922398589e-07;
    p = p * d + 2.7557319223985893e-06;
    p = p * d + 2.48015873015873e-05;
    p = p * d + 0.0001984126984126984;
    p = p * d + 0.001388888888888889;
    p = p * d + 0.008333333333333333;
    p = p * d + 0.041666666666666664;
    p = p * d + 0.16666666666666666;
    p = p * d + 0.5;
    return (d * d) * p;
}

/* phi at z, for a count b and its logarithm; infinite where exp overflows. It is b (exp(d) - 1 - d) with
 * d = z - log b, unless exp(d) would be too large. */
static inline double poisson(double z, double b, double log_b) {
    double d = z - log_b;
    int scaled = b > 0.0 && d < 40.0;
    double e = fast_exp(scaled ? d : z);
    double near = fabs(d) < 0.5 ? exp_remainder(d) : e - 1.0 - d;
    double value = scaled ? b * near : e - b * (1.0 + d);
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
                                 double *restrict bend, double *restrict u, long m) {
    for (long i = 0; i < m; i++) {
        mu[i] = bend[i] = fast_exp(z[i]);
        u[i] = s[i] * (b[i] - mu[i]);
    }
}

/* -phi*(v) where v + b = q = b + step. With t = step / b, log(q / b) = log(1 + t) keeps its digits near 0. */
static inline double poisson_conjugate(double step, double b, double log_b) {
    double q = b + step, t = b > 0.0 ? step / b : 2.0;
    int close = fabs(t - 0.25) < 0.75; /* one comparison: two of them keep the loop from vector instructions */
    double x = close ? 1.0 : q > 1e-300 ? q : 1e-300, y = log_mantissa(x);
    double over = close ? t : y - 1.0, under = close ? 2.0 + t : y + 1.0;
    double log_ratio = log_power(x) * 0.69314718055994530942 + twice_artanh(over / under);
    return step - step * log_b - q * (close ? log_ratio : log_ratio - log_b);
}

/* Minus the sum of s_i phi*(v_i) where v_i + b_i = q_i = b_i + scale (mu_i - b_i). */
static inline double poisson_dual(const double *restrict s, const double *restrict b,
                                  const double *restrict log_b, const double *restrict mu,
                                  double scale, long m) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < m; i++)
        total += s[i] * poisson_conjugate(scale * (mu[i] - b[i]), b[i], log_b[i]);
    return total;
}

/* The sum of the magnitudes of what is added up there and in the value, |u_i| (1 + |log b_i| + |z_i|). */
static inline double poisson_terms(const double *restrict u, const double *restrict log_b,
                                   const double *restrict z, long m) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < m; i++) total += fabs(u[i]) * (1.0 + fabs(log_b[i]) + fabs(z[i]));
    return total;
}
    """
    double poisson_value(double *s, double *b, double *log_b, double *z, double *d, double t, long m) noexcept nogil
    void poisson_state(double *s, double *b, double *z, double *mu, double *bend, double *u, long m) noexcept nogil
    double poisson_dual(double *s, double *b, double *log_b, double *mu, double scale, long m) noexcept nogil
    double poisson_terms(double *u, double *log_b, double *z, long m) noexcept nogil


cdef class Poisson(Loss):
    """phi(z) = exp(z) - b z + b log b - b, and u = s (b - exp(z))."""

    cdef double *mu     # (m,): exp(z), or what the dual point was moved to
    cdef double *bend   # (m,): exp(z), the curvature
    cdef double *log_b  # (m,): 0 where b is 0

    def __cinit__(self, b, s):
        self.mu = <double *> resized(NULL, self.m, sizeof(double))
        self.bend = <double *> resized(NULL, self.m, sizeof(double))
        self.log_b = <double *> resized(NULL, self.m, sizeof(double))
        self.take_targets(self.b)

    def __dealloc__(self):
        free(self.mu)
        free(self.bend)
        free(self.log_b)

    cdef void take_targets(self, double *b) noexcept nogil:
        cdef Py_ssize_t i
        self.b = b
        for i in range(self.m):
            self.log_b[i] = log(b[i]) if b[i] > 0 else 0.0

    cdef double value(self, double *z, double *d, double t) noexcept nogil:
        return poisson_value(self.s, self.b, self.log_b, z, d, t, self.m)

    cdef void differentiate(self, double *z) noexcept nogil:
        poisson_state(self.s, self.b, z, self.mu, self.bend, self.u, self.m)

    cdef double *means(self) noexcept nogil:
        return self.mu

    cdef void curvature(self, double *D) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.m):
            D[i] = self.s[i] * self.bend[i]

    cdef void shift(self, double *v) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.m):
            self.mu[i] = max(0.0, self.mu[i] + self.bend[i] * v[i])
            self.u[i] = self.s[i] * (self.b[i] - self.mu[i])

    cdef double dual_value(self, double scale) noexcept nogil:
        return poisson_dual(self.s, self.b, self.log_b, self.mu, scale, self.m) if 0.0 <= scale <= 1.0 else -INFINITY

    cdef void squared_sizes(self, double *D) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.m):
            D[i] = self.s[i] * max(self.b[i], self.mu[i])
            D[i] *= D[i]

    cdef double reach(self) noexcept nogil:
        return LOGARITHMS

    cdef double rounding(self, double *z) noexcept nogil:
        """Each term u (1 + log b) of the dual value is rounded four times, and logarithms can be large."""
        return 4.0 * DBL_EPSILON * poisson_terms(self.u, self.log_b, z, self.m)
