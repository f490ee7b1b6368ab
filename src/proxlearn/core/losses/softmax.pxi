# Multinomial logistic regression: phi(z_i) = log(sum_c exp(z_ic)) - z_i,b with labels b = 0, ..., C-1.
#
# Predictions and dual points are (C, samples), class after class. The Hessian of a sample is
# diag(p) - p p', and the conjugate the negative entropy of the probabilities that belong to a dual point.

cdef extern from *:
    """
/* Three numbers for each sample: `own` is the score of its label, `top` by how much the largest score
 * exceeds it, `rest` the sum over the other classes of exp(z_c - own - top). Scores are z + t d; d may
 * be NULL. */
static inline void softmax_scores(const double *restrict b, const double *restrict z,
                                  const double *restrict d, double t, double *restrict own,
                                  double *restrict top, double *restrict rest, long m,
                                  long classes) {
    if (!d) d = z, t = 0.0;
    for (long i = 0; i < m; i++) {
        long at = (long)b[i] * m + i;
        own[i] = z[at] + t * d[at];
        top[i] = rest[i] = 0.0;
    }
    for (long c = 0; c < classes; c++) {
        const double *restrict zc = z + c * m, *restrict dc = d + c * m;
        for (long i = 0; i < m; i++) {
            double above = zc[i] + t * dc[i] - own[i];
            top[i] = above > top[i] ? above : top[i];
        }
    }
    for (long c = 0; c < classes; c++) {
        const double *restrict zc = z + c * m, *restrict dc = d + c * m;
        for (long i = 0; i < m; i++) {
            double e = fast_exp(zc[i] + t * dc[i] - own[i] - top[i]);
            rest[i] += b[i] == (double)c ? 0.0 : e;
        }
    }
}

/* Sum of s_i (top_i + log(exp(-top_i) + rest_i)). */
static inline double softmax_value(const double *restrict s, const double *restrict top,
                                   const double *restrict rest, long m) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < m; i++) {
        double sum = fast_exp(-top[i]) + rest[i];
        double near = fast_log1p(rest[i] < 1.0 ? rest[i] : 1.0); /* the label has the top score */
        total += s[i] * (top[i] + (top[i] == 0.0 && rest[i] < 1.0 ? near : fast_log(sum)));
    }
    return total;
}

/* Probabilities p (C, m), the dual point u = s (1[label] - p), and wrong = 1 - p_label. */
static inline void softmax_state(const double *restrict s, const double *restrict b,
                                 const double *restrict z, const double *restrict own,
                                 const double *restrict top, const double *restrict rest,
                                 double *restrict p, double *restrict u, double *restrict wrong,
                                 long m, long classes) {
    for (long i = 0; i < m; i++) wrong[i] = rest[i] / (fast_exp(-top[i]) + rest[i]);
    for (long c = 0; c < classes; c++) {
        const double *restrict zc = z + c * m;
        double *restrict pc = p + c * m, *restrict uc = u + c * m;
        for (long i = 0; i < m; i++) {
            double sum = fast_exp(-top[i]) + rest[i];
            pc[i] = fast_exp(zc[i] - own[i] - top[i]) / sum;
            uc[i] = b[i] == (double)c ? s[i] * wrong[i] : -s[i] * pc[i];
        }
    }
}

/* Sum of s_i times the entropy of (1 - scale) 1[label] + scale p. */
static inline double softmax_entropy(const double *restrict s, const double *restrict b,
                                     const double *restrict p, const double *restrict wrong,
                                     double scale, long m, long classes) {
    double total = 0.0, tiny = 1e-300;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < m; i++) {
        double q = scale * wrong[i], r = 1.0 - q;
        double far = fast_log(r > tiny ? r : tiny), near = log1m(q < 0.5 ? q : 0.5);
        total -= s[i] * r * (q < 0.5 ? near : far);
    }
    for (long c = 0; c < classes; c++) {
        const double *restrict pc = p + c * m;
#pragma omp simd reduction(+ : total)
        for (long i = 0; i < m; i++) {
            double q = b[i] == (double)c ? 0.0 : scale * pc[i];
            total -= s[i] * q * fast_log(q > tiny ? q : tiny);
        }
    }
    return total;
}
    """
    void softmax_scores(
        double *b, double *z, double *d, double t, double *own, double *top, double *rest, long m,
        long classes
    ) noexcept nogil
    double softmax_value(double *s, double *top, double *rest, long m) noexcept nogil
    void softmax_state(
        double *s, double *b, double *z, double *own, double *top, double *rest, double *p, double *u,
        double *wrong, long m, long classes
    ) noexcept nogil
    double softmax_entropy(
        double *s, double *b, double *p, double *wrong, double scale, long m, long classes
    ) noexcept nogil


cdef class Softmax(Loss):
    """phi(z) = log(sum_c exp(z_c)) - z_b, for the data of `Classes`."""

    cdef Py_ssize_t samples, classes
    cdef double *weights  # (samples,)
    cdef double *p        # (C, samples): probabilities, or what the dual point was moved to
    cdef double *bend     # (C, samples): the probabilities at z, from which the curvature is computed
    cdef double *work     # (4, samples)
    cdef double *wrong    # (samples,): 1 - p of the label

    def __cinit__(self, b, s, Py_ssize_t classes):
        self.samples, self.classes = self.m, classes
        self.m = self.samples * classes
        self.trusted = 10.0  # where one class has all the probability, the loss has no curvature
        self.weights = <double *> resized(NULL, self.samples, sizeof(double))
        memcpy(self.weights, self.s, self.samples * sizeof(double))
        self.s = self.weights
        self.u = <double *> resized(self.u, self.m, sizeof(double))
        self.p = <double *> resized(NULL, self.m, sizeof(double))
        self.bend = <double *> resized(NULL, self.m, sizeof(double))
        self.work = <double *> resized(NULL, 4 * self.samples, sizeof(double))
        self.wrong = self.work + 3 * self.samples

    def __dealloc__(self):
        free(self.weights)
        free(self.p)
        free(self.bend)
        free(self.work)

    cdef void scores(self, double *z, double *d, double t) noexcept nogil:
        softmax_scores(self.b, z, d, t, self.work, self.work + self.samples, self.work + 2 * self.samples,
                       self.samples, self.classes)

    cdef double value(self, double *z, double *d, double t) noexcept nogil:
        self.scores(z, d, t)
        return softmax_value(self.s, self.work + self.samples, self.work + 2 * self.samples, self.samples)

    cdef void differentiate(self, double *z) noexcept nogil:
        self.scores(z, NULL, 0.0)
        softmax_state(self.s, self.b, z, self.work, self.work + self.samples, self.work + 2 * self.samples,
                      self.p, self.u, self.wrong, self.samples, self.classes)
        memcpy(self.bend, self.p, self.m * sizeof(double))

    cdef void curvature(self, double *D) noexcept nogil:
        """D = s p. `Classes` computes the Hessian from it, since s is the sum of D over the classes."""
        cdef Py_ssize_t c, i
        for c in range(self.classes):
            for i in range(self.samples):
                D[c * self.samples + i] = self.s[i] * self.bend[c * self.samples + i]

    cdef void shift(self, double *v) noexcept nogil:
        """p becomes p + q (v - q'v), cut off at 0 and divided by its sum; q are the probabilities at z."""
        cdef Py_ssize_t c, i, at, m = self.samples
        cdef double mean, total
        for i in range(m):
            mean = total = 0.0
            for c in range(self.classes):
                mean += self.bend[c * m + i] * v[c * m + i]
            for c in range(self.classes):
                at = c * m + i
                self.p[at] = max(0.0, self.p[at] + self.bend[at] * (v[at] - mean))
                total += self.p[at]
            self.wrong[i] = 0.0
            for c in range(self.classes):
                at = c * m + i
                self.p[at] /= total
                self.u[at] = -self.s[i] * self.p[at]
                if c != <Py_ssize_t> self.b[i]:
                    self.wrong[i] += self.p[at]
            self.u[<Py_ssize_t> self.b[i] * m + i] = self.s[i] * self.wrong[i]

    cdef double reach(self) noexcept nogil:
        return LOGARITHMS

    cdef double dual_value(self, double scale) noexcept nogil:
        if not 0.0 <= scale <= 1.0:
            return -INFINITY
        return softmax_entropy(self.s, self.b, self.p, self.wrong, scale, self.samples, self.classes)
