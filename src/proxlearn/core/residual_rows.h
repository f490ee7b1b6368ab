/* Products of one column with the residuals of several tasks, for coordinate descent on rows.
 *
 * R holds the residuals task after task, R_t = R + t ld. Four tasks at a time share what is loaded of the
 * column, and their sums stay in registers. */
#ifndef PROXLEARN_RESIDUAL_ROWS_H
#define PROXLEARN_RESIDUAL_ROWS_H

#include "gram.h"

static inline double lanes_total(gram_lanes v) {
    double total = 0.0;
    for (int s = 0; s < GRAM_LANES; s++) total += v[s];
    return total;
}

/* g_t = a . R_t for `count` tasks; `count` is a constant where this is inlined. */
static inline __attribute__((always_inline)) void some_products(const double *a, const double *R,
                                                                long ld, long m, int count, double *g) {
    gram_lanes sum[4] = {{0}, {0}, {0}, {0}};
    long i = 0;
    for (; i + GRAM_LANES <= m; i += GRAM_LANES) {
        gram_lanes column = gram_lanes_at(a + i);
#pragma GCC unroll 4
        for (int t = 0; t < count; t++) sum[t] += column * gram_lanes_at(R + t * ld + i);
    }
    for (int t = 0; t < count; t++) g[t] = lanes_total(sum[t]);
    for (; i < m; i++)
        for (int t = 0; t < count; t++) g[t] += a[i] * R[t * ld + i];
}

/* R_t -= d_t a for `count` tasks. */
static inline __attribute__((always_inline)) void subtract_some(const double *a, double *R, long ld, long m,
                                                                int count, const double *d) {
    gram_lanes step[4];
    for (int t = 0; t < count; t++) step[t] = d[t] - (gram_lanes){0};
    long i = 0;
    for (; i + GRAM_LANES <= m; i += GRAM_LANES) {
        gram_lanes column = gram_lanes_at(a + i);
#pragma GCC unroll 4
        for (int t = 0; t < count; t++) {
            gram_lanes left = gram_lanes_at(R + t * ld + i) - step[t] * column;
            memcpy(R + t * ld + i, &left, sizeof left);
        }
    }
    for (; i < m; i++)
        for (int t = 0; t < count; t++) R[t * ld + i] -= d[t] * a[i];
}

/* Ask for a column that is read next: columns begin anywhere, so that the processor does not foresee it. */
static inline void prefetch_column(const double *a, long m) {
    for (long i = 0; i < m; i += 8) __builtin_prefetch(a + i);
}

/* g_t = a . R_t for all tasks. */
static inline void row_products(const double *a, const double *R, long ld, long m, long tasks, double *g) {
    long t = 0;
    for (; t + 4 <= tasks; t += 4) some_products(a, R + t * ld, ld, m, 4, g + t);
    if (t + 2 <= tasks) some_products(a, R + t * ld, ld, m, 2, g + t), t += 2;
    if (t < tasks) some_products(a, R + t * ld, ld, m, 1, g + t);
}

/* c[j tasks + t] = a_j . R_t for n columns, which begin ld apart, and the residuals, m apart, of all tasks. */
static inline void all_row_products(const double *A, long ld, long n, const double *R, long m, long tasks, double *c) {
    for (long j = 0; j < n; j += GRAM_TILE)
        for (long t = 0; t < tasks; t += GRAM_TILE) {
            const double *a[GRAM_TILE], *b[GRAM_TILE];
            double out[GRAM_TILE * GRAM_TILE];
            for (long s = 0; s < GRAM_TILE; s++) {
                a[s] = A + (j + s < n ? j + s : j) * ld;
                b[s] = R + (t + s < tasks ? t + s : t) * m;
            }
            gram_tile(a, b, NULL, m, out);
            for (long s = 0; s < GRAM_TILE && j + s < n; s++)
                for (long q = 0; q < GRAM_TILE && t + q < tasks; q++) c[(j + s) * tasks + t + q] = out[GRAM_TILE * q + s];
        }
}

/* R_t -= d_t a for all tasks. */
static inline void subtract_row(const double *a, double *R, long ld, long m, long tasks, const double *d) {
    long t = 0;
    for (; t + 4 <= tasks; t += 4) subtract_some(a, R + t * ld, ld, m, 4, d + t);
    if (t + 2 <= tasks) subtract_some(a, R + t * ld, ld, m, 2, d + t), t += 2;
    if (t < tasks) subtract_some(a, R + t * ld, ld, m, 1, d + t);
}

#endif
