"""Selection of columns beside scikit-learn: mutual information, ReliefF, sequential selection.

scikit-learn has no ReliefF; there the peer is the algorithm in numpy with scipy's distances.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _harness import Case, main
from scipy.spatial.distance import cdist
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import (
    SequentialFeatureSelector,
    mutual_info_classif,
    mutual_info_regression,
)
from sklearn.model_selection import StratifiedKFold

import lowland

SKLEARN = "scikit-learn"
USEFUL = 10


class Columns(NamedTuple):
    """Rows with classes and a number that depend on the first columns; a slice has fewer rows."""

    X: np.ndarray
    classes: np.ndarray
    number: np.ndarray

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            return Columns(self.X[rows], self.classes[rows], self.number[rows])
        return tuple(self)[rows]


def table(n: int, p: int) -> Columns:
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(n, p))
    about = np.sin(X[:, :USEFUL]).sum(axis=1)
    edges = np.quantile(about, [0.25, 0.5, 0.75])
    return Columns(X, np.digitize(about, edges), about + 0.1 * rng.standard_normal(n))


def found(data: Columns, scores: np.ndarray) -> float:
    """How many of the useful columns are among the best; higher is better."""
    return float((np.argsort(-scores)[:USEFUL] < USEFUL).sum())


def naive_relief(data: Columns, k: int = 10) -> np.ndarray:
    X, y = data.X, data.classes
    U = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    share, weights = np.bincount(y) / len(y), np.zeros(X.shape[1])
    for start in range(0, len(X), 256):
        rows = np.arange(start, min(start + 256, len(X)))
        D = cdist(U[rows], U, "cityblock")
        D[np.arange(len(rows)), rows] = np.inf
        for c in range(len(share)):
            members = np.flatnonzero(y == c)
            near = members[np.argpartition(D[:, members], k, axis=1)[:, :k]]
            gaps = np.abs(U[near] - U[rows, None]).mean(axis=1)
            weights += np.where(y[rows] == c, -1.0, share[c] / (1 - share[y[rows]])) @ gaps
    return weights / len(X)


def sequential(data: Columns, ours: bool) -> np.ndarray:
    model, folds = LinearDiscriminantAnalysis(), StratifiedKFold(3)
    if ours:
        chosen = lowland.SequentialSelection(4, estimator=model, cv=folds)
    else:
        chosen = SequentialFeatureSelector(model, n_features_to_select=4, cv=folds)
    return chosen.fit(data.X, data.classes).get_support().astype(float)


CASES = [
    Case(
        "mutual information, classes, 10000 x 500",
        partial(table, 10_000, 500),
        {
            "lowland": lambda d: lowland.MutualInformation().fit(d.X, d.classes).scores_,
            SKLEARN: lambda d: mutual_info_classif(d.X, d.classes, n_jobs=-1),
        },
        found,
        "useful columns among the best 10",
    ),
    Case(
        "mutual information, numbers, 10000 x 500",
        partial(table, 10_000, 500),
        {
            "lowland": lambda d: lowland.MutualInformation().fit(d.X, d.number).scores_,
            SKLEARN: lambda d: mutual_info_regression(d.X, d.number, n_jobs=-1),
        },
        found,
        "useful columns among the best 10",
    ),
    Case(
        "ReliefF 10000 x 500",
        partial(table, 10_000, 500),
        {
            "lowland": lambda d: lowland.ReliefF().fit(d.X, d.classes).scores_,
            "numpy and scipy": naive_relief,
        },
        found,
        "useful columns among the best 10",
    ),
    Case(
        "sequential forward 1000 x 30, 4 columns",
        partial(table, 1000, 30),
        {"lowland": partial(sequential, ours=True), SKLEARN: partial(sequential, ours=False)},
        lambda data, support: float(support[:USEFUL].sum()),
        "useful columns among the 4 chosen",
    ),
]

if __name__ == "__main__":
    main(CASES, repeats=3)
