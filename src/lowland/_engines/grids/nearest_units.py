"""The nearest unit of each row, and sums over the rows of each unit.

Rows are dense or sparse. Where NaN is a missing value (``missing``), distances and sums are over
the known columns. Distances are compared in float64 and equal ones by the number of the unit, so
that neither the type of the rows nor the number of threads decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.monitor import Monitor
from lowland._base.validation import is_sparse
from lowland._engines.linalg.products import row_blocks, rows_within, times
from lowland._engines.neighbors.cell_search import nearest_centers

FEW = 2  # units that the kernel can seek


class Nearest(NamedTuple):
    """Numbers (n, k) of the nearest units, nearest first, and the squared distances to them."""

    ids: np.ndarray
    squares: np.ndarray


class UnitSums(NamedTuple):
    """How many rows each unit has, and their sum (n_units, p), both in float64.

    Counts are (n_units,), or (n_units, p) with missing values: the known ones of each column.
    """

    counts: np.ndarray
    sums: np.ndarray


def nearest_units(
    X: Any, units: np.ndarray, threads: int, n_nearest: int = 1, missing: bool = False
) -> np.ndarray:
    """Numbers (n, n_nearest) of the units nearest to each row, nearest first."""
    if n_nearest <= FEW:
        return nearest_with_squares(X, units, threads, n_nearest, missing).ids
    shift = units.mean(axis=0).astype(X.dtype)  # squares of rows far from 0 would drown distances
    near = np.ascontiguousarray(units - shift, X.dtype)
    return nearest_centers(X - shift, near, n_nearest, threads, Monitor())


def nearest_with_squares(
    X: Any, units: np.ndarray, threads: int, n_nearest: int = 1, missing: bool = False
) -> Nearest:
    """The nearest one or two units of each row, and the squared distances to them."""
    units = np.ascontiguousarray(units, np.float64)
    found = Nearest(
        np.empty((X.shape[0], n_nearest), np.int32), np.empty((X.shape[0], n_nearest), np.float64)
    )
    if is_sparse(X):
        _nearest_of_sparse(X, units, threads, found)
        return found
    shift = units.mean(axis=0)
    for rows, block in _blocks(X, np.float64):
        _native.nearest_units(
            block, units, shift, missing, found.ids[rows], found.squares[rows], threads
        )
    return found


def unit_sums(
    X: Any, nearest: np.ndarray, n_units: int, threads: int = 1, missing: bool = False
) -> UnitSums:
    """Sums over the rows whose nearest unit each one is; ``nearest`` is (n,)."""
    n, p = X.shape
    if is_sparse(X):
        from scipy.sparse import csr_array

        member = csr_array((np.ones(n), (nearest, np.arange(n))), shape=(n_units, n))
        counts = np.bincount(nearest, minlength=n_units).astype(np.float64)
        return UnitSums(counts, np.asarray((member @ X).toarray(), np.float64))
    nearest = np.ascontiguousarray(nearest, np.int32)
    total = UnitSums(np.zeros((n_units, p if missing else 1)), np.zeros((n_units, p)))
    some = UnitSums(np.empty_like(total.counts), np.empty_like(total.sums))
    for rows, block in _blocks(X):
        _native.sum_by_unit(block, nearest[rows], missing, some.counts, some.sums, threads)
        total.counts[:] += some.counts
        total.sums[:] += some.sums
    return total if missing else total._replace(counts=total.counts[:, 0])


def squares_to_units(
    X: Any, units: np.ndarray, nearest: np.ndarray, lists: np.ndarray, threads: int
) -> np.ndarray:
    """Squared distances (n, width) of each row to the units ``lists[nearest]``; -1: infinity.

    A missing value (NaN) has no part in them.
    """
    units = np.ascontiguousarray(units, np.float64)
    lists = np.ascontiguousarray(lists, np.int32)
    nearest = np.ascontiguousarray(nearest, np.int32)
    found = np.empty((X.shape[0], lists.shape[1]))
    for rows, block in _blocks(X, np.float64):
        _native.squares_to_units(block, units, nearest[rows], lists, found[rows], threads)
    return found


def _blocks(X: Any, dtype: Any = None) -> Iterator[tuple[slice, np.ndarray]]:
    """Slices, and the dense rows in them, adjacent in memory: all of X if it is such a table.

    Units have digits that float32 lacks: rows are compared with them in float64.
    """
    dtype = np.dtype(X.dtype if dtype is None else dtype)
    if not is_sparse(X) and X.flags.c_contiguous and X.dtype == dtype:
        yield slice(0, len(X)), X
        return
    for rows in row_blocks(X.shape[0], rows_within(dtype.itemsize * X.shape[1])):
        block = X[rows].toarray() if is_sparse(X) else X[rows]
        yield rows, np.ascontiguousarray(block, dtype)


def _nearest_of_sparse(X: Any, units: np.ndarray, threads: int, found: Nearest) -> None:
    """By products x.w - |w|^2 / 2 in float64; rows that rounding could decide are made dense."""
    W = units.astype(np.float64)
    halves = np.einsum("ij,ij->i", W, W) / 2
    rounding = 4 * np.finfo(np.float64).eps * (X.shape[1] + 8)
    k, (m, p) = found.ids.shape[1], W.shape
    turned, longest = np.ascontiguousarray(W.T), np.sqrt(2 * halves.max())
    for rows in row_blocks(X.shape[0], rows_within(8 * m)):
        block = X[rows].astype(np.float64)
        scores = times(block, np.zeros(p), turned, threads) - halves
        squares = np.asarray(block.multiply(block).sum(axis=1), np.float64).reshape(-1)
        slack = rounding * longest * (np.sqrt(squares) + longest)
        ids, best = _largest(scores, k)
        found.ids[rows] = ids
        found.squares[rows] = np.maximum(squares[:, None] - 2 * best, 0)
        close = np.count_nonzero(scores >= (best[:, -1] - slack)[:, None], axis=1)
        if k > 1:  # the two nearest may be closer to each other than rounding
            close[best[:, 0] - best[:, 1] <= slack] = m + 1
        unclear = np.flatnonzero(close > k) + rows.start
        for some in row_blocks(len(unclear), rows_within(X.dtype.itemsize * p)):
            dense = np.ascontiguousarray(X[unclear[some]].toarray())
            again = nearest_with_squares(dense, units, threads, k)
            found.ids[unclear[some]], found.squares[unclear[some]] = again


def _largest(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the largest and, for k = 2, the second largest entry of each row, and these."""
    rows = np.arange(len(scores))
    first = scores.argmax(axis=1)
    ids, best = [first], [scores[rows, first]]
    if k > 1:
        scores[rows, first] = -np.inf
        second = scores.argmax(axis=1)
        ids.append(second)
        best.append(scores[rows, second])
        scores[rows, first] = best[0]
    return np.stack(ids, axis=1), np.stack(best, axis=1)
