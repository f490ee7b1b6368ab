# The largest of many numbers, in linear time.


cdef void exchange(double *score, Py_ssize_t *item, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    score[i], score[j] = score[j], score[i]
    item[i], item[j] = item[j], item[i]


cdef void keep_largest(double *score, Py_ssize_t *item, Py_ssize_t count, Py_ssize_t want) noexcept nogil:
    """Bring the items with the `want` largest scores to the front (Hoare's selection)."""
    cdef Py_ssize_t first = 0, last = count - 1, i, j
    cdef double pivot
    while first < last:
        pivot = score[(first + last) // 2]
        i, j = first, last
        while i <= j:
            while score[i] > pivot:
                i += 1
            while score[j] < pivot:
                j -= 1
            if i <= j:
                exchange(score, item, i, j)
                i += 1
                j -= 1
        if want - 1 <= j:
            last = j
        elif want - 1 >= i:
            first = i
        else:
            return


cdef void sort_numbers(Py_ssize_t *item, Py_ssize_t count) noexcept nogil:
    """Ascending order, by insertion for short lists and by merging halves for long ones."""
    cdef Py_ssize_t i, j, value, gap = count // 2
    while gap > 0:  # Shell's method: no memory, and fast for the few hundred items that join
        for i in range(gap, count):
            value = item[i]
            j = i
            while j >= gap and item[j - gap] > value:
                item[j] = item[j - gap]
                j -= gap
            item[j] = value
        gap //= 2
