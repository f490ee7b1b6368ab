# Least squares on a working set of sparse columns: accelerated sweeps.
#
# Where columns hardly depend on each other, a few sweeps are all that a problem needs, even with thousands of
# coordinates in its solution. After each sweep in which few coordinates reach or leave a kink, an accelerated
# step (sparse_sweeps.pxi) combines the last two; a Newton step follows where that does not end soon.

# Chosen on simulated least squares of 16 designs (random entries, neighbours that share entries, words,
# categories, rare binary columns; 1500 x 250 to 30,000 x 8000) at 0.1, 0.01 and 0.001 of the largest lambda,
# none of them a row of a benchmark, 2026-11-20.
cdef double MANY_FLIPS = 0.2  # No accelerated step where this part of the coordinates reached or left a kink. 1 in its place: 1.02 of the time.
# Sweeps over the coordinates off their kinks end where they reduced the violations to this part; 0.03 in its
# place takes 1.00 of the time.
cdef double LEFT_BY_SWEEPS = 0.1
# The violations that a sweep is expected to leave may be so many times those at which the gap would surely
# meet the tolerance, as not all of them are the largest at once: 1 in place of 1.5 took 1.01 times as long, 3
# and 6 took 1.02 and 1.04 times, and more certificates.
cdef double HOPE = 1.5
# The same where all coordinates have a quadratic penalty, so that the gap falls with the square of the
# violations: 3, 6 and 20 in place of 10 took 1.04, 1.01 and 1.04 times as long.
cdef double HOPE_OF_SQUARES = 10.0
# Predictions begin at 0 again after the violations have fallen to this part, since rounding would spoil
# accelerated steps: without it, gaps of 1e-10 took up to 14 times as long.
cdef double BEGIN_AGAIN = 1e-4

cdef enum:
    MOST_GIVEN_UP = 3     # Calls that idle rounds ended, after which sweeps are not tried again: with 1 words of 3000 x 5000, rows of length 1, took 1.7 s at 0.001 in place of 0.33.
    MOST_IDLE_SWEEPS = 6  # Rounds that do not halve the violations: rounding, or columns that sweeps are no good for. Not measured.
    BUCKETS = 64          # Of the sizes of slopes, each a quarter of an octave.


cdef int bucket(double part) noexcept nogil:
    """The bucket of a slope that is this part of the largest one."""
    return <int> min(<double> BUCKETS, -4.0 * log2(fabs(part))) if part != 0.0 else BUCKETS


@cython.final
cdef class SparseSquares(SparseDescent):
    """Minimises least squares on a working set of sparse columns."""

    cdef double base        # F at v = 0, as the model has it
    cdef Py_ssize_t given_up  # calls that idle rounds ended before the violations were LEFT_BY_SWEEPS of the first
    cdef double met         # the violations that the last sweep met
    cdef bint selected      # True where sweeps take long, and a dense model of the support takes over
    cdef double left        # those that it is likely to have left

    cdef int minimise(
        self, Sparse A, Separable r, double *s, bint unit, double *g, double *v, double value, double target, double tol, double until
    ) except -1 nogil:
        """Minimise until the violations are about `target`, or, where tol > 0, will make a gap of tol times F.

        s (m,) are all 1 if `unit`. g (k,) belongs to v (k,), at which F has this value, and which becomes the minimiser.
        """
        cdef Py_ssize_t rounds, count
        cdef double worst, highest = 0.0, least = INFINITY, began = 0.0
        cdef int idle = 0
        self.prepare(A, s, unit, True, g, v)
        self.base = value - r.value(A.index, v, A.k) + dot(self.pull, v, A.k)
        self.stand(A, v)
        self.met, self.selected = 0.0, False
        for rounds in range(MOST_DESCENTS_OF_COLUMNS):
            count = self.list_all(A)
            if rounds == 0:
                self.begin_with_largest(v, count)
            worst = self.sweep_over(A, r, v, count)
            if tol > 0.0:
                target = self.promise(A, r, v, tol)
            idle = 0 if worst < 0.5 * least else idle + 1
            began = worst if rounds == 0 else began
            highest, least = max(highest, worst), min(least, worst)
            if self.left <= target or now() >= until:
                return 0
            if idle >= MOST_IDLE_SWEEPS:
                self.given_up += least > LEFT_BY_SWEEPS * began
                self.failed = self.given_up >= MOST_GIVEN_UP
                return 0
            if worst <= BEGIN_AGAIN * highest:
                self.begin_again(A, v)
                highest = worst
            else:
                self.speed_up(A, r, v, count)
            count = self.list_off_kinks(A, r, v)
            if self.sweep_on(A, r, v, count, target, LEFT_BY_SWEEPS * worst):
                if self.is_small(A, self.list_off_kinks(A, r, v)):
                    self.selected = self.failed = True
                    return 0
                if self.flips <= FLIPS * count:
                    self.newton_step(A, r, v, target)
                    self.stand(A, v)
        self.failed = True
        return 0

    cdef bint is_small(self, Sparse A, Py_ssize_t count) noexcept nogil:
        """True where a dense model of the coordinates order[:count] costs less than sweeps over them."""
        cdef Py_ssize_t i, j
        cdef double entries = 0.0
        for i in range(count):
            j = A.index[self.order[i]]
            entries += A.starts[j + 1] - A.starts[j]
        return <double> count * count <= PAYS * entries

    cdef bint sweep_on(self, Sparse A, Separable r, double *v, Py_ssize_t count, double target, double part) noexcept nogil:
        """Sweep over order[:count]; True where the violations stay above the target and `part`."""
        cdef Py_ssize_t sweep
        cdef double worst
        for sweep in range(SWEEPS_IN_A_ROW):
            worst = self.sweep_over(A, r, v, count)
            if self.left <= target:
                return False
            self.speed_up(A, r, v, count)
            if worst <= part:
                return False
        return True

    cdef double sweep_over(self, Sparse A, Separable r, double *v, Py_ssize_t count) noexcept nogil:
        """Sweep over order[:count]; what it leaves is to what it met as that to what the sweep before met."""
        cdef double worst = self.sweep(A, r, v, count)
        self.left = worst * (worst / self.met if worst < self.met else 1.0)
        self.met = worst
        return worst

    cdef void speed_up(self, Sparse A, Separable r, double *v, Py_ssize_t count) noexcept nogil:
        """An accelerated step, unless the last sweep changed too much."""
        if self.flips <= MANY_FLIPS * count:
            self.accelerate(A, r, v)
        else:
            self.stand(A, v)

    cdef void begin_again(self, Sparse A, double *v) noexcept nogil:
        """Let predictions be measured from v."""
        cdef Py_ssize_t p
        self.base -= dot(self.pull, v, A.k) - 0.5 * self.curved(A)
        for p in range(A.k):
            self.pull[p] = self.gradient(A, p)
        self.base += dot(self.pull, v, A.k)
        memset(self.moved, 0, A.m * sizeof(double))
        self.shifted = 0.0
        self.stand(A, v)

    cdef double curved(self, Sparse A) noexcept nogil:
        """|A (v - v0)|^2, with centred columns and the weights of the samples."""
        return dot(self.moved, self.moved, A.m) - self.total * self.shifted * self.shifted

    cdef double promise(self, Sparse A, Separable r, double *v, double tol) noexcept nogil:
        """Violations e at which the gap is likely to be tol F.

        They make one of e sum_j |x_j| where the dual point is scaled, and of sum_j e^2 / (2 l2_j) where each
        coordinate has a quadratic penalty.
        """
        cdef Py_ssize_t p, j
        cdef double size = 0.0, curved = 0.0
        cdef double value = self.base - dot(self.pull, v, A.k) + 0.5 * self.curved(A) + r.value(A.index, v, A.k)
        for p in range(A.k):
            if v[p] != 0.0:
                j = A.index[p]
                size += fabs(v[p])
                curved += 0.5 / r.l2[j] if r.l2[j] > 0.0 else INFINITY
        if size == 0.0:
            return INFINITY
        return HOPE * tol * value / size if curved == INFINITY else HOPE_OF_SQUARES * sqrt(tol * max(value, 0.0) / curved)

    cdef void begin_with_largest(self, double *v, Py_ssize_t count) noexcept nogil:
        """Order coordinates of which most are 0 by their slopes, so that the largest ones explain what they can first.

        The first sweep then moves fewer of them that will be 0 in the end: 0.91 of the time.
        """
        cdef Py_ssize_t start[BUCKETS + 2]
        cdef Py_ssize_t i, p, zeros = 0
        cdef double top = 0.0
        cdef int b
        for i in range(count):
            zeros += v[self.order[i]] == 0.0
            top = max(top, fabs(self.pull[self.order[i]]))
        if zeros < 0.5 * count or not 0.0 < top < INFINITY:
            return
        memset(start, 0, sizeof(start))
        for i in range(count):
            start[1 + bucket(self.pull[self.order[i]] / top)] += 1
        for b in range(BUCKETS):
            start[b + 1] += start[b]
        memcpy(self.known_order, self.order, count * sizeof(Py_ssize_t))
        for i in range(count):
            p = self.known_order[i]
            b = bucket(self.pull[p] / top)
            self.order[start[b]] = p
            start[b] += 1
