"""Is every SOLVED true? Recomputed in extended precision, without the package."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import proxlearn as pl
from fuzz import estimators, large
from fuzz.draw import Instance, draw
from fuzz.plain import EPS, LONG, Plain
from fuzz.ways import WAYS, Found

TINY = 1e-307
"""Below the smallest normal number of float64, objectives and gaps are rounded to its multiples."""

SOURCES = ("small", "large", "ways", "estimators")
"""Where problems come from: `draw`, `large`, either in one of `WAYS`, or one of the estimators."""
TURNS = (*["small"] * 5, "large", "ways", "estimators")

SLOW = 2.0
"""Seconds of a solve that are worth a look."""


@dataclass
class Verdict:
    """What became of one drawn problem."""

    kind: str
    text: str
    statuses: list[str] = field(default_factory=list)
    """Of its instances."""
    notes: list[str] = field(default_factory=list)
    """"no gap" for a SOLVED without one, "rounding" for a SOLVED that is above the tolerance by no
    more than rounding, "unproven" where neither a better point nor a lower bound was found."""
    wrong: list[str] = field(default_factory=list)


def run(seed: int, number: int, source: str = "small", **options) -> Verdict:
    """Draw, solve and check one problem; an exception or warning other than InputError is wrong.

    The source is one of SOURCES, or "all", which takes them in turns.
    """
    kind, text, answers = drawn(seed, number, source)
    verdict = Verdict(kind, f"{number}: {text}")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            began = time.process_time()
            for i, found in enumerate(answers(options)):
                if time.process_time() - began > SLOW:
                    verdict.notes.append("slow")
                verdict.statuses.append(found.status)
                wrong, notes = check(found)
                verdict.notes.extend(notes)
                if wrong:
                    verdict.wrong.append(f"answer {i}: {wrong}")
                began = time.process_time()
        except pl.InputError as error:
            verdict.statuses.append("refused")
            if "\n" in str(error):
                verdict.wrong.append(f"a message of several lines: {error}")
        except Exception as error:  # whatever it is, it is a finding
            verdict.statuses.append("crashed")
            verdict.wrong.append(f"{type(error).__name__}: {error}")
    return verdict


def drawn(seed: int, number: int, source: str = "small") -> tuple[str, str, Callable]:
    """The kind of problem number `number`, what it is in words, and what solves it."""
    source = TURNS[number % len(TURNS)] if source == "all" else source
    rng = np.random.default_rng([seed, number, 2])
    if source == "estimators":
        name, data = estimators.drawn(seed, number, rng)
        fit = estimators.FITS[name]
        return f"fit {name}", f"{name}: {data.text}", lambda options: fit(data)
    is_large = source == "large" or (source == "ways" and rng.random() < 0.4)
    instance = large.draw(seed, number) if is_large else draw(seed, number)
    way = str(rng.choice([*WAYS])) if source == "ways" else "solve"
    kind = {"large": f"large {instance.kind}", "ways": f"way {way}"}.get(source, instance.kind)
    return kind, f"{way}: {instance.text}", lambda options: WAYS[way](instance, rng, options)


def check(found: Found) -> tuple[str, list[str]]:
    """What is wrong with an answer, "" if nothing, and notes on it."""
    if found.zero and np.any(found.x):
        return f"x is not 0 above the largest lam: {abs(found.x).max():g}", []
    x = np.asarray(found.x).astype(LONG)
    numbers = found.objective, found.gap, found.status
    return checked(found.plain, x, *numbers, found.instance, found.constant)


def checked(
    plain: Plain,
    x: np.ndarray,
    objective: float | None,
    gap: float,
    status: str,
    instance: Instance,
    constant: np.longdouble | int = 0,
) -> tuple[str, list[str]]:
    """What is wrong with an answer, "" if nothing, and notes on it."""
    if not np.isfinite(x).all():
        return "x is not finite", []
    solved, single = status == "SOLVED", "float32" in instance.text
    if plain.radius is not None:  # the sum is right to rounding only
        total = x.sum()
        above = total - plain.radius
        if (above if plain.at_most else abs(above)) > (1e-5 if single else 1e-13) * plain.radius:
            return f"the sum is {total:g}, not {plain.radius:g}", []
        if above > 0 or not plain.at_most:
            x = x * (plain.radius / total)
    F = plain.value(x)
    objective = float(F) if objective is None else objective
    if not np.isfinite(objective) or not np.isfinite(F):
        return (f"SOLVED with F = {objective:g} ({F:g})" if solved else ""), []
    noise = plain.noise(x) + TINY
    if plain.radius is not None:  # x was moved back onto the simplex
        noise += 8 * EPS * float(abs(plain.grad(x) * x).sum()) * (1e9 if single else 1)
    at_zero = plain.value(plain.nearest_to_zero())
    at_zero = at_zero if at_zero < np.finfo(np.float64).max else 0
    # An objective is known to rounding of F(0), which is also what SOLVED asks for at least: a
    # reduced problem computes it as a difference of squares like |b|^2.
    if abs(F - objective) > noise + 4 * EPS * at_zero:
        return f"objective is {objective:g}, F(x) is {F:.20g}", []
    # The solver knows F(0) in the problem's own precision.
    allowed = max(instance.tol * (F + constant), EPS * at_zero)
    allowed = allowed * (1 + (1e-5 if single else 1e-9)) + TINY
    if solved and not (gap <= allowed or gap == np.inf):
        return f"SOLVED with gap {gap:g}, allowed is {allowed:g}", []
    if gap == np.inf:
        if not solved:
            return "", []
        # Without a gap the residual decides, and promises nothing about F.
        length, scale = plain.residual(x), plain.residual_noise(x)
        limit = instance.tol * plain.slope_at_zero() * (1 + 1e-5) + scale
        return ("" if length <= limit else f"residual {length:g} above {limit:g}"), ["no gap"]
    above, best, proven = distance(plain, x, F, LONG(gap) + LONG(noise))
    noise += plain.noise_of_dual(x, best)
    notes = [] if proven else ["unproven"]
    if above > LONG(gap) + LONG(noise):
        return f"F(x) is {F:.12g}, {above:.3g} above the best; gap {gap:.3g}", notes
    if solved and above > allowed:
        notes.append("rounding")
    return "", notes


def distance(plain: Plain, x: np.ndarray, F, limit) -> tuple[np.longdouble, np.ndarray, bool]:
    """How far F(x) is above the best point of several methods, that point, and if it is proven.

    Ends as soon as a point is below F(x) - limit, or a lower bound is above it.
    """
    best, where = F, x
    for method in (None, *METHODS):
        if method is not None:
            point = method(plain, where)
            value = plain.value(point)
            if value < best:
                best, where = value, point
        if F - best > limit or F - plain.lower_bound(where) <= limit:
            return F - best, where, True
    return F - best, where, False


METHODS = (
    Plain.polished,
    lambda plain, x: plain.coordinate_descent(x, 20),
    Plain.polished,
    lambda plain, x: plain.fista(x, 150),
    lambda plain, x: plain.coordinate_descent(x, 100),
    Plain.polished,
    lambda plain, x: plain.fista(x, 300),
)
