"""The rows of the table: which data, which problem, which lam."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold

from measure import further
from measure.data import FOLDER, LOADERS, Data, load
from measure.gaps import largest_lam
from measure.task import Task

SHARES = (0.5, 0.1, 0.01)
TALL = 0.001
"""One more lam / lam_max where m > n."""
KINDS = {
    "lasso": "LASSO",
    "lasso-c": "LASSO with intercept",
    "enet": "elastic net",
    "positive": "positive LASSO",
    "logistic": "l1 logistic",
    "logistic-c": "l1 logistic with intercept",
    "path": "LASSO, 100 lambdas",
    "cv": "LASSO, 100 lambdas, 5 folds",
    "logistic-path": "l1 logistic, 100 lambdas",
}
ALL_KINDS = KINDS | {name: kind.title for name, kind in further.FURTHER.items()}
"""Those and the kinds of `further.py`."""
OPTIONS = {
    "lasso": {},
    "lasso-c": {"intercept": True},
    "enet": {"l2_ratio": 1.0},
    "positive": {"positive": True},
    "logistic": {"loss": "logistic"},
    "logistic-c": {"loss": "logistic", "intercept": True},
    "path": {},
    "cv": {"intercept": True},
    "logistic-path": {"loss": "logistic"},
}
PATHS = ("path", "cv", "logistic-path")
POINTS, FOLDS = 100, 5
SIZES = {
    "diabetes": (442, 10),
    "breast": (569, 30),
    "200x1000": (200, 1000),
    "500x300": (500, 300),
    "500x600": (500, 600),
    "100x10000": (100, 10_000),
    "10000x100": (10_000, 100),
    "spambase": (4601, 57),
    "ionosphere": (351, 33),
    "gravier": (168, 2905),
    "shipp": (77, 7129),
    "khan": (63, 2308),
    "random4000x3000": (4000, 3000),
    "random20000x5000": (20_000, 5000),
    "words5000x8000": (5000, 8000),
    "categories20000": (20_000, 2789),
    "rare2000x300": (2000, 300),
    "relathe": (1427, 4322),
    "w8a": (49_749, 300),
}
"""m and n as loaded, so that the rows can be listed without reading the data."""
QUICK = ("diabetes", "200x1000", "gravier", "relathe")
"""The data sets of `--quick`."""


@dataclass(frozen=True)
class Row:
    kind: str
    data: str
    share: float
    """lam / lam_max, of a path the smallest."""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.data} {self.share:g}"

    def task(self, folder: Path = FOLDER) -> Task:
        if self.kind in further.FURTHER:
            return further.make(self.name, self.kind, self.data, self.share, folder)
        return make(self.name, self.kind, load(self.data, folder), self.share)


def make(name: str, kind: str, data: Data, share: float, points: int = POINTS) -> Task:
    """The task of a kind on a data set."""
    options = OPTIONS[kind]
    loss = options.get("loss", "squares")
    y = data.labels if loss == "logistic" else data.target
    if loss == "squares" and not options.get("intercept"):
        y = (y - y.mean()) / y.std()
    top = largest_lam(data.X, y, loss, options.get("positive", False), "intercept" in options)
    lams = top * np.geomspace(1, share, points) if kind in PATHS else np.array([share * top])
    folds = tuple(KFold(FOLDS).split(y)) if kind == "cv" else ()
    return Task(name, kind, data.X, y, lams, folds=folds, **options)


def rows(kinds=tuple(KINDS), only: str = "", quick: bool = False) -> Iterator[Row]:
    """The rows of these kinds whose name matches the regular expression `only`."""
    for kind in kinds:
        if kind in further.FURTHER:
            chosen = [Row(kind, *each) for each in further.rows(kind)]
            yield from (row for row in chosen if re.search(only, row.name))
            continue
        for data in QUICK if quick else LOADERS:
            m, n = SIZES[data]
            shares = (*SHARES, TALL) if m > n else SHARES
            if kind in PATHS:
                shares = shares[-1:]
            elif quick:
                shares = (0.1,)
            for share in shares:
                row = Row(kind, data, share)
                if re.search(only, row.name):
                    yield row
