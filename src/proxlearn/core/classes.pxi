# One matrix for several classes: predictions z_c = A x_c for c = 0, ..., C-1, class after class.
#
# Coordinate c n + j stands for column j of A in class c. With D = s p from the loss, where s is the sum of D
# over the classes, the Hessian of coordinates (c, j) and (c', k) is
#
#     sum_i a_ij a_ik (D_ic [c = c'] - D_ic D_ic' / s_i)


cdef class Classes(Data):
    """A matrix that every class shares; the working set holds pairs of a class and a column."""

    cdef Data A
    cdef Py_ssize_t classes
    cdef Py_ssize_t *slot   # (n of A,): where a column is in A's working set, or -1
    cdef double *root       # (m of A,): 1 / sqrt(s)
    cdef double *work       # (ROWS, k): columns of the model, scaled, a block of rows at a time
    cdef double *products   # (k, k): their Gram matrix, class after class
    cdef Py_ssize_t work_room, product_room
    cdef Py_ssize_t *order  # (k,): the places of `live`, class after class
    cdef Py_ssize_t *first  # (C + 1,): where each class begins in it

    def __cinit__(self, Data A, Py_ssize_t classes):
        self.A, self.classes = A, classes
        self.m, self.n, self.intercept = classes * A.m, classes * A.n, False
        self.work_room = self.product_room = 0
        self.slot = <Py_ssize_t *> resized(NULL, A.n, sizeof(Py_ssize_t))
        self.root = <double *> resized(NULL, A.m, sizeof(double))
        self.first = <Py_ssize_t *> resized(NULL, classes + 1, sizeof(Py_ssize_t))
        self.clear()

    def __dealloc__(self):
        free(self.slot)
        free(self.root)
        free(self.work)
        free(self.products)
        free(self.order)
        free(self.first)

    cdef double entries(self) noexcept nogil:
        return self.classes * self.A.entries()

    cdef void clear(self) noexcept nogil:
        cdef Py_ssize_t j
        self.k = 0
        self.A.clear()
        for j in range(self.A.n):
            self.slot[j] = -1

    cdef int make_room(self, Py_ssize_t room) except -1 nogil:
        self.order = <Py_ssize_t *> resized(self.order, room, sizeof(Py_ssize_t))
        return 0

    cdef int copy_columns(self, Py_ssize_t first, Py_ssize_t count) except -1 nogil:
        cdef Py_ssize_t p, j, fresh = 0
        for p in range(first, first + count):
            j = self.index[p] % self.A.n
            if self.slot[j] < 0:
                self.slot[j] = self.A.k + fresh
                self.order[fresh] = j
                fresh += 1
        return self.A.admit(self.order, fresh) if fresh > 0 else 0

    cdef Py_ssize_t place(self, Py_ssize_t p) noexcept nogil:
        """Where the column at position p is in A's working set."""
        return self.slot[self.index[p] % self.A.n]

    cdef double square(self, double *D, Py_ssize_t p) except -1 nogil:
        return self.A.square(D + self.class_of(p) * self.A.m, self.place(p))

    cdef Py_ssize_t class_of(self, Py_ssize_t p) noexcept nogil:
        return self.index[p] // self.A.n

    cdef void correlate(self, double *u, double *c) noexcept nogil:
        self.A.correlate_many(u, c, self.classes)

    cdef void multiply(self, double *x, double *z) noexcept nogil:
        cdef Py_ssize_t c
        for c in range(self.classes):
            self.A.multiply(x + c * self.A.n, z + c * self.A.m)

    cdef void predict(self, double *w, double *z) noexcept nogil:
        cdef Py_ssize_t p
        memset(z, 0, self.m * sizeof(double))
        for p in range(self.k):
            if w[p] != 0.0:
                self.A.add_column(self.place(p), w[p], z + self.class_of(p) * self.A.m)

    cdef void correlate_working(self, double *u, double *g) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(self.k):
            g[p] = self.A.dot_column(self.place(p), u + self.class_of(p) * self.A.m)

    cdef void by_class(self, Py_ssize_t *live, Py_ssize_t count) noexcept nogil:
        """List the places of `live` class after class."""
        cdef Py_ssize_t i, c
        memset(self.first, 0, (self.classes + 1) * sizeof(Py_ssize_t))
        for i in range(count):
            self.first[self.class_of(live[i]) + 1] += 1
        for c in range(self.classes):
            self.first[c + 1] += self.first[c]
        for i in range(count):
            c = self.class_of(live[i])
            self.order[self.first[c]] = i
            self.first[c] += 1
        for c in range(self.classes, 0, -1):
            self.first[c] = self.first[c - 1]
        self.first[0] = 0

    cdef int gram(
        self, double *D, Py_ssize_t *live, Py_ssize_t count, Py_ssize_t known, double *H, Py_ssize_t ld
    ) except -1 nogil:
        cdef Py_ssize_t i, t, p, q, height = min(<Py_ssize_t> ROWS, self.A.m)
        if count == 0:
            return 0
        self.by_class(live, count)
        if self.work_room < count * height:
            self.work = <double *> resized(self.work, count * height, sizeof(double))
            self.work_room = count * height
        if self.product_room < count * count:
            self.products = <double *> resized(self.products, count * count, sizeof(double))
            self.product_room = count * count
        memset(self.products, 0, count * count * sizeof(double))
        if D != NULL:
            self.inverse_roots(D)
        i = 0
        while i < self.A.m:
            if D != NULL:
                self.add_products(D, live, count, i, min(height, self.A.m - i), True)
            self.add_products(D, live, count, i, min(height, self.A.m - i), False)
            i += height
        for t in range(count):
            for i in range(t + 1):
                p, q = self.order[i], self.order[t]
                H[p * ld + q] = H[q * ld + p] = self.products[t * count + i]
        return 0

    cdef void inverse_roots(self, double *D) noexcept nogil:
        """1 / sqrt(s), where s is the sum of D over the classes; 0 for samples without weight."""
        cdef Py_ssize_t i, c
        memset(self.root, 0, self.A.m * sizeof(double))
        for c in range(self.classes):
            axpy(1.0, D + c * self.A.m, self.root, self.A.m)
        for i in range(self.A.m):
            self.root[i] = 1.0 / sqrt(self.root[i]) if self.root[i] > 0.0 else 0.0

    cdef void add_products(
        self, double *D, Py_ssize_t *live, Py_ssize_t count, Py_ssize_t start, Py_ssize_t rows, bint across
    ) noexcept nogil:
        """For some rows, subtract the products with D_c D_c' / s, or add those with D_c within each class."""
        cdef Py_ssize_t t, c, i, p
        cdef double *out
        cdef double *weight
        cdef double unit = 1.0, minus = -1.0
        cdef int size = count, height = rows, width = count, own
        for t in range(count):
            p = live[self.order[t]]
            out = self.work + t * rows
            self.A.copy_rows(self.place(p), start, rows, out)
            if D == NULL:
                continue
            weight = D + self.class_of(p) * self.A.m + start
            if across:
                for i in range(rows):
                    out[i] *= weight[i] * self.root[start + i]
            else:
                for i in range(rows):
                    out[i] *= sqrt(weight[i])
        if across:
            dsyrk("U", "T", &size, &height, &minus, self.work, &height, &unit, self.products, &width)
            return
        for c in range(self.classes):
            own = self.first[c + 1] - self.first[c]
            if own > 0:
                dsyrk("U", "T", &own, &height, &unit, self.work + self.first[c] * rows, &height, &unit,
                      self.products + self.first[c] * (count + 1), &width)
