"""Selection by the one-way analysis of variance (Fisher 1925)."""

from __future__ import annotations

import numpy as np

from lowland._engines.linalg.class_moments import ClassColumns
from lowland.selection._filter import ClassFilter, scatter_ratio


class AnovaF(ClassFilter):
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

    def _score_classes(self, sums: ClassColumns) -> np.ndarray:
        n, C = int(sums.counts.sum()), len(sums.counts)
        if n <= C:  # one row per class
            return np.zeros(sums.means.shape[1])
        return scatter_ratio(sums) * ((n - C) / (C - 1))
