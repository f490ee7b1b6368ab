/* The free set S of an active-set method on the Gram matrix H = A^T A, and the Cholesky factor of H_SS: what
 * the problems share, what each one keeps, and the factor as variables join and leave. The method itself is
 * in gram_active_set.h. */
#ifndef PROXLEARN_GRAM_FACTOR_H
#define PROXLEARN_GRAM_FACTOR_H

#include "cholesky.h"
#include "columns.h"
#include "gram.h"
#include "maths.h"

/* What all problems share. Arrays of `wide` numbers are padded with zeros to a multiple of LANES. */
typedef struct {
    long n, wide, ld;    /* columns, and that rounded up, for H and for the factor */
    long m, tall;        /* rows, and that rounded up */
    const double *H;     /* (n, wide) */
    const double *columns; /* (n, tall): the columns of A */
    const double *l1, *l2; /* (wide,) */
    const double *either; /* (wide,): 0 where x_j >= 0, 1 where x_j may have either sign */
    const double *norms; /* (wide,): |a_j| */
    const double *price; /* (wide,): 1 / |a_j|, in which violations are compared; 0 for padding */
    const double *factor; /* (n, ld): the Cholesky factor of all of H, to begin with all
                             variables in S, or NULL */
    const double *inverse; /* (n,): 1 / its diagonal */
    const float *G;      /* (n, small): H of columns of length 1 for greedy_start.h, or NULL */
    const float *curve;  /* (small,): 1 / (1 + l2 of those columns) */
    long small;          /* columns rounded up to a multiple of 16 */
    int one_sign;        /* 1 where all x_j >= 0 */
    double radius;       /* the sum of x; 0 where the sum is free */
    double level;        /* violations up to this times |a_j| are none */
    double rounding;     /* of c_j, relative to |a_j| (|b| + sum |x_i| |a_i|) */
    double part;         /* of the largest score, which others must have to join */
    long most_new;       /* how many variables may join at first */
} Family;

/* One problem and the memory to solve it. */
typedef struct {
    long k, valid;   /* variables in S; how many of them the factor has */
    long rounds;
    long *S;         /* (n,) */
    double *x;       /* (n + LANES,): values on S */
    double *sign;    /* (n + LANES,): 1 or -1 */
    long *barred;    /* (n,): columns that depend on those of S, and stay out of it for a while */
    long barred_count;
    double *c;       /* (wide,): q - Hx */
    double *score;   /* (wide,) */
    double *price;   /* (wide,): those of the variables outside S, 0 inside */
    double *L;       /* (n, ld): the factor, by columns */
    double *inverse; /* (n,): 1 / diagonal of L */
    double *goal, *second, *work; /* (n + LANES,) */
    long *found;     /* (n + 1,): candidates to join S */
    float *small;    /* (4, small): memory of greedy_start.h */
    double value;    /* F - b'b/2 through H */
} State;

/* The sums of eight vectors. */
static inline lanes sums_of_lanes(const lanes *v) {
#ifdef __AVX512F__
    __m512d low = gram_halves(gram_pairs(v[0], v[1]), gram_pairs(v[2], v[3]));
    __m512d high = gram_halves(gram_pairs(v[4], v[5]), gram_pairs(v[6], v[7]));
    return (lanes)gram_halves(low, high);
#else
    lanes sums;
    for (int i = 0; i < LANES; i++) sums[i] = sum_of_lanes(v[i]);
    return sums;
#endif
}

/* Store the first `count` < LANES numbers. */
static inline void store_some(double *a, lanes v, long count) {
#ifdef __AVX512F__
    _mm512_mask_storeu_pd(a, (1u << count) - 1, (__m512d)v);
#else
    for (long i = 0; i < count; i++) a[i] = v[i];
#endif
}

/* Invert the diagonal blocks of eight variables, from the block of variable `from` on. The strictly lower
 * rows X_r of the inverse are kept where the factor needs no room: above the diagonal of column r. A solve is
 * then made of products alone; with the divisions of a triangular solve, each of which waits for the one
 * before, it took 2.5 times as long. */
static inline void invert_blocks(double *restrict L, const double *inverse, long ld, long from, long k) {
    for (long first = from & -LANES; first < k; first += LANES) {
        lanes row[LANES];
        long count = k - first < LANES ? k - first : LANES;
        for (long r = 0; r < count; r++) {
            const double *column = L + first * ld + first + r;
            lanes x = {0};
            for (long t = 0; t < r; t++) x -= column[t * ld] * row[t];
            x *= inverse[first + r];
            store_some(L + (first + r) * ld + first, x, r);
            x[r] = inverse[first + r];
            row[r] = x;
        }
    }
}

/* Extend the factor to all k variables; returns the first position whose column depends on those
 * before it, or k. Column e of L is at L + e * ld; what is above the diagonal is that of invert_blocks. */
static inline long extend_factor(const Family *P, State *s) {
    long ld = P->ld, k = s->k, from = s->valid, start = from & -CHOLESKY_BLOCK, good;
    double *restrict L = s->L;
    for (long e = 0; e < k; e++) {
        const double *row = P->H + s->S[e] * P->wide;
        if (e >= from) L[e * ld + e] = row[s->S[e]] + P->l2[s->S[e]];
        for (long r = e >= start ? e + 1 : start; r < k; r++) L[e * ld + r] = row[s->S[r]];
    }
    good = cholesky_extend(L, ld, k, from, 1e-12);
    for (long e = from; e < good; e++) s->inverse[e] = 1.0 / L[e * ld + e];
    invert_blocks(L, s->inverse, ld, from, good);
    s->valid = good;
    return good;
}

/* y = L^-T L^-1 y on S, in blocks of LANES variables. */
static inline void solve_factor(const Family *P, const State *s, double *restrict y) {
    long ld = P->ld, k = s->k;
    const double *restrict L = s->L;
    for (long first = 0; first < k; first += LANES) {
        long count = k - first < LANES ? k - first : LANES;
        lanes v = load_some(y + first, count), part[LANES] = {{0}};
        for (long r = 1; r < count; r++) part[r] = load_some(L + (first + r) * ld + first, r) * v;
        store(y + first, load_some(s->inverse + first, count) * v + sums_of_lanes(part));
        for (long r = first + LANES; r < k; r += LANES) {
            lanes a = load(y + r), b = {0};
            const double *column = L + first * ld + r;
            for (long e = 0; e < LANES; e += 2) {
                a -= y[first + e] * load(column + e * ld);
                b -= y[first + e + 1] * load(column + (e + 1) * ld);
            }
            store(y + r, a + b);
        }
    }
    for (long first = (k - 1) & -LANES; first >= 0; first -= LANES) {
        long count = k - first < LANES ? k - first : LANES;
        lanes part[LANES] = {{0}}, x;
        for (long r = first + LANES; r < k; r += LANES) {
            long some = k - r < LANES ? k - r : LANES;
            lanes w = load(y + r);
            for (long e = 0; e < LANES; e++) part[e] += load_some(L + (first + e) * ld + r, some) * w;
        }
        lanes v = load(y + first) - sums_of_lanes(part);
        x = load_some(s->inverse + first, count) * v;
        for (long r = 1; r < count; r++) x += v[r] * load_some(L + (first + r) * ld + first, r);
        store(y + first, x);
    }
}

/* |L^T (y - w)|^2: twice the difference of F between a point y on S and the minimiser w. */
static inline double rise(const Family *P, State *s, const double *y, const double *w) {
    long ld = P->ld, k = s->k;
    double total = 0.0, *d = s->work;
    for (long p = 0; p < k; p++) d[p] = y[p] - w[p];
    for (long e = 0; e < k; e++) {
        double v = d[e] / s->inverse[e] + dot(s->L + e * ld + e + 1, d + e + 1, k - e - 1);
        total += v * v;
    }
    return total;
}

/* Remove the variables of S whose x is 0. */
static inline void drop_zeros(const Family *P, State *s) {
    long kept = 0;
    for (long p = 0; p < s->k; p++) {
        if (s->x[p] == 0.0) {
            if (p < s->valid) s->valid = kept;
            s->price[s->S[p]] = P->price[s->S[p]];
            continue;
        }
        s->S[kept] = s->S[p], s->x[kept] = s->x[p], s->sign[kept] = s->sign[p];
        kept++;
    }
    s->k = kept;
    if (s->valid > kept) s->valid = kept;
}
#endif
