# Coordinate descent over sparse columns, with a separable penalty.

cdef double PAYS = 8.0  # Multiplications of a dense model that cost what one with sparse columns does.


@cython.final
cdef class SparseDescent(Descent):
    """Sweeps over sparse columns; the residual is the dual point of the loss."""

    cdef double moved  # multiple of s by which centred columns have moved the dual point
    cdef double total  # the sum of s

    cdef bint pays(self, Data A, Penalty r, Loss f) noexcept nogil:
        cdef double k = A.k
        return not self.failed and r.is_separable() and k * k > PAYS * A.working_entries()

    cdef int prepare(self, Data A, Penalty r, Loss f) except -1 nogil:
        Descent.prepare(self, A, r, f)
        self.total = sum_of(f.s, A.m)
        self.measure(<Sparse> A, f.s)
        return 0

    cdef void measure(self, Sparse A, double *s) noexcept nogil:
        """The curvature of each coordinate, sum_i s_i a_ij^2."""
        cdef Py_ssize_t p, e, j
        cdef double square
        for p in range(A.k):
            j = A.index[p]
            square = 0.0
            for e in range(A.starts[j], A.starts[j + 1]):
                square += s[A.rows[e]] * A.data[e] * A.data[e]
            self.h[p] = max(square - A.shift(j) * A.shift(j) * self.total, 0.0)

    cdef double sweep(self, Data A, Penalty r, Loss f, double *v, Py_ssize_t count) noexcept nogil:
        return self.visit(<Sparse> A, <Separable> r, f, v, count)

    cdef double visit(self, Sparse A, Separable r, Loss f, double *v, Py_ssize_t count) noexcept nogil:
        """The sweep."""
        cdef Py_ssize_t i, p, j, e, first
        cdef double g, new, change, worst = 0.0, center, weighted
        for i in range(count):
            p = self.order[i]
            j = A.index[p]
            first, center = A.starts[j], A.shift(j)
            g = sparse_dot(A.data + first, A.rows + first, A.starts[j + 1] - first, f.u)
            g += self.moved * center * self.total
            worst = max(worst, r.violation(j, v[p], g))
            new = r.minimiser(j, self.h[p], g, v[p])
            change = new - v[p]
            if change == 0.0:
                continue
            v[p] = new
            self.moved += center * change
            for e in range(first, A.starts[j + 1]):
                weighted = f.s[A.rows[e]] * A.data[e]
                f.u[A.rows[e]] -= weighted * change
        return worst

    cdef int settle(self, Data A, Loss f, double *v, double *z) except -1 nogil:
        self.moved = 0.0
        return Descent.settle(self, A, f, v, z)

    cdef bint may_move(self, Data A, Penalty r, double *v, Py_ssize_t b) noexcept nogil:
        return not (<Separable> r).at_kink(A.index[b], v[b])

    cdef int extrapolate(self, Data A, Penalty r, Loss f, double *v, double *z) except -1 nogil:
        cdef double here
        cdef Py_ssize_t p
        self.settle(A, f, v, z)
        here = f.value(z, NULL, 0.0) + r.value(A.index, v, A.k)
        if not self.mix(A.k):
            return 0
        for p in range(A.k):
            self.mixed[p] = min(max(self.mixed[p], (<Separable> r).lower[A.index[p]]), (<Separable> r).upper[A.index[p]])
        A.predict(self.mixed, z)
        if f.value(z, NULL, 0.0) + r.value(A.index, self.mixed, A.k) < here:
            memcpy(v, self.mixed, A.k * sizeof(double))
            self.settle(A, f, v, z)
        return 0
