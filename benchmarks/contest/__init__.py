"""Solvers side by side on the same problems, cores and gap; `benchmarks/peers.py` runs it."""
