"""Selection of the columns that correlate with a target."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.rows.chunks import Block
from lowland._base.targets import check_numbers
from lowland._base.validation import is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.class_moments import labeled_columns
from lowland._engines.linalg.moments import ColumnSums, column_moments, column_sums, merge_columns
from lowland.selection._base import holds_numbers, read_classes, require_two
from lowland.selection._filter import Filter, scatter_ratio


class CorrelationScore(Filter):
    """Keep the columns most correlated with a target: |r_j|, r_j = cov(x_j, y) / (s_j s_y).

    It sees linear relations only; ``MutualInformation`` sees others as well. The target is a
    column of numbers, or of text with two different values. Cost: O(n p).

    Parameters
    ----------
    threshold : float or None, default=None
        Keep only columns with |r| above this value. None sets no limit.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        |r| of each column; 0 for a constant column.

    References
    ----------
    Pearson (1895), Proc. Royal Society of London 58; Guyon & Elisseeff (2003), J. Machine Learning
    Research 3.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X, width = iris().X[:, :3], iris().X[:, 3]
    >>> CorrelationScore(1).fit(X, width).scores_.round(3)
    array([0.818, 0.366, 0.963])
    """

    reference = "Pearson (1895)"
    needs_target = True
    fits_rows = True

    def _read_target(self, y: Any, n: int) -> np.ndarray:
        """Numbers unchanged, two classes as 0 and 1."""
        if holds_numbers(y):
            return check_numbers(y, n, owner="CorrelationScore")
        classes, codes = read_classes(y, n, owner="CorrelationScore")
        self._require_pair(classes)
        return codes

    def _require_pair(self, classes: np.ndarray) -> None:
        if len(classes) > 2:
            raise DataError(
                f"CorrelationScore: y has {len(classes)} classes, but at most two are allowed; use "
                "AnovaF, or give numbers."
            )

    def _score(self, X: Any, target: Any, run: FitContext) -> np.ndarray:
        from sklearn.feature_selection import r_regression

        y = target - np.mean(target, dtype=np.float64)
        if not is_sparse(X):  # scikit-learn subtracts sums of squares, which cancels digits
            X = X - column_moments(X)[0]
        return np.abs(r_regression(X, y, force_finite=True))

    def _block_sums(self, block: Block) -> Any:
        sums = cross_sums if holds_numbers(block.y) else labeled_columns
        return sums(block.X, block.y, "CorrelationScore")

    def _score_sums(self, sums: Any, n: int) -> np.ndarray:
        if isinstance(sums, CrossSums):
            lengths = np.sqrt(sums.columns.squares) * np.sqrt(sums.target.squares)
            return np.abs(sums.cross) / lengths
        require_two(sums.classes, "CorrelationScore")
        self._require_pair(sums.classes)
        # of two classes r^2 = B / (B + W), with the squares between and within them
        ratio = scatter_ratio(sums.by_class)
        return np.where(np.isinf(ratio), 1.0, np.sqrt(ratio / (1.0 + ratio)))


# Sums of a table in chunks with a target of numbers.


class CrossSums(NamedTuple):
    """Sums of the columns and of the target, and sum_i (x_i - m)(y_i - t) of each column."""

    columns: ColumnSums
    target: ColumnSums
    cross: np.ndarray

    @property
    def low(self) -> np.ndarray:
        return self.columns.low

    @property
    def high(self) -> np.ndarray:
        return self.columns.high

    def merged(self, other: CrossSums) -> CrossSums:
        n_a, n_b = int(self.target.known[0]), int(other.target.known[0])
        apart = other.columns.mean - self.columns.mean
        apart = apart * (other.target.mean - self.target.mean)
        return CrossSums(
            merge_columns(self.columns, other.columns),
            merge_columns(self.target, other.target),
            self.cross + other.cross + apart * (n_a * (n_b / (n_a + n_b))),
        )


def cross_sums(X: Any, y: Any, owner: str) -> CrossSums:
    """Sums of columns with a target of numbers."""
    numbers = check_numbers(y, X.shape[0], owner=owner)[:, None]
    target, columns = column_sums(numbers), column_sums(X)
    rows = X.astype(np.float64, copy=False)
    away = numbers - target.mean
    if is_sparse(X):  # sum_i x_i (y_i - t): the means of both cancel
        cross = products.transpose_times(rows, np.zeros(X.shape[1]), away, 1)
    else:
        cross = np.einsum("ij,ik->jk", rows - columns.mean, away)
    return CrossSums(columns, target, cross[:, 0])
