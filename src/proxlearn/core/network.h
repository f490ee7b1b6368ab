/* A small network in float32 that is applied to every coordinate alike, forward and backward.
 *
 * Coordinates pass through all layers in blocks of WIDTH, so that what a block needs stays in the cache. In
 * a block a row holds one feature of WIDTH coordinates. The backward pass computes a block's forward pass
 * again instead of reading it from memory, which takes as long and needs no memory. */
#ifndef PROXLEARN_NETWORK_H
#define PROXLEARN_NETWORK_H

#include <stdint.h>
#include <string.h>

#define WIDTH 256 /* coordinates in a block */
#define ROWS 4    /* rows of a tile whose sums stay in registers */
#if defined(__AVX512F__)
#define LANES 16
#define VECTORS 4 /* vectors of a tile's row; with ROWS they fit the registers */
#elif defined(__AVX__)
#define LANES 8
#define VECTORS 2
#else
#define LANES 4
#define VECTORS 2
#endif
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES), may_alias));

enum { LINEAR, RELU, ELU, LSTM };

/* One layer. A dense one is out = act(W in + bias); `outputs` of an LSTM is its number of units H, and its
 * gates are i, f, o, g in this order. All arrays of coordinates are (instances, features, n). */
typedef struct {
    int kind;
    long inputs, outputs;
    long rows, cols;           /* of W: outputs or 4 H, and inputs (+ H) + 1, as the bias is the last column */
    const float *W;            /* (rows, cols), the columns of the inputs, of the state, the bias */
    const float *transposed;   /* (cols, rows), for the backward pass */
    const float *h, *c;        /* the state of an LSTM, (instances, H, n) */
    float *h_next, *c_next;    /* NULL in the backward pass */
    const float *dh_next, *dc_next; /* derivatives of the loss, or NULL for zero */
    float *dh, *dc;            /* the same for h and c, or NULL */
    vec *dW;                   /* (rows, cols), the lanes to be added at the end */
    float *in;                 /* (cols, WIDTH): inputs, state, ones */
    float *gates, *old, *tanh_c; /* (4 H, WIDTH), (H, WIDTH), (H, WIDTH) */
} Layer;

/* exp(x) to about two units in the last place, for x in [-87, 88]; other x are clipped to that range. */
static inline float network_exp(float x) {
    const float shift = 0x1.8p23f;
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float k = x * 1.44269504f + shift;
    int32_t bits;
    memcpy(&bits, &k, 4);
    k -= shift;
    float r = x - k * 0x1.62e4p-1f;
    r -= k * 0x1.7f7d1cp-20f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t e = ((uint32_t)bits + 127) << 23; /* only the lowest eight bits stay */
    float scale;
    memcpy(&scale, &e, 4);
    return p * scale;
}

static inline float network_sigmoid(float x) { return 1.0f / (1.0f + network_exp(-x)); }
static inline float network_tanh(float x) { return 2.0f * network_sigmoid(2.0f * x) - 1.0f; }

/* out = W x for R rows of W, which begin `cols` apart, and C vectors of coordinates. */
INLINE void product_tile(const float *W, long stride, long cols, const float *x, float *out, const int R,
                         const int C) {
    vec sum[ROWS][VECTORS];
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) sum[r][c] = (vec){0};
    for (long k = 0; k < cols; k++) {
        vec in[VECTORS];
        for (int c = 0; c < C; c++) in[c] = *(const vec *)(x + k * WIDTH + c * LANES);
        for (int r = 0; r < R; r++) {
            vec w = W[r * stride + k] - (vec){0}; /* 0 + x would be an addition, as 0 + -0 is not -0 */
            for (int c = 0; c < C; c++) sum[r][c] += w * in[c];
        }
    }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) *(vec *)(out + r * WIDTH + c * LANES) = sum[r][c];
}

/* out (rows, WIDTH) = W x with the first `cols` columns of W (rows, stride), for `vectors` vectors of
 * coordinates. */
static inline void product(const float *W, long rows, long stride, long cols, const float *x, float *out,
                           long vectors) {
    long v = 0;
    for (; v + VECTORS <= vectors; v += VECTORS) {
        long r = 0;
        for (; r + ROWS <= rows; r += ROWS)
            product_tile(W + r * stride, stride, cols, x + v * LANES, out + r * WIDTH + v * LANES, ROWS, VECTORS);
        for (; r < rows; r++)
            product_tile(W + r * stride, stride, cols, x + v * LANES, out + r * WIDTH + v * LANES, 1, VECTORS);
    }
    for (; v < vectors; v++) {
        long r = 0;
        for (; r + ROWS <= rows; r += ROWS)
            product_tile(W + r * stride, stride, cols, x + v * LANES, out + r * WIDTH + v * LANES, ROWS, 1);
        for (; r < rows; r++)
            product_tile(W + r * stride, stride, cols, x + v * LANES, out + r * WIDTH + v * LANES, 1, 1);
    }
}

INLINE void outer_tile(const float *dz, const float *x, vec *sum_of, long cols, long vectors, const int R,
                       const int C) {
    vec sum[ROWS][ROWS];
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) sum[r][c] = sum_of[r * cols + c];
    for (long v = 0; v < vectors; v++) {
        vec in[ROWS];
        for (int c = 0; c < C; c++) in[c] = *(const vec *)(x + c * WIDTH + v * LANES);
        for (int r = 0; r < R; r++) {
            vec d = *(const vec *)(dz + r * WIDTH + v * LANES);
            for (int c = 0; c < C; c++) sum[r][c] += d * in[c];
        }
    }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) sum_of[r * cols + c] = sum[r][c];
}

/* dW += dz x^T, lane by lane. */
static inline void outer(const float *dz, long rows, const float *x, long cols, vec *dW, long vectors) {
    for (long r = 0; r < rows;) {
        int tall = r + ROWS <= rows;
        const float *d = dz + r * WIDTH;
        vec *sum = dW + r * cols;
        for (long c = 0; c < cols;) {
            int wide = c + ROWS <= cols;
            const float *in = x + c * WIDTH;
            if (tall && wide) outer_tile(d, in, sum + c, cols, vectors, ROWS, ROWS);
            else if (tall) outer_tile(d, in, sum + c, cols, vectors, ROWS, 1);
            else if (wide) outer_tile(d, in, sum + c, cols, vectors, 1, ROWS);
            else outer_tile(d, in, sum + c, cols, vectors, 1, 1);
            c += wide ? ROWS : 1;
        }
        r += tall ? ROWS : 1;
    }
}

/* The coordinates first, ..., first + count - 1 of all instances in a row: a block of them from or to an
 * array (instances, features, n). What lies behind them in their last vector becomes 0. */
static inline void load_block(const float *array, long features, long n, long first, long count, float *block) {
    long padded = (count + LANES - 1) / LANES * LANES;
    for (long f = 0; f < features && padded > count; f++)
        memset(block + f * WIDTH + count, 0, (padded - count) * sizeof(float));
    if (!array) {
        for (long f = 0; f < features; f++) memset(block + f * WIDTH, 0, count * sizeof(float));
        return;
    }
    for (long done = 0; done < count;) {
        long i = (first + done) / n, j = (first + done) % n;
        long some = n - j < count - done ? n - j : count - done;
        for (long f = 0; f < features; f++)
            memcpy(block + f * WIDTH + done, array + (i * features + f) * n + j, some * sizeof(float));
        done += some;
    }
}

static inline void store_block(float *array, long features, long n, long first, long count, const float *block) {
    if (!array) return;
    for (long done = 0; done < count;) {
        long i = (first + done) / n, j = (first + done) % n;
        long some = n - j < count - done ? n - j : count - done;
        for (long f = 0; f < features; f++)
            memcpy(array + (i * features + f) * n + j, block + f * WIDTH + done, some * sizeof(float));
        done += some;
    }
}

/* c+ = f c + i g and h+ = o tanh(c+) from the sums in `gates`; c+ is left in `next`. */
static inline void lstm_units(Layer *l, float *next, float *out, long width) {
    long H = l->outputs;
    for (long u = 0; u < H; u++) {
        float *restrict i = l->gates + u * WIDTH, *restrict f = i + H * WIDTH, *restrict o = f + H * WIDTH,
              *restrict g = o + H * WIDTH, *restrict t = l->tanh_c + u * WIDTH, *restrict c = next + u * WIDTH,
              *restrict h = out + u * WIDTH;
        const float *restrict old = l->old + u * WIDTH;
#pragma omp simd
        for (long k = 0; k < width; k++) {
            i[k] = network_sigmoid(i[k]);
            f[k] = network_sigmoid(f[k]);
            o[k] = network_sigmoid(o[k]);
            g[k] = network_tanh(g[k]);
        }
#pragma omp simd
        for (long k = 0; k < width; k++) {
            c[k] = f[k] * old[k] + i[k] * g[k];
            t[k] = network_tanh(c[k]);
            h[k] = o[k] * t[k];
        }
    }
}

/* The derivatives by the sums of the gates take the gates' place; dh and dc are those by h+ and c+, and dc
 * becomes that by c. */
static inline void lstm_units_backward(Layer *l, const float *dh_block, float *dc_block, long width) {
    long H = l->outputs;
    for (long u = 0; u < H; u++) {
        float *restrict i = l->gates + u * WIDTH, *restrict f = i + H * WIDTH, *restrict o = f + H * WIDTH,
              *restrict g = o + H * WIDTH, *restrict dc = dc_block + u * WIDTH;
        const float *restrict t = l->tanh_c + u * WIDTH, *restrict old = l->old + u * WIDTH,
                    *restrict dh = dh_block + u * WIDTH;
#pragma omp simd
        for (long k = 0; k < width; k++) {
            float a = i[k], b = f[k], e = o[k], s = g[k];
            float d = dc[k] + dh[k] * e * (1.0f - t[k] * t[k]);
            i[k] = d * s * a * (1.0f - a);
            f[k] = d * old[k] * b * (1.0f - b);
            o[k] = dh[k] * t[k] * e * (1.0f - e);
            g[k] = d * a * (1.0f - s * s);
            dc[k] = d * b;
        }
    }
}

static inline void activate(int kind, float *restrict z, long rows, long width) {
    for (long r = 0; r < rows; r++, z += WIDTH) {
        if (kind == RELU) {
#pragma omp simd
            for (long k = 0; k < width; k++) z[k] = z[k] < 0.0f ? 0.0f : z[k];
        } else if (kind == ELU) {
#pragma omp simd
            for (long k = 0; k < width; k++) z[k] = z[k] > 0.0f ? z[k] : network_exp(z[k]) - 1.0f;
        }
    }
}

/* The derivative by the sum, from the one by the activated value. */
static inline void activate_backward(int kind, const float *restrict value, float *restrict d, long rows, long width) {
    for (long r = 0; r < rows; r++, d += WIDTH, value += WIDTH) {
        if (kind == RELU) {
#pragma omp simd
            for (long k = 0; k < width; k++) d[k] = value[k] > 0.0f ? d[k] : 0.0f;
        } else if (kind == ELU) {
#pragma omp simd
            for (long k = 0; k < width; k++) d[k] = value[k] > 0.0f ? d[k] : d[k] * (value[k] + 1.0f);
        }
    }
}

/* Where a layer writes: the inputs of the next one, or `out` (outputs, WIDTH). */
static inline float *output_of(Layer *layers, long number, long l, float *out) {
    return l + 1 < number ? layers[l + 1].in : out;
}

/* All layers for a block of coordinates; `room` (largest H, WIDTH). */
static inline void network_block(Layer *layers, long number, const float *x, long n, long first, long count,
                                 float *out, float *room) {
    long vectors = (count + LANES - 1) / LANES, width = vectors * LANES;
    load_block(x, layers[0].inputs, n, first, count, layers[0].in);
    for (long k = 0; k < number; k++) {
        Layer *l = layers + k;
        float *ones = l->in + (l->cols - 1) * WIDTH, *to = output_of(layers, number, k, out);
        for (long j = 0; j < width; j++) ones[j] = 1.0f;
        if (l->kind != LSTM) {
            product(l->W, l->rows, l->cols, l->cols, l->in, to, vectors);
            activate(l->kind, to, l->rows, width);
            continue;
        }
        load_block(l->h, l->outputs, n, first, count, l->in + l->inputs * WIDTH);
        load_block(l->c, l->outputs, n, first, count, l->old);
        product(l->W, l->rows, l->cols, l->cols, l->in, l->gates, vectors);
        lstm_units(l, room, to, width);
        store_block(l->h_next, l->outputs, n, first, count, to);
        store_block(l->c_next, l->outputs, n, first, count, room);
    }
}

/* The backward pass of a block after its forward pass. `d` and `spare` (most rows, WIDTH) hold derivatives by
 * the values between layers, `room` (largest H, WIDTH) one by a state. */
static inline void network_block_backward(Layer *layers, long number, const float *dout, float *dx, long n, long first,
                                          long count, float *out, float *room, float *d, float *spare) {
    long vectors = (count + LANES - 1) / LANES, width = vectors * LANES;
    load_block(dout, layers[number - 1].outputs, n, first, count, d);
    for (long k = number - 1; k >= 0; k--) {
        Layer *l = layers + k;
        long H = l->outputs, skipped = (k == 0 && !dx) ? l->inputs : 0;
        float *dz = d;
        if (l->kind == LSTM) {
            load_block(l->dh_next, H, n, first, count, room);
            for (long j = 0; j < H * WIDTH; j++) d[j] += room[j];
            load_block(l->dc_next, H, n, first, count, room);
            lstm_units_backward(l, d, room, width);
            store_block(l->dc, H, n, first, count, room);
            dz = l->gates;
        } else {
            activate_backward(l->kind, output_of(layers, number, k, out), d, l->rows, width);
        }
        outer(dz, l->rows, l->in, l->cols, l->dW, vectors);
        product(l->transposed + skipped * l->rows, l->cols - 1 - skipped, l->rows, l->rows, dz, spare + skipped * WIDTH,
                vectors);
        if (l->kind == LSTM) store_block(l->dh, H, n, first, count, spare + l->inputs * WIDTH);
        float *swap = d;
        d = spare;
        spare = swap;
    }
    store_block(dx, layers[0].inputs, n, first, count, d);
}

#endif
