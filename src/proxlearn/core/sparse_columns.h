/* Products with columns that are stored sparse. */

#ifndef SPARSE_COLUMNS_H
#define SPARSE_COLUMNS_H

/* Columns of so many entries are multiplied by vector instructions, which fetch numbers from scattered places slowly: shorter ones
 * take up to 2.3 times as long by them as by the four sums (4 to 300 entries in 12,000 rows, Zen 5, 2026-11-19). */
#define LONG_COLUMN 64

/* The product of a sparse column with u. */
static inline double sparse_dot(const double *restrict data, const int *restrict rows, long count,
                                const double *restrict u) {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    long e = 0;
    if (count >= LONG_COLUMN) {
#pragma omp simd reduction(+ : a)
        for (long i = 0; i < count; i++) a += data[i] * u[rows[i]];
        return a;
    }
    for (; e + 4 <= count; e += 4) {
        a += data[e] * u[rows[e]];
        b += data[e + 1] * u[rows[e + 1]];
        c += data[e + 2] * u[rows[e + 2]];
        d += data[e + 3] * u[rows[e + 3]];
    }
    for (; e < count; e++) a += data[e] * u[rows[e]];
    return (a + b) + (c + d);
}

/* u += t times a sparse column. */
static inline void sparse_axpy(double t, const double *restrict data, const int *restrict rows,
                               long count, double *restrict u) {
    for (long e = 0; e < count; e++) u[rows[e]] += t * data[e];
}

/* out = a sparse column times the factors of its rows. */
static inline void scale_column(const double *restrict data, const int *restrict rows, long count,
                                const double *restrict factor, double *restrict out) {
    for (long e = 0; e < count; e++) out[e] = data[e] * factor[rows[e]];
}

#endif
