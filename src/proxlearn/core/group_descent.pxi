# Coordinate descent over groups of dense columns, for least squares with a group penalty.
#
# Where the support is large, the Gram matrix of the working set and its factors take most of the time. Sweeps
# over the columns with the residual at hand, and Anderson's extrapolation, need no Gram matrix but that of
# each group.

cdef extern from "block_columns.h" nogil:
    void block_products(const double *const *a, const double *R, long m, long size, double *g) noexcept
    void subtract_block(const double *const *a, const double *d, double *R, long m, long size) noexcept


# Columns for each sample from which sweeps over the residual take less time than a model. On simulated data
# with groups of 4 to 10 columns, at 0.1, 0.02 and 0.005 of the largest lambda (geometric means, CPU time,
# 2026-11-19), 0.5, 0.7 and 1 take 1.03, 1.11 and 1.28 times as long as 0.35 on six shapes from 300 x 260 to
# 1000 x 900. On seven from 300 x 260 to 5000 x 200, 0.1, 0.2 and 0.4 take the same time to the noise of a
# tenth. With an l1, whose groups have no closed form, the sweeps took up to 1.9 times as long as the model,
# which stays there.
cdef double GROUP_PAYS = 0.1


@cython.final
cdef class GroupDescent(ResidualDescent):
    """Sweeps over groups; `group_blocks.pxi` minimises over one group."""

    cdef GroupBlocks model       # the groups of the working set, with their own blocks of the Gram matrix
    cdef Py_ssize_t *known       # (k,): the columns that the model has
    cdef double **columns        # (k,): where they begin
    cdef Py_ssize_t known_count, known_room

    def __cinit__(self):
        self.model = GroupBlocks()
        self.model.apart = True

    def __dealloc__(self):
        free(self.known)
        free(self.columns)

    cdef bint pays(self, Data A, Penalty r, Loss f) noexcept nogil:
        """True where dense columns are many, and each group has a closed form and at most m columns."""
        if self.failed or not f.quadratic or not f.unit_weights or not A.has_dense_columns():
            return False
        return not (<Groups> r).sparse and (<Groups> r).widest <= A.m and A.k >= GROUP_PAYS * A.m

    cdef int prepare(self, Data A, Penalty r, Loss f) except -1 nogil:
        cdef Py_ssize_t b, same = 0
        ResidualDescent.prepare(self, A, r, f)
        if A.k > self.known_room:
            self.known_room = A.room
            self.known = <Py_ssize_t *> resized(self.known, A.room, sizeof(Py_ssize_t))
            self.columns = <double **> resized(self.columns, A.room, sizeof(double *))
        while same < min(A.k, self.known_count) and self.known[same] == A.index[same]:
            same += 1
        self.model.make_room(A.k)
        for b in range(A.k):
            self.order[b] = b
        self.model.k = A.k
        self.model.penalise(r, A.index, self.order, A.k)
        self.measure(<Dense> A, <Groups> r, self.model, same)
        return 0

    cdef int measure(self, Dense A, Groups r, GroupBlocks model, Py_ssize_t same) except -1 nogil:
        """The Gram matrix of each group; the first `same` columns are those of the last call."""
        cdef Py_ssize_t b = 0, p, end
        for p in range(A.k):
            self.known[p], self.columns[p] = A.index[p], A.column(p)
        if model.room_apart(A.k, r.widest):
            same = 0
        while b < model.blocks and model.first[b + 1] <= same:
            b += 1
        model.decomposed = min(model.decomposed, b)
        for b in range(model.decomposed, model.blocks):
            end = model.first[b + 1]
            for p in range(model.first[b], end):
                block_products(self.columns + model.first[b], self.columns[p], A.m, end - model.first[b],
                               model.H + p * model.ld)
        self.known_count = A.k
        return model.prepare()

    cdef Py_ssize_t blocks(self, Data A) noexcept nogil:
        return self.model.blocks

    cdef bint may_move(self, Data A, Penalty r, double *v, Py_ssize_t b) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.model.first[b], self.model.first[b + 1]):
            if v[p] != 0.0 or r.is_free(A.index[p]):
                return True
        return False

    cdef double sweep(self, Data A, Penalty r, Loss f, double *v, Py_ssize_t count) noexcept nogil:
        return self.visit(A, <Groups> r, self.model, v, count)

    cdef double visit(self, Data A, Groups r, GroupBlocks model, double *v, Py_ssize_t count) noexcept nogil:
        """A sweep over the groups order[:count]; returns the largest violation that was met."""
        cdef Py_ssize_t i, b, p, q, size
        cdef double worst = 0.0
        for i in range(count):
            b = self.order[i]
            p, size = model.first[b], model.first[b + 1] - model.first[b]
            if i + 1 < count:
                b = self.order[i + 1]
                for q in range(model.first[b], model.first[b + 1]):
                    prefetch_column(self.columns[q], A.m)
                b = self.order[i]
            block_products(self.columns + p, self.R, A.m, size, model.c + p)
            memcpy(model.w + p, v + p, size * sizeof(double))
            worst = max(worst, r.violation(A.index, p, size, v, model.c, True))
            if model.move(b) > 0.0:
                memcpy(v + p, model.w + p, size * sizeof(double))
                subtract_block(self.columns + p, model.z, self.R, A.m, size)
        return worst
