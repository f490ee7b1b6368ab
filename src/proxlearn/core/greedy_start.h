/* A guess of the support before the active-set method begins: greedy coordinate descent in float32.
 *
 * With columns divided by their lengths and b by its own, c = A^T (b - A x) is in [-1, 1]. Each step takes
 * the coordinate that is furthest from its optimality condition, minimises over it alone, and updates c by a
 * row of the Gram matrix. A step costs one pass over n numbers; a round of the active-set method costs one
 * for each variable, and a factor. The answer is a guess that is never certified, so that float32 is enough.
 * Measured on one core, the other one busy (2026-11-19, microseconds a problem without and with it): patches
 * 64x128 at lambda 0.1 9.0 and 7.8, LASSO 300x400 with 90 variables 48 and 43, 64x128 with 39 variables 13.7
 * and 12.1, 300x400 with 6 variables 3.8 and 4.0. */
#ifndef PROXLEARN_GREEDY_START_H
#define PROXLEARN_GREEDY_START_H

#include "gram_factor.h"

#define NARROW 16 /* numbers of float32 in a vector */
typedef float narrow __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t narrow_mask __attribute__((vector_size(64), aligned(4), may_alias));
#define FAR_BELOW 3e38f /* the band has no lower end where x >= 0 */
/* Steps end where the largest violation is this part of the first one. Of 0.1, 0.03 and 0.01 on nine designs
 * (400x250, 64x128 and 300x400 at lambda 0.3, 0.1 and 0.03 of the largest), 0.01 was the fastest or within a
 * tenth of it, and so was having no bound on the number of steps. */
#define GREEDY_PART 0.01f
#define NUMBER_BITS 2047 /* low bits of a violation that hold the number of its column; at most 2048 columns */

static inline narrow load_narrow(const float *a) { return *(const narrow *)a; }

static inline narrow larger_narrow(narrow a, narrow b) {
#ifdef __AVX512F__
    return (narrow)_mm512_max_ps((__m512)a, (__m512)b);
#else
    narrow_mask where = a > b;
    return (narrow)(((narrow_mask)a & where) | ((narrow_mask)b & ~where));
#endif
}

/* The largest of 16 numbers. */
static inline float largest_narrow(narrow v) {
#ifdef __AVX512F__
    return _mm512_reduce_max_ps((__m512)v);
#else
    float most = v[0];
    for (int i = 1; i < NARROW; i++) most = v[i] > most ? v[i] : most;
    return most;
#endif
}

/* c -= step H_j and the largest violation max(c - high, low - c), whose low bits are the number of its
 * column. */
static inline float descend_and_survey(const float *row, float step, float *restrict c, const float *high,
                                       const float *low, long size) {
    narrow most = {0};
    narrow_mask number = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (long j = 0; j < size; j += NARROW, number += NARROW) {
        narrow v = load_narrow(c + j) - step * load_narrow(row + j);
        *(narrow *)(c + j) = v;
        v = larger_narrow(v - load_narrow(high + j), load_narrow(low + j) - v);
        most = larger_narrow((narrow)(((narrow_mask)v & ~NUMBER_BITS) | number), most);
    }
    return largest_narrow(most);
}

/* The problem with columns of length 1 and |b| = 1: c, and the band in which it may be where x is 0. */
static inline void scale_narrowly(const Family *P, const State *s, const double *q, double unit) {
    float *restrict c = s->small, *restrict high = c + P->small, *restrict low = high + P->small;
    memset(c, 0, 4 * P->small * sizeof(float));
    for (long j = 0; j < P->wide; j++) {
        double weight = P->price[j] * unit;
        c[j] = q[j] * weight;
        high[j] = P->l1[j] * weight;
        low[j] = P->either[j] == 0.0 ? -FAR_BELOW : -high[j];
    }
}

/* The variables of S[0..k) that are not 0, the largest first: those that leave S soon are then behind the
 * others, and little of the factor is lost with them. */
static inline void take_support(const Family *P, State *s, const float *x, long k, double size) {
    long kept = 0;
    for (long p = 0; p < k; p++) {
        long j = s->S[p], r = kept;
        float magnitude = fabsf(x[j]);
        if (magnitude == 0.0f) continue;
        for (; r > 0 && magnitude > fabsf(x[s->S[r - 1]]); r--) s->S[r] = s->S[r - 1];
        s->S[r] = j;
        kept++;
    }
    s->k = kept;
    for (long p = 0; p < kept; p++) {
        long j = s->S[p];
        s->x[p] = x[j] * (size * P->price[j]);
        s->sign[p] = x[j] > 0.0f ? 1.0 : -1.0;
        s->price[j] = 0.0;
    }
}

/* Begin with the support and the values of a rough minimiser; |b| is `size`. */
static inline void begin_greedily(const Family *P, State *s, const double *q, double size) {
    float *c = s->small, *high = c + P->small, *low = high + P->small, *x = low + P->small;
    float unit = 1.0 / size, worst, enough;
    long k = 0;
    if (!(unit > 0.0f && unit < INFINITY)) return;
    scale_narrowly(P, s, q, 1.0 / size);
    worst = descend_and_survey(P->G, 0.0f, c, high, low, P->small);
    enough = GREEDY_PART * worst;
    for (long step = 0; step < P->n && worst > enough; step++) {
        union { float value; int32_t bits; } found = {worst};
        long j = found.bits & NUMBER_BITS;
        float old = x[j], above = c[j] - high[j], below = c[j] - low[j];
        float new = old + (above > 0.0f ? above : below) * P->curve[j];
        if (old == 0.0f) {
            long p = 0;
            while (p < k && s->S[p] != j) p++;
            if (p == k) s->S[k++] = j;
            if (new > 0.0f) low[j] = high[j];
            else if (low[j] == -high[j]) high[j] = low[j];
            else new = 0.0f;
        } else if (!(new * old > 0.0f)) {
            new = 0.0f;
            high[j] = fabsf(high[j]);
            low[j] = P->either[j] == 0.0 ? -FAR_BELOW : -high[j];
        }
        x[j] = new;
        worst = descend_and_survey(P->G + j * P->small, new - old, c, high, low, P->small);
    }
    take_support(P, s, x, k, size);
}
#endif
