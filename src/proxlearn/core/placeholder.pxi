from scipy.linalg.cython_blas cimport ddot


cdef double inner(double[::1] x, double[::1] y) noexcept nogil:
    cdef int n = <int>x.shape[0], one = 1
    return ddot(&n, &x[0], &one, &y[0], &one) if n > 0 else 0.0
