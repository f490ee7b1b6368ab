/* Products with columns that are stored sparse. */

#ifndef SPARSE_COLUMNS_H
#define SPARSE_COLUMNS_H

#include <math.h>

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
    long e = 0;
    for (; e + 4 <= count; e += 4) { /* rows are distinct, so that four entries need not wait for each other */
        int i = rows[e], j = rows[e + 1], k = rows[e + 2], l = rows[e + 3];
        double a = u[i] + t * data[e], b = u[j] + t * data[e + 1], c = u[k] + t * data[e + 2], d = u[l] + t * data[e + 3];
        u[i] = a, u[j] = b, u[k] = c, u[l] = d;
    }
    for (; e < count; e++) u[rows[e]] += t * data[e];
}

/* out = a sparse column times the factors of its rows. */
static inline void scale_column(const double *restrict data, const int *restrict rows, long count,
                                const double *restrict factor, double *restrict out) {
    for (long e = 0; e < count; e++) out[e] = data[e] * factor[rows[e]];
}

/* A model on sparse columns, of which position p has the entries data[first[p]], ... in the rows `rows` of column index[p]. */
typedef struct {
    const int *starts, *rows;
    const double *data, *h, *mean, *pull, *l1, *l2, *lower, *upper;
    const Py_ssize_t *first, *index;
    double *v, *moved, shifted, total;
} SparseModel;

/* Minimise over the coordinates order[:count] in turn; the largest violation that was met. `flips` becomes the number of
 * coordinates that came to a kink or left it. Where `centred` is not set, the means are 0, and no coordinate waits for
 * the sum that they have with the last ones. */
static inline __attribute__((always_inline)) double sweep_columns(SparseModel *s, const Py_ssize_t *order, long count,
                                                                  Py_ssize_t *flips, const int centred) {
    const int *starts = s->starts, *all_rows = s->rows;
    const double *data = s->data, *all_h = s->h, *pull = s->pull, *all_l1 = s->l1, *l2 = s->l2;
    double *restrict v = s->v, *restrict moved = s->moved, worst = 0.0, shifted = s->shifted;
    long changed = 0;
    for (long i = 0; i < count; i++) {
        const Py_ssize_t p = order[i], j = s->index[p];
        const int *rows = all_rows + starts[j], length = starts[j + 1] - starts[j];
        const double *column = data + s->first[p], x = v[p], l1 = all_l1[j], h = all_h[p];
        double g = pull[p] - sparse_dot(column, rows, length, moved);
        if (centred) g += shifted * s->mean[p] * s->total;
        if (x == 0.0 && fabs(g) <= l1) continue;
        double lower = s->lower[j], upper = s->upper[j], d = h + l2[j], z = g + h * x, new;
        /* How far x can lower the model upwards and downwards. At most one is positive, and the signs are random, so that
         * branches would be guessed wrong. */
        double e = g - l2[j] * x, kink = x == 0.0 ? l1 : 0.0, side = copysign(l1 - kink, x);
        double up = e - side - kink, down = side - kink - e;
        up = x < upper ? up : 0.0;
        down = x > lower ? down : 0.0;
        up = up > down ? up : down;
        worst = up > worst ? up : worst;
        if (d > 0.0)
            new = fabs(z) > l1 ? (z - copysign(l1, z)) / d : 0.0;
        else if (l1 > 0.0)
            new = 0.0;
        else
            continue;
        new = new > lower ? new : lower;
        new = new < upper ? new : upper;
        if (new == x || !isfinite(new)) continue;
        changed += (((x == 0.0) & (l1 > 0.0)) | (x <= lower) | (x >= upper)) != (((new == 0.0) & (l1 > 0.0)) | (new <= lower) | (new >= upper));
        v[p] = new;
        if (centred) shifted += s->mean[p] * (new - x);
        sparse_axpy(new - x, column, rows, length, moved);
    }
    s->shifted = shifted;
    *flips = changed;
    return worst;
}

static double sparse_sweep(SparseModel *s, const Py_ssize_t *order, long count, Py_ssize_t *flips, int centred) {
    return centred ? sweep_columns(s, order, count, flips, 1) : sweep_columns(s, order, count, flips, 0);
}

#endif
