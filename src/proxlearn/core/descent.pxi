# Coordinate descent on the residual, for least squares with sparse columns.
#
# A sweep over the model of k columns costs k^2 multiplications, one over the columns themselves as
# many as they have entries. Where large working sets have short columns, the model is never built:
# each coordinate is minimised with the residual at hand, and the iterates are extrapolated.

cdef enum:
    HISTORY = 5        # Differences of iterates that an extrapolation combines, as in celer and skglm.
    ACTIVE_SWEEPS = 60 # Sweeps over the coordinates off their kinks between two over all.
    MOST_DESCENTS = 50 # Sweeps over all coordinates before the model takes over.


cdef double PAYS = 8.0  # Multiplications of a dense model that cost what one with sparse columns does.


cdef class Descent:
    """Sweeps over the columns of a working set, and what they keep."""

    cdef Py_ssize_t room
    cdef double *h          # (k,): the curvature of each coordinate, sum_i s_i a_ij^2
    cdef double *history    # (HISTORY + 1, k): iterates
    cdef double *mixed      # (k,): their extrapolation
    cdef Py_ssize_t *order  # (k,)
    cdef double moved       # multiple of s by which centred columns have moved the dual point
    cdef bint failed        # True where the sweeps did not reach their target

    def __dealloc__(self):
        free(self.h)
        free(self.history)
        free(self.mixed)
        free(self.order)

    cdef bint pays(self, Data A, Penalty r) noexcept nogil:
        """True where a sweep over the columns costs less than one over a dense model of them."""
        cdef double k = A.k
        return not self.failed and r.is_separable() and k * k > PAYS * A.working_entries()

    cdef int prepare(self, Sparse A, double *s, double total) except -1 nogil:
        """Make room, and compute the curvatures; `total` is the sum of s."""
        cdef Py_ssize_t p, e, j
        cdef double square
        if A.k > self.room:
            self.room = A.room
            self.h = <double *> resized(self.h, self.room, sizeof(double))
            self.history = <double *> resized(self.history, (HISTORY + 1) * self.room, sizeof(double))
            self.mixed = <double *> resized(self.mixed, self.room, sizeof(double))
            self.order = <Py_ssize_t *> resized(self.order, self.room, sizeof(Py_ssize_t))
        for p in range(A.k):
            j = A.index[p]
            square = 0.0
            for e in range(A.starts[j], A.starts[j + 1]):
                square += s[A.rows[e]] * A.data[e] * A.data[e]
            self.h[p] = max(square - A.shift(j) * A.shift(j) * total, 0.0)
        return 0

    cdef double sweep(
        self, Sparse A, Separable r, Loss f, double total, double *v, Py_ssize_t count
    ) noexcept nogil:
        """Minimise over the coordinates order[:count] in turn; the largest violation that was met."""
        cdef Py_ssize_t i, p, j, e, first
        cdef double g, new, change, worst = 0.0, center, weighted
        for i in range(count):
            p = self.order[i]
            j = A.index[p]
            first, center = A.starts[j], A.shift(j)
            g = sparse_dot(A.data + first, A.rows + first, A.starts[j + 1] - first, f.u)
            g += self.moved * center * total
            worst = max(worst, r.violation(j, v[p], g))
            new = r.minimiser(j, self.h[p], g, v[p])
            change = new - v[p]
            if change == 0.0:
                continue
            v[p] = new
            self.moved += center * change
            for e in range(first, A.starts[j + 1]):
                weighted = f.s[A.rows[e]] * A.data[e]
                f.u[A.rows[e]] -= weighted * change
        return worst

    cdef int settle(self, Data A, Loss f, double *v, double *z) except -1 nogil:
        """Predictions and dual point at v, free of the rounding that sweeps gather."""
        A.predict(v, z)
        f.differentiate(z)
        self.moved = 0.0
        return 0

    cdef bint mix(self, Py_ssize_t k) noexcept nogil:
        """Anderson's extrapolation of the iterates: the combination whose differences are shortest."""
        cdef double gram[HISTORY * HISTORY]
        cdef double weight[HISTORY]
        cdef double total = 0.0, trace = 0.0
        cdef Py_ssize_t a, b, p
        cdef int size = HISTORY, one = 1, info = 0
        cdef double *H = self.history
        for a in range(HISTORY):
            for b in range(a + 1):
                gram[a * HISTORY + b] = 0.0
                for p in range(k):
                    gram[a * HISTORY + b] += (H[(a + 1) * k + p] - H[a * k + p]) * (H[(b + 1) * k + p] - H[b * k + p])
                gram[b * HISTORY + a] = gram[a * HISTORY + b]
            trace += gram[a * HISTORY + a]
            weight[a] = 1.0
        for a in range(HISTORY):
            gram[a * HISTORY + a] += 1e-14 * trace
        dpotrf("L", &size, gram, &size, &info)
        if info != 0:
            return False
        dpotrs("L", &size, &one, gram, &size, weight, &size, &info)
        for a in range(HISTORY):
            total += weight[a]
        if not (isfinite(total) and total != 0.0):
            return False
        memset(self.mixed, 0, k * sizeof(double))
        for a in range(HISTORY):
            axpy(weight[a] / total, H + (a + 1) * k, self.mixed, k)
        return True

    cdef int run(self, Sparse A, Separable r, Loss f, double *v, double *z, double target, double until) except -1 nogil:
        """Minimise over the working set until the violations are at most `target`."""
        cdef Py_ssize_t rounds, sweep, p, count
        cdef double worst, total = sum_of(f.s, A.m)
        self.prepare(A, f.s, total)
        self.settle(A, f, v, z)
        for rounds in range(MOST_DESCENTS):
            for p in range(A.k):
                self.order[p] = p
            worst = self.sweep(A, r, f, total, v, A.k)
            if worst <= target or now() >= until:
                return 0
            count = 0
            for p in range(A.k):
                if not r.at_kink(A.index[p], v[p]):
                    self.order[count] = p
                    count += 1
            memcpy(self.history, v, A.k * sizeof(double))
            for sweep in range(1, ACTIVE_SWEEPS + 1):
                worst = self.sweep(A, r, f, total, v, count)
                if worst <= 0.3 * target or now() >= until:
                    break
                memcpy(self.history + (sweep % (HISTORY + 1)) * A.k, v, A.k * sizeof(double))
                if sweep % (HISTORY + 1) == HISTORY:
                    self.extrapolate(A, r, f, v, z)
        self.failed = True
        return 0

    cdef int extrapolate(self, Sparse A, Separable r, Loss f, double *v, double *z) except -1 nogil:
        """Go to the extrapolated point where F is less there than at v."""
        cdef double here
        cdef Py_ssize_t p
        self.settle(A, f, v, z)
        here = f.value(z, NULL, 0.0) + r.value(A.index, v, A.k)
        if not self.mix(A.k):
            return 0
        for p in range(A.k):
            self.mixed[p] = min(max(self.mixed[p], r.lower[A.index[p]]), r.upper[A.index[p]])
        A.predict(self.mixed, z)
        if f.value(z, NULL, 0.0) + r.value(A.index, self.mixed, A.k) < here:
            memcpy(v, self.mixed, A.k * sizeof(double))
            self.settle(A, f, v, z)
        return 0
