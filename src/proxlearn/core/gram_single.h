/* The Gram matrix of some columns with products in float32, in about half of the time. What rounding leaves
 * out of it is found later, by products with the columns themselves in float64. */
#ifndef PROXLEARN_GRAM_SINGLE_H
#define PROXLEARN_GRAM_SINGLE_H

#include "gram.h"

#define GRAM_FLOATS (2 * GRAM_LANES)
#define GRAM_FLOAT_ROWS (2 * GRAM_ROWS) /* of a block, so that it takes as many bytes */

typedef float gram_floats __attribute__((vector_size(4 * GRAM_FLOATS)));

static inline __attribute__((always_inline)) void gram_float_sums(const gram_floats *v, double *out) {
    gram_lanes half[GRAM_TILE * GRAM_TILE];
#pragma GCC unroll 25
    for (int t = 0; t < GRAM_TILE * GRAM_TILE; t++) {
#if defined(__AVX512F__)
        __m256 low = _mm512_castps512_ps256((__m512)v[t]);
        __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)v[t], 1));
        half[t] = (gram_lanes)_mm512_cvtps_pd(low + high);
#else
        for (int l = 0; l < GRAM_LANES; l++) half[t][l] = v[t][l] + v[t][l + GRAM_LANES];
#endif
    }
    gram_sums(half, out);
}

/* out[GRAM_TILE t + s] = sum of a_s[i] b_t[i] for i < rows, a multiple of a vector's length. */
static inline __attribute__((always_inline)) void gram_float_tile(const float *const *a, const float *const *b,
                                                                  long rows, double *out) {
    gram_floats sum[GRAM_TILE * GRAM_TILE];
    const float *p[GRAM_TILE], *q[GRAM_TILE];
    for (int s = 0; s < GRAM_TILE; s++) p[s] = a[s], q[s] = b[s];
    for (int s = 0; s < GRAM_TILE * GRAM_TILE; s++) sum[s] = (gram_floats){0};
    for (long i = 0; i < rows; i += GRAM_FLOATS) {
        gram_floats u[GRAM_TILE];
#pragma GCC unroll 5
        for (int s = 0; s < GRAM_TILE; s++) u[s] = *(const gram_floats *)(p[s] + i);
#pragma GCC unroll 5
        for (int t = 0; t < GRAM_TILE; t++) {
            gram_floats v = *(const gram_floats *)(q[t] + i);
#pragma GCC unroll 5
            for (int s = 0; s < GRAM_TILE; s++) sum[GRAM_TILE * t + s] += u[s] * v;
        }
    }
    gram_float_sums(sum, out);
}

/* How many numbers of float64 take as much memory as a block of `count` columns. */
static inline long gram_single_room(long count) {
    return (GRAM_FLOAT_ROWS + 2 * GRAM_LINE) / 2 * (count + 1) + GRAM_LINE;
}

/* The columns of H = C^T C on and above its diagonal, where C (m, count) has the columns `column`. Columns of
 * H begin `ld` apart; `room` has gram_single_room(count) numbers. */
static inline void gram_in_single(double *const *column, long m, long count, double *H, long ld, double *room) {
    float *block = (float *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
    long most = 2 * GRAM_BLOCK / count, apart;
    most = most > GRAM_FLOAT_ROWS ? GRAM_FLOAT_ROWS : most < GRAM_LEAST_ROWS ? GRAM_LEAST_ROWS : most;
    most = most / GRAM_FLOATS * GRAM_FLOATS, apart = most + 2 * GRAM_LINE;
    for (long first = 0; first < m; first += most) {
        long rows = first + most < m ? most : m - first;
        long whole = (rows + GRAM_FLOATS - 1) / GRAM_FLOATS * GRAM_FLOATS;
        for (long p = 0; p < count; p++) {
            const double *restrict from = column[p] + first;
            float *restrict to = block + p * apart;
            for (long i = 0; i < rows; i++) to[i] = (float)from[i];
            for (long i = rows; i < whole; i++) to[i] = 0.0f;
        }
        for (long q = 0; q < count; q += GRAM_TILE) {
            const float *a[GRAM_TILE], *b[GRAM_TILE];
            double out[GRAM_TILE * GRAM_TILE];
            long wide = count - q < GRAM_TILE ? count - q : GRAM_TILE;
            for (long t = 0; t < GRAM_TILE; t++) b[t] = block + (q + (t < wide ? t : 0)) * apart;
            for (long p = 0; p < q + wide; p += GRAM_TILE) {
                long high = q + wide - p < GRAM_TILE ? q + wide - p : GRAM_TILE;
                for (long s = 0; s < GRAM_TILE; s++) a[s] = block + (p + (s < high ? s : 0)) * apart;
                gram_float_tile(a, b, whole, out);
                for (long t = 0; t < wide; t++)
                    for (long s = 0; s < high; s++) {
                        double *entry = H + (q + t) * ld + p + s;
                        *entry = (first ? *entry : 0.0) + out[GRAM_TILE * t + s];
                    }
            }
        }
    }
}
#endif
