"""The names of the engines, in a module that does not import PyTorch, for the command line."""

AUTO = "auto"
"""The solver chooses an engine that supports the problem."""
ENGINES = (AUTO, "torch", "compiled")
"""What `solve` takes as its engine."""
NAMED = tuple(name for name in ENGINES if name != AUTO)
"""Engines that a job on several machines can be bound to: there every worker must use the same."""
