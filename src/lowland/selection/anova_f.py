"""Selection by the one-way analysis of variance (Fisher 1925)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.context import FitContext
from lowland._core.validation import is_sparse
from lowland._engines.linalg.moments import column_moments
from lowland.selection._filter import Filter, constant_columns

__all__ = ["AnovaF"]


class AnovaF(Filter):
    """Keep the columns whose means differ most between classes: F = (B / (C - 1)) / (W / (n - C)).

    B and W are the sums of squares of a column between and within the classes. Use it for a first
    look at labeled data. It does not see columns that matter only together, nor classes of equal
    means. Computed by scikit-learn's ``f_classif``. Cost: O(n p).

    Parameters
    ----------
    threshold : float or None, default=None
        Keep only columns with F above this value. None sets no limit.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        F of each column: 0 for a constant column, the largest float for one that varies between
        classes only.

    References
    ----------
    Fisher (1925), Statistical methods for research workers.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> AnovaF(2).fit(iris().X, iris().y).scores_.round(1)
    array([ 119.3,   49.2, 1180.2,  960. ])
    """

    reference = "Fisher (1925)"
    aliases = ("f",)
    needs_target = True
    target_kind = "classes"

    def _score(self, X: Any, target: Any, run: FitContext) -> np.ndarray:
        from sklearn.feature_selection import f_classif

        if not is_sparse(X):  # scikit-learn subtracts sums of squares, which cancels digits
            X = X - column_moments(X)[0]
        varying = np.flatnonzero(~constant_columns(X))
        scores = np.zeros(X.shape[1])
        if len(varying) and X.shape[0] > len(target.classes):
            scores[varying] = f_classif(X[:, varying], target.codes)[0]
        return scores
