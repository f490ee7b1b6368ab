# A as an array, whose columns are read in place where they can be.

cdef enum:
    # A weighted Gram matrix is summed over blocks of LEAST_ROWS to ROWS rows, if possible of at most
    # BLOCK_SIZE numbers, which stay in the cache (768 KiB).
    ROWS = 1024
    LEAST_ROWS = 192
    BLOCK_SIZE = 98_304
    # Columns of an array in C order are copied by blocks of at least LEAST_COPIED_ROWS rows, if possible of
    # at most COPIED_BLOCK entries of A, which stay in the first cache. Not measured.
    COPIED_BLOCK = 4096
    LEAST_COPIED_ROWS = 16
    FEW_TASKS = 32       # Targets up to which BLAS takes longer to copy A than to multiply it.
    # One product with all of A takes as long as products, task by task, with 1/PREDICT_ALL of it.
    PREDICT_ALL = 4


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
    cdef double *scaled   # rows of the columns of a model, times the square root of D
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
            self.columns = aligned(self.columns, self.k * self.m, room * self.m)
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
        cdef Py_ssize_t row = 0, rows = self.m
        if self.in_place:
            return 0
        if not self.tall:  # columns share the lines of the caches
            rows = max(<Py_ssize_t> LEAST_COPIED_ROWS, COPIED_BLOCK // self.n)
        while row < self.m:
            self.copy_some_rows(first, count, row, min(rows, self.m - row))
            row += rows
        return 0

    @cython.final
    cdef void copy_some_rows(
        self, Py_ssize_t first, Py_ssize_t count, Py_ssize_t row, Py_ssize_t rows
    ) noexcept nogil:
        cdef Py_ssize_t p, j, start, step = 1 if self.tall else self.ld
        cdef double *out
        for p in range(first, first + count):
            j = self.index[p]
            out = self.columns + p * self.m + row
            start = j * (self.ld if self.tall else 1) + row * step
            if self.intercept and j == self.n - 1:
                fill(out, 1.0, rows)
            elif self.single != NULL:
                copy_column_float(self.single + start, step, self.shift(j), out, rows)
            else:
                copy_column_double(self.double_ + start, step, self.shift(j), out, rows)

    cdef void correlate(self, double *u, double *c) noexcept nogil:
        cdef Py_ssize_t j, n = self.n - self.intercept
        cdef int rows = self.ld, cols = self.m, one = 1
        cdef double zero = 0.0, unit = 1.0, total
        if self.tall and self.double_ != NULL:
            correlate_tall_double(self.double_, self.ld, u, c, self.m, n)
        elif self.double_ != NULL:
            dgemv("N", &rows, &cols, &unit, self.double_, &rows, u, &one, &zero, c, &one)
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
        dgemm("T" if self.tall else "N", "N", &width, &vectors, &m,
              &unit, self.double_, &rows, u, &m, &zero, c, &stride)
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
        elif self.tall and tasks <= FEW_TASKS:
            all_row_products(self.double_, self.ld, self.n, u, self.m, tasks, c)
        else:
            dgemm("T", "N" if self.tall else "T", &T, &n, &m, &unit, u, &m, self.double_, &ld, &zero, c, &T)

    cdef void predict_tasks(self, double *w, Py_ssize_t tasks, double *z, double *work) noexcept nogil:
        cdef int m = self.m, k = self.k, T = tasks
        cdef double unit = 1.0, zero = 0.0
        cdef double *block = self.block_of_all()
        cdef Py_ssize_t p
        if k == 0:
            memset(z, 0, self.m * tasks * sizeof(double))
            return
        if block == NULL and PREDICT_ALL * k < self.n:
            Data.predict_tasks(self, w, tasks, z, work)
            return
        if block == NULL:  # columns outside the working set have coefficients of 0
            memset(work, 0, self.n * tasks * sizeof(double))
            for p in range(self.k):
                memcpy(work + self.index[p] * tasks, w + p * tasks, tasks * sizeof(double))
            block, w, k = self.double_, work, self.n
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
        cdef bint in_one_piece = D == NULL and block != NULL and is_range(live, count)
        cdef Py_ssize_t p, q
        if fresh <= 0:
            return 0
        if D == NULL and self.all_products != NULL:
            for q in range(known, count):
                row = self.all_products + self.index[live[q]] * self.n
                for p in range(q + 1):
                    H[q * ld + p] = row[self.index[live[p]]]
        elif count <= (GRAM_MOST_ONCE if in_one_piece and known == 0 else GRAM_MOST):
            for p in range(count):
                self.live_column[p] = self.column(live[p])
            self.make_room_for_block(gram_room(self.m, count))
            gram_of_columns(self.live_column, D, self.m, known, count, H, ld, self.scaled)
        elif not in_one_piece:
            self.weighted_gram(D, live, count, known, H, ld)
        else:
            dsyrk("U", "T", &fresh, &m, &unit, block + known * self.m, &m, &zero,
                  H + known * ld + known, &width)
            if known > 0:
                dgemm("T", "N", &old, &fresh, &m, &unit, block, &m,
                      block + known * self.m, &m, &zero, H + known * ld, &width)
        mirror(H, ld, known, count)
        return 0

    cdef int make_room_for_block(self, Py_ssize_t count) except -1 nogil:
        if self.scaled_room < count:
            self.scaled = aligned(self.scaled, 0, count)
            self.scaled_room = count
        return 0

    cdef int weighted_gram(
        self, double *D, Py_ssize_t *live, Py_ssize_t count, Py_ssize_t known, double *H, Py_ssize_t ld
    ) except -1 nogil:
        """`gram` with weights: blocks of rows are multiplied by the square roots of their weights."""
        cdef Py_ssize_t most = max(<Py_ssize_t> LEAST_ROWS, min(<Py_ssize_t> ROWS, BLOCK_SIZE // count))
        cdef Py_ssize_t first = 0, rows, p, pad = min(most, self.m) | 1
        cdef double *source
        cdef double unit = 1.0, beta = 0.0
        cdef int fresh = count - known, old = known, width = ld, height, stride = pad
        self.make_room_for_block(count * pad)
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
