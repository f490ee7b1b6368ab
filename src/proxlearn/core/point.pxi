# Where the solution of a problem f(A x) + r(x) stands, and the working set.


cdef class Point:
    """x, its predictions and correlations, and the columns in the working set.

    Coordinates outside the working set are 0. Everything is kept between solves.
    """

    cdef readonly Data A
    cdef readonly Loss f
    cdef readonly Penalty r
    cdef readonly Model model
    cdef Py_ssize_t m, n, room
    cdef double *x          # (n,)
    cdef double *c          # (n,): A^T u
    cdef double *z          # (m,): A x
    cdef double *dz         # (m,)
    cdef double *D          # (m,)
    cdef double *v          # (k,): x on the working set
    cdef double *g          # (k,): -df/dx on the working set
    cdef double *d          # (k,)
    cdef double *score      # (blocks,)
    cdef char *inside       # (blocks,): 1 for the blocks in the working set
    cdef Py_ssize_t *member # those, in the order in which they came
    cdef Py_ssize_t members
    cdef Py_ssize_t *picked # (blocks,)
    cdef Py_ssize_t *columns  # (n,): the coordinates of blocks that join
    cdef Py_ssize_t *live   # (k,): positions of the working set that the model has
    cdef char *needed       # (k,): 1 for those that the next model needs
    cdef Py_ssize_t live_count, known
    cdef bint correlated    # True where c belongs to x
    cdef bint borrowed      # True where c was computed by others, before the solve
    cdef bint displaced     # True where the loss keeps another dual point than that of x
    cdef double offset      # added to the loss: what a reduced problem leaves out
    cdef readonly double level  # F at the feasible point nearest to 0
    cdef object kept

    def __cinit__(self, Data A, Loss f, Penalty r, const double[::1] start=None):
        self.A, self.f, self.r, self.model = A, f, r, r.model()
        self.m, self.n, self.room = A.m, A.n, 0
        self.model.entries = A.entries()
        self.x = <double *> resized(NULL, self.n, sizeof(double))
        self.c = <double *> resized(NULL, self.n, sizeof(double))
        self.score = <double *> resized(NULL, r.blocks, sizeof(double))
        self.picked = <Py_ssize_t *> resized(NULL, r.blocks, sizeof(Py_ssize_t))
        self.member = <Py_ssize_t *> resized(NULL, r.blocks, sizeof(Py_ssize_t))
        self.columns = <Py_ssize_t *> resized(NULL, self.n, sizeof(Py_ssize_t))
        self.inside = <char *> resized(NULL, r.blocks, 1)
        self.z = <double *> resized(NULL, self.m, sizeof(double))
        self.dz = <double *> resized(NULL, self.m, sizeof(double))
        self.D = <double *> resized(NULL, self.m, sizeof(double))
        self.begin()
        if start is not None:
            self.restart(<double *> &start[0])
            self.A.predict(self.v, self.z)
            if not self.penalised_value() <= self.level:  # the start does not lower F
                self.restart(NULL)

    def __dealloc__(self):
        free(self.x)
        free(self.c)
        free(self.score)
        free(self.picked)
        free(self.member)
        free(self.columns)
        free(self.inside)
        free(self.z)
        free(self.dz)
        free(self.D)
        free(self.v)
        free(self.g)
        free(self.d)
        free(self.live)
        free(self.needed)

    cdef int restart(self, double *start) except -1 nogil:
        """Forget the working set, and begin at `start`, or at the feasible point nearest to 0."""
        self.A.clear()
        self.model.k = self.known = self.live_count = self.members = 0
        self.model.forget_factor()
        self.correlated = False
        memset(self.inside, 0, self.r.blocks)
        if start == NULL:
            memset(self.x, 0, self.n * sizeof(double))
        else:
            memcpy(self.x, start, self.n * sizeof(double))
        self.r.project(self.x)
        return self.join(self.r.needed_at(self.x, self.picked))

    cdef int begin(self) except -1 nogil:
        """Begin at the feasible point nearest to 0, where F has the value `level`."""
        self.restart(NULL)
        self.A.predict(self.v, self.z)
        self.level = self.penalised_value()
        return 0

    cdef int join(self, Py_ssize_t count) except -1 nogil:
        """Add the blocks picked[:count] to the working set."""
        cdef Py_ssize_t p, added
        if count == 0:
            return 0
        for p in range(count):
            self.inside[self.picked[p]] = 1
        memcpy(self.member + self.members, self.picked, count * sizeof(Py_ssize_t))
        self.members += count
        added = self.r.expand(self.picked, count, self.columns)
        self.A.admit(self.columns, added)
        if self.A.k > self.room:
            self.room = self.A.room
            self.v = <double *> resized(self.v, self.room, sizeof(double))
            self.g = <double *> resized(self.g, self.room, sizeof(double))
            self.d = <double *> resized(self.d, self.room, sizeof(double))
            self.needed = <char *> resized(self.needed, self.room, 1)
            self.live = <Py_ssize_t *> resized(self.live, self.room, sizeof(Py_ssize_t))
        for p in range(self.A.k - added, self.A.k):
            self.v[p] = self.x[self.A.index[p]]
            self.g[p] = self.c[self.A.index[p]]
        return 0

    cdef double penalised_value(self) noexcept nogil:
        """F at x, whose predictions are z."""
        return self.offset + self.f.value(self.z, NULL, 0.0) + self.r.value(self.A.index, self.v, self.A.k)

    cdef void evaluate(self) noexcept nogil:
        """Predictions and dual point at x, and the gradient on the working set."""
        self.A.predict(self.v, self.z)
        self.f.differentiate(self.z)
        self.displaced = False
        self.A.correlate_working(self.f.u, self.g)

    def solution(self, double[::1] out):
        """Copy x."""
        memcpy(&out[0], self.x, self.n * sizeof(double))

    def take_gram(self, gram):
        """Use the Gram matrix of all columns, which was computed for many problems."""
        self.A.take_gram(gram)
