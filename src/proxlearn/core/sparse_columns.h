/* Products with columns that are stored sparse. */

#ifndef SPARSE_COLUMNS_H
#define SPARSE_COLUMNS_H

/* The product of a sparse column with u. */
static inline double sparse_dot(const double *restrict data, const int *restrict rows, long count,
                                const double *restrict u) {
    double s = 0.0;
#pragma omp simd reduction(+ : s)
    for (long e = 0; e < count; e++) s += data[e] * u[rows[e]];
    return s;
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
