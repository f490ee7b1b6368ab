# The second-order model of F on the working set, a problem with k variables:
#
#     minimise  1/2 w'Hw - q'w + r(w),      c = q - Hw is kept beside w
#
# How it is solved depends on the penalty: coordinate_model.pxi where r is separable, group_model.pxi
# where it has groups.


cdef Py_ssize_t whole_lanes(Py_ssize_t count) noexcept nogil:
    """The count rounded up, so that vectors of that length have no end that is done number by number."""
    return (count + LANES - 1) // LANES * LANES


cdef class Model:
    """H (k, k), and w and c (k,); where r is, the penalties say."""

    cdef Py_ssize_t k, ld, room
    cdef double *H
    cdef double *w
    cdef double *c
    cdef double *start   # (k,): w where the model was set up
    cdef double *pull    # (k,): c there, which is -df/dx
    cdef Py_ssize_t *active  # (a,): variables of a Newton step
    cdef double *factor      # (a, a): a Cholesky factor of their Hessian
    cdef Py_ssize_t factor_room
    cdef double *direction   # (a,)
    cdef double *goal        # (a,): where the step ends
    cdef double *step        # (a,)
    cdef double *product     # (k,): H step
    cdef double entries  # of A: the multiplications of a pass over it

    def __cinit__(self):
        self.k = self.ld = self.room = self.factor_room = 0
        self.H = self.w = self.c = self.start = self.pull = NULL
        self.active = NULL
        self.factor = self.direction = self.goal = self.step = self.product = NULL

    def __dealloc__(self):
        free(self.H)
        free(self.w)
        free(self.c)
        free(self.start)
        free(self.pull)
        free(self.active)
        free(self.factor)
        free(self.direction)
        free(self.goal)
        free(self.step)
        free(self.product)

    cdef int make_room_for_hessian(self, Py_ssize_t k, Py_ssize_t known) except -1 nogil:
        """Room for H of k variables, which keeps that of the first `known` ones."""
        cdef Py_ssize_t room, p
        cdef double *H
        if k <= self.ld:
            return 0
        room = whole_lanes(max(32, k + k // 2))
        H = aligned(NULL, 0, room * room)
        for p in range(known):
            memcpy(H + p * room, self.H + p * self.ld, known * sizeof(double))
        free(self.H)
        self.H, self.ld = H, room
        return 0

    cdef int make_room(self, Py_ssize_t k) except -1 nogil:
        """Room for the vectors of k variables, which keep their contents."""
        cdef Py_ssize_t room
        if k <= self.room:
            return 0
        room = whole_lanes(max(32, k + k // 2))
        self.w = <double *> resized(self.w, room, sizeof(double))
        self.c = aligned(self.c, self.room, room)
        self.start = <double *> resized(self.start, room, sizeof(double))
        self.pull = <double *> resized(self.pull, room, sizeof(double))
        self.active = <Py_ssize_t *> resized(self.active, room, sizeof(Py_ssize_t))
        self.direction = <double *> resized(self.direction, room, sizeof(double))
        self.goal = <double *> resized(self.goal, room, sizeof(double))
        self.step = <double *> resized(self.step, room, sizeof(double))
        self.product = aligned(self.product, self.room, room)
        self.reserve(room)
        self.room = room
        return 0

    cdef int reserve(self, Py_ssize_t room) except -1 nogil:
        """Room for `room` variables in the arrays of a penalty; `self.room` is what there was."""
        return 0

    cdef void penalise(self, Penalty r, Py_ssize_t *index, Py_ssize_t *live, Py_ssize_t k) noexcept nogil:
        """Variable i has the penalty of coordinate index[live[i]]."""
        pass

    cdef void forget_factor(self) noexcept nogil:
        """H or the penalty's curvature has changed."""
        pass

    cdef void age_factor(self) noexcept nogil:
        """The penalty's curvature has changed, as along a path: variables stay where they are in H."""
        self.forget_factor()

    cdef double solve(self, double tol) except -1 nogil:
        """Minimise the model until no optimality condition is violated by more than tol.

        Returns the largest violation that is left.
        """
        return 0.0

    cdef double slope(self) noexcept nogil:
        """r(w) - r(start) - <pull, w - start>: at most 0 where w is better for the model."""
        return 0.0

    cdef double penalty_change(self, double part) noexcept nogil:
        """r(start + part (w - start)) - r(start)."""
        return 0.0

    cdef int make_room_for_factor(self, Py_ssize_t count, Py_ssize_t known) except -1 nogil:
        """Room for `count` variables, and for the ends of vectors; the factor of `known` variables stays.

        What a solve does must not depend on the room that the solves before it have made.
        """
        cdef Py_ssize_t t, room = whole_lanes(count + count // 2 + 16)
        cdef double *factor
        if count <= self.factor_room:
            return 0
        factor = aligned(NULL, 0, room * room)
        for t in range(known):
            memcpy(factor + t * room, self.factor + t * self.factor_room, known * sizeof(double))
        free(self.factor)
        self.factor, self.factor_room = factor, room
        return 0

    cdef void multiply(self, Py_ssize_t count) noexcept nogil:
        """product = H step, with the steps of the active variables."""
        memset(self.product, 0, self.k * sizeof(double))
        add_columns(self.H, self.ld, self.active, self.step, count, self.product, self.k)
