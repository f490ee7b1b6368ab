# The matrix A of a problem, and the columns of it that are in the working set.
#
# Every method works on whole vectors, so that the loop does not know how A is stored. Columns are
# centred on the fly where `center` is given (column j stands for a_j - center_j), and a column of
# ones, the intercept, follows the others where `intercept` is set. A itself is never copied.

cdef enum:
    ROWS = 1024          # Rows of a block of the Gram matrix at most, and at least,
    LEAST_ROWS = 192
    BLOCK_SIZE = 98_304  # and numbers of a block, which stay in the cache: 768 KiB.
    MOST_TILED = 300     # Columns up to which gram.h is as fast as BLAS on blocks; see there.


cdef void *resized(void *old, size_t count, size_t size) except NULL nogil:
    """`old` with room for `count` items of `size` bytes; its contents are kept."""
    cdef void *new = realloc(old, (count + 1) * size)
    if new == NULL:
        with gil:
            raise MemoryError(f"no memory for {count} numbers of {size} bytes")
    return new


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
    cdef Py_ssize_t tasks  # that share the columns: tasks.pxi
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
        """c[j T + t] = a_j^T u_t for u (T, m); `work` has room for n numbers."""
        cdef Py_ssize_t t, j
        for t in range(tasks):
            self.correlate(u + t * self.m, work)
            for j in range(self.n):
                c[j * tasks + t] = work[j]

    cdef void predict_tasks(self, double *w, Py_ssize_t tasks, double *z, double *work) noexcept nogil:
        """z_t = A_W w_t with w (k, T) and z (T, m); `work` has room for k numbers."""
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


cdef class Dense(Data):
    """A two-dimensional array, float32 or float64, in C or Fortran order."""

    cdef float *single
    cdef double *double_
    cdef Py_ssize_t ld
    cdef bint tall
    cdef bint in_place    # True where the columns of the working set are read in A itself
    cdef double *columns  # (k, m): otherwise they are copied, centred, in float64
    cdef double *all_products  # (n, n): the Gram matrix of all columns, or NULL
    cdef double **live_column  # (count,): where the columns of a model begin
    cdef double *scaled   # (k, rows of a block): rows of them, times the square root of D
    cdef Py_ssize_t scaled_room

    def __cinit__(self, array, bint intercept=False, center=None):
        cdef void *entries = cnp.PyArray_DATA(array)
        self.columns = self.scaled = self.all_products = NULL
        self.live_column = NULL
        self.scaled_room = 0
        self.describe(array.shape[0], array.shape[1], intercept, center)
        self.kept.append(array)
        self.tall = cnp.PyArray_IS_F_CONTIGUOUS(array)
        if not (self.tall or cnp.PyArray_IS_C_CONTIGUOUS(array)):
            raise ValueError("the array must be contiguous")
        self.ld = array.shape[0] if self.tall else array.shape[1]
        self.single = <float *> entries if array.dtype == np.float32 else NULL
        self.double_ = <double *> entries if array.dtype == np.float64 else NULL
        if self.single == NULL and self.double_ == NULL:
            raise ValueError("the array must be float32 or float64")
        self.in_place = self.tall and self.double_ != NULL and center is None and not intercept

    def __dealloc__(self):
        free(self.columns)
        free(self.scaled)
        free(self.live_column)

    cdef int take_gram(self, object gram) except -1:
        cdef double[:, ::1] products = gram
        self.kept.append(gram)
        self.all_products = &products[0, 0]
        return 0

    cdef bint has_gram(self) noexcept nogil:
        return self.all_products != NULL

    cdef bint has_dense_columns(self) noexcept nogil:
        return True

    cdef int make_room(self, Py_ssize_t room) except -1 nogil:
        self.live_column = <double **> resized(self.live_column, room, sizeof(double *))
        if not self.in_place:
            self.columns = <double *> resized(self.columns, room * self.m, sizeof(double))
        return 0

    @cython.final
    cdef double *column(self, Py_ssize_t p) noexcept nogil:
        """The column at position p of the working set."""
        return self.double_ + self.index[p] * self.ld if self.in_place else self.columns + p * self.m

    @cython.final
    cdef double *block_of_all(self) noexcept nogil:
        """All columns of the working set one after the other; NULL where they are elsewhere in A."""
        if not self.in_place:
            return self.columns
        return self.double_ if is_identity(self.index, self.k) else NULL

    cdef int copy_columns(self, Py_ssize_t first, Py_ssize_t count) except -1 nogil:
        cdef Py_ssize_t p, i, j, start, step = 1 if self.tall else self.ld
        cdef double *out
        if self.in_place:
            return 0
        for p in range(first, first + count):
            j = self.index[p]
            out = self.columns + p * self.m
            if self.intercept and j == self.n - 1:
                for i in range(self.m):
                    out[i] = 1.0
                continue
            start = j * (self.ld if self.tall else 1)
            if self.single != NULL:
                copy_column_float(self.single + start, step, self.shift(j), out, self.m)
            else:
                copy_column_double(self.double_ + start, step, self.shift(j), out, self.m)
        return 0

    cdef void correlate(self, double *u, double *c) noexcept nogil:
        cdef Py_ssize_t j, n = self.n - self.intercept
        cdef int rows = self.ld, cols = n if self.tall else self.m, one = 1
        cdef double zero = 0.0, unit = 1.0, total
        if self.double_ != NULL:
            dgemv("T" if self.tall else "N", &rows, &cols, &unit, self.double_, &rows, u, &one, &zero, c, &one)
        elif self.tall:
            correlate_tall_float(self.single, self.ld, u, c, self.m, n)
        else:
            correlate_flat_float(self.single, self.ld, u, c, self.m, n)
        if self.center != NULL or self.intercept:
            total = sum_of(u, self.m)
            if self.center != NULL:
                for j in range(n):
                    c[j] -= self.center[j] * total
            if self.intercept:
                c[n] = total

    cdef void correlate_many(self, double *u, double *c, Py_ssize_t count) noexcept nogil:
        cdef Py_ssize_t i, j, n = self.n - self.intercept
        cdef int rows = self.ld, width = n, vectors = count, m = self.m, stride = self.n
        cdef double zero = 0.0, unit = 1.0, total
        if self.double_ == NULL:
            for i in range(count):
                self.correlate(u + i * self.m, c + i * self.n)
            return
        dgemm("T" if self.tall else "N", "N", &width, &vectors, &m, &unit, self.double_, &rows, u, &m, &zero, c, &stride)
        for i in range(count if self.center != NULL or self.intercept else 0):
            total = sum_of(u + i * self.m, self.m)
            if self.center != NULL:
                for j in range(n):
                    c[i * self.n + j] -= self.center[j] * total
            if self.intercept:
                c[i * self.n + n] = total

    cdef void add_column(self, Py_ssize_t p, double t, double *z) noexcept nogil:
        axpy(t, self.column(p), z, self.m)

    cdef double dot_column(self, Py_ssize_t p, double *u) noexcept nogil:
        return dot(self.column(p), u, self.m)

    cdef void copy_rows(self, Py_ssize_t p, Py_ssize_t first, Py_ssize_t count, double *out) noexcept nogil:
        memcpy(out, self.column(p) + first, count * sizeof(double))

    cdef void multiply(self, double *x, double *z) noexcept nogil:
        cdef Py_ssize_t i, n = self.n - self.intercept
        cdef int rows = self.ld, cols = self.m, one = 1
        cdef double zero = 0.0, unit = 1.0, offset
        if self.tall and self.single != NULL:
            multiply_tall_float(self.single, self.ld, x, z, self.m, n)
        elif self.tall:
            multiply_tall_double(self.double_, self.ld, x, z, self.m, n)
        elif self.single != NULL:
            multiply_flat_float(self.single, self.ld, x, z, self.m, n)
        else:
            dgemv("T", &rows, &cols, &unit, self.double_, &rows, x, &one, &zero, z, &one)
        offset = self.constant_of(x)
        if offset != 0.0:
            for i in range(self.m):
                z[i] += offset

    cdef void correlate_tasks(self, double *u, Py_ssize_t tasks, double *c, double *work) noexcept nogil:
        cdef int m = self.m, n = self.n, T = tasks, ld = self.ld
        cdef double unit = 1.0, zero = 0.0
        if self.double_ == NULL or self.center != NULL or self.intercept:
            Data.correlate_tasks(self, u, tasks, c, work)
        else:
            dgemm("T", "N" if self.tall else "T", &T, &n, &m, &unit, u, &m, self.double_, &ld, &zero, c, &T)

    cdef void predict_tasks(self, double *w, Py_ssize_t tasks, double *z, double *work) noexcept nogil:
        cdef int m = self.m, k = self.k, T = tasks
        cdef double unit = 1.0, zero = 0.0
        cdef double *block = self.block_of_all()
        if k == 0:
            memset(z, 0, self.m * tasks * sizeof(double))
        elif block == NULL:
            Data.predict_tasks(self, w, tasks, z, work)
        else:
            dgemm("N", "T", &m, &T, &k, &unit, block, &m, w, &T, &zero, z, &m)

    cdef void predict(self, double *w, double *z) noexcept nogil:
        cdef Py_ssize_t p, held = 0
        cdef double *column[4]
        cdef double weight[4]
        memset(z, 0, self.m * sizeof(double))
        for p in range(self.k):
            if w[p] != 0.0:
                column[held], weight[held] = self.column(p), w[p]
                held += 1
                if held == 4:
                    add_four(column, weight, z, self.m)
                    held = 0
        for p in range(held):
            axpy(weight[p], column[p], z, self.m)

    cdef void correlate_working(self, double *u, double *g) noexcept nogil:
        cdef int m = self.m, k = self.k, one = 1
        cdef double zero = 0.0, unit = 1.0
        cdef Py_ssize_t p
        cdef double *block = self.block_of_all()
        if block == NULL:
            for p in range(self.k):
                g[p] = dot(self.column(p), u, self.m)
        elif k > 0:
            dgemv("T", &m, &k, &unit, block, &m, u, &one, &zero, g, &one)

    cdef int gram(
        self, double *D, Py_ssize_t *live, Py_ssize_t count, Py_ssize_t known, double *H, Py_ssize_t ld
    ) except -1 nogil:
        cdef int fresh = count - known, old = known, width = ld, m = self.m
        cdef double unit = 1.0, zero = 0.0
        cdef double *row
        cdef double *block = self.block_of_all()
        cdef Py_ssize_t p, q
        if fresh <= 0:
            return 0
        if D == NULL and self.all_products != NULL:
            for q in range(known, count):
                row = self.all_products + self.index[live[q]] * self.n
                for p in range(q + 1):
                    H[q * ld + p] = row[self.index[live[p]]]
        elif count <= MOST_TILED:
            for p in range(count):
                self.live_column[p] = self.column(live[p])
            gram_of_columns(self.live_column, D, self.m, known, count, H, ld)
        elif D != NULL or block == NULL or not is_range(live, count):
            self.weighted_gram(D, live, count, known, H, ld)
        else:
            dsyrk("U", "T", &fresh, &m, &unit, block + known * self.m, &m, &zero,
                  H + known * ld + known, &width)
            if known > 0:
                dgemm("T", "N", &old, &fresh, &m, &unit, block, &m,
                      block + known * self.m, &m, &zero, H + known * ld, &width)
        mirror(H, ld, known, count)
        return 0

    cdef int weighted_gram(
        self, double *D, Py_ssize_t *live, Py_ssize_t count, Py_ssize_t known, double *H, Py_ssize_t ld
    ) except -1 nogil:
        """The same with weights, by blocks of rows times the square roots of their weights."""
        cdef Py_ssize_t most = max(<Py_ssize_t> LEAST_ROWS, min(<Py_ssize_t> ROWS, BLOCK_SIZE // count))
        cdef Py_ssize_t first = 0, rows, p, pad = min(most, self.m) | 1
        cdef double *source
        cdef double unit = 1.0, beta = 0.0
        cdef int fresh = count - known, old = known, width = ld, height, stride = pad
        if self.scaled_room < count * pad:
            self.scaled = <double *> resized(self.scaled, count * pad, sizeof(double))
            self.scaled_room = count * pad
        while first < self.m:
            rows = min(most, self.m - first)
            height = rows
            for p in range(count):
                source = self.column(live[p]) + first
                if D == NULL:
                    memcpy(self.scaled + p * pad, source, rows * sizeof(double))
                else:
                    root_scaled(D + first, source, self.scaled + p * pad, rows)
            dsyrk("U", "T", &fresh, &height, &unit, self.scaled + known * pad, &stride,
                  &beta, H + known * ld + known, &width)
            if known > 0:
                dgemm("T", "N", &old, &fresh, &height, &unit, self.scaled, &stride,
                      self.scaled + known * pad, &stride, &beta, H + known * ld, &width)
            beta = 1.0
            first += rows
        return 0


cdef struct Block:
    Py_ssize_t *starts  # (m + 1,)
    int *positions      # in the working set
    double *values


cdef class Sparse(Data):
    """A matrix in compressed columns: data, row numbers, and where each column begins."""

    cdef double *data
    cdef int *rows
    cdef int *starts
    cdef double *work              # (m,)
    cdef Block *block              # the working set by rows
    cdef Py_ssize_t blocks, block_room
    cdef Py_ssize_t listed         # columns of the working set that the blocks hold
    cdef Py_ssize_t *place         # (k,): the number of a position within the live ones, or -1
    cdef Py_ssize_t *found
    cdef double *values

    def __cinit__(self, data, rows, starts, Py_ssize_t m, bint intercept=False, center=None):
        cdef const double[::1] numbers = data
        cdef const int[::1] row_numbers = rows
        cdef const int[::1] first = starts
        self.work = self.values = NULL
        self.place = self.found = NULL
        self.block = NULL
        self.blocks = self.block_room = self.listed = 0
        self.describe(m, len(starts) - 1, intercept, center)
        self.kept += [data, rows, starts]
        self.starts = <int *> &first[0]
        self.data = <double *> &numbers[0] if len(data) else NULL
        self.rows = <int *> &row_numbers[0] if len(data) else NULL
        self.work = <double *> resized(NULL, m, sizeof(double))

    def __dealloc__(self):
        cdef Py_ssize_t t
        for t in range(self.block_room):
            free(self.block[t].starts)
            free(self.block[t].positions)
            free(self.block[t].values)
        free(self.block)
        free(self.work)
        free(self.place)
        free(self.found)
        free(self.values)

    cdef double entries(self) noexcept nogil:
        return self.starts[self.n - self.intercept]

    cdef double working_entries(self) noexcept nogil:
        cdef Py_ssize_t p
        cdef double total = 0.0
        for p in range(self.k):
            if self.is_ones(self.index[p]):
                return INFINITY
            total += self.starts[self.index[p] + 1] - self.starts[self.index[p]]
        return total

    cdef bint is_ones(self, Py_ssize_t j) noexcept nogil:
        return self.intercept and j == self.n - 1

    cdef int make_room(self, Py_ssize_t room) except -1 nogil:
        self.place = <Py_ssize_t *> resized(self.place, room, sizeof(Py_ssize_t))
        self.found = <Py_ssize_t *> resized(self.found, room, sizeof(Py_ssize_t))
        self.values = <double *> resized(self.values, room, sizeof(double))
        return 0

    cdef void clear(self) noexcept nogil:
        self.k = self.blocks = self.listed = 0

    cdef double column_dot(self, Py_ssize_t j, double *u) noexcept nogil:
        return sparse_dot(self.data + self.starts[j], self.rows + self.starts[j], self.starts[j + 1] - self.starts[j], u)

    cdef void correlate(self, double *u, double *c) noexcept nogil:
        cdef Py_ssize_t j, n = self.n - self.intercept
        cdef double total = 0.0
        if self.center != NULL or self.intercept:
            total = sum_of(u, self.m)
        for j in range(n):
            c[j] = self.column_dot(j, u)
        if self.center != NULL:
            for j in range(n):
                c[j] -= self.center[j] * total
        if self.intercept:
            c[n] = total

    cdef void add_column(self, Py_ssize_t p, double t, double *z) noexcept nogil:
        cdef Py_ssize_t j = self.index[p], e, i
        cdef double offset = t if self.is_ones(j) else -t * self.shift(j)
        if not self.is_ones(j):
            for e in range(self.starts[j], self.starts[j + 1]):
                z[self.rows[e]] += t * self.data[e]
        if offset != 0.0:
            for i in range(self.m):
                z[i] += offset

    cdef double dot_column(self, Py_ssize_t p, double *u) noexcept nogil:
        cdef Py_ssize_t j = self.index[p]
        if self.is_ones(j):
            return sum_of(u, self.m)
        return self.column_dot(j, u) - (self.shift(j) * sum_of(u, self.m) if self.center != NULL else 0.0)

    cdef void copy_rows(self, Py_ssize_t p, Py_ssize_t first, Py_ssize_t count, double *out) noexcept nogil:
        cdef Py_ssize_t j = self.index[p], low, high, middle
        fill(out, 1.0 if self.is_ones(j) else -self.shift(j), count)
        if self.is_ones(j):
            return
        low, high = self.starts[j], self.starts[j + 1]
        while low < high:  # the first entry in these rows
            middle = (low + high) // 2
            if self.rows[middle] < first:
                low = middle + 1
            else:
                high = middle
        while low < self.starts[j + 1] and self.rows[low] < first + count:
            out[self.rows[low] - first] += self.data[low]
            low += 1

    cdef void multiply(self, double *x, double *z) noexcept nogil:
        cdef Py_ssize_t j, e
        fill(z, self.constant_of(x), self.m)
        for j in range(self.n - self.intercept):
            if x[j] != 0.0:
                for e in range(self.starts[j], self.starts[j + 1]):
                    z[self.rows[e]] += x[j] * self.data[e]

    cdef void predict(self, double *w, double *z) noexcept nogil:
        cdef Py_ssize_t p, j, e, i
        cdef double offset = 0.0
        memset(z, 0, self.m * sizeof(double))
        for p in range(self.k):
            if w[p] == 0.0:
                continue
            j = self.index[p]
            if self.is_ones(j):
                offset += w[p]
                continue
            for e in range(self.starts[j], self.starts[j + 1]):
                z[self.rows[e]] += w[p] * self.data[e]
            offset -= w[p] * self.shift(j)
        if offset != 0.0:
            for i in range(self.m):
                z[i] += offset

    cdef void correlate_working(self, double *u, double *g) noexcept nogil:
        cdef Py_ssize_t p, j
        cdef double total = 0.0
        if self.center != NULL or self.intercept:
            total = sum_of(u, self.m)
        for p in range(self.k):
            j = self.index[p]
            g[p] = total if self.is_ones(j) else self.column_dot(j, u) - self.shift(j) * total

    cdef bint is_empty(self, Py_ssize_t i) noexcept nogil:
        """True where row i has no entry in the columns that joined last."""
        cdef Block *last = &self.block[self.blocks - 1]
        return last.starts[i] == last.starts[i + 1]

    cdef int by_rows(self) except -1 nogil:
        """List the entries of the columns that joined since the last call, row after row.

        They are kept as a block of their own, so that no entry is moved again when others join.
        """
        cdef Py_ssize_t p, j, e, i, count = 0, at
        cdef Py_ssize_t *first
        cdef Block *block
        if self.listed == self.k:
            return 0
        if self.blocks == self.block_room:
            self.block_room += 16
            self.block = <Block *> resized(self.block, self.block_room, sizeof(Block))
            memset(self.block + self.blocks, 0, 16 * sizeof(Block))
        block = &self.block[self.blocks]
        block.starts = <Py_ssize_t *> resized(block.starts, self.m + 2, sizeof(Py_ssize_t))
        first = block.starts
        memset(first, 0, (self.m + 2) * sizeof(Py_ssize_t))
        for p in range(self.listed, self.k):
            j = self.index[p]
            if not self.is_ones(j):
                for e in range(self.starts[j], self.starts[j + 1]):
                    first[self.rows[e] + 2] += 1
                count += self.starts[j + 1] - self.starts[j]
        for i in range(self.m):
            first[i + 2] += first[i + 1]
        block.positions = <int *> resized(block.positions, count, sizeof(int))
        block.values = <double *> resized(block.values, count, sizeof(double))
        for p in range(self.listed, self.k):
            j = self.index[p]
            if not self.is_ones(j):
                for e in range(self.starts[j], self.starts[j + 1]):
                    at = first[self.rows[e] + 1]
                    block.positions[at] = p
                    block.values[at] = self.data[e]
                    first[self.rows[e] + 1] = at + 1
        self.blocks += 1
        self.listed = self.k
        return 0

    cdef int gram(
        self, double *D, Py_ssize_t *live, Py_ssize_t count, Py_ssize_t known, double *H, Py_ssize_t ld
    ) except -1 nogil:
        cdef Py_ssize_t i, p, q, e, found, t
        cdef double value
        cdef double *column
        cdef Block *block
        if count == known:
            return 0
        self.by_rows()
        for p in range(self.k):
            self.place[p] = -1
        for p in range(count):
            self.place[live[p]] = p
        for q in range(known, count):
            memset(H + q * ld, 0, count * sizeof(double))
        # Pairs of entries of one row. Positions within a row ascend, so that the new columns,
        # which are last in `live`, are found after the known ones.
        for i in range(self.m):
            if (D != NULL and D[i] == 0.0) or (known > 0 and self.is_empty(i)):
                continue
            found = 0
            for t in range(self.blocks):
                block = &self.block[t]
                for e in range(block.starts[i], block.starts[i + 1]):
                    p = self.place[block.positions[e]]
                    if p < 0:
                        continue
                    self.found[found] = p
                    self.values[found] = block.values[e]
                    found += 1
                    if p >= known:
                        value = block.values[e] * (1.0 if D == NULL else D[i])
                        column = H + p * ld
                        for q in range(found):
                            column[self.found[q]] += value * self.values[q]
        if self.center != NULL or self.intercept:
            self.subtract_means(D, live, count, known, H, ld)
        mirror(H, ld, known, count)
        return 0

    cdef void subtract_means(
        self, double *D, Py_ssize_t *live, Py_ssize_t count, Py_ssize_t known, double *H, Py_ssize_t ld
    ) noexcept nogil:
        """Turn sums of products of raw columns into those of centred columns and the intercept."""
        cdef Py_ssize_t p, q, j, i
        cdef double total = 0.0
        cdef double *h = self.values
        if D == NULL:
            total = self.m
            for i in range(self.m):
                self.work[i] = 1.0
            D = self.work
        else:
            total = sum_of(D, self.m)
        for p in range(count):
            j = self.index[live[p]]
            h[p] = total if self.is_ones(j) else self.column_dot(j, D)
        for q in range(known, count):
            j = self.index[live[q]]
            for p in range(q + 1):
                i = self.index[live[p]]
                if self.is_ones(i) and self.is_ones(j):
                    H[q * ld + p] = total
                elif self.is_ones(j):
                    H[q * ld + p] = h[p] - self.shift(i) * total
                elif self.is_ones(i):
                    H[q * ld + p] = h[q] - self.shift(j) * total
                else:
                    H[q * ld + p] += (
                        self.shift(i) * self.shift(j) * total - self.shift(i) * h[q] - self.shift(j) * h[p]
                    )


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
