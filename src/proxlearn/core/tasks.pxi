# Several targets that share A: the matrix of all (column, task) pairs, without forming it.
#
# Predictions and dual points are kept task after task, z[t m + i]; coordinates column after column,
# x[j T + t], so that the T coordinates of a column are neighbours. Columns join the working set with all
# their tasks. The Gram matrix is that of the columns, the same for every task.


cdef class Tasks(Data):
    """A for T tasks: (m T) x (n T), with the working set of the columns of A."""

    cdef Data inner
    cdef Py_ssize_t *rows  # (k,): columns of A, or positions in the working set of A
    cdef double *w         # (max(n T, k),)
    cdef Py_ssize_t w_room

    def __cinit__(self, Data inner, Py_ssize_t tasks):
        self.inner, self.tasks = inner, tasks
        self.m, self.n, self.intercept = inner.m * tasks, inner.n * tasks, False
        self.rows, self.w_room = NULL, inner.n * tasks
        self.w = <double *> resized(NULL, self.w_room, sizeof(double))

    def __dealloc__(self):
        free(self.rows)
        free(self.w)

    cdef int make_room(self, Py_ssize_t room) except -1 nogil:
        self.rows = <Py_ssize_t *> resized(self.rows, room, sizeof(Py_ssize_t))
        self.w_room = max(self.w_room, room)
        self.w = <double *> resized(self.w, self.w_room, sizeof(double))
        return 0

    cdef int copy_columns(self, Py_ssize_t first, Py_ssize_t count) except -1 nogil:
        cdef Py_ssize_t p
        for p in range(count // self.tasks):
            self.rows[p] = self.index[first + p * self.tasks] // self.tasks
        return self.inner.admit(self.rows, count // self.tasks)

    cdef double entries(self) noexcept nogil:
        return self.inner.entries() * self.tasks

    cdef void clear(self) noexcept nogil:
        self.k = 0
        self.inner.clear()

    cdef void correlate(self, double *u, double *c) noexcept nogil:
        self.inner.correlate_tasks(u, self.tasks, c, self.w)

    cdef void predict(self, double *w, double *z) noexcept nogil:
        self.inner.predict_tasks(w, self.tasks, z, self.w)

    cdef void correlate_working(self, double *u, double *g) noexcept nogil:
        cdef Py_ssize_t t, p, k = self.inner.k
        for t in range(self.tasks):
            self.inner.correlate_working(u + t * self.inner.m, self.w)
            for p in range(k):
                g[p * self.tasks + t] = self.w[p]

    cdef double square(self, double *D, Py_ssize_t p) except -1 nogil:
        return self.inner.square(D + (p % self.tasks) * self.inner.m, p // self.tasks)

    cdef int gram(
        self, double *D, Py_ssize_t *live, Py_ssize_t count, Py_ssize_t known, double *H, Py_ssize_t ld
    ) except -1 nogil:
        """That of the columns: H is (count / T) x (count / T), and D is the same for every task."""
        cdef Py_ssize_t p
        for p in range(count // self.tasks):
            self.rows[p] = live[p * self.tasks] // self.tasks
        return self.inner.gram(D, self.rows, count // self.tasks, known // self.tasks, H, ld)
