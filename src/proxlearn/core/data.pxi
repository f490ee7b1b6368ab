# The matrix A of a problem, and the columns of it that are in the working set.
#
# Every method works on whole vectors, so that the loop does not know how A is stored. Columns are
# centred on the fly where `center` is given (column j stands for a_j - center_j), and a column of
# ones, the intercept, follows the others where `intercept` is set. A itself is never copied.

cdef void *resized(void *old, size_t count, size_t size) except NULL nogil:
    """`old` with room for `count` items of `size` bytes; its contents are kept."""
    cdef void *new = realloc(old, (count + 1) * size)
    if new == NULL:
        with gil:
            raise MemoryError(f"no memory for {count} numbers of {size} bytes")
    return new


cdef double *aligned(double *old, size_t known, size_t count) except NULL nogil:
    """Room for `count` numbers from a cache line on, with the first `known` of `old`, which is freed."""
    cdef void *new = NULL
    if posix_memalign(&new, LANES * sizeof(double), (count + 1) * sizeof(double)) != 0:
        with gil:
            raise MemoryError(f"no memory for {count} numbers")
    if known > 0:
        memcpy(new, old, known * sizeof(double))
    free(old)
    return <double *> new


cdef double *vector(array, Py_ssize_t length) except NULL:
    """The numbers of an array (length,) of float64, which the caller keeps."""
    if not (cnp.PyArray_Check(array) and cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE
            and cnp.PyArray_NDIM(array) == 1 and cnp.PyArray_IS_C_CONTIGUOUS(array)
            and cnp.PyArray_DIM(array, 0) == length):
        raise ValueError(f"expected {length} numbers of float64 in one piece")
    return <double *> cnp.PyArray_DATA(array)


cdef void fill(double *numbers, double value, Py_ssize_t count) noexcept nogil:
    """Set `count` numbers to one value."""
    cdef Py_ssize_t i
    for i in range(count):
        numbers[i] = value


cdef double *numbers_of(value, double *room, Py_ssize_t length) except NULL:
    """An array (length,) of what was given as one, or as a number, which fills `room`."""
    if isinstance(value, float):
        fill(room, value, length)
        return room
    return vector(value, length)


cdef class Data:
    """A matrix with m rows and n columns, of which k are in the working set."""

    cdef Py_ssize_t m, n, k, room
    cdef Py_ssize_t tasks  # targets that share the columns, see tasks.pxi; 1 elsewhere
    cdef bint intercept
    cdef double *center
    cdef Py_ssize_t *index  # (k,): the columns in the working set, in the order in which they came
    cdef object kept  # what the pointers point into

    def __cinit__(self, *args, **kwargs):
        self.k = self.room = 0
        self.tasks = 1
        self.center = NULL
        self.index = NULL

    def __dealloc__(self):
        free(self.index)

    cdef int describe(self, Py_ssize_t m, Py_ssize_t n, bint intercept, object center) except -1:
        cdef const double[::1] means
        self.m, self.n, self.intercept = m, n + intercept, intercept
        self.kept = [center]
        if center is not None:
            means = center
            self.center = <double *> &means[0]
        return 0

    cdef int take_gram(self, object gram) except -1:
        """Use the Gram matrix (n, n) of all columns, which was computed before."""
        return 0

    cdef bint has_gram(self) noexcept nogil:
        """True where `take_gram` was called."""
        return False

    cdef bint has_dense_columns(self) noexcept nogil:
        """True where the columns of the working set can be read as dense ones."""
        return False

    cdef double shift(self, Py_ssize_t j) noexcept nogil:
        """What is subtracted from the entries of column j."""
        return self.center[j] if self.center != NULL and j < self.n - self.intercept else 0.0

    cdef double constant_of(self, double *x) noexcept nogil:
        """What centring and intercept add to every entry of A x."""
        cdef Py_ssize_t n = self.n - self.intercept
        cdef double offset = x[n] if self.intercept else 0.0
        return offset if self.center == NULL else offset - dot(self.center, x, n)

    cdef int admit(self, Py_ssize_t *columns, Py_ssize_t count) except -1 nogil:
        """Add columns to the working set."""
        cdef Py_ssize_t room = self.room
        if self.k + count > self.room:
            room = max(32, 2 * self.room, self.k + count)
            self.index = <Py_ssize_t *> resized(self.index, room, sizeof(Py_ssize_t))
            self.make_room(room)
            self.room = room
        memcpy(self.index + self.k, columns, count * sizeof(Py_ssize_t))
        self.copy_columns(self.k, count)
        self.k += count
        return 0

    cdef int make_room(self, Py_ssize_t room) except -1 nogil:
        """Prepare for a working set of `room` columns."""
        return 0

    cdef int copy_columns(self, Py_ssize_t first, Py_ssize_t count) except -1 nogil:
        """Fetch the columns at positions first, ..., first + count - 1 of the working set."""
        return 0

    cdef double entries(self) noexcept nogil:
        """How many numbers a product with A reads."""
        return <double> self.m * self.n

    cdef double square(self, double *D, Py_ssize_t p) except -1 nogil:
        """The sum of D_i a_i^2 over the rows of the column at position p of the working set.

        With several classes or targets D has a part for each of them, and p belongs to one.
        """
        cdef double found = 0.0
        self.gram(D, &p, 1, 0, &found, 1)
        return found

    cdef double working_entries(self) noexcept nogil:
        """How many numbers the columns of the working set have, where they are sparse."""
        return INFINITY

    cdef void clear(self) noexcept nogil:
        """Empty the working set."""
        self.k = 0

    cdef void correlate(self, double *u, double *c) noexcept nogil:
        """c = A^T u for all columns."""
        pass

    cdef void correlate_many(self, double *u, double *c, Py_ssize_t count) noexcept nogil:
        """The same for `count` vectors, u (count, m) and c (count, n)."""
        cdef Py_ssize_t i
        for i in range(count):
            self.correlate(u + i * self.m, c + i * self.n)

    cdef void add_column(self, Py_ssize_t p, double t, double *z) noexcept nogil:
        """z += t times the column at position p of the working set."""
        pass

    cdef double dot_column(self, Py_ssize_t p, double *u) noexcept nogil:
        """The product of that column with u."""
        return 0.0

    cdef void copy_rows(self, Py_ssize_t p, Py_ssize_t first, Py_ssize_t count, double *out) noexcept nogil:
        """The entries first, ..., first + count - 1 of that column."""
        pass

    cdef void multiply(self, double *x, double *z) noexcept nogil:
        """z = A x for x (n,); `predict` is faster where x is 0 outside the working set."""
        pass

    cdef void predict(self, double *w, double *z) noexcept nogil:
        """z = A_W w."""
        pass

    cdef void correlate_working(self, double *u, double *g) noexcept nogil:
        """g = A_W^T u."""
        pass

    cdef void correlate_tasks(self, double *u, Py_ssize_t tasks, double *c, double *work) noexcept nogil:
        """c[j T + t] = a_j^T u_t for u (T, m); `work` has room for n T numbers."""
        cdef Py_ssize_t t, j
        for t in range(tasks):
            self.correlate(u + t * self.m, work)
            for j in range(self.n):
                c[j * tasks + t] = work[j]

    cdef void predict_tasks(self, double *w, Py_ssize_t tasks, double *z, double *work) noexcept nogil:
        """z_t = A_W w_t with w (k, T) and z (T, m); `work` has room for n T numbers."""
        cdef Py_ssize_t t, p
        for t in range(tasks):
            for p in range(self.k):
                work[p] = w[p * tasks + t]
            self.predict(work, z + t * self.m)

    cdef int gram(
        self, double *D, Py_ssize_t *live, Py_ssize_t count, Py_ssize_t known, double *H, Py_ssize_t ld
    ) except -1 nogil:
        """H = A_L^T diag(D) A_L for the positions L = live[:count] of the working set.

        The upper left `known` x `known` block of H is there already and stays as it is.
        """
        return 0


cdef bint is_identity(Py_ssize_t *items, Py_ssize_t count) noexcept nogil:
    """True where the items, in whatever order they may be, are 0, 1, ..., count - 1."""
    cdef Py_ssize_t i
    for i in range(count):
        if items[i] != i:
            return False
    return True


cdef bint is_range(Py_ssize_t *items, Py_ssize_t count) noexcept nogil:
    """True where the items, which rise, are 0, 1, ..., count - 1."""
    return count == 0 or (items[0] == 0 and items[count - 1] == count - 1)


cdef void mirror(double *H, Py_ssize_t ld, Py_ssize_t known, Py_ssize_t count) noexcept nogil:
    """Copy the columns known, ..., count - 1 of a symmetric matrix to its rows."""
    cdef Py_ssize_t p, q
    for q in range(known, count):
        for p in range(q):
            H[p * ld + q] = H[q * ld + p]
