# Dense matrices with few entries other than 0, which are read as sparse ones.

cdef enum:
    LEAST_READ_AS_SPARSE = 10000  # Entries of A; smaller ones are not worth the copy.
    LOOKED_AT = 128  # Entries that are looked at first, so that the others cost no pass.

cdef double RARE = 0.1  # Bytes of the copy, at most this part of those of A.
cdef double BYTES_OF_ENTRY = 12.0


ctypedef fused number:
    float
    double


cdef Py_ssize_t count_entries(number *a, Py_ssize_t size, Py_ssize_t most) noexcept nogil:
    """How many numbers are not 0; more than `most` where it seems that so many are not."""
    cdef Py_ssize_t i, j, end, count = 0
    for i in range(LOOKED_AT):
        count += a[<Py_ssize_t> ((<size_t> i * 2654435761u) % <size_t> size)] != 0
    if count * <double> size > 2.0 * most * LOOKED_AT:
        return most + 1
    count, i = 0, 0
    while i < size and count <= most:
        end = min(i + 4096, size)
        for j in range(i, end):
            count += a[j] != 0
        i = end
    return count


cdef void list_by_columns(
    number *a, Py_ssize_t m, Py_ssize_t n, bint fortran, double *values, int *rows, int *starts
) noexcept nogil:
    """The entries other than 0 in compressed columns, with room for one more; `starts` are all 0 before."""
    cdef Py_ssize_t i, j
    cdef int at = 0
    if fortran:
        for j in range(n):
            for i in range(m):  # without a branch, which would be guessed wrong
                values[at], rows[at] = a[j * m + i], <int> i
                at += a[j * m + i] != 0
            starts[j + 1] = at
        return
    for i in range(m):
        for j in range(n):
            starts[j + 1] += a[i * n + j] != 0
    for j in range(n):
        starts[j + 1] += starts[j]
    for i in range(m):
        for j in range(n):
            if a[i * n + j] != 0:
                at = starts[j]
                values[at], rows[at] = a[i * n + j], <int> i
                starts[j] = at + 1
    for j in range(n, 0, -1):
        starts[j] = starts[j - 1]
    starts[0] = 0


def rare_entries(A):
    """The values, rows and starts of columns of a dense A (m, n) with few entries other than 0, or None.

    The copy takes at most a tenth of the memory of A.
    """
    cdef Py_ssize_t size, count, most
    cdef double[::1] values
    cdef int[::1] rows
    cdef int[::1] starts
    cdef bint single, fortran
    cdef void *a
    if not (is_readable(A) and cnp.PyArray_NDIM(A) == 2):
        return None
    size, single = cnp.PyArray_SIZE(A), cnp.PyArray_TYPE(A) == cnp.NPY_FLOAT
    most = <Py_ssize_t> min(RARE * size * cnp.PyArray_ITEMSIZE(A) / BYTES_OF_ENTRY, 2e9)
    if size < LEAST_READ_AS_SPARSE:
        return None
    a, fortran = cnp.PyArray_DATA(A), cnp.PyArray_IS_F_CONTIGUOUS(A)
    if single:
        count = count_entries[float](<float *> a, size, most)
    else:
        count = count_entries[double](<double *> a, size, most)
    if count > most or count == 0:
        return None
    m, n = A.shape
    arrays = np.empty(count + 1), np.empty(count + 1, np.intc), np.zeros(n + 1, np.intc)
    values, rows, starts = arrays
    if single:
        list_by_columns[float](<float *> a, m, n, fortran, &values[0], &rows[0], &starts[0])
    else:
        list_by_columns[double](<double *> a, m, n, fortran, &values[0], &rows[0], &starts[0])
    return arrays
