"""Mergeable sums of columns, without a p x p matrix: count, mean, squared deviations, range.

As in :mod:`lowland._engines.linalg.moments`, the sums of two sets of rows give those of both. The
arrays may have any shape, so that there can be a row of sums for each class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.validation import all_finite, is_sparse
from lowland._engines.linalg.moments import column_moments, known_moments, may_overflow


class ColumnSums(NamedTuple):
    """Of each column: known values, their mean, sum of squared deviations, least and greatest.

    A column without values has the mean 0, and infinity as its least value.
    """

    known: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def constant(self) -> np.ndarray:
        """Which columns have a single value, or none."""
        return self.low >= self.high

    @property
    def largest(self) -> np.ndarray:
        """The largest absolute value of each column."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def no_columns(shape: tuple[int, ...]) -> ColumnSums:
    """The sums of no rows."""
    zero, most = np.zeros(shape), np.full(shape, np.inf)
    return ColumnSums(np.zeros(shape, np.int64), zero, zero, most, -most)


@may_overflow
def column_sums(X: Any) -> ColumnSums:
    """The sums of the rows of X, in float64; NaN is a value that is not known. O(n p)."""
    n, p = X.shape
    if not n:
        return no_columns((p,))
    if is_sparse(X):
        low, high = (_range_end(end) for end in (X.min(axis=0), X.max(axis=0)))
        return ColumnSums(np.full(p, n, np.int64), *column_moments(X), low, high)
    if all_finite(X):
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        return ColumnSums(np.full(p, n, np.int64), *column_moments(X), low, high)
    gaps = np.isnan(X)
    empty = gaps.all(axis=0)
    known, mean, squares = known_moments(np.where(empty, 0.0, X))
    low = np.where(gaps, np.inf, X).min(axis=0).astype(np.float64)
    high = np.where(gaps, -np.inf, X).max(axis=0).astype(np.float64)
    return ColumnSums(np.where(empty, 0, known).astype(np.int64), mean, squares, low, high)


def _range_end(values: Any) -> np.ndarray:
    return values.toarray().ravel().astype(np.float64)


@may_overflow
def merge_columns(a: ColumnSums, b: ColumnSums) -> ColumnSums:
    """Sums of two disjoint sets of rows together (Chan et al. 1983, eq. 2.1)."""
    known = a.known + b.known
    delta = np.where((a.known > 0) & (b.known > 0), b.mean - a.mean, 0.0)
    share = b.known / np.maximum(known, 1)
    mean = np.where(a.known > 0, a.mean, b.mean) + delta * share
    squares = a.squares + b.squares + delta**2 * (a.known * share)
    return ColumnSums(known, mean, squares, np.minimum(a.low, b.low), np.maximum(a.high, b.high))


def with_value(sums: ColumnSums, counts: np.ndarray, values: np.ndarray) -> ColumnSums:
    """The sums after so many more rows had one value, as filled gaps have."""
    low = np.where(counts > 0, values, np.inf)
    high = np.where(counts > 0, values, -np.inf)
    more = ColumnSums(counts, np.where(counts > 0, values, 0.0), np.zeros(len(counts)), low, high)
    return merge_columns(sums, more)
