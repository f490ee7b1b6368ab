/* Products of the columns of one block with the residual, for coordinate descent on groups.
 *
 * Up to eight columns at a time share what is loaded of the residual, and their sums stay in registers. */
#ifndef PROXLEARN_BLOCK_COLUMNS_H
#define PROXLEARN_BLOCK_COLUMNS_H

#include "residual_rows.h"

#define BLOCK_COLUMNS 8

/* g_t = a_t . R for `count` columns; `count` is a constant where this is inlined. */
static inline __attribute__((always_inline)) void products_of(const double *const *a, const double *R, long m, int count,
                                                              double *g) {
    gram_lanes sum[BLOCK_COLUMNS] = {{0}};
    long i = 0;
    for (; i + GRAM_LANES <= m; i += GRAM_LANES) {
        gram_lanes left = gram_lanes_at(R + i);
#pragma GCC unroll 8
        for (int t = 0; t < count; t++) sum[t] += gram_lanes_at(a[t] + i) * left;
    }
    for (int t = 0; t < count; t++) g[t] = lanes_total(sum[t]);
    for (; i < m; i++)
        for (int t = 0; t < count; t++) g[t] += a[t][i] * R[i];
}

/* R -= sum_t d_t a_t for `count` columns. */
static inline __attribute__((always_inline)) void subtract_of(const double *const *a, const double *d, double *R, long m,
                                                              int count) {
    gram_lanes step[BLOCK_COLUMNS];
    for (int t = 0; t < count; t++) step[t] = d[t] - (gram_lanes){0};
    long i = 0;
    for (; i + GRAM_LANES <= m; i += GRAM_LANES) {
        gram_lanes taken = step[0] * gram_lanes_at(a[0] + i);
#pragma GCC unroll 8
        for (int t = 1; t < count; t++) taken += step[t] * gram_lanes_at(a[t] + i);
        taken = gram_lanes_at(R + i) - taken;
        memcpy(R + i, &taken, sizeof taken);
    }
    for (; i < m; i++)
        for (int t = 0; t < count; t++) R[i] -= d[t] * a[t][i];
}

#define FOR_EACH_COUNT(call)                                                                                            \
    switch (count) {                                                                                                    \
        case 1: call(1); break;                                                                                         \
        case 2: call(2); break;                                                                                         \
        case 3: call(3); break;                                                                                         \
        case 4: call(4); break;                                                                                         \
        case 5: call(5); break;                                                                                         \
        case 6: call(6); break;                                                                                         \
        case 7: call(7); break;                                                                                         \
        default: call(8);                                                                                               \
    }

/* g_t = a_t . R for all columns of a block. */
static inline void block_products(const double *const *a, const double *R, long m, long size, double *g) {
#define PRODUCTS(c) products_of(a + t, R, m, c, g + t)
    for (long t = 0; t < size; t += BLOCK_COLUMNS) {
        long count = size - t;
        FOR_EACH_COUNT(PRODUCTS)
    }
#undef PRODUCTS
}

/* R -= sum_t d_t a_t for all columns of a block. */
static inline void subtract_block(const double *const *a, const double *d, double *R, long m, long size) {
#define SUBTRACT(c) subtract_of(a + t, d + t, R, m, c)
    for (long t = 0; t < size; t += BLOCK_COLUMNS) {
        long count = size - t;
        FOR_EACH_COUNT(SUBTRACT)
    }
#undef SUBTRACT
}

#endif
