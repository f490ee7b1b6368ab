# The blocks of a group penalty's model, each minimised by itself.
#
# The problem of one group is solved exactly where it has no l1: with the eigenvalues of its block of H it is
# one equation for |w_g|. Sweeps over the groups find those that are not 0; where a group is not 0, its norm
# is smooth, and Newton's method converges fast.

# With 64 in place of LARGEST_BLOCK, groups of 40 to 60 columns take 0.9 to 2.5 times as long (four simulated
# shapes, CPU time, 2026-11-19); with 16 in its place, groups of 20 take 0.8 to 1.2 times as long.
cdef enum:
    LARGEST_BLOCK = 32   # Variables of a group up to which its block is diagonalised; others take prox steps.
    MOST_PASSES = 10     # Most passes of coordinate descent over a group whose variables have an l1 penalty.

cdef double NEWTON_END = 1e-8  # Newton steps double the digits of |w|: after one so short, rounding is left.


cdef class GroupBlocks(BlockModel):
    """Blocks of variables, each with a level, and an l1 for each variable."""

    cdef double *l1           # (k,)
    cdef Py_ssize_t *first    # (blocks + 1,): the variables of block b are first[b], ..., first[b + 1] - 1
    cdef Py_ssize_t *block_of # (k,)
    cdef bint sparse
    cdef bint apart           # True where H has the blocks alone, (k, widest), one below the other
    cdef double *values       # (k,): eigenvalues of the blocks of H; the largest is the first of its block
    cdef double *vectors      # eigenvectors of the blocks, as columns
    cdef Py_ssize_t *at       # (blocks + 1,): where those of a block begin
    cdef Py_ssize_t apart_room
    cdef Py_ssize_t vector_room, decomposed  # blocks whose eigenvalues are known
    cdef Py_ssize_t widest
    cdef double *z            # (widest,)
    cdef double *y            # (widest,)
    cdef double *new          # (widest,)
    cdef Py_ssize_t width_room

    def __cinit__(self):
        self.blocks = self.vector_room = self.decomposed = self.width_room = 0
        self.l1 = self.level = self.values = self.vectors = self.z = self.y = self.new = NULL
        self.first = self.block_of = self.at = NULL

    def __dealloc__(self):
        for pointer in (<size_t> self.l1, <size_t> self.level, <size_t> self.values, <size_t> self.vectors,
                        <size_t> self.z, <size_t> self.y, <size_t> self.new, <size_t> self.first,
                        <size_t> self.block_of, <size_t> self.at):
            free(<void *> <size_t> pointer)

    cdef int reserve(self, Py_ssize_t room) except -1 nogil:
        self.l1 = <double *> resized(self.l1, room, sizeof(double))
        self.level = <double *> resized(self.level, room, sizeof(double))
        self.values = <double *> resized(self.values, room, sizeof(double))
        self.first = <Py_ssize_t *> resized(self.first, room + 1, sizeof(Py_ssize_t))
        self.at = <Py_ssize_t *> resized(self.at, room + 1, sizeof(Py_ssize_t))
        self.block_of = <Py_ssize_t *> resized(self.block_of, room, sizeof(Py_ssize_t))
        return 0

    cdef bint room_apart(self, Py_ssize_t k, Py_ssize_t widest) except -1 nogil:
        """Room for the blocks of H of k variables, one below the other; True where nothing is kept of it."""
        if k <= self.apart_room and widest <= self.ld:
            return False
        free(self.H)
        self.H, self.apart_room, self.ld = NULL, k + k // 2, widest
        self.H = <double *> resized(NULL, self.apart_room * widest, sizeof(double))
        return True

    cdef void penalise(self, Penalty r, Py_ssize_t *index, Py_ssize_t *live, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t p = 0, i, size, b = 0, total = 0
        cdef double *l1 = (<Groups> r).l1
        cdef double *level = (<Groups> r).level
        cdef Py_ssize_t *group_of = (<Groups> r).group_of
        cdef Py_ssize_t *starts = (<Groups> r).starts
        self.sparse, self.widest, self.blocks = (<Groups> r).sparse, 0, 0
        if k == 0:
            return
        while p < k:
            i = group_of[index[live[p]]]
            size = starts[i + 1] - starts[i]
            self.first[b], self.level[b], self.at[b] = p, level[i], total
            for i in range(p, p + size):
                self.l1[i], self.block_of[i] = l1[index[live[i]]], b
            if size <= LARGEST_BLOCK:
                total += size * size
            self.widest = max(self.widest, size)
            p += size
            b += 1
        self.first[b], self.at[b] = p, total
        self.blocks = b

    cdef void forget_factor(self) noexcept nogil:
        self.decomposed = 0

    cdef int prepare(self) except -1 nogil:
        """Eigenvalues and eigenvectors of the blocks of H that joined since the last call."""
        cdef Py_ssize_t b, p, i, j, size
        cdef double total
        if self.blocks == 0:
            return 0
        if self.widest > self.width_room:
            self.width_room = self.widest + 16
            self.z = <double *> resized(self.z, self.width_room, sizeof(double))
            self.y = <double *> resized(self.y, self.width_room, sizeof(double))
            self.new = <double *> resized(self.new, self.width_room, sizeof(double))
        if self.at[self.blocks] > self.vector_room:
            self.vector_room = self.at[self.blocks] + self.at[self.blocks] // 2
            self.vectors = <double *> resized(self.vectors, self.vector_room, sizeof(double))
        for b in range(self.decomposed, self.blocks):
            p, size = self.first[b], self.first[b + 1] - self.first[b]
            if size <= LARGEST_BLOCK:
                eigen(self.corner(b), self.ld, size, self.values + p, self.vectors + self.at[b])
                continue
            self.values[p] = 0.0
            for i in range(p, p + size):
                total = 0.0
                for j in range(size):
                    total += fabs(self.corner(b)[(i - p) * self.ld + j])
                self.values[p] = max(self.values[p], total)
        self.decomposed = self.blocks
        return 0

    cdef double norm(self, Py_ssize_t b) noexcept nogil:
        cdef Py_ssize_t p = self.first[b]
        return sqrt(dot(self.w + p, self.w + p, self.first[b + 1] - p))

    cdef double update(self, Py_ssize_t b) noexcept nogil:
        cdef Py_ssize_t p = self.first[b]
        cdef double change = self.move(b)
        if change > 0.0:
            subtract_columns(self.H + p * self.ld, self.ld, self.z, self.first[b + 1] - p, self.c, self.k)
        return change

    @cython.final
    cdef double *corner(self, Py_ssize_t b) noexcept nogil:
        """Where block b of H begins."""
        cdef Py_ssize_t p = self.first[b]
        return self.H + p * self.ld + (0 if self.apart else p)

    @cython.final
    cdef double move(self, Py_ssize_t b) noexcept nogil:
        """Minimise over block b and put the step into z; c is left as it is.

        Returns how much the model fell, to first order.
        """
        cdef Py_ssize_t p = self.first[b], size = self.first[b + 1] - p, i
        cdef double *w = self.w + p
        cdef double *z = self.z
        cdef double *H = self.corner(b)
        cdef double pull = 0.0, e, old = dot(w, w, size), change = 0.0
        memcpy(z, self.c + p, size * sizeof(double))
        if old > 0.0:
            for i in range(size):
                if w[i] != 0.0:
                    axpy(w[i], H + i * self.ld, z, size)
        for i in range(size):
            e = fabs(z[i]) - self.l1[p + i]
            if e > 0.0:
                pull += e * e
        if pull <= self.level[b] * self.level[b]:
            if old == 0.0:
                return 0.0
            memset(self.new, 0, size * sizeof(double))
        elif self.values[p] <= 0.0:
            return 0.0
        elif size > LARGEST_BLOCK:
            self.gradient_step(b)
        elif self.sparse and self.has_l1(b):
            self.descend(b, sqrt(pull))
        else:
            self.solve_block(b, sqrt(old))
        for i in range(size):
            z[i] = self.new[i] - w[i]
            change += z[i] * z[i]
        if change == 0.0 or not isfinite(change):
            return 0.0
        memcpy(w, self.new, size * sizeof(double))
        return change * self.values[p]

    cdef bint has_l1(self, Py_ssize_t b) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.first[b], self.first[b + 1]):
            if self.l1[i] > 0.0:
                return True
        return False

    cdef void solve_block(self, Py_ssize_t b, double start) noexcept nogil:
        """new = argmin 1/2 w'H_bb w - z'w + level |w|, where |z| > level.

        In the eigenvectors' coordinates, with t = |w|, it is (lambda_i + level/t) w_i = z_i, so that
        sum_i (z_i / (t lambda_i + level))^2 = 1. One over the root of that sum is concave and rises
        with t: Newton's method comes from below after one step, and needs no safeguard.
        """
        cdef Py_ssize_t p = self.first[b], size = self.first[b + 1] - p, i
        cdef double *lam = self.values + p
        cdef double *Q = self.vectors + self.at[b]
        cdef double *y = self.y
        cdef double level = self.level[b], t = start, norm, slope, d, e, last
        cdef int step
        for i in range(size):
            y[i] = dot(Q + i * size, self.z, size)
        if level > 0.0:
            for step in range(50):
                norm = slope = 0.0
                for i in range(size):
                    d = 1.0 / (t * lam[i] + level)
                    e = (y[i] * d) * (y[i] * d)
                    norm += e
                    slope += e * lam[i] * d
                # with N = sqrt(norm): 1/N = 1, and d(1/N)/dt = slope / N^3
                last = t
                t = max(t + (sqrt(norm) - 1.0) * norm / slope, 0.0)
                if fabs(t - last) <= NEWTON_END * t or not t < INFINITY:
                    break
            for i in range(size):
                y[i] *= t / (t * lam[i] + level)
        else:
            for i in range(size):
                y[i] = y[i] / lam[i] if lam[i] > 1e-14 * lam[0] else dot(Q + i * size, self.w + p, size)
        memset(self.new, 0, size * sizeof(double))
        for i in range(size):
            axpy(y[i], Q + i * size, self.new, size)

    cdef void gradient_step(self, Py_ssize_t b) noexcept nogil:
        """new = the prox of w + c/L with a bound L on the eigenvalues of the block."""
        cdef Py_ssize_t p = self.first[b], size = self.first[b + 1] - p, i
        cdef double L = self.values[p], total = 0.0, e
        for i in range(size):
            e = self.w[p + i] + self.c[p + i] / L
            e = copysign(max(fabs(e) - self.l1[p + i] / L, 0.0), e)
            self.new[i] = e
            total += e * e
        e = max(1.0 - self.level[b] / (L * sqrt(total)), 0.0) if total > 0.0 else 0.0
        for i in range(size):
            self.new[i] *= e

    cdef void descend(self, Py_ssize_t b, double pull) noexcept nogil:
        """Minimise over a block with an l1, nearly, by coordinate descent inside the block.

        `pull` is the length of the excess of z over l1. It is larger than the level, so that 0 is not
        the solution. Along a coordinate the equation h w + level w / sqrt(w^2 + rest) = a is solved by
        Newton's method, from below since the left side is concave.
        """
        cdef Py_ssize_t p = self.first[b], size = self.first[b + 1] - p, i, q
        cdef double level = self.level[b], L = self.values[p], square = 0.0
        cdef double e, h, a, w, old, root, rest, moved
        cdef double *new = self.new
        cdef double *z = self.z
        cdef double *H = self.corner(b)
        cdef int step, again
        memcpy(new, self.w + p, size * sizeof(double))
        square = dot(new, new, size)
        if square == 0.0:
            for i in range(size):
                e = max(fabs(z[i]) - self.l1[p + i], 0.0) * (1.0 - level / pull) / L
                new[i] = copysign(e, z[i])
            square = dot(new, new, size)
        for i in range(size):  # z becomes the residual of the block
            if new[i] != 0.0:
                axpy(-new[i], H + i * self.ld, z, size)
        for again in range(MOST_PASSES):
            moved = 0.0
            for i in range(size):
                q = p + i
                h, old = H[i * self.ld + i], new[i]
                if h <= 0.0:
                    continue
                e = z[i] + h * old
                a = fabs(e) - self.l1[q]
                rest = max(square - old * old, 0.0)
                if rest <= 1e-30 * square:
                    rest = 0.0
                if rest == 0.0:
                    w = (a - level) / h
                    if w <= 0.0:
                        continue  # that would make the whole block 0, which is not its solution
                elif a <= 0.0:
                    w = 0.0
                else:
                    w = min(fabs(old), a / h)
                    for step in range(30):
                        root = sqrt(w * w + rest)
                        e = (a - h * w - level * w / root) / (h + level * rest / (root * root * root))
                        w = max(w + e, 0.0)
                        if fabs(e) <= 1e-14 * w:
                            break
                w = copysign(w, z[i] + h * old)
                if w != old:
                    new[i] = w
                    axpy(old - w, H + i * self.ld, z, size)
                    square = rest + w * w
                    moved = max(moved, fabs(w - old))
            if moved <= 1e-3 * sqrt(square):
                break


cdef void eigen(double *H, Py_ssize_t ld, Py_ssize_t size, double *values, double *Q) noexcept nogil:
    """Eigenvalues, the largest first, and eigenvectors (columns of Q) of a symmetric block.

    The eigenvalues are 0 where LAPACK finds none.
    """
    cdef Py_ssize_t i, j
    cdef int count = size, room = 3 * LARGEST_BLOCK, info = 0
    cdef double work[3 * LARGEST_BLOCK]
    for i in range(size):
        memcpy(Q + i * size, H + i * ld, size * sizeof(double))
    dsyev("V", "L", &count, Q, &count, values, work, &room, &info)
    for i in range(size):
        values[i] = max(values[i], 0.0) if info == 0 else 0.0
    i = size - 1
    if i > 0:
        values[0], values[i] = values[i], values[0]
        for j in range(size):
            Q[j], Q[i * size + j] = Q[i * size + j], Q[j]
