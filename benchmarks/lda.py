"""LDA beside scikit-learn's solvers "svd" (its default) and "eigen": fit, and map the rows.

"eigen" refuses the constant pixels of MNIST unless it may shrink, so it has a case of
its own, in which all shrink by the same share.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sklearn.discriminant_analysis
from _harness import DATA, Case, main

import lowland

Peer = sklearn.discriminant_analysis.LinearDiscriminantAnalysis
EIGEN = "scikit-learn eigen"
SVD = "scikit-learn svd"


class Labeled(NamedTuple):
    """Rows to fit and rows to be judged by; a slice of it has fewer rows, as the harness wants."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            return Labeled(self.X[rows], self.y[rows], self.X_new, self.y_new)
        return tuple(self)[rows]


def ours(data: Labeled, **params: Any) -> Any:
    model = lowland.LDA(**params)
    return model, model.fit_transform(data.X, data.y)


def theirs(data: Labeled, **params: Any) -> Any:
    model = Peer(**params)
    return model, model.fit_transform(data.X, data.y)


def error(data: Labeled, result: Any) -> float:
    """Share of the rows kept back that are classified wrong; lower is better."""
    return 1 - float(result[0].score(data.X_new, data.y_new))


def mnist() -> Labeled:
    stored = np.load(DATA / "mnist.npz")
    X, y = stored["X"].astype(np.float32), stored["y"]
    order = np.random.default_rng(0).permutation(len(y))[:30_000]
    fit, new = order[:20_000], order[20_000:]
    return Labeled(X[fit], y[fit], X[new], y[new])


def wide() -> Labeled:
    """As many genes and patients as in Golub et al. (1999): 72 x 7 129, two classes."""
    rng = np.random.default_rng(0)
    y = np.arange(144) % 2
    X = 2 * rng.standard_normal((144, 8)) @ rng.standard_normal((8, 7_129))
    X += rng.gamma(2.0, size=X.shape)
    X[:, :300] += 1.5 * y[:, None]
    return Labeled(X[:72], y[:72], X[72:], y[72:])


CASES = [
    Case(
        "mnist 20000 x 784",
        mnist,
        {"lowland": ours, SVD: theirs},
        error,
        "error of 10000 new rows",
    ),
    Case(
        "mnist 20000 x 784, shrinkage .001",
        mnist,
        {
            "lowland": partial(ours, shrinkage=0.001),
            EIGEN: partial(theirs, solver="eigen", shrinkage=0.001),
        },
        error,
        "error of 10000 new rows",
    ),
    Case(
        "wide 72 x 7129",
        wide,
        {"lowland": ours, SVD: theirs},
        error,
        "error of 72 new rows",
    ),
]

if __name__ == "__main__":
    main(CASES)
