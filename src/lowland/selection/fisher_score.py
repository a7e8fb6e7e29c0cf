"""Selection by Fisher's score (Duda, Hart & Stork 2001)."""

from __future__ import annotations

import numpy as np

from lowland._engines.linalg.class_moments import ClassColumns
from lowland.selection._filter import ClassFilter, scatter_ratio


class FisherScore(ClassFilter):
    """Keep the columns that set classes apart: sum_c n_c (m_c - m)^2 / sum_c n_c s_c^2.

    n_c, m_c and s_c^2 are the size, mean and variance of class c in the column. LDA maximizes the
    same ratio over all directions. The score is (C - 1) / (n - C) times the F of :class:`AnovaF`,
    so the ranks are equal. Cost: O(n p).

    Parameters
    ----------
    threshold : float or None, default=None
        Keep only columns with a score above this value. None sets no limit.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Ratio of the scatter between and within classes: 0 for a constant column, the largest float
        for a column that varies between classes only.

    References
    ----------
    Duda, Hart & Stork (2001), Pattern classification, 2nd edition, section 3.8.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> FisherScore(2).fit(iris().X, iris().y).scores_.round(2)
    array([ 1.62,  0.67, 16.06, 13.06])
    """

    reference = "Duda, Hart & Stork (2001)"

    def _score_classes(self, sums: ClassColumns) -> np.ndarray:
        return scatter_ratio(sums)
