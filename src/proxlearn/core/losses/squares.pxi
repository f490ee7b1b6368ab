# Least squares: phi(z) = (z - b)^2 / 2.

cdef extern from *:
    """
/* Sum of s_i (b_i - z_i - t d_i)^2; d may be NULL, which stands for 0. */
static inline double squares_value(const double *restrict s, const double *restrict b,
                                   const double *restrict z, const double *restrict d, double t,
                                   long m) {
    double total = 0.0;
    if (!d) d = z, t = 0.0;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < m; i++) {
        double e = b[i] - z[i] - t * d[i];
        total += (s[i] * e) * e;
    }
    return total;
}

/* e = b - z and u = s e. */
static inline void squares_state(const double *restrict s, const double *restrict b,
                                 const double *restrict z, double *restrict e, double *restrict u,
                                 long m) {
    for (long i = 0; i < m; i++) {
        e[i] = b[i] - z[i];
        u[i] = s[i] * e[i];
    }
}
    """
    double squares_value(double *s, double *b, double *z, double *d, double t, long m) noexcept nogil
    void squares_state(double *s, double *b, double *z, double *e, double *u, long m) noexcept nogil


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
