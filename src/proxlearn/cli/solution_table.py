"""The table of a solution for a terminal; it needs no PyTorch."""

from rich.table import Table

from proxlearn.cli.solve_job import nonzeros
from proxlearn.problems.arrays import to_numpy
from proxlearn.solving.solution import Solution, Status


def solution_table(solution: Solution) -> Table:
    """One line for each quantity; of a batch the mean, and of the gap the largest."""
    many = len(solution.status) > 1
    mean = " (mean)" if many else ""
    counts = {s: solution.status.count(s) for s in Status if s in solution.status}
    states = ", ".join(f"{c} {s}" if many else str(s) for s, c in counts.items())
    gap = float(solution.gap.max())
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("status", states)
    table.add_row(f"objective{mean}", f"{float(solution.objective.mean()):.10g}")
    known = f"{gap:.3g}" if gap < float("inf") else "unknown"
    table.add_row("gap (largest)" if many else "gap", known)
    table.add_row(f"iterations{mean}", f"{to_numpy(solution.iterations).mean():.6g}")
    table.add_row(f"gradients{mean}", f"{to_numpy(solution.grad_evals).mean():.6g}")
    table.add_row("seconds", f"{solution.seconds:.3g}")
    count = nonzeros(solution).mean()
    size = solution.x.shape[-1]
    table.add_row(f"non-zeros{mean}", f"{count:.6g} of {size}")
    return table
