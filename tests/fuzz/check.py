"""Is every SOLVED true? Recomputed in extended precision, without the package."""

import warnings
from dataclasses import dataclass, field

import numpy as np

import proxlearn as pl
from fuzz.draw import Instance, draw
from fuzz.plain import EPS, LONG, Plain

TINY = 1e-307
"""Below the smallest normal number of float64, objectives and gaps are rounded to its multiples."""


@dataclass
class Verdict:
    """What became of one drawn problem; statuses of its instances, and what was wrong."""

    kind: str
    text: str
    statuses: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unproven: int = 0


def run(seed: int, number: int, **options) -> Verdict:
    """Draw, solve and check one problem; an exception or warning other than InputError is wrong."""
    instance = draw(seed, number)
    verdict = Verdict(instance.kind, f"{number}: {instance.text}")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            solution = pl.solve(instance.build(), tol=instance.tol, **options)
        except pl.InputError as error:
            verdict.statuses.append("refused")
            if "\n" in str(error):
                verdict.wrong.append(f"a message of several lines: {error}")
            return verdict
        except Exception as error:  # whatever it is, it is a finding
            verdict.statuses.append("crashed")
            verdict.wrong.append(f"{type(error).__name__}: {error}")
            return verdict
        plains = instance.plains()
        rows = np.asarray(solution.x, dtype=float).reshape(len(plains), -1)
        for i, plain in enumerate(plains):
            status = str(solution.status[i])
            verdict.statuses.append(status)
            found = (float(solution.objective[i]), float(solution.gap[i]), status)
            problem, proven = check(plain, rows[i].astype(LONG), *found, instance)
            verdict.unproven += not proven
            if problem:
                verdict.wrong.append(f"instance {i}: {problem}")
    return verdict


def check(
    plain: Plain, x: np.ndarray, objective: float, gap: float, status: str, instance: Instance
) -> tuple[str, bool]:
    """What is wrong with an answer, "" if nothing, and whether a lower bound proves it right."""
    if not np.isfinite(x).all():
        return "x is not finite", True
    solved = status == "SOLVED"
    if plain.radius is not None:  # the sum is right to rounding only
        total = x.sum()
        single = "float32" in instance.text
        if abs(total - plain.radius) > (1e-5 if single else 1e-13) * plain.radius:
            return f"the sum is {total:g}, not {plain.radius:g}", True
        x = x * (plain.radius / total)
    F = plain.value(x)
    if not np.isfinite(objective) or not np.isfinite(F):
        return (f"SOLVED with F = {objective:g} ({F:g})" if solved else ""), True
    noise = plain.noise(x) + TINY
    if plain.radius is not None:  # x was moved back onto the simplex
        noise += 8 * EPS * float(abs(plain.grad(x) * x).sum()) * (1e9 if single else 1)
    if abs(F - objective) > noise:
        return f"objective is {objective:g}, F(x) is {F:.20g}", True
    at_zero = plain.value(plain.nearest_to_zero())
    at_zero = at_zero if at_zero < np.finfo(np.float64).max else 0
    allowed = max(instance.tol * F, EPS * at_zero)
    slack = 1e-5 if "float32" in instance.text else 1e-9  # F(0) in the problem's own precision
    if solved and gap > allowed * (1 + slack) + TINY and np.isfinite(gap):
        return f"SOLVED with gap {gap:g}, allowed is {allowed:g}", True
    limit = gap
    if solved:
        # Without a gap the residual decides, and promises nothing about F.
        limit = min(gap, allowed) if np.isfinite(gap) else np.inf
    if limit == np.inf:
        return "", False
    return compare(plain, x, F, LONG(limit) + LONG(noise))


def compare(plain: Plain, x: np.ndarray, F, limit) -> tuple[str, bool]:
    """Whether F(x) is at most `limit` above the best point that several methods find."""
    if F - plain.lower_bound(x) <= limit:
        return "", True
    best, where = F, x
    for method in METHODS:
        point = method(plain, where)
        value = plain.value(point)
        if value < best:
            best, where = value, point
        if F - best > limit:
            return f"F(x) is {F:.12g}, {F - best:.3g} above the best; limit {limit:.3g}", True
        if F - plain.lower_bound(where) <= limit:
            return "", True
    return "", False


METHODS = (
    Plain.polished,
    lambda plain, x: plain.coordinate_descent(x, 20),
    Plain.polished,
    lambda plain, x: plain.fista(x, 150),
    lambda plain, x: plain.coordinate_descent(x, 100),
    Plain.polished,
    lambda plain, x: plain.fista(x, 300),
)
