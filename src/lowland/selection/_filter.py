"""Filters: every column gets a score of its own, and the best are kept."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from lowland._base.constraints import Null, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.params import param
from lowland._base.rows.table import Rows
from lowland._base.validation import is_sparse
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland.selection._base import Selector, read_target
from lowland.selection._chunk_sums import sums_of_chunks


def constant_columns(X: Any) -> np.ndarray:
    """Which columns have a single value."""
    if is_sparse(X):
        largest, smallest = X.max(axis=0).toarray(), X.min(axis=0).toarray()
        return (largest == smallest).ravel()
    same = np.ones(X.shape[1], dtype=bool)
    for rows in row_blocks(X.shape[0], rows_within(8 * X.shape[1])):
        same &= (X[rows] == X[0]).all(axis=0)
    return same


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

    def _chunk_kind(self, y: Any) -> Any:
        """What is summed over chunks, one of :mod:`lowland.selection._chunk_sums`."""
        raise NotImplementedError

    def _check_block(self, X: Any) -> None:
        """Refuse values that the score is not made for."""

    def _score_sums(self, sums: Any, n: int) -> np.ndarray:
        """The score of each column from the sums of all n rows, for methods with ``fits_rows``."""
        raise NotImplementedError

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        n, p = rows.shape
        wanted = self._number_wanted(p)
        sums = sums_of_chunks(rows, self, run)
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
        better = scores < self.threshold if self.lower_is_better else scores > self.threshold
        good = int((better & ~constant).sum())
        if good == 0:
            raise DataError(
                f"{type(self).__name__}: no column has a score "
                f"{'below' if self.lower_is_better else 'above'} threshold={self.threshold!r}; "
                f"the best is {self._best(scores, constant):g}."
            )
        return good if wanted is None else min(good, wanted)

    def _best(self, scores: np.ndarray, constant: np.ndarray) -> float:
        varying = scores[~constant] if (~constant).any() else scores
        return float(varying.min() if self.lower_is_better else varying.max())
