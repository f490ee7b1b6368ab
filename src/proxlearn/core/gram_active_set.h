/* Least squares problems that share A, one at a time, on the Gram matrix H = A^T A:
 *
 *     minimise  1/2 x'Hx - q'x + sum_j l1_j |x_j| + l2_j/2 x_j^2,     q = A^T b
 *
 * where each x_j is free or non-negative, and the sum of x may be given (the simplex). A primal
 * active-set method. The free set S and a Cholesky factor of H_SS are kept; F falls in every step:
 *
 *     join     variables that violate their optimality condition join S, the worst ones first
 *     minimise over S with the signs that are there; variables that would change their sign leave S
 *     survey   c = q - Hx for all columns
 *
 * Everything depends on the problem alone, so that neither the number of threads nor the way in
 * which a batch is cut changes a bit of the answer. */
#ifndef PROXLEARN_GRAM_ACTIVE_SET_H
#define PROXLEARN_GRAM_ACTIVE_SET_H

#include "maths.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define LANES 8
typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));

static inline lanes load(const double *a) { return *(const lanes *)a; }
static inline void store(double *a, lanes v) { *(lanes *)a = v; }
/* The numbers of a where the mask is set, elsewhere those of b. */
typedef int64_t mask __attribute__((vector_size(64), aligned(8), may_alias));
static inline lanes chosen(mask where, lanes a, lanes b) {
    return (lanes)(((mask)a & where) | ((mask)b & ~where));
}
static inline lanes larger(lanes a, lanes b) { return chosen(a > b, a, b); }
static inline double largest_lane(lanes v) {
    double a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    double c = v[4] > v[5] ? v[4] : v[5], d = v[6] > v[7] ? v[6] : v[7];
    a = a > b ? a : b, c = c > d ? c : d;
    return a > c ? a : c;
}

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
    double value;    /* F - b'b/2 through H */
} State;

/* Extend the factor to all k variables; returns the first position whose column depends on those
 * before it, or k. Column e of L is at L + e * ld; entries above the diagonal are never read. Vectors
 * begin at multiples of LANES, so that what is stored as a vector is loaded as the same vector. */
static inline long extend_factor(const Family *P, State *s) {
    long ld = P->ld, k = s->k, from = s->valid, start = from & -LANES;
    double *restrict L = s->L;
    for (long e = 0; e < k; e++) {
        const double *row = P->H + s->S[e] * P->wide;
        for (long r = e > start ? e : start; r < k; r++) L[e * ld + r] = row[s->S[r]];
    }
    for (long e = 0; e < k; e++) {
        long first = e > start ? e & -LANES : start;
        double *column = L + e * ld;
        double diagonal = column[e] + P->l2[s->S[e]];
        if (e >= from) {
            double left = diagonal;
            for (long t = 0; t < e; t++) left -= L[t * ld + e] * L[t * ld + e];
            if (!(left > 1e-12 * diagonal)) {
                s->valid = e;
                return e;
            }
            s->inverse[e] = 1.0 / sqrt(left);
        }
        double scale = s->inverse[e];
        for (long r = first; r < k; r += LANES) {
            lanes a = load(column + r), b = {0};
            long t = 0;
            for (; t + 2 <= e; t += 2) {
                a -= L[t * ld + e] * load(L + t * ld + r);
                b -= L[t * ld + ld + e] * load(L + t * ld + ld + r);
            }
            if (t < e) a -= L[t * ld + e] * load(L + t * ld + r);
            store(column + r, (a + b) * scale);
        }
    }
    s->valid = k;
    return k;
}

/* y = L^-T L^-1 y on S, in blocks of LANES variables: scalars inside a block, vectors between them. */
static inline void solve_factor(const Family *P, const State *s, double *restrict y) {
    long ld = P->ld, k = s->k;
    const double *restrict L = s->L;
    for (long first = 0; first < k; first += LANES) {
        long last = first + LANES < k ? first + LANES : k;
        for (long e = first; e < last; e++) {
            double v = y[e];
            for (long t = first; t < e; t++) v -= L[t * ld + e] * y[t];
            y[e] = v * s->inverse[e];
        }
        for (long r = last; r < k; r += LANES) {
            lanes a = load(y + r);
            for (long e = first; e < last; e++) a -= y[e] * load(L + e * ld + r);
            store(y + r, a);
        }
    }
    for (long first = (k - 1) & -LANES; first >= 0; first -= LANES) {
        long last = first + LANES < k ? first + LANES : k;
        for (long e = last - 1; e >= first; e--) {
            double v = y[e];
            if (last < k) v -= dot(L + e * ld + last, y + last, k - last);
            for (long r = last - 1; r > e; r--) v -= L[e * ld + r] * y[r];
            y[e] = v * s->inverse[e];
        }
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

/* The minimiser on S with the signs that are there, in `goal`. */
static inline void find_goal(const Family *P, State *s, const double *q) {
    double *w = s->goal;
    for (long p = 0; p < s->k; p++) w[p] = q[s->S[p]] - P->l1[s->S[p]] * s->sign[p];
    solve_factor(P, s, w);
}

/* Make the sum of a step `sum`, along the direction in which that costs least. */
static inline void correct_sum(const Family *P, State *s, double *d, double sum) {
    double *ones = s->second;
    for (long p = 0; p < s->k; p++) ones[p] = 1.0;
    solve_factor(P, s, ones);
    double total = sum_of(ones, s->k);
    for (int again = 0; again < 2; again++) axpy((sum - sum_of(d, s->k)) / total, ones, d, s->k);
}

/* The same on the simplex, as a step from x: its gradient is nearly the same in all variables of S
 * near the solution, and what they have in common is subtracted first, so that no digits are lost. */
static inline void find_goal_on_simplex(const Family *P, State *s, const double *q) {
    double *d = s->goal, common = 0.0;
    for (long p = 0; p < s->k; p++) {
        const double *row = P->H + s->S[p] * P->wide;
        double c = q[s->S[p]];
        for (long r = 0; r < s->k; r++) c -= row[s->S[r]] * s->x[r];
        d[p] = c;
        common += c / s->k;
    }
    for (long p = 0; p < s->k; p++) d[p] -= common;
    solve_factor(P, s, d);
    correct_sum(P, s, d, P->radius - sum_of(s->x, s->k));
    for (long p = 0; p < s->k; p++) d[p] += s->x[p];
    if (s->k == 1) d[0] = P->radius;
}

/* What c_j is for the variables of S, on average: the multiplier of the sum. */
static inline double multiplier_of_sum(const Family *P, const State *s) {
    double total = 0.0, weight = 0.0;
    for (long p = 0; p < s->k; p++) total += s->x[p] * s->c[s->S[p]], weight += s->x[p];
    return weight > 0.0 ? total / weight : 0.0;
}

/* Move x on S towards the goal: all the way where no sign changes. Otherwise variables that would
 * change their sign become 0, if F falls by that; if not, the step ends where the first one is 0.
 * Returns 1 where x is the goal. */
static inline int approach(const Family *P, State *s) {
    long k = s->k, crossing = 0;
    double part = 1.0, sum = 0.0, *y = s->second;
    for (long p = 0; p < k; p++) {
        double w = s->goal[p];
        int crosses = !(s->sign[p] * w > 0.0);
        y[p] = crosses ? 0.0 : w;
        sum += y[p];
        if (crosses) {
            double reach = s->x[p] == 0.0 ? 0.0 : s->x[p] / (s->x[p] - w);
            if (reach < part) part = reach;
            crossing++;
        }
    }
    if (crossing == 0) {
        memcpy(s->x, s->goal, k * sizeof(double));
        return 1;
    }
    if (P->radius > 0.0 && sum > 0.0)
        for (long p = 0; p < k; p++) y[p] *= P->radius / sum;
    if ((P->radius == 0.0 || sum > 0.0) && rise(P, s, y, s->goal) < rise(P, s, s->x, s->goal)) {
        memcpy(s->x, y, k * sizeof(double));
    } else {
        for (long p = 0; p < k; p++) {
            double x = s->x[p], w = s->goal[p];
            int crosses = !(s->sign[p] * w > 0.0);
            double reach = !crosses ? 1.0 : x == 0.0 ? 0.0 : x / (x - w);
            s->x[p] = crosses && reach <= part ? 0.0 : x + part * (w - x);
        }
    }
    drop_zeros(P, s);
    return 0;
}

/* c = q - Hx for all columns. */
static inline void correlate_gram(const Family *P, State *s, const double *q) {
    long k = s->k, j = 0, wide = P->wide;
    for (; j + 4 * LANES <= wide; j += 4 * LANES) {
        lanes a = load(q + j), b = load(q + j + 8), c = load(q + j + 16), d = load(q + j + 24);
        for (long p = 0; p < k; p++) {
            const double *row = P->H + s->S[p] * wide + j;
            double x = s->x[p];
            a -= x * load(row), b -= x * load(row + 8), c -= x * load(row + 16), d -= x * load(row + 24);
        }
        store(s->c + j, a), store(s->c + j + 8, b), store(s->c + j + 16, c), store(s->c + j + 24, d);
    }
    for (; j < wide; j += LANES) {
        lanes a = load(q + j);
        for (long p = 0; p < k; p++) a -= s->x[p] * load(P->H + s->S[p] * wide + j);
        store(s->c + j, a);
    }
}

/* The scores of the variables outside S: by how much they violate their optimality condition, in
 * units of |a_j|. Returns the largest. */
static inline double survey_gram(const Family *P, State *s) {
    lanes most = {0}, shift = {0};
    if (P->radius > 0.0) shift += multiplier_of_sum(P, s);
    for (long j = 0; j < P->wide; j += LANES) {
        lanes c = load(s->c + j), size = c - shift;
        if (!P->one_sign) size = larger(size, load(P->either + j) * -c);
        lanes v = (size - load(P->l1 + j)) * load(s->price + j);
        store(s->score + j, v);
        most = larger(v, most);
    }
    return largest_lane(most);
}

/* What rounding may hide of c_j, in units of |a_j|. */
static inline double unseen(const Family *P, const State *s, double size) {
    double total = size;
    for (long p = 0; p < s->k; p++) total += fabs(s->x[p]) * P->norms[s->S[p]];
    return P->rounding * total;
}

static inline void join_variable(const Family *P, State *s, long j) {
    s->S[s->k] = j;
    s->x[s->k] = 0.0;
    s->sign[s->k] = P->either[j] == 0.0 || s->c[j] > 0.0 ? 1.0 : -1.0;
    s->price[j] = 0.0;
    s->k++;
}

/* The numbers of the entries of a vector, `wide` of them, that are at least `least` > 0. */
static inline long find_at_least(const double *a, long wide, double least, long *restrict found) {
    long count = 0;
#ifdef __AVX512F__
    for (long j = 0; j < wide; j += LANES) {
        unsigned bits = _mm512_cmp_pd_mask(_mm512_loadu_pd(a + j), _mm512_set1_pd(least), _CMP_GE_OQ);
        for (; bits; bits &= bits - 1) found[count++] = j + __builtin_ctz(bits);
    }
#else
    for (long j = 0; j < wide; j++) {
        found[count] = j;
        count += a[j] >= least;
    }
#endif
    return count;
}

/* Let the variables with a score of at least `least` join, the `most` largest at most. */
static inline void join_violators(const Family *P, State *s, double least, long most) {
    long count = find_at_least(s->score, P->wide, least, s->found), *found = s->found;
    while (count > most) { /* raise the threshold until few enough are left */
        double sum = 0.0, top = 0.0;
        for (long i = 0; i < count; i++) {
            double v = s->score[found[i]];
            sum += v, top = v > top ? v : top;
        }
        double next = 0.5 * (sum / count + top);
        if (!(next > least)) break;
        long left = 0;
        for (long i = 0; i < count; i++)
            if (s->score[found[i]] >= next) found[left++] = found[i];
        if (left == 0) break;
        least = next, count = left;
    }
    for (long i = 0; i < count && s->k < P->n; i++) join_variable(P, s, found[i]);
}

/* F - b'b/2 at x, where c is that of x. */
static inline double value_gram(const Family *P, const State *s, const double *q) {
    double total = 0.0;
    for (long p = 0; p < s->k; p++) {
        long j = s->S[p];
        double x = s->x[p];
        total += P->l1[j] * fabs(x) + 0.5 * ((P->l2[j] * x) * x - x * (q[j] + s->c[j]));
    }
    return total;
}

/* Minimise over S. Returns 0 where a column of S depends on the others and cannot be left out. */
static inline int minimise_over(const Family *P, State *s, const double *q) {
    while (s->k > 0) {
        long good = extend_factor(P, s);
        if (good < s->k) {
            if (s->x[good] != 0.0) return 0;
            s->barred[s->barred_count++] = s->S[good];
            memmove(s->S + good, s->S + good + 1, (s->k - good - 1) * sizeof(long));
            memmove(s->x + good, s->x + good + 1, (s->k - good - 1) * sizeof(double));
            memmove(s->sign + good, s->sign + good + 1, (s->k - good - 1) * sizeof(double));
            s->k--;
            continue;
        }
        if (P->radius > 0.0)
            find_goal_on_simplex(P, s, q);
        else
            find_goal(P, s, q);
        if (approach(P, s)) return 1;
    }
    return 1;
}

/* Begin at the point from which the problem is solved: 0, or a point of the simplex. */
static inline void begin(const Family *P, State *s, const double *q) {
    long n = P->n, k = 0;
    double least = INFINITY;
    s->k = s->valid = s->rounds = s->barred_count = 0;
    memcpy(s->price, P->price, P->wide * sizeof(double));
    memcpy(s->c, q, P->wide * sizeof(double));
    if (P->factor != NULL) {
        for (long j = 0; j < n; j++) join_variable(P, s, j);
        for (long j = 0; j < n; j++) s->x[j] = P->radius / n;
        memcpy(s->L, P->factor, n * P->ld * sizeof(double));
        memcpy(s->inverse, P->inverse, n * sizeof(double));
        s->valid = n;
    } else if (P->radius > 0.0) {
        for (long j = 0; j < n; j++) {
            double value = 0.5 * P->H[j * P->wide + j] * P->radius - q[j];
            if (value < least) least = value, k = j;
        }
        join_variable(P, s, k);
        s->x[0] = P->radius;
    }
}

/* Solve one problem from the point that is there; `size` is |b|. Returns 1 where no optimality condition
 * is violated visibly, or where F cannot be lowered any more. */
static inline int continue_active_set(const Family *P, State *s, const double *q, double size, long most_rounds) {
    double last = INFINITY, worst, none;
    int alone = 0;
    if (s->k > 0) {
        s->rounds = 1;
        if (!minimise_over(P, s, q)) return 0;
        correlate_gram(P, s, q);
        last = value_gram(P, s, q);
    }
    for (;;) {
        worst = survey_gram(P, s);
        none = unseen(P, s, size) * 0.1;
        if (P->level > none) none = P->level;
        if (worst <= none) return 1;
        if (s->rounds >= most_rounds) return 0;
        s->rounds++;
        long few = s->k > P->most_new ? s->k : P->most_new;
        join_violators(P, s, alone ? worst : fmax(none, P->part * worst), alone ? 1 : few);
        if (!minimise_over(P, s, q)) return 0;
        correlate_gram(P, s, q);
        s->value = value_gram(P, s, q);
        if (s->value < last) {
            for (long i = 0; i < s->barred_count; i++) s->price[s->barred[i]] = P->price[s->barred[i]];
            s->barred_count = alone = 0;
        } else if (alone) {
            return 1;
        } else {
            alone = 1;
        }
        last = s->value;
    }
}

/* The same from the beginning. */
static inline int run_active_set(const Family *P, State *s, const double *q, double size, long most_rounds) {
    begin(P, s, q);
    return continue_active_set(P, s, q, size, most_rounds);
}
#endif
