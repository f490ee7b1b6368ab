/* The Gram matrix of some columns, which lie anywhere in memory, without a copy of them.
 *
 * Tiles of a few columns by a few columns stay in registers while rows go by. Measured on one core with
 * AVX-512 (2026-11-18, milliseconds, against OpenBLAS's dsyrk on columns that lie one after the other):
 * 442 x 10 0.0023 and 0.0060, 569 x 30 0.014 and 0.032, 4601 x 57 0.35 and 0.56, 10,000 x 100 2.5 and 3.3,
 * 500 x 300 1.02 and 0.99. */
#ifndef PROXLEARN_GRAM_H
#define PROXLEARN_GRAM_H

#include <string.h>

#if defined(__AVX512F__) /* 16 sums and 5 operands in 32 registers */
#define GRAM_LANES 8
#define GRAM_TILE 4
#elif defined(__AVX__) /* 9 sums and 4 operands in 16 registers */
#define GRAM_LANES 4
#define GRAM_TILE 3
#else
#define GRAM_LANES 2
#define GRAM_TILE 3
#endif
#define GRAM_ROWS 1024 /* rows of 2 GRAM_TILE columns that are read again and again: half of a small L2 cache */

typedef double gram_lanes __attribute__((vector_size(8 * GRAM_LANES)));

static inline gram_lanes gram_lanes_at(const double *p) {
    gram_lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* out[s][t] = sum of D_i a_s[i] b_t[i] for first <= i < last; D may be NULL, which stands for 1. */
static inline __attribute__((always_inline)) void gram_tile(const double *const *a,
                                                            const double *const *b, const double *D,
                                                            long first, long last,
                                                            double out[GRAM_TILE][GRAM_TILE]) {
    gram_lanes sum[GRAM_TILE][GRAM_TILE];
    const double *p[GRAM_TILE], *q[GRAM_TILE];
    for (int s = 0; s < GRAM_TILE; s++) {
        p[s] = a[s], q[s] = b[s];
        for (int t = 0; t < GRAM_TILE; t++) sum[s][t] = (gram_lanes){0};
    }
    long i = first;
    for (; i + GRAM_LANES <= last; i += GRAM_LANES) {
        gram_lanes u[GRAM_TILE];
#pragma GCC unroll 4
        for (int s = 0; s < GRAM_TILE; s++) {
            u[s] = gram_lanes_at(p[s] + i);
            if (D) u[s] *= gram_lanes_at(D + i);
        }
#pragma GCC unroll 4
        for (int t = 0; t < GRAM_TILE; t++) {
            gram_lanes v = gram_lanes_at(q[t] + i);
#pragma GCC unroll 4
            for (int s = 0; s < GRAM_TILE; s++) sum[s][t] += u[s] * v;
        }
    }
    for (int s = 0; s < GRAM_TILE; s++)
        for (int t = 0; t < GRAM_TILE; t++) {
            double total = 0.0;
            for (int l = 0; l < GRAM_LANES; l++) total += sum[s][t][l];
            for (long j = i; j < last; j++) total += (D ? D[j] * p[s][j] : p[s][j]) * q[t][j];
            out[s][t] = total;
        }
}

/* The columns known, ..., count - 1 of H = C^T diag(D) C on and above its diagonal, where C (m, count)
 * has the columns `column`; D may be NULL. Columns of H begin `ld` apart. */
static inline void gram_of_columns(double *const *column, const double *D, long m, long known,
                                   long count, double *H, long ld) {
    for (long first = 0; first < m; first += GRAM_ROWS) {
        long last = first + GRAM_ROWS < m ? first + GRAM_ROWS : m;
        for (long q = known; q < count; q += GRAM_TILE) {
            const double *a[GRAM_TILE], *b[GRAM_TILE];
            double out[GRAM_TILE][GRAM_TILE];
            long wide = count - q < GRAM_TILE ? count - q : GRAM_TILE;
            for (long t = 0; t < GRAM_TILE; t++) b[t] = column[q + (t < wide ? t : 0)];
            for (long p = 0; p < q + wide; p += GRAM_TILE) {
                long high = q + wide - p < GRAM_TILE ? q + wide - p : GRAM_TILE;
                for (long s = 0; s < GRAM_TILE; s++) a[s] = column[p + (s < high ? s : 0)];
                if (D)
                    gram_tile(a, b, D, first, last, out);
                else
                    gram_tile(a, b, NULL, first, last, out);
                for (long t = 0; t < wide; t++)
                    for (long s = 0; s < high; s++) {
                        double *entry = H + (q + t) * ld + p + s;
                        *entry = first ? *entry + out[s][t] : out[s][t];
                    }
            }
        }
    }
}

#endif
