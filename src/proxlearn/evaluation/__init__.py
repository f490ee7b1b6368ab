"""Comparing, tuning and auditing optimizers, and the experiments of the paper."""
