/* Products of matrices in float32, one for each instance, with a vector each.
 *
 * The time of such a product is that of reading the matrix. A x and A^T u of the same instance share one
 * pass: a few rows that have been read for A x are still in the cache for A^T u. */
#ifndef PROXLEARN_BATCH_PRODUCTS_H
#define PROXLEARN_BATCH_PRODUCTS_H

#include <string.h>

#include "network.h"

#define TALL 5 /* rows that are read together */

typedef float loose __attribute__((vector_size(4 * LANES), may_alias, aligned(4))); /* at any address */

/* w_r = <a_r, x> for R rows of length n. */
INLINE void dots(const float *a, const float *x, long n, float *w, const int R) {
    vec sum[TALL];
    for (int r = 0; r < R; r++) sum[r] = (vec){0};
    long j = 0;
    for (; j + LANES <= n; j += LANES) {
        vec v = *(const loose *)(x + j);
        for (int r = 0; r < R; r++) sum[r] += *(const loose *)(a + r * n + j) * v;
    }
    for (int r = 0; r < R; r++) {
        float lanes[LANES], total = 0.0f;
        memcpy(lanes, &sum[r], sizeof lanes);
#pragma omp simd reduction(+ : total)
        for (int k = 0; k < LANES; k++) total += lanes[k];
        for (long k = j; k < n; k++) total += a[r * n + k] * x[k];
        w[r] = total;
    }
}

/* g += sum of w_r a_r over R rows of length n. */
INLINE void add_rows(const float *a, const float *w, long n, float *g, const int R) {
    long j = 0;
    for (; j + LANES <= n; j += LANES) {
        vec v = *(const loose *)(g + j);
        for (int r = 0; r < R; r++) v += *(const loose *)(a + r * n + j) * w[r];
        *(loose *)(g + j) = v;
    }
    for (; j < n; j++)
        for (int r = 0; r < R; r++) g[j] += a[r * n + j] * w[r];
}

INLINE void through_rows(const float *a, const float *x, const float *scale, const float *shift, float *u, float *g,
                         long n, const int R) {
    if (x) {
        dots(a, x, n, u, R);
        for (int r = 0; r < R; r++) u[r] = (scale ? scale[r] : 1.0f) * u[r] + (shift ? shift[r] : 0.0f);
    }
    if (g) add_rows(a, u, n, g, R);
}

/* u = scale A x + shift, entry by entry, and g = A^T u, for A (m, n). Without x, u is given; without g it is
 * not computed; without scale and shift they are 1 and 0. */
static inline void through(const float *A, const float *x, const float *scale, const float *shift, float *u, float *g,
                           long m, long n) {
    if (g) memset(g, 0, n * sizeof(float));
    long i = 0;
#define AT(v) ((v) ? (v) + i : NULL)
    for (; i + TALL <= m; i += TALL) through_rows(A + i * n, x, AT(scale), AT(shift), u + i, g, n, TALL);
    for (; i < m; i++) through_rows(A + i * n, x, AT(scale), AT(shift), u + i, g, n, 1);
#undef AT
}

#endif
