"""cvxpy, imported when it is first used.

It takes a second, and `make quick` leaves out the tests that compare with a conic solver.
"""

from importlib import import_module


def __getattr__(name):
    return getattr(import_module("cvxpy"), name)
