# Minimising F over the working set, by second-order models and a line search.

# Other values of the constants of dense models were tried on 32 simulated problems: logistic, Huber and
# Poisson 400 x 600, 150 x 900 and 900 x 200, softmax, sparse logistic, groups (2026-11-19; CPU time, the
# fastest of 5 in turns, geometric means). None of them matters much: 3 and 12 in place of MOST_IDLE_MODELS
# take 0.99 and 1.01 times as long, 0.05 and 0.5 in place of REUSE 1.00 and 0.99, 2 and 10 in place of FURTHER
# 0.99 and 1.01, 0.03 and 0.3 in place of STALE 1.01 and 1.02, 0.6 and 0.95 in place of ALIKE 0.99 and 1.00.
# Single problems, Huber's most, took 0.7 to 1.3 times as long. MOST_MODELS is a limit.
cdef enum:
    MOST_IDLE_MODELS = 6 # Models in a row that do not halve the violations: rounding stands in the way.
    MOST_MODELS = 50     # Models of a loss that is not quadratic, for one working set.
    MODELS_WHILE_GROWING = 3  # Such models solved by sweeps, for a working set that is not the last one.

# For sparse columns; sparse_descent.pxi says what these and MODELS_WHILE_GROWING were chosen on. Sweeps give
# a model up after the most, since the next model is about a better point; SWEEPS_OF_A_MODEL is what most
# models need. A step is shorter than SHORT_STEP of the way to the model's minimiser.
cdef double MOST_SWEEPS_OF_A_MODEL = 60.0
cdef double SWEEPS_OF_A_MODEL = 12.0
cdef double LEAST_FORCING = 0.003
cdef double MOST_FORCING = 0.5
cdef double SHORT_STEP = 0.3  # After shorter steps the next model is damped:
cdef double DAMPING_OF_SWEEPS = 1e-3  # its curvatures are at least this part of the largest one.
# PAYS for least squares: 2 and 8 in its place take 1.00 and 1.07 of the time (sparse_squares.pxi).
cdef double SWEEPS_PAY = 4.0
cdef double A_COLUMN = 4.0  # A sweep takes as long for a column as for so many of its entries.
# A pair of entries of a row costs as much in the Hessian as so many multiplications of a dense model.
cdef double PAIR = 4.0
# The first model of a working set has the Hessian of the last one where the curvature changed by less than
# STALE of it and ALIKE of the positions are the same. Huber and Poisson, 500 x 300 to 5000 x 100 at 0.02 of
# the largest lambda (2026-11-19, one of them a row of the benchmarks): 0.7 to 0.9 of the time, and the same
# where it seldom serves, 300 x 2000.
cdef double STALE = 0.1
cdef double ALIKE = 0.8
cdef double REUSE = 0.2  # A Hessian serves again while its models reduce the violations to this part.
cdef double FURTHER = 4.0  # A step that was cut off lets the next one go so many times as far.
# The first damping, a part of the largest curvature, which w8a needs; each further try has 100 times as much.
cdef double LEAST_DAMPING = 1e-6


cdef class Improver(Certified):
    """A point that moves on its working set."""

    cdef double next_look   # when to look for Ctrl-C again
    cdef double reached     # f at x where the last line search computed it, else 0
    cdef double radius      # how far the next step may move a prediction
    cdef double part        # of the way to the model's minimiser that the last line search went
    cdef double damping     # the least curvature of a sample in a model, as a part of the largest one
    cdef Descent block_descent
    cdef SparseSquares sparse_descent
    cdef bint growing       # True where many columns joined last, so that the next ones will, too
    cdef Py_ssize_t stuck   # working sets in a row whose sweeps ended before their target
    cdef double *bend       # (m,): the curvature that the Hessian of the model has
    cdef double promised    # the tolerance that the next sweeps of least squares aim at, or 0 where they have a target
    cdef bint formed        # True where the model's Hessian is that of the live positions

    def __cinit__(self, *args, **kwargs):
        self.block_descent, self.sparse_descent = self.r.descent(), SparseSquares()
        if not self.f.quadratic:
            self.bend = <double *> resized(NULL, self.m, sizeof(double))

    def __dealloc__(self):
        free(self.bend)

    cdef void forget_failures(self) noexcept nogil:
        """Let sweeps be tried again for another problem, so that its answer depends on it alone."""
        self.sparse_descent.failed = self.block_descent.failed = False
        self.stuck = self.sparse_descent.given_up = 0

    cdef int check_signals(self) except -1 nogil:
        return look_for_interrupt(&self.next_look)

    cdef double survey_working(self) noexcept nogil:
        """The largest violation on the working set; marks the positions that a model needs.

        Those are the positions off their kinks and the violated ones; all of them where f is
        quadratic, since the Gram matrix of the working set is kept.
        """
        if not self.f.quadratic:
            return self.r.violations(self.A.index, self.v, self.g, self.A.k, self.needed)
        memset(self.needed, 1, self.A.k)
        return self.r.violations(self.A.index, self.v, self.g, self.A.k, NULL)

    cdef bint covers(self) noexcept nogil:
        """True where the last model has all positions that are needed now."""
        cdef Py_ssize_t p, i, missing = 0
        for p in range(self.A.k):
            missing += self.needed[p]
        for i in range(self.live_count):
            missing -= self.needed[self.live[i]]
        return missing == 0

    cdef bint serves(self) noexcept nogil:
        """True where the Hessian of the last working set serves this one, too.

        The curvature, D at this point, and the positions must be nearly the same.
        """
        cdef Py_ssize_t p, i, common = 0, wanted = 0
        cdef double changed = 0.0, total = 0.0
        if not self.formed or self.live_count == 0 or self.damping > 0.0:
            return False
        for i in range(self.live_count):
            common += self.needed[self.live[i]]
        for p in range(self.A.k):
            wanted += self.needed[p]
        if common < ALIKE * self.live_count or common < ALIKE * wanted:
            return False
        for i in range(self.m):
            changed += fabs(self.D[i] - self.bend[i])
            total += self.bend[i]
        return changed <= STALE * total

    cdef int build(self, bint roughly) except -1 nogil:
        """Form the Hessian of the positions that are needed.

        With `roughly` the Hessian of the last working set may serve, with the new columns added.
        """
        cdef Py_ssize_t p, i, k = 0, known = self.known
        cdef bint unweighted
        if not self.f.quadratic:
            self.f.damped_curvature(self.damping, self.D)
            known = self.live_count if roughly and self.serves() else 0
            if known == 0:
                memcpy(self.bend, self.D, self.m * sizeof(double))
                self.model.forget_factor()
            for i in range(known):
                self.needed[self.live[i]] = False
            k = known
        for p in range(self.A.k):
            if self.needed[p]:
                self.live[k] = p
                k += 1
        self.live_count, self.formed = k, True
        self.model.make_room_for_hessian(k, known)
        if not self.f.quadratic:
            self.A.gram(self.bend, self.live, k, known, self.model.H, self.model.ld)
        elif self.known != k:
            unweighted = self.f.unit_weights or self.A.has_gram()
            self.A.gram(NULL if unweighted else self.f.s, self.live, k, known, self.model.H, self.model.ld)
            self.known = k
        return 0

    cdef int begin_model(self) except -1 nogil:
        """Let the model's variables be the live positions, and stand where x is."""
        cdef Py_ssize_t i, p
        self.model.make_room(self.live_count)
        self.model.k = self.live_count
        self.model.penalise(self.r, self.A.index, self.live, self.live_count)
        for i in range(self.live_count):
            p = self.live[i]
            self.model.w[i] = self.model.start[i] = self.v[p]
            self.model.c[i] = self.model.pull[i] = self.g[p]
        return 0

    cdef bint sweeps_pay(self) noexcept nogil:
        """True where sweeps over the columns of the working set cost less than a model of them."""
        cdef double k = self.A.k, entries = self.A.working_entries(), model, sweeps
        if not self.r.is_separable():
            return self.block_descent.pays(self.A, self.r, self.f)
        if self.sparse_descent.failed or not self.one_output:
            return False
        if self.f.quadratic:
            return k * k > SWEEPS_PAY * entries
        model = FACTORISE * k * k * k + LEAST_SWEEPS * k * k + PAIR * entries * entries / self.m
        sweeps = SWEEPS_OF_A_MODEL * PAYS * (entries + A_COLUMN * k)
        return model > sweeps

    cdef int sweep(self, double target, double until) except -1 nogil:
        """Sweep over the columns of the working set until violations are at most `target`.

        The sweeps minimise F where the loss is quadratic, and its second-order model elsewhere.
        """
        cdef Py_ssize_t p
        cdef double *s = self.f.s
        if not self.r.is_separable():
            self.block_descent.run(self.A, self.r, self.f, self.v, self.z, target, INFINITY, until)
            return 0
        for p in range(self.A.k):
            self.live[p] = p
        self.live_count, self.formed = self.A.k, False
        self.begin_model()
        self.model.forget_factor()
        if self.f.quadratic:
            self.sparse_descent.minimise(
                <Sparse> self.A, <Separable> self.r, s, self.f.unit_weights, self.g, self.v, self.penalised_value(), target,
                self.promised, until
            )
            if self.sparse_descent.selected:
                self.keep_support()
            return 0
        self.f.damped_curvature(self.damping, self.D)
        self.sparse_descent.run(
            <Sparse> self.A, <Separable> self.r, self.D, False, self.g, self.model.w, target, MOST_SWEEPS_OF_A_MODEL, until
        )
        return 0

    cdef int keep_support(self) except -1 nogil:
        """Let the working set be the support of v."""
        cdef Py_ssize_t p
        for p in range(self.A.k):
            self.x[self.A.index[p]] = self.v[p]
        return self.restart(self.x)

    cdef int improve(self, double target, double forcing, double until) except -1 nogil:
        """Minimise F over the working set until its violations are at most `target`.

        A negative target is relative to the violations at the start. Each model is solved until
        its violations are `forcing` times those at its start.
        """
        cdef Py_ssize_t t, p, i, idle = 0
        cdef double worst = 0.0, last = INFINITY, least = INFINITY
        cdef bint again = False, swept = False
        self.reached = 0.0
        if self.displaced:  # new columns have their gradient from c at that dual point
            self.evaluate()
            self.correlated = False
        for t in range(MOST_MODELS):
            worst = self.survey_working()
            if target < 0.0:
                target = -target * worst
            idle = 0 if worst < 0.5 * least else idle + 1
            least = min(least, worst)
            if worst <= target and self.promised == 0.0 or idle >= MOST_IDLE_MODELS or now() >= until:
                break
            self.check_signals()
            self.correlated = False
            if self.f.quadratic and self.sweeps_pay():
                self.sweep(target, until)
                for p in range(self.A.k):
                    self.x[self.A.index[p]] = self.v[p]
                break
            if self.sweeps_pay():
                again, swept = False, True
                self.sweep(max(0.3 * target, self.forcing(worst / last) * worst), until)
            else:
                again = t > 0 and not swept and worst <= REUSE * last and self.covers()
                swept = False
                if not again:
                    self.build(t == 0 and target > 0.1 * worst)
                self.begin_model()
                self.model.solve(target if self.f.quadratic else max(target, forcing * worst))
            last = worst
            if self.f.quadratic:
                for i in range(self.live_count):
                    p = self.live[i]
                    self.v[p] = self.model.w[i]
                    self.x[self.A.index[p]] = self.v[p]
                break
            if not self.line_search():
                if not again and not self.damp():
                    break
                last, idle = 0.0, idle - 1  # another try with the Hessian of this point
                continue
            if swept and self.part < SHORT_STEP:
                self.damping = min(1.0, max(DAMPING_OF_SWEEPS, 10.0 * self.damping))
            else:
                self.damping = (0.3 if swept else 0.1) * self.damping if self.damping > LEAST_DAMPING else 0.0
            if swept and t + 1 >= MODELS_WHILE_GROWING and self.growing:
                break
            self.f.differentiate(self.z)
            self.A.correlate_working(self.f.u, self.g)
        self.stuck = self.stuck + 1 if swept and worst > target and not self.growing else 0
        return 0

    cdef double forcing(self, double ratio) noexcept nogil:
        """To which part of the violations sweeps minimise a model, where the last model left `ratio` of them.

        A model that predicts F badly is not worth many sweeps (Eisenstat and Walker, 1996).
        """
        return max(LEAST_FORCING, min(MOST_FORCING, pow(ratio, 1.6))) if ratio > 0.0 else MOST_FORCING

    cdef bint damp(self) noexcept nogil:
        """Let the next models have more curvature; False where that is not possible any more.

        A column whose samples are all classified with certainty has no curvature, and the step becomes
        so long that no part of it lowers F (w8a with an intercept and C = 1).
        """
        if self.damping >= 1.0 or not self.model.slope() < 0.0:
            return False
        self.damping = max(LEAST_DAMPING, 100.0 * self.damping)
        return True

    cdef bint line_search(self) noexcept nogil:
        """Go towards the model's minimiser as far as F falls; False where it does not."""
        cdef Py_ssize_t i, p
        cdef double slope = self.model.slope(), value, fell, part, noise, longest
        cdef bint cut_off
        cdef int halving
        if not slope < 0.0:
            return False
        memset(self.d, 0, self.A.k * sizeof(double))
        for i in range(self.live_count):
            p = self.live[i]
            self.d[p] = self.model.w[i] - self.v[p]
        self.A.predict(self.d, self.dz)
        longest = largest_double(self.dz, self.m)
        part = min(1.0, self.radius / max(longest, 1e-300))
        cut_off = part < 1.0
        value = self.reached if self.reached > 0.0 else self.f.value(self.z, NULL, 0.0)
        # A fall of F that rounding hides is taken for granted: the model is exact there.
        noise = 1e-14 * fabs(value) if slope < -1e-11 * fabs(value) else INFINITY
        for halving in range(40):
            self.reached = self.f.value(self.z, self.dz, part)
            fell = self.reached - value + self.model.penalty_change(part)
            if fell <= 1e-3 * part * slope + noise:
                break
            part *= 0.5
        else:
            self.reached = 0.0
            return False
        for i in range(self.live_count):
            p = self.live[i]
            self.v[p] = self.model.w[i] if part == 1.0 else self.v[p] + part * self.d[p]
            self.x[self.A.index[p]] = self.v[p]
        axpy(part, self.dz, self.z, self.m)
        if cut_off and halving == 0:
            self.radius *= FURTHER
        elif halving > 0:
            self.radius = max(self.f.trusted, part * longest)
        self.part = part
        return True
