"""Larger instances than `draw` has, of shapes and values that take other ways through the core."""

import numpy as np

from fuzz.draw import KINDS, TOLERANCES, Instance, data, parameters, scaled

SHAPES = {
    "wide": ((3, 20), (20, 150)),
    "tall": ((20, 120), (2, 30)),
    "square": ((10, 50), (10, 50)),
    "sparse": ((30, 120), (50, 250)),
    "one row": ((1, 2), (1, 40)),
    "one column": ((1, 60), (1, 2)),
}
"""Ranges of the numbers of rows and columns."""
DEFECTS = (
    "none", "none", "none", "zero columns", "duplicate columns", "opposite columns", "near copies",
    "low rank", "whole numbers", "binary", "constant column", "far from 0", "repeated rows",
    "correlated", "exact fit", "constant target", "zero target", "separable", "outliers",
)  # fmt: skip
OF_DATA = ("zero columns", "duplicate columns", "opposite columns", "exact fit")
"""Defects that `draw.data` makes."""


def draw(seed: int, number: int) -> Instance:
    """Instance `number` of a seed."""
    rng = np.random.default_rng([seed, number, 1])
    kind, shape = str(rng.choice(KINDS)), str(rng.choice([*SHAPES]))
    m, n = (int(rng.integers(*bounds)) for bounds in SHAPES[shape])
    n = min(n, 60) if kind in ("softmax", "multitask_lasso") else n
    B = int(rng.choice([1, 1, 1, 1, 2, 12]))
    own = 1 < B <= 2 and rng.random() < 0.5
    dtype = "float32" if rng.random() < 0.15 else "float64"
    defect = str(rng.choice(DEFECTS))
    first = defect if defect in OF_DATA else "none"
    A, b = data(rng, kind, B if own else 1, B, m, n, first)
    if shape == "sparse":
        A = A * (rng.random(A.shape) < rng.choice([0.02, 0.1]))
    A, b = spoiled(rng, kind, A, b, defect)
    scales = "plain"
    if rng.random() < 0.3:
        A, b, scales = scaled(rng, A, b, dtype, kind)
    A, b = A.astype(dtype), b.astype(dtype)
    numbers = harder(rng, kind, A, b, parameters(rng, kind, A, b, n))
    tol = float(rng.choice([*TOLERANCES[dtype], 1e-12] if dtype == "float64" else [1e-3, 1e-4]))
    sparse = not own and (shape == "sparse" or rng.random() < 0.1)
    if numbers.get("classes", 0) > 3:
        b = labels_of_many(rng, b.shape, numbers["classes"]).astype(dtype)
    text = f"large {kind} B={B} own={own} m={m} n={n} {dtype} {shape}, {defect}, {scales} {sparse=}"
    return Instance(
        kind, f"{text} {tol=:g} {numbers['text']}", tol, A, b, numbers, sparse,
        bool(rng.random() < 0.5),
    )  # fmt: skip


def spoiled(rng, kind: str, A, b, defect: str):
    """A and b with a defect; labels stay labels."""
    counts, labels = kind == "poisson", kind in ("logistic", "softmax")
    _, m, n = A.shape
    if defect == "near copies":
        A = A[:, :, rng.integers(0, n, n)] * (
            1 + rng.choice([1e-4, 1e-8, 1e-14]) * rng.normal(size=n)
        )
    if defect == "low rank":
        A = A[:, :, : max(1, n // 5)] @ rng.normal(size=(max(1, n // 5), n))
    if defect == "whole numbers":
        A = np.round(2 * A)
    if defect == "binary":
        A = (A > 0.5).astype(float)
    if defect == "constant column":
        A[:, :, 0] = rng.choice([1.0, 1e-3, 1e4])
    if defect == "far from 0":
        A = A + rng.choice([10, 1e3, 1e6])
    if defect == "repeated rows":
        where = rng.integers(0, max(1, m // 3), m)
        A = A[:, where]
        b = b[:, where] if labels or rng.random() < 0.5 else b
    if defect == "correlated":
        A = A + 3 * rng.normal(size=(*A.shape[:2], 1))
    if defect == "separable" and labels:
        b = ((A @ rng.normal(size=n)) > 0).astype(float) * np.ones((len(b), 1))
    if defect == "outliers" and not labels:
        b = b * np.where(rng.random(b.shape) < 0.1, 1e4 if counts else 1e6, 1)
    if defect in ("constant target", "zero target"):
        b = b * 0 + (defect == "constant target")
    return A, b


def harder(rng, kind: str, A, b, p: dict) -> dict:
    """Parameters at their ends: huge and tiny weights, deltas, groups of one and of all, ..."""
    n, notes = A.shape[2], []
    p = dict(p)
    if p["weights"] is not None and rng.random() < 0.3:
        p["weights"] = p["weights"] * 10.0 ** rng.uniform(-6, 6, len(p["weights"]))
        notes.append("wild weights")
    if rng.random() < 0.15 and kind != "elastic_net":
        p["lam"], notes = p["lam"] * 1e-6, [*notes, "lam / 1e6"]
    if kind == "huber" and rng.random() < 0.4:
        factor = float(rng.choice([1e-6, 1e6]))
        p["delta"], notes = p["delta"] * factor, [*notes, f"delta times {factor:g}"]
    if kind == "softmax" and rng.random() < 0.2:
        p["classes"] = int(rng.choice([5, 20]))
        p["weights"] = None
        notes.append(f"{p['classes']} classes")
    if "group" in kind:
        form = str(rng.choice(["drawn", "ones", "one", "some alone"]))
        p["groups"] = {
            "drawn": p["groups"], "ones": np.arange(n), "one": np.zeros(n, int),
            "some alone": np.where(rng.random(n) < 0.3, -1, 0),
        }[form]  # fmt: skip
        if p["groups"].max() < 0:
            p["groups"][0] = 0
        count = p["groups"].max() + 1
        if rng.random() < 0.5:
            p["group_weights"] = rng.uniform(0.1, 3, count) * (rng.random(count) < 0.8)
        notes.append(f"groups {form}")
    if kind == "multitask_lasso" and rng.random() < 0.5:
        p["row_weights"] = rng.uniform(0.1, 3, n) * (rng.random(n) < 0.8)
    if kind == "box" and rng.random() < 0.4:
        fixed = rng.random(n) < 0.5
        p["lower"] = np.where(fixed, p["upper"], p["lower"])
        p["lower"] = np.where(np.isinf(p["lower"]), -1.0, p["lower"])
        p["upper"] = np.maximum(p["upper"], p["lower"])
        notes.append("lower = upper")
    if kind == "box" and rng.random() < 0.3:
        p["lower"], p["upper"] = -p["upper"], -p["lower"]
        notes.append("turned")
    return p | {"text": ", ".join(notes)}


def labels_of_many(rng, shape, classes: int) -> np.ndarray:
    """Labels of which some may be missing, in classes of very different size."""
    return np.minimum(rng.geometric(0.3, shape) - 1, classes - 1).astype(float)
