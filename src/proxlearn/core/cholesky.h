/* The Cholesky factor of a matrix to which rows and columns were appended, in its place.
 *
 * Sums of eight columns stay in registers while the columns before them go by. OpenBLAS takes the vectors of
 * AVX2 on processors that it does not know. On a Zen 5 (2026-11-19, milliseconds; LAPACK's dpotrf was the
 * second number): 100 variables 0.0075 and 0.018, 300 variables 0.11 and 0.25, 600 variables 0.71 and 1.8. */
#ifndef PROXLEARN_CHOLESKY_H
#define PROXLEARN_CHOLESKY_H

#include <math.h>
#include <string.h>

#define CHOLESKY_BLOCK 8 /* columns of a block; each column has room for that many rows more, rounded down */
#if defined(__AVX512F__)
#define CHOLESKY_LANES 8
#define CHOLESKY_TALL 3 /* vectors of a tile: 24 sums and 4 operands in 32 registers */
#elif defined(__AVX__)
#define CHOLESKY_LANES 4
#define CHOLESKY_TALL 1
#else
#define CHOLESKY_LANES 2
#define CHOLESKY_TALL 1
#endif

typedef double cholesky_lanes __attribute__((vector_size(8 * CHOLESKY_LANES), aligned(8), may_alias));

/* The rows r, ... of the columns j, ..., j + 7, less what the columns before them take: `tall` vectors of
 * each column. */
static inline __attribute__((always_inline)) void cholesky_tile(const double *L, long ld, long j, long r, int tall,
                                                                cholesky_lanes (*sum)[CHOLESKY_BLOCK]) {
    for (int v = 0; v < tall; v++)
        for (int c = 0; c < CHOLESKY_BLOCK; c++)
            sum[v][c] = *(const cholesky_lanes *)(L + (j + c) * ld + r + v * CHOLESKY_LANES);
    for (long t = 0; t < j; t++) {
        const double *column = L + t * ld;
        cholesky_lanes x[CHOLESKY_TALL];
#pragma GCC unroll 3
        for (int v = 0; v < tall; v++) x[v] = *(const cholesky_lanes *)(column + r + v * CHOLESKY_LANES);
#pragma GCC unroll 8
        for (int c = 0; c < CHOLESKY_BLOCK; c++) {
            double y = column[j + c];
#pragma GCC unroll 3
            for (int v = 0; v < tall; v++) sum[v][c] -= y * x[v];
        }
    }
}

/* The rows r, ... of the columns j, ..., j + 7, whose own rows are there. */
static inline __attribute__((always_inline)) void cholesky_rows(double *L, long ld, long j, long r, int tall) {
    cholesky_lanes sum[CHOLESKY_TALL][CHOLESKY_BLOCK];
    cholesky_tile(L, ld, j, r, tall, sum);
    for (int c = 0; c < CHOLESKY_BLOCK; c++) {
        double *column = L + (j + c) * ld, scale = 1.0 / column[j + c];
        for (int v = 0; v < tall; v++) {
            for (int e = 0; e < c; e++) sum[v][c] -= L[(j + e) * ld + j + c] * sum[v][e];
            sum[v][c] *= scale;
            *(cholesky_lanes *)(column + r + v * CHOLESKY_LANES) = sum[v][c];
        }
    }
}

/* The rows j, ..., j + 7 of the columns j, ..., j + 7, of which those before `from` have their diagonal.
 * Returns the first column whose diagonal falls to the part `least` of what it was, or j + 8. */
static inline long cholesky_block(double *L, long ld, long j, long from, double least) {
    double block[CHOLESKY_BLOCK][CHOLESKY_BLOCK];
    cholesky_lanes sum[1][CHOLESKY_BLOCK];
    for (int h = 0; h < CHOLESKY_BLOCK; h += CHOLESKY_LANES) {
        cholesky_tile(L, ld, j, j + h, 1, sum);
        for (int c = 0; c < CHOLESKY_BLOCK; c++) *(cholesky_lanes *)(block[c] + h) = sum[0][c];
    }
    for (int c = 0; c < CHOLESKY_BLOCK; c++) {
        double *column = L + (j + c) * ld + j, root = column[c], left = block[c][c];
        if (j + c >= from) {
            if (!(left > least * root)) return j + c;
            root = sqrt(left);
        }
        for (int r = 0; r < CHOLESKY_BLOCK; r++) column[r] = block[c][r] /= root;
        column[c] = root;
        for (int e = c + 1; e < CHOLESKY_BLOCK; e++)
            for (int r = 0; r < CHOLESKY_BLOCK; r++) block[e][r] -= block[c][e] * block[c][r];
    }
    return j + CHOLESKY_BLOCK;
}

/* The columns first, ..., k - 1, fewer than eight, one by one. */
static inline long cholesky_last(double *restrict L, long ld, long first, long k, long from, double least) {
    for (long e = first; e < k; e++) {
        double *column = L + e * ld, root = column[e];
        cholesky_lanes sum[CHOLESKY_BLOCK / CHOLESKY_LANES], more[CHOLESKY_BLOCK / CHOLESKY_LANES] = {{0}};
        memcpy(sum, column + first, sizeof sum);
        for (long t = 0; t + 2 <= e; t += 2)
            for (int v = 0; v < CHOLESKY_BLOCK / CHOLESKY_LANES; v++) {
                sum[v] -= L[t * ld + e] * *(const cholesky_lanes *)(L + t * ld + first + v * CHOLESKY_LANES);
                more[v] -= L[(t + 1) * ld + e] * *(const cholesky_lanes *)(L + (t + 1) * ld + first + v * CHOLESKY_LANES);
            }
        for (int v = 0; v < CHOLESKY_BLOCK / CHOLESKY_LANES; v++) {
            if (e & 1) sum[v] -= L[(e - 1) * ld + e] * *(const cholesky_lanes *)(L + (e - 1) * ld + first + v * CHOLESKY_LANES);
            sum[v] += more[v];
        }
        double left = ((const double *)sum)[e - first];
        if (e >= from) {
            if (!(left > least * root)) return e;
            root = sqrt(left);
        }
        for (int v = 0; v < CHOLESKY_BLOCK / CHOLESKY_LANES; v++)
            *(cholesky_lanes *)(column + first + v * CHOLESKY_LANES) = sum[v] / root;
        column[e] = root;
    }
    return k;
}

/* Extend the factor L of the first `from` rows and columns to k of them. Columns of L begin `ld` apart, and
 * have room for k rounded up to a multiple of eight. Below the diagonal, the rows from `from & -8` on have
 * the matrix itself, and so has the diagonal from `from` on. Returns the first column whose diagonal falls to
 * the part `least` of what it was, since it depends on those before it, or k; rows before it are then
 * complete. What is above the diagonal means nothing. */
static inline long cholesky_extend(double *L, long ld, long k, long from, double least) {
    const long step = CHOLESKY_TALL * CHOLESKY_LANES, start = from & -CHOLESKY_BLOCK;
    long j = 0, end = (k + CHOLESKY_LANES - 1) & -CHOLESKY_LANES;
    for (; j + CHOLESKY_BLOCK <= k; j += CHOLESKY_BLOCK) {
        long r = start;
        if (j >= start) {
            long good = cholesky_block(L, ld, j, from, least);
            if (good < j + CHOLESKY_BLOCK) return good;
            r = j + CHOLESKY_BLOCK;
        }
        for (; r + step <= end; r += step) cholesky_rows(L, ld, j, r, CHOLESKY_TALL);
        for (; r < end; r += CHOLESKY_LANES) cholesky_rows(L, ld, j, r, 1);
    }
    return cholesky_last(L, ld, j, k, from, least);
}

#endif
