# The model of several tasks, whose blocks are the rows of W (rows, T):
#
#     minimise  sum over tasks of 1/2 w_t'H w_t - q_t'w_t  +  sum_i level_i |W_i|
#
# All tasks share H. The problem of one row has a closed form. Newton's matrix is a Kronecker product with a
# correction of rank one for each row, so that a step factorises matrices of the number of rows only.


@cython.final
cdef class RowModel(BlockModel):
    """Rows of T variables with one level each; c is kept task after task while the model is solved."""

    cdef Py_ssize_t tasks, row_room
    cdef double *ct_room
    cdef double *ct       # (T, stride): c; each task begins where a line of the cache does
    cdef Py_ssize_t stride
    cdef double *z        # (T,)
    cdef double *right    # (T, a): right-hand sides, then the step
    cdef double *unit     # (T, a): W_i / |W_i| of the active rows
    cdef double *inverse  # (a, a): of H + diag(level / |W_i|)
    cdef double *schur    # (a, a)
    cdef double *along    # (a,)
    cdef Py_ssize_t newton_room

    def __cinit__(self, Py_ssize_t tasks):
        self.tasks, self.row_room, self.newton_room = tasks, 0, 0
        self.level = self.ct_room = self.z = self.right = self.unit = self.inverse = self.schur = self.along = NULL
        self.z = <double *> resized(NULL, tasks, sizeof(double))

    def __dealloc__(self):
        for pointer in (<size_t> self.level, <size_t> self.ct_room, <size_t> self.z, <size_t> self.right,
                        <size_t> self.unit, <size_t> self.inverse, <size_t> self.schur, <size_t> self.along):
            free(<void *> <size_t> pointer)

    cdef int make_room_for_hessian(self, Py_ssize_t k, Py_ssize_t known) except -1 nogil:
        """H is that of the rows."""
        return Model.make_room_for_hessian(self, k // self.tasks, known // self.tasks)

    cdef int make_room(self, Py_ssize_t k) except -1 nogil:
        cdef Py_ssize_t rows = k // self.tasks, room
        if rows <= self.row_room:
            return 0
        self.row_room = room = max(32, rows + rows // 2)
        self.level = <double *> resized(self.level, room, sizeof(double))
        self.active = <Py_ssize_t *> resized(self.active, room, sizeof(Py_ssize_t))
        self.w = <double *> resized(self.w, room * self.tasks, sizeof(double))
        self.c = <double *> resized(self.c, room * self.tasks, sizeof(double))
        self.start = <double *> resized(self.start, room * self.tasks, sizeof(double))
        self.pull = <double *> resized(self.pull, room * self.tasks, sizeof(double))
        self.stride = (room + LINE - 1) // LINE * LINE
        self.ct_room = <double *> resized(self.ct_room, self.stride * self.tasks + LINE, sizeof(double))
        memset(self.ct_room, 0, (self.stride * self.tasks + LINE) * sizeof(double))
        self.ct = self.ct_room + to_line(self.ct_room)
        self.product = <double *> resized(self.product, self.stride * self.tasks, sizeof(double))
        return 0

    cdef void penalise(self, Penalty r, Py_ssize_t *index, Py_ssize_t *live, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t i
        self.blocks = k // self.tasks
        for i in range(self.blocks):
            self.level[i] = (<Groups> r).level[index[live[i * self.tasks]] // self.tasks]

    cdef int prepare(self) except -1 nogil:
        cdef Py_ssize_t i, t
        for i in range(self.blocks):
            for t in range(self.tasks):
                self.ct[t * self.stride + i] = self.c[i * self.tasks + t]
        return 0

    cdef double norm(self, Py_ssize_t b) noexcept nogil:
        return sqrt(dot(self.w + b * self.tasks, self.w + b * self.tasks, self.tasks))

    cdef double update(self, Py_ssize_t b) noexcept nogil:
        cdef Py_ssize_t t
        cdef double h = self.H[b * self.ld + b], total = 0.0, shrink, change = 0.0, d
        cdef double *w = self.w + b * self.tasks
        if h <= 0.0:
            return 0.0
        for t in range(self.tasks):
            self.z[t] = self.ct[t * self.stride + b] + h * w[t]
            total += self.z[t] * self.z[t]
        total = sqrt(total)
        shrink = (1.0 - self.level[b] / total) / h if total > self.level[b] else 0.0
        for t in range(self.tasks):
            d = shrink * self.z[t] - w[t]
            w[t] = shrink * self.z[t]
            self.z[t] = d
            change += d * d
        if change > 0.0:
            subtract_row(self.H + b * self.ld, self.ct, self.stride, self.blocks, self.tasks, self.z)
        return change * h

    cdef double violation(self, bint active) noexcept nogil:
        cdef Py_ssize_t b, t
        cdef double worst = 0.0, norm, total, e, part
        for b in range(self.blocks):
            norm, total = self.norm(b), 0.0
            if active and norm == 0.0 and self.level[b] > 0.0:
                continue
            part = self.level[b] / norm if norm > 0.0 else 0.0
            for t in range(self.tasks):
                e = self.ct[t * self.stride + b] - part * self.w[b * self.tasks + t]
                total += e * e
            total = sqrt(total)
            worst = max(worst, total - self.level[b] if norm == 0.0 else total)
        return worst

    cdef Py_ssize_t collect(self) noexcept nogil:
        cdef Py_ssize_t b, count = 0
        for b in range(self.blocks):
            if self.level[b] == 0.0 or self.norm(b) > 0.0:
                self.active[count] = b
                count += 1
        return count

    cdef double newton_cost(self, Py_ssize_t count) noexcept nogil:
        cdef double a = count
        return 5.0 * FACTORISE * a * a * a + (2.0 * a * a + a * self.blocks) * self.tasks

    cdef int make_newton_room(self, Py_ssize_t count) except -1 nogil:
        cdef Py_ssize_t room = count + count // 2 + 16
        self.make_room_for_factor(count, 0)
        if count <= self.newton_room:
            return 0
        self.newton_room = room
        self.right = <double *> resized(self.right, 2 * room * self.tasks, sizeof(double))
        self.unit = <double *> resized(self.unit, room * self.tasks, sizeof(double))
        self.inverse = <double *> resized(self.inverse, room * room, sizeof(double))
        self.schur = <double *> resized(self.schur, room * room, sizeof(double))
        self.along = <double *> resized(self.along, room, sizeof(double))
        return 0

    cdef bint factorise(self, Py_ssize_t count) except -1 nogil:
        """Factors of K = H + diag(s), s_i = level_i / |W_i|, and of the Schur complement.

        Newton's matrix is K (x) I - U diag(s) U' where column i of U is W_i / |W_i| in row i. By
        Woodbury's formula its inverse needs that of diag(1/s) - K^-1 o (U U'), `schur`.
        """
        cdef Py_ssize_t i, j, t, p
        cdef int a = count, ld = self.factor_room, T = self.tasks, info = 0
        cdef double one = 1.0, zero = 0.0, norm
        cdef double *K = self.factor
        for j in range(count):
            p = self.active[j]
            norm = self.norm(p)
            for i in range(j, count):
                K[j * ld + i] = self.H[p * self.ld + self.active[i]]
            K[j * ld + j] += RIDGE * self.H[p * self.ld + p]
            if norm > 0.0:
                K[j * ld + j] += self.level[p] / norm
            for t in range(self.tasks):
                self.unit[t * count + j] = self.w[p * self.tasks + t] / norm if norm > 0.0 else 0.0
        dpotrf("L", &a, K, &ld, &info)
        if info != 0:
            return False
        for j in range(count):
            memcpy(self.inverse + j * count + j, K + j * ld + j, (count - j) * sizeof(double))
        dpotri("L", &a, self.inverse, &a, &info)
        if info != 0:
            return False
        dsyrk("L", "N", &a, &T, &one, self.unit, &a, &zero, self.schur, &a)
        for j in range(count):
            p = self.active[j]
            for i in range(j, count):
                self.schur[j * count + i] *= -self.inverse[j * count + i]
            norm = self.norm(p)
            if self.level[p] > 0.0 and norm > 0.0:
                self.schur[j * count + j] += norm / self.level[p]
            else:
                self.schur[j * count + j] = 1.0  # W_i / |W_i| is taken for 0
        dpotrf("L", &a, self.schur, &a, &info)
        return info == 0

    cdef bint direction_of(self, Py_ssize_t count) except -1 nogil:
        """right = Newton's direction (T, a)."""
        cdef Py_ssize_t i, t, p
        cdef int a = count, ld = self.factor_room, T = self.tasks, one = 1, info = 0
        cdef double *d = self.right
        cdef double *extra = self.right + count * self.tasks
        cdef double *u = self.unit
        for i in range(count):
            p = self.active[i]
            if self.level[p] == 0.0:
                for t in range(self.tasks):
                    u[t * count + i] = 0.0
            for t in range(self.tasks):
                d[t * count + i] = self.ct[t * self.stride + p] - self.level[p] * u[t * count + i]
        dpotrs("L", &a, &T, self.factor, &ld, d, &a, &info)
        for i in range(count):
            self.along[i] = 0.0
            for t in range(self.tasks):
                self.along[i] += u[t * count + i] * d[t * count + i]
        dpotrs("L", &a, &one, self.schur, &a, self.along, &a, &info)
        for t in range(self.tasks):
            for i in range(count):
                extra[t * count + i] = self.along[i] * u[t * count + i]
        dpotrs("L", &a, &T, self.factor, &ld, extra, &a, &info)
        for i in range(count * self.tasks):
            d[i] += extra[i]
            if not isfinite(d[i]):
                return False
        return True

    cdef bint newton_step(self) except -1 nogil:
        """Rows that would turn round become 0. Where the model rises, half of the step is tried."""
        cdef Py_ssize_t count = self.collect(), i, t, p, k = self.stride
        cdef int halving
        cdef double part = 1.0
        cdef double *step = self.right + count * self.tasks
        if count == 0:
            return False
        self.make_newton_room(count)
        step = self.right + count * self.tasks
        if not self.factorise(count) or not self.direction_of(count):
            return False
        for halving in range(12):
            self.propose(count, part, step)
            memset(self.product, 0, k * self.tasks * sizeof(double))
            for i in range(count):
                for t in range(self.tasks):
                    axpy(step[t * count + i], self.H + self.active[i] * self.ld, self.product + t * k, self.blocks)
            if self.falls(count, step):
                for i in range(count):
                    p = self.active[i]
                    for t in range(self.tasks):
                        self.w[p * self.tasks + t] += step[t * count + i]
                    if self.along[i] == 0.0:
                        memset(self.w + p * self.tasks, 0, self.tasks * sizeof(double))
                axpy(-1.0, self.product, self.ct, k * self.tasks)
                return True
            part *= 0.5
        return False

    cdef void propose(self, Py_ssize_t count, double part, double *step) noexcept nogil:
        """step = part d, with -W_i for rows that would turn round; along[i] is 0 for these."""
        cdef Py_ssize_t i, t
        cdef double *w
        cdef double product
        for i in range(count):
            w, product = self.w + self.active[i] * self.tasks, 0.0
            for t in range(self.tasks):
                step[t * count + i] = part * self.right[t * count + i]
                product += w[t] * (w[t] + step[t * count + i])
            self.along[i] = 1.0
            if product <= 0.0 and self.level[self.active[i]] > 0.0:
                self.along[i] = 0.0
                for t in range(self.tasks):
                    step[t * count + i] = -w[t]

    cdef bint falls(self, Py_ssize_t count, double *step) noexcept nogil:
        """True where the model is not higher after the step, up to rounding."""
        cdef Py_ssize_t i, t, p
        cdef double change = 0.0, size = 0.0, term, new, dots, s, w
        for i in range(count):
            p = self.active[i]
            new = dots = 0.0
            for t in range(self.tasks):
                s, w = step[t * count + i], self.w[p * self.tasks + t]
                term = (0.5 * self.product[t * self.stride + p] - self.ct[t * self.stride + p]) * s
                change += term
                size += fabs(term)
                new += (w + s) * (w + s)
                dots += s * (2.0 * w + s)
            new = sqrt(new) + self.norm(p)
            if new > 0.0:
                term = self.level[p] * (dots / new)
                change += term
                size += fabs(term)
        return change <= 1e-15 * size
