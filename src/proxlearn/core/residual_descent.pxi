# Coordinate descent on blocks with dense columns, for least squares: the residual is kept for each iterate.


cdef extern from "residual_rows.h" nogil:
    void row_products(const double *a, const double *R, long ld, long m, long tasks, double *g) noexcept
    void all_row_products(const double *A, long ld, long n, const double *R, long m, long tasks, double *c) noexcept
    void prefetch_column(const double *a, long m) noexcept
    void subtract_row(const double *a, double *R, long ld, long m, long tasks, const double *d) noexcept

cdef enum:
    LINE = 8  # Numbers in a line of the cache.


cdef Py_ssize_t to_line(double *start) noexcept nogil:
    """Numbers between an address and the next line of the cache."""
    cdef size_t past = (<size_t> start // sizeof(double)) % LINE
    return (LINE - past) % LINE


cdef class ResidualDescent(Descent):
    """The residuals of all tasks, and those of the last iterates."""

    cdef double *kept_room
    cdef double *R           # (T, ld): the residuals; each begins where a line of the cache does
    cdef double *past        # (HISTORY + 1, T, ld): those of the iterates
    cdef Py_ssize_t ld, size # size is T ld

    def __dealloc__(self):
        free(self.kept_room)

    cdef int prepare(self, Data A, Penalty r, Loss f) except -1 nogil:
        Descent.prepare(self, A, r, f)
        if self.size == 0:
            self.ld = (A.m // A.tasks + LINE - 1) // LINE * LINE
            self.size = self.ld * A.tasks
            self.kept_room = <double *> resized(NULL, (HISTORY + 2) * self.size + LINE, sizeof(double))
            memset(self.kept_room, 0, ((HISTORY + 2) * self.size + LINE) * sizeof(double))
            self.R = self.kept_room + to_line(self.kept_room)
            self.past = self.R + self.size
        return 0

    cdef int settle(self, Data A, Loss f, double *v, double *z) except -1 nogil:
        cdef Py_ssize_t t, m = A.m // A.tasks
        Descent.settle(self, A, f, v, z)
        for t in range(A.tasks):
            memcpy(self.R + t * self.ld, f.u + t * m, m * sizeof(double))
        return 0

    cdef void remember(self, Py_ssize_t place, Data A, double *v) noexcept nogil:
        Descent.remember(self, place, A, v)
        memcpy(self.past + place * self.size, self.R, self.size * sizeof(double))

    cdef int extrapolate(self, Data A, Penalty r, Loss f, double *v, double *z) except -1 nogil:
        """As for sparse columns; the residual of a combination of iterates is that of their residuals."""
        cdef Py_ssize_t a
        cdef double here = 0.5 * dot(self.R, self.R, self.size) + r.value(A.index, v, A.k)
        if not self.mix(A.k):
            return 0
        memset(self.past, 0, self.size * sizeof(double))
        for a in range(HISTORY):
            axpy(self.weight[a], self.past + (a + 1) * self.size, self.past, self.size)
        if 0.5 * dot(self.past, self.past, self.size) + r.value(A.index, self.mixed, A.k) < here:
            memcpy(v, self.mixed, A.k * sizeof(double))
            memcpy(self.R, self.past, self.size * sizeof(double))
        return 0
