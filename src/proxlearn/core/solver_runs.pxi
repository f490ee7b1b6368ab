# The solver that Python calls: the loop for one problem, for many, and along a path.


cdef class Solver(Loop):
    """The loop, and what may come before and after it."""

    def solve_many(
        self,
        const double[:, ::1] targets,
        double[:, ::1] correlations,
        double[::1] offsets,
        double[::1] sizes,
        double[:, ::1] x,
        double[:, ::1] numbers,
        bint single,
        double tol,
        Py_ssize_t max_iter,
        double seconds,
    ):
        """Solve for each row of `targets`, all else being equal, from 0.

        `correlations`, where given, holds A^T (s b) of each problem; `offsets` and `sizes` those of
        reduced problems. Rows of `numbers` become objective, gap, status, iterations and passes.
        """
        cdef Py_ssize_t i
        cdef double until = now() + seconds
        with nogil:
            for i in range(targets.shape[0]):
                self.f.take_targets(<double *> &targets[i, 0])
                if offsets is not None:
                    self.offset, self.size = offsets[i], sizes[i]
                self.begin()
                self.forget_failures()
                self.iterations = 0
                self.passes = 0.0
                if correlations is not None and self.A.k == 0:
                    self.f.differentiate(self.z)
                    memcpy(self.c, &correlations[i, 0], self.n * sizeof(double))
                    self.correlated = True
                    self.passes = 1.0
                self.status = self.run(tol, max_iter, until, 1.0)
                self.write(single, tol, &x[i, 0], &numbers[i, 0])

    def path(
        self,
        const double[::1] factors,
        double[:, ::1] x,
        double[:, ::1] numbers,
        bint single,
        double tol,
        Py_ssize_t max_iter,
        double seconds,
    ):
        """Solve with the penalty multiplied by each of `factors`, each from the last solution.

        `numbers` becomes as in `solve_many`. Returns how many were solved: the path ends early at a
        reduced problem whose gap rounding hides, and where the penalty cannot be multiplied.
        """
        cdef Py_ssize_t i, done = 0
        cdef double until = now() + seconds, fell = 1.0
        self.next_look = now() + 0.1
        with nogil:
            for i in range(factors.shape[0]):
                if not self.r.multiply(factors[i]):
                    break
                self.renew_model()
                if i > 0:
                    fell = factors[i - 1] / factors[i] if factors[i] > 0 else INFINITY
                self.iterations = 0
                self.passes = 0.0
                self.status = self.run(tol, max_iter, until, fell)
                if self.status == MAX_ITER and self.norms != NULL:
                    break
                self.write(single, tol, &x[i, 0], &numbers[i, 0])
                done = i + 1
        return done

    def lead(self, Start start, Py_ssize_t most, double part=0.0, double seconds=INFINITY):
        """Go to the point that a first-order method reaches in at most `most` iterations from x.

        It is left out where fewer than `part` of the columns violate their optimality conditions
        at x. The next solve counts its iterations and its passes over A, too.
        """
        cdef double until = now() + seconds
        self.next_look = now() + 0.1
        with nogil:
            if part <= 0.0 or self.is_violated_by(part, until):
                if start.find(self.x, most, until):
                    self.restart(start.x)
                self.led += start.iterations
                self.spent += start.passes

    cdef bint is_violated_by(self, double part, double until) except -1 nogil:
        """True where this part of all columns violates its conditions at x, or is in use."""
        cdef Py_ssize_t j, count = 0
        self.passes = 0.0
        self.arrive(until)
        self.certify()
        self.spent += self.passes
        for j in range(self.r.blocks):
            count += self.score[j] > 0.0
        return count + self.members >= part * self.r.blocks

    cdef void take_products(self, double *products) noexcept nogil:
        """Take A^T b of least squares, computed before, for c at x = 0; it chooses the first working set."""
        if self.A.k == 0:
            self.f.differentiate(self.z)
            memcpy(self.c, products, self.n * sizeof(double))
            self.correlated, self.borrowed, self.spent = True, True, 1.0

    cdef void write(self, bint single, double tol, double *x, double *numbers) noexcept nogil:
        """Copy x, rounded to float32 if asked for, and objective, gap, status and the counts."""
        if single:
            self.round()
            if self.status == SOLVED and not self.holds(tol):
                self.status = MAX_ITER
        memcpy(x, self.x, self.n * sizeof(double))
        numbers[0], numbers[1], numbers[2] = self.objective, self.gap, self.status
        numbers[3], numbers[4] = self.iterations, self.passes

    cdef void renew_model(self) noexcept nogil:
        """Let the model know that the numbers of the penalty have changed."""
        self.model.penalise(self.r, self.A.index, self.live, self.model.k)
        if not self.r.homogeneous:
            self.model.age_factor()

    def round_to_single(self, double tol):
        """Round x to float32; a gap that no longer meets the tolerance is not SOLVED."""
        self.round()
        if self.status == SOLVED and not self.holds(tol):
            self.status = MAX_ITER
        return self.status

    def penalise(self, *numbers):
        """Go on with other numbers of the penalty, from the solution that is there."""
        self.r.set(*numbers)
        self.renew_model()
