# The compact rule of rules/compact.py: a small network chooses p and a, the same for all coordinates.

cdef extern from *:
    """
#define COORDINATES 32 /* that pass through the network at a time */

/* sign(t) log(1 + |t|) */
static inline double compressed(double t) { return copysign(fast_log(1.0 + fabs(t)), t); }

/* out_i = b_i + sum_j W_ij in_j for `rows` outputs of COORDINATES coordinates each, cut at `least` below. */
static inline void compact_layer(const double *restrict W, const double *restrict b,
                                 const double *restrict in, double *restrict out, long rows,
                                 long cols, double least) {
    for (long i = 0; i < rows; i++) {
        double sum[COORDINATES];
        for (int t = 0; t < COORDINATES; t++) sum[t] = b[i];
        for (long j = 0; j < cols; j++) {
            double w = W[i * cols + j];
#pragma omp simd
            for (int t = 0; t < COORDINATES; t++) sum[t] += w * in[j * COORDINATES + t];
        }
        for (int t = 0; t < COORDINATES; t++) out[i * COORDINATES + t] = sum[t] > least ? sum[t] : least;
    }
}

typedef struct {
    long hidden;
    const double *coordinate; /* (hidden, 4) */
    const double *inner;      /* (hidden, hidden) */
    const double *inner_bias; /* (hidden) */
    const double *head;       /* (2, hidden) */
    const double *head_bias;  /* (2) */
    double largest_log_p;
} Network;

/* p and a of COORDINATES coordinates. `bias` (hidden) is that of the first layer; `room` has space for
 * (2, hidden, COORDINATES) numbers. */
static inline void compact_network(const Network *net, const double *restrict inputs,
                           const double *restrict bias, double step, double *restrict room,
                           double *restrict p, double *restrict a) {
    long H = net->hidden;
    double *first = room, *second = room + H * COORDINATES, out[2 * COORDINATES];
    compact_layer(net->coordinate, bias, inputs, first, H, 4, 0.0);
    compact_layer(net->inner, net->inner_bias, first, second, H, H, 0.0);
    compact_layer(net->head, net->head_bias, second, out, 2, H, -INFINITY);
    for (int t = 0; t < COORDINATES; t++) {
        double u = out[t] > -3.0 ? out[t] : -3.0;
        u = u < net->largest_log_p ? u : net->largest_log_p;
        p[t] = step * fast_exp(u);
        a[t] = 1.0 / (1.0 + fast_exp(-out[COORDINATES + t]));
    }
}

/* p and a (n): the inputs of a coordinate are g/lam, y/(lam s), (y - x)/(lam s), (g - last)/lam. */
static inline void compact_coefficients(const Network *net, const double *restrict g,
                                        const double *restrict x, const double *restrict y,
                                        const double *restrict last, const double *restrict level,
                                        const double *restrict bias, double step,
                                        double *restrict room, double *restrict p,
                                        double *restrict a, long n) {
    double inputs[4 * COORDINATES], some_p[COORDINATES], some_a[COORDINATES];
    for (long first = 0; first < n; first += COORDINATES) {
        long count = n - first < COORDINATES ? n - first : COORDINATES;
        memset(inputs, 0, sizeof inputs);
#pragma omp simd
        for (long t = 0; t < count; t++) {
            long j = first + t;
            double unit = 1.0 / level[j], long_unit = 1.0 / (level[j] * step);
            inputs[t] = compressed(g[j] * unit);
            inputs[COORDINATES + t] = compressed(y[j] * long_unit);
            inputs[2 * COORDINATES + t] = compressed((y[j] - x[j]) * long_unit);
            inputs[3 * COORDINATES + t] = compressed((g[j] - last[j]) * unit);
        }
        compact_network(net, inputs, bias, step, room, some_p, some_a);
        memcpy(p + first, some_p, count * sizeof(double));
        memcpy(a + first, some_a, count * sizeof(double));
    }
}
    """
    enum: COORDINATES
    ctypedef struct Network:
        long hidden
        const double *coordinate
        const double *inner
        const double *inner_bias
        const double *head
        const double *head_bias
        double largest_log_p
    void compact_coefficients(
        const Network *net, double *g, double *x, double *y, double *last, double *level, double *bias,
        double step, double *room, double *p, double *a, long n
    ) noexcept nogil

cdef enum:
    INSTANCE = 5  # inputs that all coordinates of a problem share


cdef class CompactStart(Start):
    """p = exp(u)/L and a = sigmoid(v) with u, v from a network; see rules/compact.py.

    The weights are arrays of float64: coordinate (H, 4), instance (5, H), first bias (H,), inner (H, H) and
    its bias (H,), head (2, H) and its bias (2,).
    """

    cdef Network net
    cdef double *work    # (2 H COORDINATES + H): hidden units and the bias of the first layer
    cdef double *bias    # (H,)
    cdef double *level   # (n,)
    cdef const double[:, ::1] instance
    cdef const double[::1] first_bias
    cdef object kept

    def __init__(
        self, Data A, Loss f, Penalty r, double curvature, double step, weights, double largest_log_p
    ):
        cdef const double[:, ::1] coordinate = weights[0]
        cdef const double[:, ::1] inner = weights[3]
        cdef const double[::1] inner_bias = weights[4]
        cdef const double[:, ::1] head = weights[5]
        cdef const double[::1] head_bias = weights[6]
        cdef Py_ssize_t H = coordinate.shape[0]
        self.instance, self.first_bias, self.kept = weights[1], weights[2], weights
        self.net.hidden, self.net.largest_log_p = H, largest_log_p
        self.net.coordinate, self.net.inner = &coordinate[0, 0], &inner[0, 0]
        self.net.inner_bias = &inner_bias[0]
        self.net.head, self.net.head_bias = &head[0, 0], &head_bias[0]
        self.work = <double *> resized(self.work, (2 * COORDINATES + 1) * H + self.n, sizeof(double))
        self.bias, self.level = self.work + 2 * COORDINATES * H, self.work + (2 * COORDINATES + 1) * H

    def __dealloc__(self):
        free(self.work)

    cdef void choose(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t h, i
        cdef double inputs[INSTANCE]
        if k == 0:
            self.take_levels()
            memcpy(self.last_g, self.g, self.n * sizeof(double))
        self.look(k, inputs)
        for h in range(self.net.hidden):
            self.bias[h] = self.first_bias[h]
            for i in range(INSTANCE):
                self.bias[h] += inputs[i] * self.instance[i, h]
        compact_coefficients(&self.net, self.g, self.x, self.y, self.last_g, self.level, self.bias,
                             self.step, self.work, self.p, self.a, self.n)

    cdef void take_levels(self) noexcept nogil:
        """lam for each coordinate; a tenth of the largest gradient, or 1, where the penalty has none."""
        cdef Py_ssize_t j
        cdef double scale = 0.0
        for j in range(self.n):
            scale = max(scale, 0.1 * fabs(self.g[j]))
        self.r.levels(self.level)
        for j in range(self.n):
            if not self.level[j] > 0.0:
                self.level[j] = scale if scale > 0.0 else 1.0

    cdef void look(self, Py_ssize_t k, double *inputs) noexcept nogil:
        """What all coordinates see: iteration, part of non-zeros, two curvatures along the last step."""
        cdef Py_ssize_t j, nonzero = 0
        cdef double dy, dg, both = 0.0, steps = 0.0, changes = 0.0, tiny = 2.2250738585072014e-308
        for j in range(self.n):
            nonzero += self.x[j] != 0.0
        inputs[0], inputs[1] = log(1.0 + k), 1.0 / (1.0 + k)
        inputs[2] = log(<double> nonzero / self.n + 1e-3)
        inputs[3] = inputs[4] = 0.0
        if k == 0:
            return
        for j in range(self.n):
            dy, dg = self.y[j] - self.last_y[j], self.g[j] - self.last_g[j]
            both += dy * dg
            steps += dy * dy
            changes += dg * dg
        both = max(both, 0.0)
        inputs[3] = log(self.step * both / max(steps, tiny) + 1e-4)
        inputs[4] = min(log(both / max(self.step * changes, tiny) + 1e-4), 10.0)
