/* Least squares problems that share A, one at a time, on the Gram matrix H = A^T A:
 *
 *     minimise  1/2 x'Hx - q'x + sum_j l1_j |x_j| + l2_j/2 x_j^2,     q = A^T b
 *
 * where each x_j is free or non-negative, and the sum of x may be given (the simplex). A primal
 * active-set method. The free set S and a Cholesky factor of H_SS are kept (gram_factor.h); F falls
 * in every step:
 *
 *     join     variables that violate their optimality condition join S, the worst ones first
 *     minimise over S with the signs that are there; variables that would change their sign leave S
 *     survey   c = q - Hx for all columns
 *
 * Everything depends on the problem alone, so that neither the number of threads nor the way in
 * which a batch is cut changes a bit of the answer. */
#ifndef PROXLEARN_GRAM_ACTIVE_SET_H
#define PROXLEARN_GRAM_ACTIVE_SET_H

#include "gram_factor.h"
#include "greedy_start.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif

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
        invert_blocks(s->L, s->inverse, P->ld, 0, n);
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
        int complete = minimise_over(P, s, q);
        correlate_gram(P, s, q);
        if (!complete) return 0;
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
        int complete = minimise_over(P, s, q);
        correlate_gram(P, s, q);
        if (!complete) return 0;
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

/* The same from the beginning. Where the greedy start leads to columns that depend on each other, so that
 * some were barred, it begins again without. */
static inline int run_active_set(const Family *P, State *s, const double *q, double size, long most_rounds) {
    begin(P, s, q);
    if (P->G != NULL) {
        begin_greedily(P, s, q, size);
        if (continue_active_set(P, s, q, size, most_rounds) && s->barred_count == 0) return 1;
        if (s->rounds >= most_rounds) return 0;
        begin(P, s, q);
    }
    return continue_active_set(P, s, q, size, most_rounds);
}
#endif
