/* A copy of a matrix column after column, of rows or of columns, centred and weighted. */
#ifndef PROXLEARN_COPIED_COLUMNS_H
#define PROXLEARN_COPIED_COLUMNS_H

#include "columns.h"

/* Eight rows of eight numbers become the eight columns. */
static inline __attribute__((always_inline)) void turn_square(lanes *r) {
#ifdef __AVX512F__
    __m512d pairs[8], low[4], high[4];
    for (int k = 0; k < 8; k += 2) {
        pairs[k] = _mm512_unpacklo_pd((__m512d)r[k], (__m512d)r[k + 1]);     /* columns 0, 2, 4, 6 of two rows */
        pairs[k + 1] = _mm512_unpackhi_pd((__m512d)r[k], (__m512d)r[k + 1]); /* columns 1, 3, 5, 7 */
    }
    for (int odd = 0; odd < 2; odd++) {
        for (int half = 0; half < 2; half++) {
            low[half] = _mm512_shuffle_f64x2(pairs[4 * half + odd], pairs[4 * half + 2 + odd], 0x88);
            high[half] = _mm512_shuffle_f64x2(pairs[4 * half + odd], pairs[4 * half + 2 + odd], 0xdd);
        }
        r[odd] = (lanes)_mm512_shuffle_f64x2(low[0], low[1], 0x88);
        r[odd + 4] = (lanes)_mm512_shuffle_f64x2(low[0], low[1], 0xdd);
        r[odd + 2] = (lanes)_mm512_shuffle_f64x2(high[0], high[1], 0x88);
        r[odd + 6] = (lanes)_mm512_shuffle_f64x2(high[0], high[1], 0xdd);
    }
#else
    double from[8][8];
    for (int k = 0; k < 8; k++) store(from[k], r[k]);
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 8; i++) r[k][i] = from[i][k];
#endif
}

/* The columns first, ..., first + count - 1, eight at most, of a matrix in rows that begin `ld` apart. */
static inline void turn_columns(const double *A, long ld, long first, long count, long m, double *out) {
    long i = 0;
    for (; count == LANES && i + LANES <= m; i += LANES) {
        lanes square[LANES];
        for (int k = 0; k < LANES; k++) square[k] = load(A + (i + k) * ld + first);
        turn_square(square);
        for (int k = 0; k < LANES; k++) store(out + k * m + i, square[k]);
    }
    for (; i < m; i++)
        for (long k = 0; k < count; k++) out[k * m + i] = A[i * ld + first + k];
}

/* a = root (a - mean), where the weights `share`, of sum 1, and their roots may be NULL: all samples count
 * alike. */
static inline double centre_column(double *a, long m, const double *share, const double *root) {
    lanes sum = {0};
    double mean;
    long i = 0;
    for (; i < m; i += LANES) {
        long count = m - i < LANES ? m - i : LANES;
        lanes v = load_some(a + i, count);
        if (share) v *= load_some(share + i, count);
        sum += v;
    }
    mean = sum_of_lanes(sum) / (share ? 1.0 : (double)m);
    for (i = 0; !root && i < m; i++) a[i] -= mean;
    for (i = 0; root && i < m; i++) a[i] = (a[i] - mean) * root[i];
    return mean;
}

/* The columns of A (m, n), in rows (ld = n) or columns, one after the other; with `means` they are
 * centred. */
static inline void copy_all_columns(const double *A, int rows, long m, long n, const double *share, const double *root, double *means,
                                    double *out) {
    for (long j = 0; j < n; j += LANES) {
        long count = n - j < LANES ? n - j : LANES;
        double *block = out + j * m;
        if (rows)
            turn_columns(A, n, j, count, m, block);
        else
            memcpy(block, A + j * m, count * m * sizeof(double));
        for (long k = 0; k < count; k++) {
            if (means)
                means[j + k] = centre_column(block + k * m, m, share, root);
            else if (root)
                for (long i = 0; i < m; i++) block[k * m + i] *= root[i];
        }
    }
}

/* c = A^T u for A (m, n) in rows, and the largest magnitude of its entries: NaN where an entry or a product
 * is not finite. */
static inline double examine_rows(const double *A, const double *u, double *restrict c, long m, long n) {
    lanes most = {0};
    double top, spoiled = 0.0;
    memset(c, 0, n * sizeof(double));
    for (long i = 0; i < m; i += 4) {
        const double *row[4];
        double v[4];
        long j = 0;
        for (int k = 0; k < 4; k++) row[k] = A + (i + k < m ? i + k : i) * n, v[k] = i + k < m ? u[i + k] : 0.0;
        for (; j + LANES <= n; j += LANES) {
            lanes sum = load(c + j);
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                lanes w = load(row[k] + j);
                sum += w * v[k];
                most = larger(magnitude(w), most);
            }
            store(c + j, sum);
        }
        if (j < n) {
            lanes sum = load_some(c + j, n - j);
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                lanes w = load_some(row[k] + j, n - j);
                sum += w * v[k];
                most = larger(magnitude(w), most);
            }
            for (int k = 0; j + k < n; k++) c[j + k] = sum[k];
        }
    }
    for (long j = 0; j < n; j++) spoiled += c[j] * 0.0;
    top = largest_lane(most);
    return spoiled == 0.0 ? top : NAN;
}
#endif
