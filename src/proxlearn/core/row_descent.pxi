# Coordinate descent over the rows of a matrix of coefficients, for several tasks with dense columns.
#
# On wide data the working set has more columns than there are samples, and then the residuals of all
# tasks are shorter than the rows of the model. They stay in the cache nearest to the processor.

# Columns for each sample from which sweeps over the residuals take less time than over the model. Multi-task
# problems with 10 targets at 0.02 lambda_max (benchmarks/everyday.py, 2026-11-18): 200 x 1000 21 ms instead
# of 78, 168 x 2905 44 instead of 88; 500 x 300 with 0.5 here takes 8.1 ms instead of 5.8.
cdef double ROW_PAYS = 1.0


@cython.final
cdef class RowDescent(ResidualDescent):
    """Sweeps over the rows W_i (T,) with a level each."""

    cdef double *products    # (2, T)

    def __dealloc__(self):
        free(self.products)

    cdef bint pays(self, Data A, Penalty r, Loss f) noexcept nogil:
        """True where the residuals are shorter than a row of the model for all tasks."""
        if self.failed or not f.unit_weights or A.k < ROW_PAYS * A.m:
            return False
        return (<Tasks> A).inner.has_dense_columns()

    cdef int prepare(self, Data A, Penalty r, Loss f) except -1 nogil:
        ResidualDescent.prepare(self, A, r, f)
        if self.products == NULL:
            self.products = <double *> resized(NULL, 2 * A.tasks, sizeof(double))
        self.measure(<Dense> (<Tasks> A).inner)
        return 0

    cdef void measure(self, Dense A) noexcept nogil:
        """The squared length of each column."""
        cdef Py_ssize_t b
        for b in range(A.k):
            self.h[b] = dot(A.column(b), A.column(b), A.m)

    cdef Py_ssize_t blocks(self, Data A) noexcept nogil:
        return A.k // A.tasks

    cdef bint may_move(self, Data A, Penalty r, double *v, Py_ssize_t b) noexcept nogil:
        cdef Py_ssize_t t
        for t in range(b * A.tasks, (b + 1) * A.tasks):
            if v[t] != 0.0:
                return True
        return (<Groups> r).level[A.index[b * A.tasks] // A.tasks] == 0.0

    cdef double sweep(self, Data A, Penalty r, Loss f, double *v, Py_ssize_t count) noexcept nogil:
        return self.visit(<Dense> (<Tasks> A).inner, <Groups> r, v, count)

    cdef double visit(self, Dense A, Groups r, double *v, Py_ssize_t count) noexcept nogil:
        """A sweep over the rows order[:count]; returns the largest violation that was met."""
        cdef Py_ssize_t i, b, t, T = r.tasks
        cdef double *g = self.products
        cdef double *d = self.products + T
        cdef double *w
        cdef double h, level, norm, total, e, part, shrink, left, worst = 0.0
        for i in range(count):
            b = self.order[i]
            w, h = v + b * T, self.h[b]
            level = r.level[A.index[b]]
            if h <= 0.0:
                continue
            if i + 1 < count:
                prefetch_column(A.column(self.order[i + 1]), A.m)
            row_products(A.column(b), self.R, self.ld, A.m, T, g)
            norm = total = left = 0.0
            for t in range(T):
                norm += w[t] * w[t]
                e = g[t] + h * w[t]
                total += e * e
            norm, total = sqrt(norm), sqrt(total)
            part = level / norm if norm > 0.0 else 0.0
            for t in range(T):
                e = g[t] - part * w[t]
                left += e * e
            worst = max(worst, sqrt(left) if norm > 0.0 else sqrt(left) - level)
            shrink = (1.0 - level / total) / h if total > level else 0.0
            if shrink == 0.0 and norm == 0.0:
                continue
            for t in range(T):
                e = shrink * (g[t] + h * w[t])
                d[t] = e - w[t]
                w[t] = e
            subtract_row(A.column(b), self.R, self.ld, A.m, T, d)
        return worst
