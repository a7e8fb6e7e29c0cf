"""Selection of the columns that vary most."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.context import FitContext
from lowland._base.rows.chunks import Block
from lowland._engines.linalg.moments import ColumnSums, column_moments, column_sums
from lowland.selection._filter import Filter


class VarianceScore(Filter):
    """Keep the columns of largest variance: s_j = sum_i (x_ij - m_j)^2 / n.

    The fastest filter; it needs no target and removes columns that hardly vary. It makes sense only
    for columns in the same unit. ``threshold=0`` removes the constant columns and no others. Cost:
    O(n p).

    Parameters
    ----------
    threshold : float or None, default=None
        Keep only columns with a variance above this value. None sets no limit.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Variance of each column.

    References
    ----------
    Guyon & Elisseeff (2003), An introduction to variable and feature selection, J. Machine
    Learning Research 3.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> VarianceScore(2).fit(iris().X).get_support(indices=True)
    array([0, 2])
    """

    reference = "Guyon & Elisseeff (2003)"

    fits_rows = True

    def _score(self, X: Any, target: Any, run: FitContext) -> np.ndarray:
        return column_moments(X)[1] / X.shape[0]

    def _block_sums(self, block: Block) -> ColumnSums:
        return column_sums(block.X)

    def _score_sums(self, sums: Any, n: int) -> np.ndarray:
        return sums.squares / n
