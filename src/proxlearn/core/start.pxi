# A start for the solver: a few iterations of a first-order method.
#
#     x+ = prox_{r,p}( y - p grad f(y) )
#     y+ = x+ + a (x+ - x)
#
# This is the update of scheme.py with b = 1 and b1 = b2 = 0. A method chooses p and a, one value for each
# coordinate. Nothing has to be proven here: the solver certifies what it makes of the point.

cdef enum:
    NORM_STEPS = 4  # Steps of Lanczos's method for the largest eigenvalue; each costs an iteration.


# What is added to the largest Ritz value, relative to it. 0.02 and 0.3 change the time of 12 logistic
# regressions (600 x 200 to 4000 x 100, CPU time, 2026-11-19) by less than 1% with the rule `logistic`, and
# make it 1.00 and 1.03 times as long with FISTA.
cdef double MARGIN = 0.1


cdef class Start:
    """A first-order method on one problem.

    `curvature` bounds phi'', the second derivative of the loss. `step` is 1/L, or 0 where it is to be
    computed from A when it is needed.
    """

    cdef Data A
    cdef Loss f
    cdef Penalty r
    cdef Py_ssize_t m, n
    cdef double curvature
    cdef readonly double step       # 1/L
    cdef readonly Py_ssize_t iterations
    cdef public Py_ssize_t patience  # so many iterations in a row without a change of sign end it
    cdef Py_ssize_t settled          # how many there were last
    cdef readonly double passes     # products with A and A^T, two of which count as one
    cdef double *room
    cdef double *x       # (n,), as all the others but z
    cdef double *y
    cdef double *g       # grad f(y)
    cdef double *last_y
    cdef double *last_g
    cdef double *next    # x+
    cdef double *p
    cdef double *a
    cdef double *z       # (m,): A y
    cdef Py_ssize_t *all     # (n,): 0, 1, ...
    cdef Py_ssize_t *picked  # (n,)

    def __cinit__(self, Data A, Loss f, Penalty r, double curvature, double step, *others):
        cdef Py_ssize_t j
        self.A, self.f, self.r, self.m, self.n = A, f, r, A.m, A.n
        self.room = <double *> resized(NULL, 8 * self.n + self.m, sizeof(double))
        self.x = self.room
        self.y, self.g, self.last_y = self.x + self.n, self.x + 2 * self.n, self.x + 3 * self.n
        self.last_g, self.next = self.x + 4 * self.n, self.x + 5 * self.n
        self.p, self.a, self.z = self.x + 6 * self.n, self.x + 7 * self.n, self.x + 8 * self.n
        self.all = <Py_ssize_t *> resized(NULL, 2 * self.n, sizeof(Py_ssize_t))
        self.picked = self.all + self.n
        for j in range(self.n):
            self.all[j] = j
        self.curvature, self.step, self.patience = curvature, step, 1

    def __dealloc__(self):
        free(self.room)
        free(self.all)

    def measure(self):
        """1/L, computed unless it is known; 1 where A is 0."""
        if not self.step > 0.0:
            with nogil:
                self.measure_step()
        return self.step

    cdef void measure_step(self) noexcept nogil:
        """Set the step to 1/L, where L is the largest eigenvalue of curvature A^T diag(s) A.

        Lanczos's method from a fixed vector. L may come out a few percent too small, which a start
        can afford.
        """
        cdef double alphas[NORM_STEPS]
        cdef double betas[NORM_STEPS]
        cdef double *q = self.x
        cdef double *w = self.y
        cdef double *last = self.g
        cdef double alpha, beta = 0.0, norm
        cdef Py_ssize_t i, j
        cdef int steps = 0, info = 0
        cdef unsigned int noise = 1
        for j in range(self.n):
            noise = 1664525 * noise + 1013904223
            q[j] = <double> noise / 4294967296.0 - 0.5
            last[j] = 0.0
        norm = sqrt(dot(q, q, self.n))
        for j in range(self.n):
            q[j] /= norm
        while True:
            self.A.multiply(q, self.z)
            for i in range(self.m):
                self.z[i] *= self.f.s[i]
            self.A.correlate(self.z, w)
            self.passes += 1
            alpha = dot(w, q, self.n)
            for j in range(self.n):
                w[j] -= alpha * q[j] + beta * last[j]
            beta = sqrt(dot(w, w, self.n))
            alphas[steps], betas[steps] = alpha, beta
            steps += 1
            if steps == NORM_STEPS or steps == self.n or not beta > 1e-10 * alpha:
                break
            for j in range(self.n):
                last[j], q[j] = q[j], w[j] / beta
        dsterf(&steps, alphas, betas, &info)
        norm = self.curvature * (1.0 + MARGIN) * alphas[steps - 1]
        self.step = 1.0 / norm if info == 0 and 0.0 < norm < INFINITY else 1.0

    cdef void choose(self, Py_ssize_t k) noexcept nogil:
        """Set p for iteration k = 0, 1, ..., and a where it does not depend on x+."""
        pass

    cdef void extrapolate(self, Py_ssize_t k) noexcept nogil:
        """Set a for iteration k, where it depends on x+."""
        pass

    def iterates(self, const double[::1] x0, Py_ssize_t count):
        """x after each of `count` iterations from x0, (count, n)."""
        cdef Py_ssize_t k
        cdef double[:, ::1] found = np.empty((count, self.n))
        self.begin(<double *> &x0[0])
        for k in range(count):
            self.iterate()
            memcpy(&found[k, 0], self.x, self.n * sizeof(double))
        return np.asarray(found)

    cdef void begin(self, double *x) noexcept nogil:
        """Before the first iteration: x = y, and z = A x."""
        self.passes = 0.0
        if not self.step > 0.0:
            self.measure_step()
        self.iterations = self.settled = 0
        memcpy(self.x, x, self.n * sizeof(double))
        memcpy(self.y, x, self.n * sizeof(double))
        self.A.multiply(self.x, self.z)

    cdef bint find(self, double *x, Py_ssize_t most, double until) noexcept nogil:
        """Run from x; True where F is lower at the end than at x."""
        cdef double first
        self.begin(x)
        first = self.value()
        while self.iterations < most and now() < until:
            self.iterate()
            if self.settled >= self.patience:
                break
        if not isfinite(dot(self.x, self.x, self.n)):
            return False
        self.keep_largest_coordinates()
        self.A.multiply(self.x, self.z)
        self.passes += 0.5
        return self.value() < first  # False where a number is not finite

    cdef double value(self) noexcept nogil:
        """F at x, where z is A x."""
        return self.f.value(self.z, NULL, 0.0) + self.r.value(self.all, self.x, self.n)

    cdef void iterate(self) noexcept nogil:
        """One iteration."""
        cdef Py_ssize_t j, k = self.iterations, changed = 0
        if k > 0:
            self.A.multiply(self.y, self.z)
        self.f.differentiate(self.z)
        self.A.correlate(self.f.u, self.g)
        for j in range(self.n):
            self.g[j] = -self.g[j]
        self.passes += 1
        self.choose(k)
        for j in range(self.n):
            self.last_y[j], self.y[j] = self.y[j], self.y[j] - self.p[j] * self.g[j]
        self.r.prox(self.y, self.p, self.next)
        self.extrapolate(k)
        for j in range(self.n):
            changed += (self.next[j] > 0) != (self.x[j] > 0) or (self.next[j] < 0) != (self.x[j] < 0)
            self.y[j] = self.next[j] + self.a[j] * (self.next[j] - self.x[j])
        self.x, self.next = self.next, self.x
        self.g, self.last_g = self.last_g, self.g
        self.iterations += 1
        self.settled = 0 if changed > 0 else self.settled + 1

    cdef void keep_largest_coordinates(self) noexcept nogil:
        """Set all but the m largest coordinates of x to 0: no LASSO needs more than m columns.

        First iterates on wide data can have thousands of non-zeros, and the solver would have to
        work on all of these columns at once.
        """
        cdef Py_ssize_t j, i, count = 0
        for j in range(self.n):
            if self.x[j] != 0.0:
                self.p[count] = fabs(self.x[j])
                self.picked[count] = j
                count += 1
        if count <= self.m:
            return
        keep_largest(self.p, self.picked, count, self.m)
        memset(self.next, 0, self.n * sizeof(double))
        for i in range(self.m):
            self.next[self.picked[i]] = self.x[self.picked[i]]
        self.x, self.next = self.next, self.x


cdef class FistaStart(Start):
    """FISTA: p = 1/L and a = (t - 1)/t+ with t+ = (1 + sqrt(1 + 4 t^2))/2; see rules/classic.py.

    With `restart` the momentum is dropped where <y - x+, x+ - x> > 0.
    """

    cdef bint restart
    cdef double t

    def __init__(self, Data A, Loss f, Penalty r, double curvature, double step, bint restart=False):
        self.restart = restart

    cdef void choose(self, Py_ssize_t k) noexcept nogil:
        if k == 0:
            self.t = 1.0
            fill(self.p, self.step, self.n)

    cdef void extrapolate(self, Py_ssize_t k) noexcept nogil:
        cdef double t = (1.0 + sqrt(1.0 + 4.0 * self.t * self.t)) / 2.0, a = (self.t - 1.0) / t, against = 0.0
        cdef Py_ssize_t j
        for j in range(self.n):
            against += (self.last_y[j] - self.next[j]) * (self.next[j] - self.x[j])
        if self.restart and against > 0.0:
            a, t = 0.0, 1.0
        self.t = t
        fill(self.a, a, self.n)
