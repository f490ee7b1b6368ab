"""The compiled loop: one instance at a time, from its first gradient to its certificate.

The same mathematics as `solver`, `scheme`, `rules.compact`, `safeguard`, `attempts` and `polish`,
which stay the reference. Iterations are in float32, polish and certificate in float64, and the
matrix of an instance stays in the cache from one iteration to the next. Needs Numba.
"""
