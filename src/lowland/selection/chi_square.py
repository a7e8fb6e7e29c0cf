"""Selection of counts by the chi-square test (Pearson 1900)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.errors import DataError
from lowland._base.validation import column_label, is_sparse
from lowland._engines.linalg.class_moments import ClassColumns
from lowland.selection._filter import ClassFilter


class ChiSquare(ClassFilter):
    """Keep the counts that depend on the class: chi2 = sum_c (o_c - e_c)^2 / e_c.

    o_c is the sum of a column over class c, and e_c the share of its total that the size of the
    class predicts. Use it for counts, frequencies and 0/1 columns, such as words in texts. Values
    must not be negative. Cost: O(n p), or O(stored) for sparse data.

    Parameters
    ----------
    threshold : float or None, default=None
        Keep only columns with chi2 above this value. None sets no limit.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        chi2 of each column; 0 for a constant column.

    References
    ----------
    Pearson (1900), Philosophical Magazine 50; Liu & Setiono (1995), Proc. 7th IEEE Int. Conf. on
    Tools with Artificial Intelligence.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> ChiSquare(2).fit(iris().X, iris().y).scores_.round(1)
    array([ 10.8,   3.7, 116.3,  67. ])
    """

    reference = "Pearson (1900)"
    aliases = ("chi2",)

    def _score_classes(self, sums: ClassColumns) -> np.ndarray:
        counts, means, _ = sums
        observed = counts[:, None] * means  # in float64: sums of float32 rows have too few digits
        expected = np.outer(counts / counts.sum(), observed.sum(axis=0))
        return ((observed - expected) ** 2 / expected).sum(axis=0)

    def _check_values(self, X: Any) -> None:
        smallest = X.min(axis=0)
        smallest = smallest.toarray().ravel() if is_sparse(smallest) else smallest
        if (smallest < 0).any():
            column = int(np.argmax(smallest < 0))
            label = column_label(getattr(self, "feature_names_in_", None), column)
            raise DataError(
                f"Negative values in data passed to ChiSquare: {label} holds "
                f"{float(smallest[column]):g}, but the test is for counts; use AnovaF."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
