# A in compressed columns.


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
    cdef double *means             # (k,)

    def __cinit__(self, data, rows, starts, Py_ssize_t m, bint intercept=False, center=None):
        cdef const double[::1] numbers = data
        cdef const int[::1] row_numbers = rows
        cdef const int[::1] first = starts
        self.work = self.values = self.means = NULL
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
        free(self.means)

    cdef double entries(self) noexcept nogil:
        return self.starts[self.n - self.intercept]

    cdef double working_entries(self) noexcept nogil:
        cdef Py_ssize_t p
        cdef double total = 0.0
        for p in range(self.k):
            if not self.is_ones(self.index[p]):
                total += self.starts[self.index[p] + 1] - self.starts[self.index[p]]
        return total

    cdef bint is_ones(self, Py_ssize_t j) noexcept nogil:
        return self.intercept and j == self.n - 1

    cdef int make_room(self, Py_ssize_t room) except -1 nogil:
        self.place = <Py_ssize_t *> resized(self.place, room, sizeof(Py_ssize_t))
        self.found = <Py_ssize_t *> resized(self.found, room, sizeof(Py_ssize_t))
        self.values = <double *> resized(self.values, room, sizeof(double))
        self.means = <double *> resized(self.means, room, sizeof(double))
        return 0

    cdef void clear(self) noexcept nogil:
        self.k = self.blocks = self.listed = 0

    cdef double column_dot(self, Py_ssize_t j, double *u) noexcept nogil:
        cdef Py_ssize_t first = self.starts[j]
        return sparse_dot(self.data + first, self.rows + first, self.starts[j + 1] - first, u)

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
        cdef Py_ssize_t i, p, q, e, old, fresh, t
        cdef Block *block
        if count == known:
            return 0
        if count == 1 and self.is_ones(self.index[live[0]]):
            H[0] = self.m if D == NULL else sum_of(D, self.m)
            return 0
        if known == 0 and self.blocks > 1:  # one block is read faster than several
            self.listed = self.blocks = 0
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
            old = fresh = 0
            for t in range(self.blocks):
                block = &self.block[t]
                for e in range(block.starts[i], block.starts[i + 1]):
                    p = self.place[block.positions[e]]
                    if p >= 0:
                        self.found[old + fresh] = p
                        self.values[old + fresh] = block.values[e]
                        old += p < known
                        fresh += p >= known
            add_pairs(self.found, self.values, 1.0 if D == NULL else D[i], old, old + fresh, H, ld)
        if self.center != NULL or self.intercept:
            self.subtract_means(D, live, count, known, H, ld)
        mirror(H, ld, known, count)
        return 0

    cdef void subtract_means(
        self, double *D, Py_ssize_t *live, Py_ssize_t count, Py_ssize_t known, double *H, Py_ssize_t ld
    ) noexcept nogil:
        """Turn sums of products of raw columns into those of centred columns and the intercept."""
        cdef Py_ssize_t p, q, j, i, one = -1
        cdef double total = 0.0
        cdef double *sums = self.values
        cdef double *means = self.means
        if D == NULL:
            total = self.m
            for i in range(self.m):
                self.work[i] = 1.0
            D = self.work
        else:
            total = sum_of(D, self.m)
        for p in range(count):
            j = self.index[live[p]]
            means[p] = self.shift(j)
            sums[p] = total if self.is_ones(j) else self.column_dot(j, D)
            if self.is_ones(j):
                one = p
        for q in range(known if self.center != NULL else count, count):
            axpy(means[q] * total - sums[q], means, H + q * ld, q + 1)
            axpy(-means[q], sums, H + q * ld, q + 1)
        for p in range(count if one >= 0 else 0):
            q = max(p, one)
            if q >= known:
                H[q * ld + min(p, one)] = sums[p] - means[p] * total
