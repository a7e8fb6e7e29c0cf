"""Selection by Fisher's score (Duda, Hart & Stork 2001)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.context import FitContext
from lowland._engines.linalg.class_moments import class_columns
from lowland.selection._filter import Filter

__all__ = ["FisherScore"]


class FisherScore(Filter):
    """Keep the columns that set classes apart: sum_c n_c (m_c - m)^2 / sum_c n_c s_c^2.

    What LDA maximizes over all directions, here along each axis alone: n_c, m_c and s_c^2 are size,
    mean and variance of a class in the column. Ranks like :class:`AnovaF`, of which it is the
    (C - 1) / (n - C)-fold. Cost: O(n p).

    Parameters
    ----------
    n_features : int, float or None, default=None
        Columns to keep: how many, or which share. None: half of them, or all above ``threshold``.
    threshold : float or None, default=None
        Keep only columns with a larger score.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Scatter between over within classes; 0 for a column that does not vary, the largest float
        for one that varies between classes only.
    support_, ranking_ : ndarrays of shape (n_features,)
        Whether a column is kept; its rank, from 1.

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
    needs_target = True
    target_kind = "classes"

    def _score(self, X: Any, target: Any, run: FitContext) -> np.ndarray:
        counts, means, squares = class_columns(X, target.codes, len(target.classes))
        mean = means[0] + counts / counts.sum() @ (means - means[0])
        between = counts @ (means - mean) ** 2
        return between / squares.sum(axis=0)
