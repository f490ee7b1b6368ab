/* Loops over contiguous vectors that the compiler turns into vector instructions.
 *
 * Nothing here is compiled with -ffast-math: infinities, NaN and subnormal numbers keep their meaning.
 * Sums are reordered only in the loops that say so (`#pragma omp simd reduction`, -fopenmp-simd). */
#ifndef PROXLEARN_MATHS_H
#define PROXLEARN_MATHS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "columns.h"

static inline double dot(const double *restrict a, const double *restrict b, long n) {
    double s = 0.0;
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

static inline double squared_distance(const double *restrict a, const double *restrict b, long n) {
    double s = 0.0;
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < n; i++) s += (a[i] - b[i]) * (a[i] - b[i]);
    return s;
}

static inline void axpy(double t, const double *restrict a, double *restrict y, long n) {
    for (long i = 0; i < n; i++) y[i] += t * a[i];
}

/* y += t_0 a_0 + ... + t_3 a_3. */
static inline void add_four(double *const *a, const double *t, double *restrict y, long n) {
    const double *restrict p = a[0], *restrict q = a[1], *restrict r = a[2], *restrict s = a[3];
    const double b = t[0], c = t[1], d = t[2], e = t[3];
    for (long i = 0; i < n; i++) y[i] += (b * p[i] + c * q[i]) + (d * r[i] + e * s[i]);
}

/* y -= sum_i d_i H_i for columns H_i of length n, which begin `ld` apart: four of them at a time. */
static inline void subtract_columns(const double *restrict H, long ld, const double *restrict d,
                                    long count, double *restrict y, long n) {
    long i = 0;
    for (; i + 4 <= count; i += 4) {
        const double *p = H + i * ld, *q = p + ld, *r = q + ld, *s = r + ld;
        double a = d[i], b = d[i + 1], c = d[i + 2], e = d[i + 3];
        for (long j = 0; j < n; j++) y[j] -= (a * p[j] + b * q[j]) + (c * r[j] + e * s[j]);
    }
    for (; i < count; i++) axpy(-d[i], H + i * ld, y, n);
}

static inline double sum_of(const double *restrict a, long n) {
    double s = 0.0;
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < n; i++) s += a[i];
    return s;
}

static inline void root_scaled(const double *restrict D, const double *restrict a,
                               double *restrict out, long n) {
    for (long i = 0; i < n; i++) out[i] = sqrt(D[i]) * a[i];
}

/* What the optimality conditions and the dual need to know of all coordinates, as if x were 0.
 *
 * violation_j is the distance of c_j to the subdifferential of r_j at 0. Returns the largest of
 * |c_j| / l1_j over the coordinates whose conjugate is infinite beyond l1_j; `largest` is that of
 * |c_j| alone. */
static inline double survey(const double *restrict c, const double *restrict l1,
                            const double *restrict l2, const double *restrict lower,
                            const double *restrict upper, double *restrict violation,
                            double *restrict largest, long n) {
    double ratio = 0.0, most = 0.0;
#pragma omp simd reduction(max : ratio, most)
    for (long j = 0; j < n; j++) {
        double size = fabs(c[j]), excess = size - l1[j];
        double room = c[j] > 0 ? upper[j] : -lower[j];
        violation[j] = (excess > 0 && room > 0) ? excess : 0.0;
        double r = (room == INFINITY && l2[j] == 0 && size > 0) ? size / l1[j] : 0.0;
        ratio = r > ratio ? r : ratio;
        most = size > most ? size : most;
    }
    *largest = most;
    return ratio;
}

/* H[at_p, at_q] += d value_p value_q for the entries old, ..., count - 1 of a row, p, and those up to them,
 * q. The places rise. */
static inline void add_pairs(const Py_ssize_t *restrict at, const double *restrict value, double d,
                             long old, long count, double *restrict H, long ld) {
    for (long p = old; p < count; p++) {
        double scaled = d * value[p];
        double *restrict column = H + at[p] * ld;
        for (long q = 0; q <= p; q++) column[at[q]] += scaled * value[q];
    }
}

/* exp(x) to about one unit in the last place, for x in [-745, 709]; larger and smaller x are
 * clipped to that range. Cody-Waite reduction x = k log 2 + r and a polynomial of degree 13. */
static inline double fast_exp(double x) {
    const double shift = 0x1.8p52;
    x = x < -708.0 ? -708.0 : x;
    x = x > 709.0 ? 709.0 : x;
    double k = x * 1.4426950408889634074 + shift;
    int64_t bits;
    memcpy(&bits, &k, 8);
    k -= shift;
    double r = x - k * 0x1.62e42fefa0000p-1;
    r -= k * 0x1.cf79abc9e3b39p-40;
    double p = 1.6059043836821614599e-10;
    p = p * r + 2.0876756987868098979e-09;
    p = p * r + 2.5052108385441718775e-08;
    p = p * r + 2.7557319223985890653e-07;
    p = p * r + 2.7557319223985890653e-06;
    p = p * r + 2.4801587301587301566e-05;
    p = p * r + 1.9841269841269841253e-04;
    p = p * r + 1.3888888888888889419e-03;
    p = p * r + 8.3333333333333332177e-03;
    p = p * r + 4.1666666666666664354e-02;
    p = p * r + 1.6666666666666665741e-01;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t e = ((uint64_t)bits + 1023) << 52; /* only the lowest eleven bits stay */
    double scale;
    memcpy(&scale, &e, 8);
    return p * scale;
}

/* 2 artanh(s) for |s| <= 1/3, as a series in the square of s. */
static inline double twice_artanh(double s) {
    double q = s * s;
    double p = 1.0 / 33;
    p = p * q + 1.0 / 31;
    p = p * q + 1.0 / 29;
    p = p * q + 1.0 / 27;
    p = p * q + 1.0 / 25;
    p = p * q + 1.0 / 23;
    p = p * q + 1.0 / 21;
    p = p * q + 1.0 / 19;
    p = p * q + 1.0 / 17;
    p = p * q + 1.0 / 15;
    p = p * q + 1.0 / 13;
    p = p * q + 1.0 / 11;
    p = p * q + 1.0 / 9;
    p = p * q + 1.0 / 7;
    p = p * q + 1.0 / 5;
    p = p * q + 1.0 / 3;
    p = p * q + 1.0;
    return 2.0 * s * p;
}

/* log(1 + e) for e in [0, 1], and log(1 - e) for e in [0, 1/2]. */
static inline double fast_log1p(double e) { return twice_artanh(e / (2.0 + e)); }
static inline double log1m(double e) { return -twice_artanh(e / (2.0 - e)); }

/* A normal x > 0 is 2^k y with y in [sqrt(1/2), sqrt(2)]; k, as a number, and y. It is computed with
 * unsigned numbers and a shift of the mantissa: AVX2 and AVX-512 alike have instructions for these. */
static inline double log_power(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    uint64_t k = (bits - 0x3fe6a09e667f3bcdULL + (1024ULL << 52)) >> 52; /* k + 1024 */
    k |= 0x4330000000000000ULL;                                          /* as the end of 2^52 + k + 1024 */
    double shifted;
    memcpy(&shifted, &k, 8);
    return shifted - (0x1p52 + 1024.0);
}

static inline double log_mantissa(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    bits -= (bits - 0x3fe6a09e667f3bcdULL) & 0xfff0000000000000ULL;
    double y;
    memcpy(&y, &bits, 8);
    return y;
}

/* log(x) for normal x > 0: 2 artanh((y-1)/(y+1)) and a multiple of log 2. */
static inline double fast_log(double x) {
    double y = log_mantissa(x);
    return log_power(x) * 0.69314718055994530942 + twice_artanh((y - 1.0) / (y + 1.0));
}

/* d becomes the solution of L L^T d = d, with a Cholesky factor L of columns of length ld, for a few
 * variables. */
static inline void small_solve(const double *L, long ld, long n, double *d) {
    for (long t = 0; t < n; t++) {
        d[t] /= L[t * ld + t];
        axpy(-d[t], L + t * ld + t + 1, d + t + 1, n - t - 1);
    }
    for (long t = n - 1; t >= 0; t--)
        d[t] = (d[t] - dot(L + t * ld + t + 1, d + t + 1, n - t - 1)) / L[t * ld + t];
}

/* Remove variable i from a Cholesky factor L (a x a, lower, columns of length ld): the rows below it
 * move up, and rotations of neighbouring columns make L triangular again. */
static inline void remove_variable(double *L, long ld, long a, long i) {
    for (long t = 0; t < a; t++) {
        long to = t <= i ? i : t - 1;
        memmove(L + t * ld + to, L + t * ld + to + 1, (a - 1 - to) * sizeof(double));
    }
    for (long t = i; t < a - 1; t++) {
        double *restrict p = L + t * ld, *restrict q = L + (t + 1) * ld;
        double size = sqrt(p[t] * p[t] + q[t] * q[t]), c = p[t] / size, s = q[t] / size;
        for (long r = t; r < a - 1; r++) {
            double u = p[r], v = q[r];
            p[r] = c * u + s * v;
            q[r] = c * v - s * u;
        }
    }
}

/* The largest magnitude of n numbers; NaN if one of them is NaN, since x * 0 is not 0 then. */
#define LARGEST(T)                                                       \
    static inline double largest_##T(const T *restrict a, long n) {      \
        T most = 0, spoiled = 0;                                         \
        _Pragma("omp simd reduction(max : most) reduction(+ : spoiled)") \
        for (long i = 0; i < n; i++) {                                   \
            T v = a[i] < 0 ? -a[i] : a[i];                               \
            most = v > most ? v : most;                                  \
            spoiled += v * 0;                                            \
        }                                                                \
        return spoiled == 0 ? (double)most : NAN;                        \
    }
LARGEST(float)
LARGEST(double)

/* The products of a dense matrix in the precision of its entries, summed in float64.
 * "tall" means that a column is contiguous (Fortran order), "flat" that a row is (C order). */
static inline void correlate_tall_float(const float *restrict a, long ld, const double *restrict u,
                                      double *restrict c, long m, long n) {
    long j = 0;
    for (; j + 4 <= n; j += 4) {
        const float *p = a + j * ld, *q = p + ld, *r = q + ld, *t = r + ld;
        double w = 0, x = 0, y = 0, z = 0;
#pragma omp simd reduction(+ : w, x, y, z)
        for (long i = 0; i < m; i++) {
            w += (double)p[i] * u[i];
            x += (double)q[i] * u[i];
            y += (double)r[i] * u[i];
            z += (double)t[i] * u[i];
        }
        c[j] = w, c[j + 1] = x, c[j + 2] = y, c[j + 3] = z;
    }
    for (; j < n; j++) {
        double w = 0;
#pragma omp simd reduction(+ : w)
        for (long i = 0; i < m; i++) w += (double)a[j * ld + i] * u[i];
        c[j] = w;
    }
}

#define DENSE_KERNELS(T)                                                                          \
    static inline void correlate_flat_##T(const T *restrict a, long ld, const double *restrict u, \
                                          double *restrict c, long m, long n) {                   \
        for (long j = 0; j < n; j++) c[j] = 0;                                                    \
        for (long first = 0; first < n; first += 4096) {                                          \
            long width = n - first < 4096 ? n - first : 4096;                                     \
            double *restrict out = c + first;                                                     \
            long i = 0;                                                                           \
            for (; i + 4 <= m; i += 4) {                                                          \
                const T *p = a + i * ld + first, *q = p + ld, *r = q + ld, *t = r + ld;           \
                double w = u[i], x = u[i + 1], y = u[i + 2], z = u[i + 3];                        \
                for (long j = 0; j < width; j++)                                                  \
                    out[j] += ((double)p[j] * w + (double)q[j] * x) +                             \
                              ((double)r[j] * y + (double)t[j] * z);                              \
            }                                                                                     \
            for (; i < m; i++) {                                                                  \
                const T *p = a + i * ld + first;                                                  \
                for (long j = 0; j < width; j++) out[j] += (double)p[j] * u[i];                   \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static inline void multiply_tall_##T(const T *restrict a, long ld, const double *restrict x,  \
                                         double *restrict z, long m, long n) {                    \
        for (long i = 0; i < m; i++) z[i] = 0;                                                    \
        for (long j = 0; j < n; j++) {                                                            \
            const T *p = a + j * ld;                                                              \
            if (x[j] != 0)                                                                        \
                for (long i = 0; i < m; i++) z[i] += (double)p[i] * x[j];                         \
        }                                                                                         \
    }                                                                                             \
    static inline void multiply_flat_##T(const T *restrict a, long ld, const double *restrict x,  \
                                         double *restrict z, long m, long n) {                    \
        correlate_tall_##T(a, ld, x, z, n, m);                                                    \
    }                                                                                             \
    static inline void copy_column_##T(const T *restrict a, long stride, double shift,            \
                                       double *restrict out, long m) {                            \
        if (stride == 1)                                                                          \
            for (long i = 0; i < m; i++) out[i] = (double)a[i] - shift;                           \
        else                                                                                      \
            for (long i = 0; i < m; i++) out[i] = (double)a[i * stride] - shift;                  \
    }

DENSE_KERNELS(float)
DENSE_KERNELS(double)

#endif
