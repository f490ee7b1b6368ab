# Coordinate descent on the residual, for least squares.
#
# A sweep over the model of k columns costs k^2 multiplications, one over the columns themselves as
# many as they have entries. Where large working sets have short columns, the dense model is never built:
# each block is minimised with the residual at hand, and the iterates are extrapolated. A kind of data
# and penalty brings its sweep (row_descent.pxi, group_descent.pxi).

cdef enum:
    # Differences of iterates that an extrapolation combines. With 5, as in celer and skglm, the multi-task
    # rows 200 x 1000 and gravier at 0.02 lambda_max take 10% longer (benchmarks/everyday.py, 2026-11-18);
    # sparse LASSO takes as long.
    HISTORY = 8
    ACTIVE_SWEEPS = 60 # Sweeps over the blocks off their kinks between two over all.
    MOST_DESCENTS = 50 # Sweeps over all blocks before the model takes over.


cdef class Descent:
    """Sweeps over the blocks of a working set, and what they keep."""

    cdef Py_ssize_t room
    cdef double *h          # the curvature of each block
    cdef double *history    # (HISTORY + 1, k): iterates
    cdef double *mixed      # (k,): their extrapolation
    cdef double weight[HISTORY]  # of each iterate in it
    cdef Py_ssize_t *order  # blocks that a sweep visits
    cdef bint failed        # True where the sweeps did not reach their target

    def __dealloc__(self):
        free(self.h)
        free(self.history)
        free(self.mixed)
        free(self.order)

    cdef bint pays(self, Data A, Penalty r, Loss f) noexcept nogil:
        """True where a sweep over the columns costs less than one over a dense model of them."""
        return False

    cdef int prepare(self, Data A, Penalty r, Loss f) except -1 nogil:
        """Make room, and compute the curvatures."""
        if A.k > self.room:
            self.room = A.room
            self.h = <double *> resized(self.h, self.room, sizeof(double))
            self.history = <double *> resized(self.history, (HISTORY + 1) * self.room, sizeof(double))
            self.mixed = <double *> resized(self.mixed, self.room, sizeof(double))
            self.order = <Py_ssize_t *> resized(self.order, self.room, sizeof(Py_ssize_t))
        return 0

    cdef double sweep(self, Data A, Penalty r, Loss f, double *v, Py_ssize_t count) noexcept nogil:
        """Minimise over the blocks order[:count] in turn; the largest violation that was met."""
        return 0.0

    cdef int settle(self, Data A, Loss f, double *v, double *z) except -1 nogil:
        """Predictions and dual point at v, free of the rounding that sweeps gather."""
        A.predict(v, z)
        f.differentiate(z)
        return 0

    cdef bint may_move(self, Data A, Penalty r, double *v, Py_ssize_t b) noexcept nogil:
        """True where block b of the working set is off its kink."""
        return True

    cdef void remember(self, Py_ssize_t place, Data A, double *v) noexcept nogil:
        """Keep the iterate for an extrapolation."""
        memcpy(self.history + place * A.k, v, A.k * sizeof(double))

    cdef bint mix(self, Py_ssize_t k) noexcept nogil:
        """Anderson's extrapolation of the iterates: the combination whose differences are shortest."""
        cdef double gram[HISTORY * HISTORY]
        cdef double total = 0.0, trace = 0.0
        cdef Py_ssize_t a, b, p
        cdef int size = HISTORY, one = 1, info = 0
        cdef double *H = self.history
        for p in range(k):  # the differences of neighbours take the place of all iterates but the last
            for a in range(HISTORY):
                H[a * k + p] = H[(a + 1) * k + p] - H[a * k + p]
        for a in range(HISTORY):
            for b in range(a + 1):
                gram[a * HISTORY + b] = gram[b * HISTORY + a] = dot(H + a * k, H + b * k, k)
            trace += gram[a * HISTORY + a]
            self.weight[a] = 1.0
        for a in range(HISTORY):
            gram[a * HISTORY + a] += 1e-14 * trace
        dpotrf("L", &size, gram, &size, &info)
        if info != 0:
            return False
        dpotrs("L", &size, &one, gram, &size, self.weight, &size, &info)
        for a in range(HISTORY):
            total += self.weight[a]
        if not (isfinite(total) and total != 0.0):
            return False
        for a in range(HISTORY):
            self.weight[a] /= total
        # sum_a weight_a x_(a+1) = x_last - sum over the later differences d_b of (sum_(a<b) weight_a) d_b
        memcpy(self.mixed, H + HISTORY * k, k * sizeof(double))
        total = 0.0
        for b in range(1, HISTORY):
            total += self.weight[b - 1]
            axpy(-total, H + b * k, self.mixed, k)
        return True

    cdef double run(
        self, Data A, Penalty r, Loss f, double *v, double *z, double target, double most, double until
    ) except -1.0 nogil:
        """Minimise over the working set until the violations are at most `target`, or `most` sweeps are done.

        Returns how many there were.
        """
        cdef Py_ssize_t rounds, sweep, b, count, blocks
        cdef double worst, sweeps = 0.0
        self.prepare(A, r, f)
        self.settle(A, f, v, z)
        blocks = self.blocks(A)
        for rounds in range(MOST_DESCENTS):
            for b in range(blocks):
                self.order[b] = b
            worst = self.sweep(A, r, f, v, blocks)
            sweeps += 1.0
            if worst <= target or now() >= until:
                return sweeps
            if sweeps >= most:
                break
            count = 0
            for b in range(blocks):
                if self.may_move(A, r, v, b):
                    self.order[count] = b
                    count += 1
            self.remember(0, A, v)
            for sweep in range(1, ACTIVE_SWEEPS + 1):
                worst = self.sweep(A, r, f, v, count)
                sweeps += <double> count / blocks
                if worst <= target or sweeps >= most or now() >= until:
                    break
                self.remember(sweep % (HISTORY + 1), A, v)
                if sweep % (HISTORY + 1) == HISTORY:
                    self.extrapolate(A, r, f, v, z)
        else:
            self.failed = True
        return sweeps

    cdef Py_ssize_t blocks(self, Data A) noexcept nogil:
        """How many blocks the working set has."""
        return A.k

    cdef int extrapolate(self, Data A, Penalty r, Loss f, double *v, double *z) except -1 nogil:
        """Go to the extrapolated point where F is less there than at v."""
        return 0
