# Penalties: what the loop asks of a convex r.
#
# Coordinates come in blocks that join the working set together: single coordinates where r is
# separable, groups where it is not. The working set lists the coordinates of a block one after the
# other, in the order of `expand`. A penalty is a file of its own; it brings the model (model.pxi) that
# solves its problem on the working set.

cdef class Model
cdef class Descent


cdef class Penalty:
    """A convex r of n coordinates, never negative. All methods work on whole vectors."""

    cdef Py_ssize_t n, blocks
    cdef bint homogeneous  # True where r* is 0 wherever it is finite
    cdef object kept  # what the pointers point into

    def set(self, *numbers):
        """Take other numbers, of the shapes that there were."""
        raise NotImplementedError

    def has_one_sided(self):
        """True where a coordinate has no penalty but one bound, as in non-negative least squares."""
        return False

    cdef bint multiply(self, double factor) noexcept nogil:
        """Multiply r, as it was set last, by a factor; False where the penalty cannot."""
        return False

    def largest_scale(self, const double[::1] c):
        """The largest t >= 0 for which r*(t c) is finite."""
        return self.dual_scale(<double *> &c[0])

    cdef bint is_separable(self) noexcept nogil:
        """True for a sum over the coordinates."""
        return False

    cdef bint is_smooth(self) noexcept nogil:
        """True where r has no kinks, so that no coordinate of the solution is 0 but by chance."""
        return False

    cdef Model model(self):
        """A model for this penalty."""
        raise NotImplementedError

    cdef Descent descent(self):
        """Sweeps over the columns of blocks, in place of a model; asked of an r that is not separable."""
        return Descent()

    cdef void project(self, double *x) noexcept nogil:
        """Move x to the nearest point at which r is finite."""
        pass

    cdef void prox(self, double *v, double *p, double *x) noexcept nogil:
        """x = argmin over x of r(x) + sum_j (x_j - v_j)^2 / (2 p_j); asked of separable r alone."""
        pass

    cdef void levels(self, double *level) noexcept nogil:
        """The size of r's subgradients away from 0, for each coordinate."""
        pass

    cdef bint is_free(self, Py_ssize_t j) noexcept nogil:
        """True where the penalty ignores the coordinate, as it does an intercept."""
        return False

    cdef bint is_unbounded(self, Py_ssize_t j) noexcept nogil:
        """True where the penalty has no bounds for the coordinate."""
        return True

    cdef Py_ssize_t needed_at(self, double *x, Py_ssize_t *picked) noexcept nogil:
        """List the blocks that must be in the working set at x: those off 0, and the free ones."""
        return 0

    cdef Py_ssize_t expand(self, Py_ssize_t *blocks, Py_ssize_t count, Py_ssize_t *columns) noexcept nogil:
        """List the coordinates of some blocks, and return how many they are."""
        return 0

    cdef double value(self, Py_ssize_t *index, double *v, Py_ssize_t k) noexcept nogil:
        """r(x), where x is v (k,) at the coordinates `index` and 0 elsewhere."""
        return 0.0

    cdef double survey(self, double *c, double *score, double *largest) noexcept nogil:
        """Look at c = A^T u (n,) as if x were 0: what violates the optimality conditions?

        `score` (blocks,) becomes the violation of each block, `largest` the size of c in the units
        of a violation. Returns the dual scale of c.
        """
        return INFINITY

    cdef void anticipate(self, double *c, double fell, double *score) noexcept nogil:
        """Scores for the next penalty of a path, the last one having fallen by the factor `fell`."""
        pass

    cdef double violations(
        self, Py_ssize_t *index, double *v, double *g, Py_ssize_t k, char *needed
    ) noexcept nogil:
        """The largest violation on a working set (k,) with x = v and -df/dx = g.

        `needed`, unless it is NULL, marks the positions of blocks that are violated or not at a kink.
        """
        return 0.0

    cdef double distance(self, double *x, double *c) noexcept nogil:
        """The length of the vector of all violations at x (n,), where c = -df/dx."""
        return 0.0

    cdef double dual_scale(self, double *c) noexcept nogil:
        """The largest t >= 0 for which r*(t c) is finite, with c = A^T u; infinite where all are."""
        return INFINITY

    cdef double conjugate(self, double *c, double t) noexcept nogil:
        """r*(t c) for a feasible t; asked only where r is not homogeneous."""
        return 0.0
