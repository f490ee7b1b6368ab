/* Vectors of eight numbers, and products with the columns of a matrix of float64. */
#ifndef PROXLEARN_COLUMNS_H
#define PROXLEARN_COLUMNS_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define LANES 8
typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t mask __attribute__((vector_size(64), aligned(8), may_alias));

static inline lanes load(const double *a) { return *(const lanes *)a; }
static inline void store(double *a, lanes v) { *(lanes *)a = v; }

/* The first `count` < LANES numbers at a, and zeros. */
static inline lanes load_some(const double *a, long count) {
#ifdef __AVX512F__
    return (lanes)_mm512_maskz_loadu_pd((1u << count) - 1, a);
#else
    double some[LANES] = {0};
    for (long i = 0; i < count; i++) some[i] = a[i];
    return load(some);
#endif
}

/* The larger numbers; those of b where one of two is NaN. */
static inline lanes larger(lanes a, lanes b) {
#ifdef __AVX512F__
    return (lanes)_mm512_max_pd((__m512d)a, (__m512d)b);
#else
    mask where = a > b;
    return (lanes)(((mask)a & where) | ((mask)b & ~where));
#endif
}

static inline lanes magnitude(lanes a) { return (lanes)((mask)a & INT64_MAX); }

static inline double largest_lane(lanes v) {
    double a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    double c = v[4] > v[5] ? v[4] : v[5], d = v[6] > v[7] ? v[6] : v[7];
    a = a > b ? a : b, c = c > d ? c : d;
    return a > c ? a : c;
}

static inline double sum_of_lanes(lanes v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* Rows up to which the next columns are asked for ahead of time: the processor foresees long columns only. */
#define SHORT_COLUMN 256

/* c = A^T u for columns of length m that begin `ld` apart; with `measure` also the largest magnitude of their
 * entries, and NaN where an entry, or a product, is not finite. */
static inline __attribute__((always_inline)) double correlate_columns(const double *a, long ld, const double *u, double *c, long m,
                                                                      long n, int measure) {
    const long ahead = m <= SHORT_COLUMN ? 4 * ld : 0;
    lanes most = {0}, spoiled = {0};
    for (long j = 0; j < n; j += 4) {
        const double *column[4];
        lanes sum[4] = {{0}};
        long i = 0;
        for (int k = 0; k < 4; k++) column[k] = a + (j + k < n ? j + k : j) * ld;
        for (; i + LANES <= m; i += LANES) {
            lanes v = load(u + i);
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                lanes w = load(column[k] + i);
                if (ahead) __builtin_prefetch(column[k] + ahead + i);
                sum[k] += w * v;
                if (measure) most = larger(magnitude(w), most);
            }
        }
        if (i < m) {
            lanes v = load_some(u + i, m - i);
            for (int k = 0; k < 4; k++) {
                lanes w = load_some(column[k] + i, m - i);
                sum[k] += w * v;
                if (measure) most = larger(magnitude(w), most);
            }
        }
        for (int k = 0; k < 4 && j + k < n; k++) {
            c[j + k] = sum_of_lanes(sum[k]);
            if (measure) spoiled += sum[k] * 0.0;
        }
    }
    return sum_of_lanes(spoiled) == 0.0 ? largest_lane(most) : NAN;
}

static inline void correlate_tall_double(const double *a, long ld, const double *u, double *c, long m, long n) {
    correlate_columns(a, ld, u, c, m, n, 0);
}

static inline double examine(const double *a, long ld, const double *u, double *c, long m, long n) {
    return correlate_columns(a, ld, u, c, m, n, 1);
}

/* For columns of length m that lie one after the other: the sums of s_i a_ij, s_i a_ij^2 and u_i a_ij, in three rows of n. */
static inline void column_moments(const double *a, const double *s, const double *u, double *out, long m, long n) {
    for (long j = 0; j < n; j += 4) {
        const double *column[4];
        lanes sum[12] = {{0}};
        for (int k = 0; k < 4; k++) column[k] = a + (j + k < n ? j + k : j) * m;
        for (long i = 0; i < m; i += LANES) {
            const long left = m - i;
            lanes weight = left < LANES ? load_some(s + i, left) : load(s + i), v = left < LANES ? load_some(u + i, left) : load(u + i);
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                lanes w = left < LANES ? load_some(column[k] + i, left) : load(column[k] + i), p = weight * w;
                sum[k] += p;
                sum[4 + k] += p * w;
                sum[8 + k] += v * w;
            }
        }
        for (int k = 0; k < 4 && j + k < n; k++)
            for (int r = 0; r < 3; r++) out[r * n + j + k] = sum_of_lanes(sum[4 * r + k]);
    }
}

/* y += sum of weight_i times column item_i of H, of length n; columns begin `ld` apart. */
static inline void add_columns(const double *H, long ld, const intptr_t *item, const double *weight, long count, double *restrict y,
                               long n) {
    long i = 0;
    for (; i + 4 <= count; i += 4) {
        const double *p = H + item[i] * ld, *q = H + item[i + 1] * ld, *r = H + item[i + 2] * ld, *s = H + item[i + 3] * ld;
        double a = weight[i], b = weight[i + 1], c = weight[i + 2], d = weight[i + 3];
        for (long j = 0; j < n; j++) y[j] += (a * p[j] + b * q[j]) + (c * r[j] + d * s[j]);
    }
    for (; i < count; i++) {
        const double *p = H + item[i] * ld;
        for (long j = 0; j < n; j++) y[j] += weight[i] * p[j];
    }
}

#endif
