# Models whose variables come in blocks: sweeps over the blocks, then Newton's method.
#
# Sweeps find the blocks that are not 0. Off 0 the penalty is smooth, so that Newton's method converges fast.

# On group penalties (200 x 400, groups of 8; CPU time, 2026-11-19) 1 and 4 in place of BLOCK_SWEEPS take 1.08
# and 1.03 times as long. 4 and 30 in place of MOST_NEWTON take 0.99 and 1.03 times as long on 18 and 6
# problems with groups of 5 to 10 (200 x 800 to 500 x 400).
cdef enum:
    BLOCK_SWEEPS = 2     # Sweeps over the blocks before the first Newton step.
    MOST_NEWTON = 10     # Most Newton steps before the next sweep.


cdef class BlockModel(Model):
    """Blocks of variables, each with a level that multiplies its length."""

    cdef Py_ssize_t blocks
    cdef double *level  # (blocks,)

    cdef int prepare(self) except -1 nogil:
        """Compute what the sweeps need."""
        return 0

    cdef double update(self, Py_ssize_t b) noexcept nogil:
        """Minimise over block b, or nearly; returns how much the model fell, to first order."""
        return 0.0

    cdef double norm(self, Py_ssize_t b) noexcept nogil:
        """|w_b|."""
        return 0.0

    cdef double violation(self, bint active) noexcept nogil:
        """The largest violation of the optimality conditions, of all blocks or of those off 0."""
        return 0.0

    cdef Py_ssize_t collect(self) noexcept nogil:
        """List what a Newton step moves, variables or blocks, and return how many these are."""
        return 0

    cdef bint newton_step(self) except -1 nogil:
        """A Newton step on what `collect` listed; False where it does not lower the model."""
        return False

    cdef double newton_cost(self, Py_ssize_t count) noexcept nogil:
        """Multiplications of a Newton step, in units of those of a sweep."""
        return INFINITY

    cdef double sweep_cost(self, Py_ssize_t count) noexcept nogil:
        """Multiplications of a sweep over what `collect` listed."""
        return <double> count * self.k

    cdef double solve(self, double tol) except -1 nogil:
        """Sweep over the blocks, and take Newton steps where these promise to end sooner than more sweeps."""
        cdef Py_ssize_t rounds, sweep, b, idle = 0, count
        cdef double worst = 0.0, least = INFINITY, most, v, last
        self.prepare()
        for rounds in range(MOST_ROUNDS):
            most = 0.0
            for b in range(self.blocks):
                most = max(most, self.update(b))
            count, last = self.collect(), INFINITY
            for sweep in range(MOST_SWEEPS if count > 0 else 0):
                v = self.violation(True)
                if v <= 0.3 * tol:
                    if self.newton_cost(count) < self.entries:
                        self.newton_step()
                    break
                if sweep >= BLOCK_SWEEPS and self.newton_pays(count, tol / v, v / last):
                    self.newton(tol, v)
                    break
                last = v
                for b in range(self.blocks):
                    if self.level[b] == 0.0 or self.norm(b) > 0.0:
                        self.update(b)
            worst = self.violation(False)
            idle = 0 if worst < 0.9 * least else idle + 1
            least = min(least, worst)
            if worst <= tol or most == 0.0 or idle >= MOST_IDLE:
                break
        return worst

    cdef bint newton_pays(self, Py_ssize_t count, double wanted, double rate) noexcept nogil:
        """True where a Newton step costs less than the sweeps that are still needed."""
        cdef double sweeps = log(wanted) / log(rate) if rate < 1.0 else INFINITY
        return self.newton_cost(count) < sweeps * self.sweep_cost(count)

    cdef int newton(self, double tol, double v) except -1 nogil:
        """Newton steps while they reduce the violations v of the active variables."""
        cdef int step
        cdef double last
        for step in range(MOST_NEWTON):
            if not self.newton_step():
                break
            last, v = v, self.violation(True)
            if v <= 0.1 * tol or v > 0.5 * last:
                break
        return 0
