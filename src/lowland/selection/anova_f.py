"""Selection by the one-way analysis of variance (Fisher 1925)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.context import FitContext
from lowland._engines.linalg.class_moments import ClassColumns, class_columns
from lowland.selection._base import require_two
from lowland.selection._chunk_sums import ByClass, scatter_ratio
from lowland.selection._filter import Filter


class AnovaF(Filter):
    """Keep the columns whose means differ most between classes: F = (B / (C - 1)) / (W / (n - C)).

    B and W are the sums of squares of a column between and within the classes. Use it for a first
    look at labeled data. It does not see columns that matter only together, nor classes of equal
    means. Cost: O(n p).

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
    fits_rows = True

    def _score(self, X: Any, target: Any, run: FitContext) -> np.ndarray:
        return f_values(class_columns(X, target.codes, len(target.classes)))

    def _chunk_kind(self, y: Any) -> type[ByClass]:
        return ByClass

    def _score_sums(self, sums: Any, n: int) -> np.ndarray:
        require_two(sums.classes, "AnovaF")
        return f_values(sums.by_class)


def f_values(sums: ClassColumns) -> np.ndarray:
    """F of each column; 0 if there is one row per class."""
    n, C = int(sums.counts.sum()), len(sums.counts)
    if n <= C:
        return np.zeros(sums.means.shape[1])
    return scatter_ratio(sums) * ((n - C) / (C - 1))
