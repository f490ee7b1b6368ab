"""The estimators on drawn data: each fit against the formula of its docstring.

Samples of weight k are k equal rows of the formula, and the intercept is an unpenalised column.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import proxlearn.sklearn as estimators
from fuzz import large
from fuzz.draw import Instance, draw
from fuzz.plain import LONG, Plain
from fuzz.ways import Found


class Data:
    """X, y and weights for an estimator, and what it takes to write down its formula."""

    def __init__(self, rng: np.random.Generator, instance: Instance, several: bool = False):
        self.rng, self.instance = rng, instance
        self.X = instance.A[0]
        self.y = instance.b[0]
        if several:
            self.y = np.stack([self.y, self.y[::-1]], axis=1)
        m, self.n = self.X.shape
        self.weights = rng.integers(0, 4, m) if rng.random() < 0.4 else None
        if self.weights is not None and not self.weights.any():
            self.weights[0] = 1
        counts = np.ones(m, int) if self.weights is None else self.weights
        self.rows, self.total = np.repeat(np.arange(m), counts), int(counts.sum())
        self.intercept = bool(rng.random() < 0.6)
        self.alpha = float(instance.numbers["lam"]) / m
        self.ratio = float(rng.choice([0.0, 0.3, 0.9, 1.0]))
        self.penalty_weights = None
        if rng.random() < 0.2:
            self.penalty_weights = rng.uniform(0.1, 3, self.n) * (rng.random(self.n) < 0.8)
        self.tol = float(rng.choice([1e-3, 1e-4, 1e-6, 1e-8]))

    @property
    def text(self) -> str:
        """What was drawn."""
        parts = {"intercept": self.intercept, "weights": self.weights is not None}
        parts |= {
            "ratio": self.ratio,
            "tol": self.tol,
            "of columns": self.penalty_weights is not None,
        }
        return f"{self.instance.text}; {parts}"

    def given(self) -> Any:
        """X in some layout."""
        form = self.rng.choice(["rows", "columns", "csc", "csr"])
        if form in ("csc", "csr"):
            return getattr(scipy.sparse, f"{form}_matrix")(self.X)
        return np.asarray(self.X, order="F" if form == "columns" else "C")

    def fitted(self, model: Any) -> tuple[Any, str]:
        """The model after its fit, and SOLVED unless it warned."""
        w = None if self.weights is None else self.weights.astype(float)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("always", ConvergenceWarning)
            with warnings.catch_warnings(record=True) as caught:
                model.fit(self.given(), self.y, sample_weight=w)
        return model, ("MAX_ITER" if caught else "SOLVED")

    def columns(self) -> np.ndarray:
        """The rows of the formula, with a column of ones for the intercept."""
        A = self.X[self.rows].astype(LONG)
        return np.column_stack([A, np.ones(len(A), LONG)]) if self.intercept else A

    def with_constant(self, values: Any, constant: float) -> np.ndarray:
        """A row for the columns, and a number for the intercept."""
        row = np.broadcast_to(np.asarray(values, LONG), (self.n,))
        return np.append(row, LONG(constant)) if self.intercept else row

    def separable(self, loss: str, l1: Any, l2: Any, lower: float = -np.inf, **more: Any) -> Plain:
        """The formula with a separable penalty."""
        rows = [self.with_constant(v, 0) for v in (l1, l2)]
        n = self.n + self.intercept
        bounds = self.with_constant(lower, -np.inf), np.full(n, np.inf, LONG)
        y = self.y[self.rows].astype(LONG)
        more["intercepts"] = int(self.intercept and loss == "squares")
        return Plain(loss, self.columns(), y, *rows, *bounds, **more)

    def found(self, plain: Plain, model: Any, status: str, factor: Any = 1) -> Found:
        """What a model with `coef_` and `intercept_` says; `factor` times its objective is F."""
        coef = np.asarray(model.coef_, float).ravel()
        x = np.append(coef, np.ravel(model.intercept_)) if self.intercept else coef
        return self.point(plain, x, float(model.dual_gap_) * float(factor), status)

    def point(self, plain: Plain, x: np.ndarray, gap: float, status: str) -> Found:
        return Found(plain, x, None, gap, status, replace(self.instance, tol=self.tol))


def squares(data: Data, alpha: float, ratio: float, lower: float = -np.inf) -> Plain:
    w = 1.0 if data.penalty_weights is None else data.penalty_weights
    level = LONG(data.total) * LONG(alpha)
    return data.separable("squares", level * ratio * w, level * (1 - LONG(ratio)) * w, lower)


def lasso(data: Data) -> Iterator[Found]:
    positive = bool(data.rng.random() < 0.3)
    options = {"fit_intercept": data.intercept, "tol": data.tol}
    options |= {"positive": positive, "penalty_weights": data.penalty_weights}
    name, ratio = "Lasso", 1.0
    if data.rng.random() < 0.5:
        name, ratio, options = "ElasticNet", data.ratio, options | {"l1_ratio": data.ratio}
    model, status = data.fitted(getattr(estimators, name)(alpha=data.alpha, **options))
    plain = squares(data, data.alpha, ratio, 0.0 if positive else -np.inf)
    yield data.found(plain, model, status, data.total)


def lasso_cv(data: Data) -> Iterator[Found]:
    """The final fit of a cross-validation."""
    if data.X.shape[0] < 6 or data.weights is not None:
        return
    options = {"fit_intercept": data.intercept, "tol": data.tol, "cv": 3, "alphas": 5}
    name, ratio = "LassoCV", 1.0
    if data.rng.random() < 0.5:
        name, ratio = "ElasticNetCV", data.ratio or 0.5
        options |= {"l1_ratio": ratio}
    data.penalty_weights = None
    model, status = data.fitted(getattr(estimators, name)(**options))
    yield data.found(squares(data, model.alpha_, ratio), model, status, data.total)


def path(data: Data) -> Iterator[Found]:
    data.intercept, data.weights, data.penalty_weights = False, None, None
    data.rows, data.total = np.arange(len(data.X)), len(data.X)
    alphas = data.alpha * 10.0 ** data.rng.uniform(-2, 1, 4)
    if not (alphas > 0).all() or not np.isfinite(alphas).all():
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        found = estimators.lasso_path(data.given(), data.y, alphas=alphas, tol=data.tol)
    for alpha, x, gap in zip(found[0], found[1].T, found[2], strict=True):
        plain = squares(data, float(alpha), 1.0)
        status = "MAX_ITER" if caught else "SOLVED"
        yield data.point(plain, x.astype(float), float(gap) * data.total, status)


def logistic(data: Data) -> Iterator[Found]:
    data.y = (data.y > np.median(data.y)).astype(float)
    if not data.total * data.alpha > 1e-300:
        return
    C, ratio = 1 / (data.total * data.alpha), data.ratio
    options = {"C": C, "l1_ratio": ratio, "fit_intercept": data.intercept, "tol": data.tol}
    model, status = data.fitted(estimators.LogisticRegression(**options))
    level = 1 / (LONG(C) * data.total)
    plain = data.separable("logistic", level * ratio, level * (1 - LONG(ratio)))
    yield data.found(plain, model, status, level)


def multinomial(data: Data) -> Iterator[Found]:
    data.y = np.unique(data.y, return_inverse=True)[1] % 4
    classes = int(data.y.max()) + 1
    if not data.total * data.alpha > 1e-300 or classes < 3:
        return
    C, ratio = 1 / (data.total * data.alpha), data.ratio
    options = {"C": C, "l1_ratio": ratio, "fit_intercept": data.intercept, "tol": data.tol}
    model, status = data.fitted(estimators.LogisticRegression(**options))
    level = 1 / (LONG(C) * data.total)
    one = data.separable("softmax", level * ratio, level * (1 - LONG(ratio)))
    rows = {name: np.tile(getattr(one, name), classes) for name in ("t", "q", "lower", "upper")}
    x = np.asarray(model.coef_, float)
    x = np.column_stack([x, model.intercept_]) if data.intercept else x
    gap = float(model.dual_gap_) * float(level)
    yield data.point(replace(one, **rows, classes=classes), x.ravel(), gap, status)


def logistic_cv(data: Data) -> Iterator[Found]:
    data.y = (data.y > np.median(data.y)).astype(float)
    if min((data.y == 0).sum(), (data.y == 1).sum()) < 3 or data.weights is not None:
        return
    model = estimators.LogisticRegressionCV(
        Cs=3,
        cv=2,
        l1_ratios=[1.0],
        tol=data.tol,
        fit_intercept=data.intercept,
        use_legacy_attributes=False,
        scoring="neg_log_loss",
    )
    model, status = data.fitted(model)
    C = float(np.ravel(model.C_)[0])
    level = 1 / (LONG(C) * data.total)
    plain = data.separable("logistic", level, 0)
    yield data.found(plain, model, status, level)


def poisson(data: Data) -> Iterator[Found]:
    with np.errstate(all="ignore"):
        size = abs(data.y).max() or 1.0
        data.y = np.round(abs(data.y) / size * float(data.rng.choice([3.0, 1e3])))
        scale = abs(data.X).max() or 1.0
        data.X = data.X / scale if np.isfinite(1 / scale) else data.X
    if not data.y[data.rows].any():
        return
    alpha, ratio = float(data.rng.choice([1e-6, 1e-2, 1.0])), data.ratio
    options = {"alpha": alpha, "l1_ratio": ratio, "fit_intercept": data.intercept}
    model, status = data.fitted(estimators.PoissonRegressor(tol=data.tol, **options))
    plain = data.separable("poisson", LONG(alpha) * ratio, LONG(alpha) * (1 - LONG(ratio)))
    yield data.found(plain, model, status)


def huber(data: Data) -> Iterator[Found]:
    alpha, ratio = float(data.rng.choice([1e-4, 1e-2, 1.0])), data.ratio
    options = {"alpha": alpha, "l1_ratio": ratio, "fit_intercept": data.intercept}
    epsilon = float(data.rng.choice([1.0, 1.35, 5.0]))
    model, status = data.fitted(estimators.HuberRegressor(epsilon=epsilon, tol=data.tol, **options))
    level, delta = LONG(model.scale_) * alpha, LONG(epsilon * model.scale_)
    rows = level * ratio / 2, level * (1 - LONG(ratio))
    if model.scale_ > 0:
        plain = data.separable("huber", *rows, delta=delta)
        found = data.found(plain, model, status, model.scale_ / 2)
        yield replace(found, constant=data.total * LONG(model.scale_) ** 2 / 2)


def grouped(data: Data) -> Iterator[Found]:
    ratio, n = 0.0, data.n
    groups = np.sort(data.rng.integers(0, max(1, n // 3), n))
    groups = np.unique(groups, return_inverse=True)[1]
    count = groups.max() + 1
    weights = data.rng.uniform(0.1, 3, count) if data.rng.random() < 0.5 else None
    options: dict[str, Any] = {"groups": groups, "weights": weights, "tol": data.tol}
    options |= {"alpha": data.alpha, "fit_intercept": data.intercept}
    name = "GroupLasso"
    if data.rng.random() < 0.5:
        name, ratio = "SparseGroupLasso", data.ratio
        options["l1_ratio"] = ratio
    model, status = data.fitted(getattr(estimators, name)(**options))
    level = LONG(data.total) * LONG(data.alpha)
    of_groups = np.ones(count, LONG) if weights is None else weights.astype(LONG)
    of_groups = np.append(of_groups, LONG(0)) if data.intercept else of_groups
    plain = replace(
        data.separable("squares", 0, 0),
        groups=np.append(groups, count) if data.intercept else groups,
        t=level * (1 - LONG(ratio)) * of_groups,
        l1=data.with_constant(level * ratio, 0),
    )
    yield data.found(plain, model, status, data.total)


def tasks(data: Data) -> Iterator[Found]:
    several = Data(data.rng, data.instance, several=True)
    options = {"alpha": several.alpha, "fit_intercept": several.intercept, "tol": several.tol}
    model, status = several.fitted(estimators.MultiTaskLasso(**options))
    A, y = several.columns(), several.y[several.rows].astype(LONG)
    (m, n), T = A.shape, y.shape[1]
    both = np.zeros((m, T, n, T), LONG)
    for task in range(T):
        both[:, task, :, task] = A
    t = LONG(several.total) * LONG(several.alpha) * several.with_constant(1, 0)
    one = np.ones(n * T, LONG)
    plain = Plain(
        "squares", both.reshape(m * T, n * T), y.ravel(), t, 0 * one, -np.inf * one, np.inf * one,
        groups=np.arange(n * T) // T, intercepts=T * several.intercept,
    )  # fmt: skip
    x = np.asarray(model.coef_, float)
    x = np.column_stack([x, np.ravel(model.intercept_)]) if several.intercept else x
    yield several.point(plain, x.T.ravel(), float(model.dual_gap_) * several.total, status)


def nonnegative(data: Data) -> Iterator[Found]:
    model = estimators.NonNegativeLeastSquares(fit_intercept=data.intercept, tol=data.tol)
    model, status = data.fitted(model)
    plain = data.separable("squares", 0, 0, lower=0.0)
    found = data.found(plain, model, status, data.total)
    found.instance = replace(found.instance, text=found.instance.text.replace("float32", ""))
    yield found


def on_simplex(data: Data) -> Iterator[Found]:
    data.intercept = False
    at_most, radius = bool(data.rng.random() < 0.5), float(data.instance.numbers["radius"])
    model = estimators.SimplexRegressor(radius, at_most=at_most, tol=data.tol)
    model, status = data.fitted(model)
    plain = replace(data.separable("squares", 0, 0, 0.0), radius=LONG(radius), at_most=at_most)
    yield data.found(plain, model, status, data.total)


FITS: dict[str, Callable[[Data], Iterator[Found]]] = {
    "lasso": lasso, "cv": lasso_cv, "path": path, "logistic": logistic, "multinomial": multinomial,
    "logistic cv": logistic_cv, "poisson": poisson, "huber": huber, "groups": grouped,
    "tasks": tasks, "nnls": nonnegative, "simplex": on_simplex,
}  # fmt: skip


def drawn(seed: int, number: int, rng: np.random.Generator) -> tuple[str, Data]:
    """The estimator of a number, and its data."""
    instance = (large.draw if rng.random() < 0.5 else draw)(seed, number)
    return str(rng.choice([*FITS])), Data(rng, instance)
