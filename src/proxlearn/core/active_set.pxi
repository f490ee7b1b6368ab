# An active-set method for the model of a separable penalty: it ends after finitely many steps.
#
# Sweeps and Newton steps on all active variables at once are fast where few variables change sides. Where
# columns depend on each other and the penalty is small, many do, again and again. Here the active
# variables are always independent and between two of their kinks. A step goes to the minimiser over them,
# or to the first kink on the way, whose variable leaves; at the minimiser the variable that violates its
# condition most enters. One that depends on the active ones replaces one of them.

cdef enum:
    MOST_STEPS = 200  # Most steps of a solve, beside two for each variable that was active at its beginning.
    REFACTOR = 24     # Where more than one variable in so many leaves at once, the factor is made anew.


# DEPENDENT, ROUNDING, DERIVATIVE and NOTHING allow for rounding: they lie between the machine precision of
# 2e-16 and what problems have that are not degenerate. No measurement chose them; the fuzz draws equal,
# opposite and dependent columns, on which they decide.
cdef double DEPENDENT = 1e-10  # Part of a variable's curvature that the active ones must leave.
cdef double ROUNDING = 1e-13  # Part of it below which a curvature is nothing but rounding.
cdef double DERIVATIVE = 1e-12  # Rounding of a derivative, relative to the sum of the products in it.
# Steps that are longer than this part of w have to be worth it. Of 3600 consistent NNLS problems with
# opposite and equal columns (35 x 150, 2026-11-19) 66 left the minimiser by 1e14 and more with 10, which lets
# w grow tenfold again and again; 48 with 1, none with 0.1 to 0.0001.
cdef double FAR = 0.01
cdef double NOTHING = 1e-9  # Part of the largest move below which a move is nothing but rounding.


cdef class ActiveSet:
    """The active variables of a model, and a Cholesky factor of their Hessian."""

    cdef Py_ssize_t room, a
    cdef double *L           # (a, a), lower, columns of length `room`
    cdef Py_ssize_t *items   # (a,): the active variables
    cdef double *d           # (a + 1,): a direction
    cdef double *step        # (a,): it, but for variables that would cross a kink
    cdef double *product     # (k,): H times it
    cdef Py_ssize_t width
    cdef char *inside        # (k,): 1 for the active variables, 2 for those that cannot enter
    cdef double *sign        # (k,): the side of 0 on which a variable with an l1 penalty is
    cdef double next_look    # when to look for Ctrl-C again

    def __dealloc__(self):
        free(self.L)
        free(self.items)
        free(self.d)
        free(self.step)
        free(self.product)
        free(self.inside)
        free(self.sign)

    cdef int begin(self, Py_ssize_t k, Py_ssize_t count) except -1 nogil:
        """Empty, with room for `count` of k variables to be active."""
        self.a = 0
        if k > self.width:
            self.width = k + k // 2
            self.product = <double *> resized(self.product, self.width, sizeof(double))
            self.inside = <char *> resized(self.inside, self.width, 1)
            self.sign = <double *> resized(self.sign, self.width, sizeof(double))
        memset(self.inside, 0, k)
        return self.make_room(count)

    cdef int make_room(self, Py_ssize_t count) except -1 nogil:
        """Room for `count` active variables; those that are there stay."""
        cdef Py_ssize_t room = (count + count // 2 + 16) & -CHOLESKY_BLOCK, t
        cdef double *L
        if count <= self.room:
            return 0
        L = aligned(NULL, 0, room * room)
        for t in range(self.a):
            memcpy(L + t * room, self.L + t * self.room, self.a * sizeof(double))
        free(self.L)
        self.L, self.room = L, room
        self.items = <Py_ssize_t *> resized(self.items, room, sizeof(Py_ssize_t))
        self.d = <double *> resized(self.d, room, sizeof(double))
        self.step = <double *> resized(self.step, room, sizeof(double))
        return 0

    cdef double pull(self, CoordinateModel M, Py_ssize_t p) noexcept nogil:
        """Minus the derivative of the model on the side of 0 where variable p is."""
        return M.c[p] - M.l2[p] * M.w[p] - M.l1[p] * self.sign[p]

    cdef double end(self, CoordinateModel M, Py_ssize_t p, double d) noexcept nogil:
        """The next kink of variable p in the direction of d."""
        if d > 0:
            return min(M.upper[p], 0.0) if self.sign[p] < 0 else M.upper[p]
        return max(M.lower[p], 0.0) if self.sign[p] > 0 else M.lower[p]

    cdef void move(self, CoordinateModel M, double part, Py_ssize_t count) noexcept nogil:
        """Move the first `count` items by a part of the direction."""
        cdef Py_ssize_t i
        memset(self.product, 0, M.k * sizeof(double))
        for i in range(count):
            M.w[self.items[i]] += part * self.d[i]
        add_columns(M.H, M.ld, self.items, self.d, count, self.product, M.k)
        axpy(-part, self.product, M.c, M.k)

    cdef Py_ssize_t first_kink(self, CoordinateModel M, Py_ssize_t count, double *part) noexcept nogil:
        """The item that meets a kink first, before `part` of the direction, which is reduced; or -1."""
        cdef Py_ssize_t i, p, who = -1
        cdef double reach
        for i in range(count):
            p = self.items[i]
            if self.d[i] == 0.0:
                continue
            reach = (self.end(M, p, self.d[i]) - M.w[p]) / self.d[i]
            if reach < part[0]:
                part[0], who = max(reach, 0.0), i
        return who

    cdef void leave(self, CoordinateModel M, Py_ssize_t i, double at) noexcept nogil:
        """Item i stays at the kink `at`."""
        cdef Py_ssize_t p = self.items[i]
        cdef double change = at - M.w[p]
        if change != 0.0:
            axpy(-change, M.H + p * M.ld, M.c, M.k)
            M.w[p] = at
        self.inside[p] = 0
        remove_variable(self.L, self.room, self.a, i)
        memmove(self.items + i, self.items + i + 1, (self.a - 1 - i) * sizeof(Py_ssize_t))
        self.a -= 1

    cdef void clear_rounding(self, CoordinateModel M, Py_ssize_t count) noexcept nogil:
        """Set those entries of the direction to 0 that only rounding made.

        Otherwise the step to the kink of such a variable would be beyond all bounds.
        """
        cdef Py_ssize_t i
        cdef double most = 0.0
        for i in range(count):
            most = max(most, fabs(self.d[i]) * self.length(M, self.items[i]))
        for i in range(count):
            if fabs(self.d[i]) * self.length(M, self.items[i]) <= NOTHING * most:
                self.d[i] = 0.0

    cdef bint is_far_for_nothing(
        self, CoordinateModel M, Py_ssize_t p, double step, double slope
    ) noexcept nogil:
        """True where a step is longer than w by far, and the slope that asks for it may be rounding."""
        cdef Py_ssize_t i
        cdef double total = 0.0
        for i in range(M.k):
            if M.w[i] != 0.0:
                total += fabs(M.w[i]) * self.length(M, i)
        return step > FAR * total and fabs(slope) <= DERIVATIVE * total * self.length(M, p)

    cdef double longest(self, CoordinateModel M) noexcept nogil:
        """The largest entry of the direction, in the unit of predictions."""
        cdef Py_ssize_t i
        cdef double most = 0.0
        for i in range(self.a + 1):
            most = max(most, fabs(self.d[i]) * self.length(M, self.items[i]))
        return most

    cdef double length(self, CoordinateModel M, Py_ssize_t p) noexcept nogil:
        """The length of column p, with its quadratic penalty."""
        return sqrt(M.H[p * M.ld + p] + M.l2[p])

    cdef void enter_together(self, CoordinateModel M, Py_ssize_t count) noexcept nogil:
        """Let the first of M's active variables be active, up to one that depends on those before it."""
        cdef Py_ssize_t i, t, p
        cdef double *column
        for t in range(count):
            p = M.active[t]
            column = M.H + p * M.ld
            for i in range(t, count):
                self.L[t * self.room + i] = column[M.active[i]]
            self.L[t * self.room + t] += M.l2[p]
        self.a = cholesky_extend(self.L, self.room, count, 0, DEPENDENT)
        for i in range(count):
            self.items[i] = M.active[i]
            self.inside[self.items[i]] = i < self.a

    cdef int enter(self, CoordinateModel M, Py_ssize_t p) except -1 nogil:
        """Let variable p be active; one that depends on the others moves until one of them leaves."""
        cdef Py_ssize_t i, who
        cdef int a, one = 1, room
        cdef double rest, own, part, slope, at
        self.make_room(self.a + 1)
        room = self.room
        while True:
            a = self.a
            for i in range(a):
                self.d[i] = M.H[p * M.ld + self.items[i]]
            if a > 0:
                dtrsv("L", "N", "N", &a, self.L, &room, self.d, &one)
            own = M.H[p * M.ld + p] + M.l2[p]
            rest = own - dot(self.d, self.d, a)
            if rest > DEPENDENT * own:
                for i in range(a):
                    self.L[i * room + a] = self.d[i]
                self.L[a * room + a] = sqrt(rest)
                self.items[a] = p
                self.inside[p] = 1
                self.a += 1
                return 0
            # Along this direction the model is linear.
            if a > 0:
                dtrsv("L", "T", "N", &a, self.L, &room, self.d, &one)
            slope = self.pull(M, p)
            for i in range(a):
                self.d[i] = -self.d[i]
                slope += self.pull(M, self.items[i]) * self.d[i]
            self.d[a], self.items[a] = 1.0, p
            if slope < 0.0:
                for i in range(a + 1):
                    self.d[i] = -self.d[i]
            self.clear_rounding(M, a + 1)
            part = fabs(slope) / rest if rest > ROUNDING * own else INFINITY
            who = self.first_kink(M, a + 1, &part)
            if not isfinite(part) or self.is_far_for_nothing(M, p, part * self.longest(M), slope):
                self.inside[p] = 2
                return 0
            at = self.end(M, self.items[who], self.d[who]) if who >= 0 else 0.0
            self.move(M, part, a + 1)
            if who < 0:
                self.inside[p] = 2  # it stands at the minimum along the direction
                return 0
            if who == a:
                axpy(M.w[p] - at, M.H + p * M.ld, M.c, M.k)
                M.w[p] = at
                return 0
            self.leave(M, who, at)

    cdef bint crosses(self, CoordinateModel M, Py_ssize_t i) noexcept nogil:
        """True where item i would meet a kink before the end of the direction."""
        cdef Py_ssize_t p = self.items[i]
        return self.d[i] != 0.0 and (self.end(M, p, self.d[i]) - M.w[p]) / self.d[i] < 1.0

    cdef bint cut(self, CoordinateModel M) noexcept nogil:
        """Go to the end of the direction, and let all variables that cross a kink leave at it.

        False, and nothing moves, where only one would leave or the model does not fall.
        """
        cdef Py_ssize_t i, p, crossing = 0
        cdef double change = 0.0
        memset(self.product, 0, M.k * sizeof(double))
        for i in range(self.a):
            p = self.items[i]
            self.step[i] = self.d[i]
            if self.crosses(M, i):
                self.step[i] = self.end(M, p, self.d[i]) - M.w[p]
                crossing += 1
            change += self.step[i] * (0.5 * M.l2[p] * self.step[i] - self.pull(M, p))
        if crossing < 2:
            return False
        add_columns(M.H, M.ld, self.items, self.step, self.a, self.product, M.k)
        for i in range(self.a):
            change += 0.5 * self.step[i] * self.product[self.items[i]]
        if not change < 0.0:
            return False
        axpy(-1.0, self.product, M.c, M.k)
        self.leave_crossing(M, crossing)
        return True

    cdef void leave_crossing(self, CoordinateModel M, Py_ssize_t crossing) noexcept nogil:
        """Take the step, and let the variables that cross a kink be no longer active."""
        cdef Py_ssize_t i = self.a - 1, p, kept = 0
        cdef bint anew = crossing * REFACTOR > self.a
        while i >= 0:
            p = self.items[i]
            if not self.crosses(M, i):
                M.w[p] += self.step[i]
            else:
                M.w[p] = self.end(M, p, self.d[i])
                self.inside[p] = 0
                if not anew:
                    self.leave(M, i, M.w[p])
            i -= 1
        if anew:
            for i in range(self.a):
                if self.inside[self.items[i]] == 1:
                    M.active[kept] = self.items[i]
                    kept += 1
            self.enter_together(M, kept)

    cdef bint settle(self, CoordinateModel M) noexcept nogil:
        """Go to the minimiser over the active variables; False where a kink was met on the way."""
        cdef Py_ssize_t i, who
        cdef int a = self.a, one = 1, room = self.room
        cdef double part = 1.0
        if a == 0:
            return True
        for i in range(a):
            self.d[i] = self.pull(M, self.items[i])
        dtrsv("L", "N", "N", &a, self.L, &room, self.d, &one)
        dtrsv("L", "T", "N", &a, self.L, &room, self.d, &one)
        if self.cut(M):
            return False
        who = self.first_kink(M, a, &part)
        self.move(M, part, a)
        if who >= 0:
            self.leave(M, who, self.end(M, self.items[who], self.d[who]))
        return who < 0

    cdef double worst(self, CoordinateModel M, Py_ssize_t *who) noexcept nogil:
        """The largest violation of a variable that is not active; `who` is that variable, `sign` its side."""
        cdef Py_ssize_t p
        cdef double worst = 0.0, e, up, down, w, side = 0.0
        who[0] = -1
        for p in range(M.k):
            if self.inside[p]:
                continue
            w = M.w[p]
            e = M.c[p] - M.l2[p] * w
            up = e - (M.l1[p] if w >= 0 else -M.l1[p]) if w < M.upper[p] else 0.0
            down = (M.l1[p] if w > 0 else -M.l1[p]) - e if w > M.lower[p] else 0.0
            if max(up, down) > worst:
                worst, who[0] = max(up, down), p
                side = (1.0 if w >= 0 else -1.0) if up > down else (1.0 if w > 0 else -1.0)
        if who[0] >= 0:
            self.sign[who[0]] = side if M.l1[who[0]] > 0 else 0.0
        return worst

    cdef double solve(self, CoordinateModel M, double tol) except -1 nogil:
        """Minimise the model until no condition is violated by more than tol, or for many steps."""
        cdef Py_ssize_t i, p, count = M.collect(), steps, who = -1
        cdef double worst = INFINITY
        self.begin(M.k, count)
        for i in range(count):
            p = M.active[i]
            self.sign[p] = copysign(1.0, M.w[p]) if M.l1[p] > 0 else 0.0
        self.enter_together(M, count)
        for i in range(self.a, count):
            look_for_interrupt(&self.next_look)
            self.enter(M, M.active[i])
        for steps in range(MOST_STEPS + 2 * count):
            look_for_interrupt(&self.next_look)
            if not self.settle(M):
                continue
            worst = self.worst(M, &who)
            if worst <= tol:
                break
            self.enter(M, who)
        return worst
