"""Filters: every column gets a score, and the best are kept."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from lowland._base.constraints import Null, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.params import param
from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows
from lowland._base.validation import check_size, is_sparse
from lowland._engines.linalg import class_moments
from lowland._engines.linalg.class_moments import ClassColumns, LabeledColumns
from lowland._engines.linalg.moments import ColumnSums, merge_columns
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland.selection._base import Selector, read_target, require_two


def constant_columns(X: Any) -> np.ndarray:
    """Which columns have a single value."""
    if is_sparse(X):
        largest, smallest = X.max(axis=0).toarray(), X.min(axis=0).toarray()
        return (largest == smallest).ravel()
    same = np.ones(X.shape[1], dtype=bool)
    for rows in row_blocks(X.shape[0], rows_within(8 * X.shape[1])):
        same &= (X[rows] == X[0]).all(axis=0)
    return same


# What is summed over chunks: columns, columns by class, or what a filter sums by itself.


def scatter_ratio(sums: ClassColumns) -> np.ndarray:
    """Sum of squares between classes over that within classes, of each column."""
    counts, means, squares = sums
    mean = means[0] + counts / counts.sum() @ (means - means[0])
    between = counts @ (means - mean) ** 2
    return between / squares.sum(axis=0)


def merged_sums(a: Any, b: Any, owner: str) -> Any:
    """Sums of the rows of both; they have the least and greatest value of each column."""
    if type(a) is not type(b):
        raise DataError("the labels are text in some rows and numbers in others; use one kind.")
    if isinstance(a, LabeledColumns):
        return class_moments.merge_labeled(a, b, owner)
    return merge_columns(a, b) if isinstance(a, ColumnSums) else a.merged(b)


class Filter(Selector):
    """A score per column: a method writes ``_score``.

    Columns are ranked by score, ties by their order. A constant column ranks last, whatever its
    formula gives (often 0/0).

    Parameters
    ----------
    n_features : int, float or None, default=None
        Number of columns to keep, or their share of all columns. None keeps half of them, or all
        that are better than ``threshold``.
    threshold : float or None, default=None
        Keep only columns with a score above this value. None sets no limit.
    """

    threshold: float | None = param(Real() | Null(), default=None)

    target_kind: ClassVar[str | None] = None  # "classes", "numbers", "auto", or None: no target
    lower_is_better: ClassVar[bool] = False
    constant_score: ClassVar[float] = 0.0

    def _score(self, X: Any, target: Any, run: FitContext) -> np.ndarray:
        """The score of each column; values of constant columns are ignored."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, run: FitContext) -> None:
        n, p = X.shape
        wanted, target = self._number_wanted(p), self._read_target(y, n)
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.array(self._score(X, target, run), dtype=np.float64)
        scores[np.isnan(scores)] = self.constant_score
        self._rank(scores, constant_columns(X), wanted, run)

    def _rank(
        self, scores: np.ndarray, constant: np.ndarray, wanted: int | None, run: FitContext
    ) -> None:
        """Set the fitted attributes from the scores."""
        most = np.finfo(np.float64).max  # x / 0: the column separates the classes perfectly
        scores = np.nan_to_num(scores, posinf=most, neginf=-most)
        scores[constant] = self.constant_score
        with run.monitor.phase("ranking"):
            order = np.lexsort((scores if self.lower_is_better else -scores, constant))
            self._keep(order, self._number_kept(scores, constant, wanted), scores)

    # --- tables in chunks -------------------------------------------------------------------

    def _block_sums(self, block: Block) -> Any:
        """Sums of the rows of a block that :func:`merged_sums` knows, for ``fits_rows``."""
        raise NotImplementedError

    def _score_sums(self, sums: Any, n: int) -> np.ndarray:
        """The score of each column from the sums of all n rows, for ``fits_rows``."""
        raise NotImplementedError

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        n, p = rows.shape
        wanted = self._number_wanted(p)
        merge = partial(merged_sums, owner=type(self).__name__)
        sums = rows.total(self._block_sums, merge, run.monitor, "columns")
        check_size(float(np.maximum(np.abs(sums.low), np.abs(sums.high)).max()))
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = self._score_sums(sums, n)
        scores = np.where(np.isnan(scores), self.constant_score, scores)
        self._rank(scores, sums.low == sums.high, wanted, run)

    # --- targets ----------------------------------------------------------------------------

    def _read_target(self, y: Any, n: int) -> Any:
        """y as ``_score`` takes it, by the parameter ``target`` if the method has one."""
        if self.target_kind is None:
            return None
        kind = getattr(self, "target", self.target_kind)
        return read_target(y, n, kind, owner=type(self).__name__)

    def _number_kept(self, scores: np.ndarray, constant: np.ndarray, wanted: int | None) -> int:
        if self.threshold is None:
            return max(1, len(scores) // 2) if wanted is None else wanted
        lower = self.lower_is_better
        better = scores < self.threshold if lower else scores > self.threshold
        good = int((better & ~constant).sum())
        if good == 0:
            varying = scores if constant.all() else scores[~constant]
            raise DataError(
                f"{type(self).__name__}: no column has a score {'below' if lower else 'above'} "
                f"threshold={self.threshold!r}; the best is "
                f"{varying.min() if lower else varying.max():g}."
            )
        return good if wanted is None else min(good, wanted)


class ClassFilter(Filter):
    """A score from the means and squares of each column in each class: write ``_score_classes``."""

    needs_target = True
    target_kind = "classes"
    fits_rows = True

    def _score_classes(self, sums: ClassColumns) -> np.ndarray:
        """The score of each column."""
        raise NotImplementedError

    def _check_values(self, X: Any) -> None:
        """Refuse values that the score is not made for."""

    def _score(self, X: Any, target: Any, run: FitContext) -> np.ndarray:
        self._check_values(X)
        sums = class_moments.class_columns(X, target.codes, len(target.classes))
        return self._score_classes(sums)

    def _block_sums(self, block: Block) -> Any:
        self._check_values(block.X)
        return class_moments.labeled_columns(block.X, block.y, type(self).__name__)

    def _score_sums(self, sums: Any, n: int) -> np.ndarray:
        require_two(sums.classes, type(self).__name__)
        return self._score_classes(sums.by_class)
