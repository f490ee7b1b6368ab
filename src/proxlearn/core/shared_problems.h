/* Many problems that share A: all correlations with b, the active-set method for each, and a
 * certificate for each, in float64 at the x that is returned. */
#ifndef PROXLEARN_SHARED_PROBLEMS_H
#define PROXLEARN_SHARED_PROBLEMS_H

#include <float.h>

#include "gram_active_set.h"

#define TOGETHER 8 /* problems whose sums are in registers at a time */
#define MOST_TOGETHER 32 /* problems for which a panel of A is read once from far away */
#define CACHED 65536 /* numbers that stay near: half of an L2 cache of 1 MiB */

/* How many problems are taken at a time, so that a panel of 16 columns of A and their b stay in the cache. */
static inline long count_together(long m) {
    long most = (CACHED / m - 16) / TOGETHER * TOGETHER;
    return most < TOGETHER ? TOGETHER : most > MOST_TOGETHER ? MOST_TOGETHER : most;
}

/* Q = B A for `count` right-hand sides, rounded up to a multiple of TOGETHER, each sum in the order of
 * the rows of A. `panels` holds A in panels of 16 columns, (wide / 16, m, 16); rows of Q have `wide`
 * numbers, a multiple of 16. */
static inline void correlate_together(const double *panels, const double *const *b, double *Q,
                                      long m, long wide, long count) {
    for (long j = 0; j < wide; j += 16)
        for (long q = 0; q < count; q += TOGETHER) {
            const double *a = panels + j * m;
            lanes sum[TOGETHER][2];
            for (int p = 0; p < TOGETHER; p++) sum[p][0] = sum[p][1] = (lanes){0};
            for (long i = 0; i < m; i++) {
                lanes left = load(a + 16 * i), right = load(a + 16 * i + 8);
                for (int p = 0; p < TOGETHER; p++) {
                    double t = b[q + p][i];
                    sum[p][0] += t * left;
                    sum[p][1] += t * right;
                }
            }
            for (int p = 0; p < TOGETHER; p++)
                store(Q + (q + p) * wide + j, sum[p][0]), store(Q + (q + p) * wide + j + 8, sum[p][1]);
        }
}

/* What the certificate needs of all problems. */
typedef struct {
    const double *direction; /* (tall,): leads into the dual cone, or NULL where none is known */
    const double *slope;     /* (wide,): A^T direction, < 0 where l1_j = l2_j = 0 */
    const double *limits;    /* (wide,): 1 / l1_j where l1_j > 0 and l2_j = 0, else 0 */
    int one_sided;           /* 1 where some l1_j and l2_j are both 0 and the sum is free */
    int quadratic;           /* 1 where some l2_j > 0 */
    double tol;
} Proof;

typedef struct {
    double objective, bound, gap; /* the gap is infinite where no bound is known */
} Certificate;

/* u = b - A x, with zeros behind the m rows. */
static inline void residual(const Family *P, const State *s, const double *b, double *u) {
    long i = 0, full = P->m / (4 * LANES) * 4 * LANES;
    for (; i < full; i += 4 * LANES) {
        lanes e = load(b + i), f = load(b + i + 8), g = load(b + i + 16), h = load(b + i + 24);
        for (long p = 0; p < s->k; p++) {
            const double *a = P->columns + s->S[p] * P->tall + i;
            double x = s->x[p];
            e -= x * load(a), f -= x * load(a + 8), g -= x * load(a + 16), h -= x * load(a + 24);
        }
        store(u + i, e), store(u + i + 8, f), store(u + i + 16, g), store(u + i + 24, h);
    }
    for (; i < P->tall; i += LANES) {
        lanes e = {0};
        for (long r = 0; r < LANES && i + r < P->m; r++) e[r] = b[i + r];
        for (long p = 0; p < s->k; p++) e -= s->x[p] * load(P->columns + s->S[p] * P->tall + i);
        store(u + i, e);
    }
}

static inline double penalty_at(const Family *P, const State *s) {
    double total = 0.0;
    for (long p = 0; p < s->k; p++) {
        long j = s->S[p];
        total += P->l1[j] * fabs(s->x[p]) + 0.5 * (P->l2[j] * s->x[p]) * s->x[p];
    }
    return total;
}

/* How far F(x) can be above its minimum on the simplex: sum * max_j c_j - c'x (Frank and Wolfe). */
static inline double simplex_gap(const Family *P, const State *s, double hidden) {
    double most = -INFINITY, product = 0.0;
    for (long j = 0; j < P->n; j++) {
        double c = s->c[j] + hidden * P->norms[j];
        most = c > most ? c : most;
    }
    for (long p = 0; p < s->k; p++)
        product += s->x[p] * (s->c[s->S[p]] - hidden * P->norms[s->S[p]]);
    return fabs(P->radius * most - product);
}

/* The largest of |c_j| / l1_j where r_j* is infinite beyond l1_j. c_j is known up to `hidden` times |a_j|. */
static inline double largest_ratio(const Family *P, const Proof *D, const double *c, double hidden) {
    lanes largest = {0};
    for (long j = 0; j < P->wide; j += LANES) {
        lanes v = load(c + j);
        if (!P->one_sign) v = larger(v, load(P->either + j) * -v);
        v = (v + hidden * load(P->norms + j)) * load(D->limits + j);
        largest = larger(v, largest);
    }
    return largest_lane(largest);
}

/* The dual value at a multiple of the residual u, moved into the dual cone where that is needed;
 * minus infinity where none is known. c_j is known up to `hidden` times |a_j|. */
static inline double dual_value(const Family *P, State *s, const Proof *D, const double *b,
                                double *u, double hidden) {
    double far = 0.0, scale, lost = 0.0;
    double *c = s->c;
    if (D->one_sided) {
        if (D->direction == NULL) return -INFINITY;
        c = s->score;
        for (long j = 0; j < P->n; j++)
            if (P->l1[j] == 0.0 && P->l2[j] == 0.0 && P->norms[j] > 0.0) {
                double t = (s->c[j] + hidden * P->norms[j]) / -D->slope[j];
                far = t > far ? t : far;
            }
        axpy(far, D->direction, u, P->tall);
        for (long j = 0; j < P->wide; j++) c[j] = s->c[j] + far * D->slope[j];
    }
    double most = largest_ratio(P, D, c, hidden);
    double ub = dot(u, b, P->m), uu = dot(u, u, P->m);
    scale = D->quadratic ? 1.0 : uu > 0.0 ? ub / uu : 1.0;
    if (most > 0.0 && scale * most > 1.0) scale = 1.0 / most;
    if (!(scale > 0.0)) return 0.0;
    if (D->quadratic)
        for (long j = 0; j < P->n; j++) {
            double size = scale * ((P->either[j] == 0.0 ? c[j] : fabs(c[j])) + hidden * P->norms[j]);
            if (P->l2[j] > 0.0 && size > P->l1[j])
                lost += 0.5 * (size - P->l1[j]) * ((size - P->l1[j]) / P->l2[j]);
        }
    return scale * (ub - 0.5 * scale * uu) - lost;
}

/* Objective and gap at x from the Gram matrix and the square of b alone, where every coordinate has an l1
 * penalty and no l2: u = b - A x is not formed, since u'b = b'b - x'q and u'u = b'b - x'(q + c). Rounding
 * changes each of them by at most `lost`, which counts against the gap, so that this proves nothing where the
 * loss is tiny beside b'b, which is `square`. */
static inline Certificate certify_gram(const Family *P, State *s, const Proof *D, const double *q, double square) {
    Certificate found;
    double hidden = unseen(P, s, sqrt(square)), lost = hidden * (hidden / P->rounding), ub = square, uu = square;
    for (long p = 0; p < s->k; p++) {
        long j = s->S[p];
        ub -= s->x[p] * q[j];
        uu -= s->x[p] * (q[j] + s->c[j]);
    }
    double most = largest_ratio(P, D, s->c, hidden), scale = uu > 0.0 ? ub / uu : 1.0;
    if (most > 0.0 && scale * most > 1.0) scale = 1.0 / most;
    found.objective = 0.5 * uu + penalty_at(P, s);
    found.bound = scale > 0.0 ? scale * (ub - 0.5 * scale * uu) - scale * (1.0 + 0.5 * scale) * lost : 0.0;
    found.gap = fmax(found.objective + lost - found.bound, 0.0);
    return found;
}

/* Objective and gap at x. The correlations are those of the Gram matrix, whose rounding counts
 * against the gap, or with `directly` those of the residual itself. */
static inline Certificate certify_shared(const Family *P, State *s, const Proof *D, const double *b,
                                         double size, double *u, int directly) {
    Certificate found;
    residual(P, s, b, u);
    double square = dot(u, u, P->m), hidden;
    found.objective = 0.5 * square + penalty_at(P, s);
    if (directly) {
        for (long j = 0; j < P->n; j++) s->c[j] = dot(P->columns + j * P->tall, u, P->m);
        hidden = 8.0 * DBL_EPSILON * sqrt(square);
    } else {
        hidden = unseen(P, s, size);
    }
    if (P->radius > 0.0) {
        found.gap = simplex_gap(P, s, hidden);
        found.bound = found.objective - found.gap;
        if (found.bound < 0.0) found.bound = 0.0;
    } else {
        found.bound = dual_value(P, s, D, b, u, hidden);
    }
    found.gap = found.bound > -INFINITY ? fmax(found.objective - found.bound, 0.0) : INFINITY;
    if (found.bound < 0.0 && found.bound > -INFINITY) found.gap = found.objective, found.bound = 0.0;
    return found;
}

/* True where violations of the optimality conditions are at most tol times |q|, as vectors. */
static inline int is_stationary_shared(const Family *P, State *s, const Proof *D, const double *q,
                                       double hidden) {
    double total = 0.0;
    memcpy(s->score, s->c, P->wide * sizeof(double));
    for (long p = 0; p < s->k; p++) s->score[s->S[p]] = 0.0;
    for (long j = 0; j < P->n; j++) {
        double v = (P->either[j] == 0.0 ? s->score[j] : fabs(s->score[j])) - P->l1[j];
        v = (v > 0.0 ? v : 0.0) + hidden * P->norms[j];
        total += v * v;
    }
    for (long p = 0; p < s->k; p++) {
        long j = s->S[p];
        double v = fabs(s->c[j] - P->l1[j] * s->sign[p] - P->l2[j] * s->x[p]) + hidden * P->norms[j];
        total += v * v;
    }
    return sqrt(total) <= D->tol * sqrt(dot(q, q, P->n));
}

/* One step of iterative refinement on S with correlations of the residual itself. */
static inline int refine(const Family *P, State *s) {
    double *d = s->goal;
    if (s->valid != s->k || s->k == 0) return 0;
    for (long p = 0; p < s->k; p++) {
        long j = s->S[p];
        d[p] = s->c[j] - P->l1[j] * s->sign[p] - P->l2[j] * s->x[p];
    }
    if (P->radius > 0.0) {
        double common = multiplier_of_sum(P, s);
        for (long p = 0; p < s->k; p++) d[p] -= common;
    }
    solve_factor(P, s, d);
    if (P->radius > 0.0) correct_sum(P, s, d, P->radius - sum_of(s->x, s->k));
    for (long p = 0; p < s->k; p++)
        if (!(s->sign[p] * (s->x[p] + d[p]) > 0.0)) return 0;
    for (long p = 0; p < s->k; p++) s->x[p] += d[p];
    return 1;
}
#endif
