/* The Gram matrix of some columns, which lie anywhere in memory.
 *
 * The sums of a tile of a few columns by a few columns stay in registers while its rows are read. Blocks of
 * rows are first copied to where vectors begin at cache lines, since a load that touches two lines takes
 * twice as long. Milliseconds on one core with AVX-512, the other one busy (2026-11-18), and in parentheses
 * with tiles of 4 x 4 and no copies: 442 x 10 0.0016 (0.0027), 569 x 30 0.018 (0.025), 4601 x 57 0.49 (0.70),
 * 10,000 x 100 3.1 (4.8), 500 x 100 0.116 (0.165). With AVX2 these tiles are 0.9 to 1.2 times as fast as the
 * others up to 60 columns, and 1.1 to 1.3 times beyond. */
#ifndef PROXLEARN_GRAM_H
#define PROXLEARN_GRAM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) /* 25 sums and 6 operands in 32 registers */
#include <immintrin.h>
#define GRAM_LANES 8
#define GRAM_TILE 5
#define GRAM_FEW 24 /* new columns up to which the copy takes longer than it saves */
/* OpenBLAS takes the vectors of AVX2 on processors that it does not know: on a Zen 5 (2026-11-19) it
 * multiplied 10 to 25 numbers a nanosecond where these tiles multiplied 43 to 53, 500 x 300 to 3000 x
 * 2000. */
#define GRAM_MOST 1000000
#define GRAM_MOST_ONCE 1000000
#elif defined(__AVX__) /* 9 sums and 4 operands in 16 registers */
#define GRAM_LANES 4
#define GRAM_TILE 3
#define GRAM_FEW 64
#else
#define GRAM_LANES 2
#define GRAM_TILE 3
#define GRAM_FEW 64
#endif
#ifndef GRAM_MOST
#define GRAM_MOST 300      /* columns up to which tiles are as fast as BLAS on copied blocks, */
#define GRAM_MOST_ONCE 160 /* and as BLAS on all columns, which need no copy */
#endif
#define GRAM_ROWS_IN_PLACE 1024 /* rows of a block that is not copied */
#define GRAM_LINE 8         /* numbers of a cache line */
/* A block that is copied has at most GRAM_ROWS rows, so that those of two tiles stay in the first cache, and
 * at least GRAM_LEAST_ROWS. In between it has about GRAM_BLOCK numbers, which stay in the second cache (512
 * KiB). */
#define GRAM_ROWS 320
#define GRAM_LEAST_ROWS 256
#define GRAM_BLOCK 65536

typedef double gram_lanes __attribute__((vector_size(8 * GRAM_LANES)));
typedef double gram_lanes_anywhere __attribute__((vector_size(8 * GRAM_LANES), aligned(8), may_alias));

static inline gram_lanes gram_lanes_at(const double *p) { return *(const gram_lanes_anywhere *)p; }

/* The sum of each of the vectors of a tile. */
#if defined(__AVX512F__)
static inline __attribute__((always_inline)) __m512d gram_pairs(gram_lanes a, gram_lanes b) {
    return _mm512_unpacklo_pd((__m512d)a, (__m512d)b) + _mm512_unpackhi_pd((__m512d)a, (__m512d)b);
}
static inline __attribute__((always_inline)) __m512d gram_halves(__m512d a, __m512d b) {
    return _mm512_shuffle_f64x2(a, b, 0x88) + _mm512_shuffle_f64x2(a, b, 0xdd);
}
static inline __attribute__((always_inline)) void gram_sums(const gram_lanes *v, double *out) {
    int t = 0;
    for (; t + 8 <= GRAM_TILE * GRAM_TILE; t += 8) {
        __m512d low = gram_halves(gram_pairs(v[t], v[t + 1]), gram_pairs(v[t + 2], v[t + 3]));
        __m512d high = gram_halves(gram_pairs(v[t + 4], v[t + 5]), gram_pairs(v[t + 6], v[t + 7]));
        _mm512_storeu_pd(out + t, gram_halves(low, high));
    }
    for (; t < GRAM_TILE * GRAM_TILE; t++) out[t] = _mm512_reduce_add_pd((__m512d)v[t]);
}
#else
static inline __attribute__((always_inline)) void gram_sums(const gram_lanes *v, double *out) {
    for (int t = 0; t < GRAM_TILE * GRAM_TILE; t++) {
        out[t] = 0.0;
        for (int l = 0; l < GRAM_LANES; l++) out[t] += v[t][l];
    }
}
#endif

/* out[GRAM_TILE t + s] = sum of D_i a_s[i] b_t[i] for i < rows; D may be NULL, which stands for 1. */
static inline __attribute__((always_inline)) void gram_tile(const double *const *a, const double *const *b,
                                                            const double *D, long rows, double *out) {
    gram_lanes sum[GRAM_TILE * GRAM_TILE];
    const double *p[GRAM_TILE], *q[GRAM_TILE];
    long i = 0;
    for (int s = 0; s < GRAM_TILE; s++) p[s] = a[s], q[s] = b[s];
    for (int s = 0; s < GRAM_TILE * GRAM_TILE; s++) sum[s] = (gram_lanes){0};
    for (; i + GRAM_LANES <= rows; i += GRAM_LANES) {
        gram_lanes u[GRAM_TILE];
#pragma GCC unroll 5
        for (int s = 0; s < GRAM_TILE; s++) {
            u[s] = gram_lanes_at(p[s] + i);
            if (D) u[s] *= gram_lanes_at(D + i);
        }
#pragma GCC unroll 5
        for (int t = 0; t < GRAM_TILE; t++) {
            gram_lanes v = gram_lanes_at(q[t] + i);
#pragma GCC unroll 5
            for (int s = 0; s < GRAM_TILE; s++) sum[GRAM_TILE * t + s] += u[s] * v;
        }
    }
    gram_sums(sum, out);
    for (; i < rows; i++)
        for (int t = 0; t < GRAM_TILE; t++)
            for (int s = 0; s < GRAM_TILE; s++)
                out[GRAM_TILE * t + s] += (D ? D[i] * p[s][i] : p[s][i]) * q[t][i];
}

/* Rows of a block, and where its columns begin: a few lines more than rows apart, so that they do not all
 * meet in the same places of the caches. */
static inline long gram_rows(long m, long count) {
    long most = GRAM_BLOCK / count, blocks;
    most = most < GRAM_LEAST_ROWS ? GRAM_LEAST_ROWS : most > GRAM_ROWS ? GRAM_ROWS : most;
    blocks = (m + most - 1) / most;
    return ((m + blocks - 1) / blocks + GRAM_LINE - 1) / GRAM_LINE * GRAM_LINE;
}

/* How many numbers the copy of a block of up to `count` columns needs. */
static inline long gram_room(long m, long count) {
    long rows = m < GRAM_ROWS ? m + GRAM_LINE : GRAM_ROWS;
    return count <= GRAM_FEW ? 0 : (rows + GRAM_LINE) * (count + 1) + GRAM_LINE;
}

/* Copy a block of rows of each column, times the square roots of the weights D, and 0 up to a whole line. */
static inline void gram_copy(double *const *column, const double *D, long rows, long first, long count,
                             double *to, long apart) {
    long whole = (rows + GRAM_LINE - 1) / GRAM_LINE * GRAM_LINE;
    double *restrict root = to + count * apart;
    for (long i = 0; D && i < rows; i++) root[i] = sqrt(D[first + i]);
    for (long p = 0; p < count; p++) {
        const double *restrict from = column[p] + first;
        double *restrict out = to + p * apart;
        if (D)
            for (long i = 0; i < rows; i++) out[i] = root[i] * from[i];
        else
            memcpy(out, from, rows * sizeof(double));
        for (long i = rows; i < whole; i++) out[i] = 0.0;
    }
}

/* The columns known, ..., count - 1 of H = C^T diag(D) C on and above its diagonal, where C (m, count)
 * has the columns `column`; D >= 0 may be NULL. Columns of H begin `ld` apart. `room` has
 * gram_room(m, count) numbers. */
static inline void gram_of_columns(double *const *column, const double *D, long m, long known,
                                   long count, double *H, long ld, double *room) {
    int copies = count - known > GRAM_FEW;
    long most = copies ? gram_rows(m, count) : GRAM_ROWS_IN_PLACE, apart = most + GRAM_LINE;
    double *block = (double *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
    for (long first = 0; first < m; first += most) {
        long rows = first + most < m ? most : m - first;
        if (copies) {
            gram_copy(column, D, rows, first, count, block, apart);
            rows = (rows + GRAM_LINE - 1) / GRAM_LINE * GRAM_LINE;
        }
        for (long q = known; q < count; q += GRAM_TILE) {
            const double *a[GRAM_TILE], *b[GRAM_TILE];
            double out[GRAM_TILE * GRAM_TILE];
            long wide = count - q < GRAM_TILE ? count - q : GRAM_TILE;
            for (long t = 0; t < GRAM_TILE; t++) {
                long j = q + (t < wide ? t : 0);
                b[t] = copies ? block + j * apart : column[j] + first;
            }
            for (long p = 0; p < q + wide; p += GRAM_TILE) {
                long high = q + wide - p < GRAM_TILE ? q + wide - p : GRAM_TILE;
                for (long s = 0; s < GRAM_TILE; s++) {
                    long j = p + (s < high ? s : 0);
                    a[s] = copies ? block + j * apart : column[j] + first;
                }
                if (D && !copies)
                    gram_tile(a, b, D + first, rows, out);
                else
                    gram_tile(a, b, NULL, rows, out);
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
