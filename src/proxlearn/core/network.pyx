# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""What learned rules run in float32: the networks of `rules/coefficient_network.py`, and products with A.

network.h and batch_products.h compute them; here they take arrays.
"""

import numpy as np

from libc.stdlib cimport calloc, free

cdef extern from *:
    """
#include <stdlib.h>
static void *aligned_room(size_t bytes) {
    void *room = NULL;
    return posix_memalign(&room, 64, bytes ? bytes : 64) ? NULL : room;
}
    """
    void *aligned_room(size_t bytes) nogil

cdef extern from "network.h" nogil:
    enum:
        WIDTH, LANES, LSTM
    ctypedef struct vec:
        pass
    ctypedef struct Layer:
        int kind
        long inputs, outputs, rows, cols
        const float *W
        const float *transposed
        const float *h
        const float *c
        float *h_next
        float *c_next
        const float *dh_next
        const float *dc_next
        float *dh
        float *dc
        vec *dW
        float *in_ "in"
        float *gates
        float *old
        float *tanh_c
    void network_block(
        Layer *layers, long number, const float *x, long n, long first, long count, float *out, float *room
    ) noexcept
    void store_block(float *array, long features, long n, long first, long count, const float *block) noexcept
    void network_block_backward(
        Layer *layers, long number, const float *dout, float *dx, long n, long first, long count, float *out,
        float *room, float *d, float *spare
    ) noexcept

cdef extern from "batch_products.h" nogil:
    void product_through "through"(
        const float *A, const float *x, const float *scale, const float *shift, float *u, float *g, long m,
        long n
    ) noexcept

KINDS = ("linear", "relu", "elu", "lstm")
BLOCK = WIDTH
"""Coordinates that pass through the network together: a range of work should be a multiple of it."""


cdef float *pointer(array) except? NULL:
    """The first number of a contiguous array of float32; NULL for None."""
    cdef float[::1] flat
    if array is None:
        return NULL
    flat = array.reshape(-1)
    return &flat[0] if flat.shape[0] else NULL


cdef class Stack:
    """The layers of a network with their weights and states, and the room that a block needs.

    `kinds` are names of KINDS; `weights` has for each layer a matrix (rows, cols) whose columns are those of
    the inputs, of the state and the bias. `states` has (h, c) for each LSTM, each (instances, H, n).
    """

    cdef Layer *layers
    cdef long number, instances, n, most
    cdef float *room
    cdef object x, kept

    def __cinit__(self, kinds, weights, x, states):
        cdef long k, inputs, size, widest = 0
        cdef Layer *l
        cdef float *place
        self.number = len(kinds)
        self.layers = <Layer *>calloc(self.number, sizeof(Layer))
        if not self.layers:
            raise MemoryError
        self.instances, inputs, self.n = x.shape
        self.x, self.kept = x, [list(weights)]
        states = iter(states)
        size = 0
        for k in range(self.number):
            l = &self.layers[k]
            l.kind = KINDS.index(kinds[k])
            l.inputs, l.rows, l.cols = inputs, weights[k].shape[0], weights[k].shape[1]
            l.outputs = l.rows // 4 if l.kind == LSTM else l.rows
            if l.cols != inputs + (l.outputs if l.kind == LSTM else 0) + 1:
                raise ValueError(f"layer {k} has {l.cols} columns for {inputs} inputs")
            l.W = pointer(weights[k])
            inputs = l.outputs
            widest = max(widest, l.rows, l.cols)
            size += l.cols
            if l.kind == LSTM:
                h, c = next(states)
                for array in (h, c):
                    if array.shape != (self.instances, l.outputs, self.n):
                        raise ValueError(f"a state is {array.shape}")
                l.h, l.c = pointer(h), pointer(c)
                self.kept.append((h, c))
                size += 6 * l.outputs
        self.most = widest
        self.room = <float *>aligned_room((size + 4 * widest) * WIDTH * sizeof(float))
        if not self.room:
            raise MemoryError
        place = self.room + 4 * widest * WIDTH
        for k in range(self.number):
            l = &self.layers[k]
            l.in_ = place
            place += l.cols * WIDTH
            if l.kind == LSTM:
                l.gates = place
                l.old = place + 4 * l.outputs * WIDTH
                l.tanh_c = l.old + l.outputs * WIDTH
                place += 6 * l.outputs * WIDTH

    def __dealloc__(self):
        free(self.layers)
        free(self.room)

    def forward(self, out, states, long first, long last):
        """Write the outputs (instances, outputs, n) and next states of coordinates first to last - 1.

        The coordinates of all instances are counted in a row, instance after instance.
        """
        cdef long begin, k
        cdef float *to = pointer(out)
        cdef const float *x = pointer(self.x)
        cdef float *block = self.room
        cdef float *room = self.room + self.most * WIDTH
        cdef long end = WIDTH
        states = iter(states)
        for k in range(self.number):
            if self.layers[k].kind == LSTM:
                h, c = next(states)
                self.layers[k].h_next, self.layers[k].c_next = pointer(h), pointer(c)
        with nogil:
            begin = first
            while begin < last:
                end = min(<long>WIDTH, last - begin)
                network_block(self.layers, self.number, x, self.n, begin, end, block, room)
                store_block(to, self.layers[self.number - 1].outputs, self.n, begin, end, block)
                begin += WIDTH

    def backward(self, dout, dx, transposed, incoming, outgoing, long first, long last):
        """Write the derivatives by x and by the states; return those by the weights, (rows, cols) each.

        `incoming` and `outgoing` are pairs (dh, dc) for each LSTM. These, `dout` and `dx` may be None.
        """
        cdef long begin, k, count
        cdef Layer *l
        cdef float *by_out = pointer(dout)
        cdef float *by_x = pointer(dx)
        cdef const float *x = pointer(self.x)
        cdef float *block = self.room
        cdef float *room = block + self.most * WIDTH
        cdef float *d = room + self.most * WIDTH
        cdef float *spare = d + self.most * WIDTH
        pairs = iter(list(zip(incoming, outgoing)))
        buffers = []
        for k in range(self.number):
            l = &self.layers[k]
            l.h_next = l.c_next = NULL
            l.transposed = pointer(transposed[k])
            buffer = np.zeros(l.rows * l.cols * LANES + 16, dtype=np.float32)
            skip = (-buffer.ctypes.data // 4) % 16
            buffer = buffer[skip : skip + l.rows * l.cols * LANES]
            buffers.append(buffer.reshape(l.rows, l.cols, LANES))
            l.dW = <vec *>pointer(buffer)
            if l.kind == LSTM:
                (next_h, next_c), (h, c) = next(pairs)
                l.dh_next, l.dc_next = pointer(next_h), pointer(next_c)
                l.dh, l.dc = pointer(h), pointer(c)
        with nogil:
            begin = first
            while begin < last:
                count = min(<long>WIDTH, last - begin)
                network_block(self.layers, self.number, x, self.n, begin, count, block, room)
                network_block_backward(
                    self.layers, self.number, by_out, by_x, self.n, begin, count, block, room, d, spare
                )
                begin += WIDTH
        with np.errstate(all="ignore"):  # a training that diverges looks at the sums itself
            return [buffer.sum(2) for buffer in buffers]


def through(A, x, scale, shift, u, g, long first, long last):
    """Write u = scale A x + shift and g = A^T u for instances first to last - 1 of A (instances, m, n).

    All other arrays are (instances, m) or (instances, n). Without x, u is given; `g`, `scale` and `shift` may
    be None.
    """
    cdef long i, m = A.shape[1], n = A.shape[2]
    cdef float *matrix = pointer(A)
    cdef float *by_x = pointer(x)
    cdef float *times = pointer(scale)
    cdef float *plus = pointer(shift)
    cdef float *dual = pointer(u)
    cdef float *to = pointer(g)
    with nogil:
        for i in range(first, last):
            product_through(
                matrix + i * m * n,
                by_x + i * n if by_x else NULL,
                times + i * m if times else NULL,
                plus + i * m if plus else NULL,
                dual + i * m,
                to + i * n if to else NULL,
                m,
                n,
            )
