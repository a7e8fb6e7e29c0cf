"""What is given as dissimilarities: checked, symmetric, known or not; or made from rows.

A dense matrix may hold NaN, a condensed vector is the upper triangle row by row, a sparse matrix
knows its stored entries (an explicit 0 is a distance of 0) and no others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lowland._core.errors import DataError
from lowland._core.memory import require_memory
from lowland._core.monitor import Monitor
from lowland._core.validation import canonical, check_matrix, is_sparse
from lowland._engines.distance_rows import DenseRows, blocks_of, distance_rows

__all__ = [
    "check_connected",
    "check_new_distances",
    "distance_matrix",
    "given_dissimilarities",
    "known_pairs",
    "twins",
]

SAME = 1e-6  # of the largest: d_ij and d_ji may differ by rounding


def given_dissimilarities(X: Any, *, owner: str, may_miss: bool) -> Any:
    """A symmetric (n, n) array, zeros on the diagonal and NaN where nothing is known, or CSR."""
    if is_sparse(X):
        return _given_sparse(X, owner, may_miss)
    if np.ndim(X) == 1:
        X = _square(np.asarray(X), owner)
    D = check_matrix(X, owner=owner, min_rows=2, finite=False)
    _check_square(D, owner)
    if _flawless(D):
        return D
    _check_values(D, owner, may_miss)
    largest = float(np.nanmax(D, initial=0.0))
    off = np.nan_to_num(np.diagonal(D))
    if off.max() > SAME * largest:
        i = int(off.argmax())
        raise DataError(
            f"{owner}: the distance of row {i} to itself is {off[i]:g}; metric='precomputed' needs "
            "zeros on the diagonal. Similarities must be turned into distances first."
        )
    D = D.copy()
    for start in range(0, len(D), 512):
        rows = slice(start, start + 512)
        here, there = D[rows, start:], D[start:, rows].T
        _check_symmetric(here, there, SAME * largest, start, owner)
        both = np.where(np.isnan(here), there, here)
        D[rows, start:] = both
        D[start:, rows] = both.T
    np.fill_diagonal(D, 0.0)
    return D


def _flawless(D: np.ndarray) -> bool:
    """Whether nothing is missing, wrong or rounded: the usual case, in one quick look."""
    least = float(D.min())
    if not (least >= 0 and np.isfinite(D.max()) and not np.diagonal(D).any()):
        return False
    side = 128  # blocks that stay in the near caches while they are read across
    return all(
        np.array_equal(D[i : i + side, j : j + side], D[j : j + side, i : i + side].T)
        for i in range(0, len(D), side)
        for j in range(i, len(D), side)
    )


def _check_symmetric(
    here: np.ndarray, there: np.ndarray, slack: float, start: int, owner: str
) -> None:
    gap = np.nan_to_num(np.abs(here - there))
    if gap.max(initial=0.0) > slack:
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        raise DataError(
            f"{owner}: metric='precomputed' needs a symmetric matrix, but X[{start + i}, "
            f"{start + j}] = {here[i, j]:g} and X[{start + j}, {start + i}] = {there[i, j]:g}; use "
            "(X + X.T) / 2 if that is what you mean."
        )


def _square(v: np.ndarray, owner: str) -> np.ndarray:
    n = int((1 + np.sqrt(1 + 8 * len(v))) / 2)
    if n * (n - 1) // 2 != len(v):
        raise DataError(
            f"{owner}: a condensed vector of distances has n (n - 1) / 2 entries, and {len(v)} is "
            "no such number; give the n x n matrix instead."
        )
    D = np.zeros((n, n), v.dtype if v.dtype == np.float32 else np.float64)
    D[np.triu_indices(n, 1)] = v
    return D + D.T


def _check_square(D: Any, owner: str) -> None:
    if D.shape[0] != D.shape[1]:
        raise DataError(
            f"{owner}: metric='precomputed' needs a square matrix of distances, not {D.shape}; use "
            "another metric if X is a table of features."
        )


def _check_values(D: np.ndarray, owner: str, may_miss: bool) -> None:
    """Refuse infinity and negative values, and NaN where the method cannot do without."""
    for bad, what, advice in (
        (np.isinf(D), "infinity", "mark unknown distances as NaN"),
        (D < 0, "a negative number", "similarities must be turned into distances first"),
        (
            np.isnan(D) & (not may_miss),
            "NaN",
            f"{owner} needs all distances; MDS and NonmetricMDS do without some",
        ),
    ):
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise DataError(
                f"Input X contains {what}: column {column}, first in row {row} "
                f"({D[row, column]:g}); {advice}."
            )


def _given_sparse(X: Any, owner: str, may_miss: bool) -> Any:
    _check_square(X, owner)
    if not may_miss:
        raise DataError(
            f"{owner}: a sparse matrix of distances leaves pairs unknown, but {owner} needs all "
            "distances; give a dense matrix, or use MDS."
        )
    X = canonical(X.tocsr().astype(X.dtype if X.dtype == np.float32 else np.float64))
    _check_values(X.data[None, :], owner, may_miss=False)
    n, coo = X.shape[0], X.tocoo()
    lower, upper = np.minimum(coo.row, coo.col), np.maximum(coo.row, coo.col)
    if coo.data[lower == upper].any():
        raise DataError(f"{owner}: metric='precomputed' needs zeros on the diagonal.")
    off = lower < upper
    key, first = np.unique(lower[off].astype(np.int64) * n + upper[off], return_index=True)
    data = coo.data[off]
    last = np.full(len(key), np.nan)
    last[np.searchsorted(key, lower[off].astype(np.int64) * n + upper[off])] = data
    largest = float(data.max(initial=0.0))
    _check_symmetric(data[first][None, :], last[None, :], SAME * largest, 0, owner)
    return scipy.sparse.csr_array((data[first], (key // n, key % n)), shape=(n, n))


def known_pairs(D: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(i, j, delta) of the pairs i < j that are known."""
    if is_sparse(D):
        coo = D.tocoo()
        return coo.row.astype(np.int32), coo.col.astype(np.int32), coo.data
    i, j = (e.astype(np.int32) for e in np.triu_indices(len(D), 1))
    delta = D[i, j]
    known = ~np.isnan(delta)
    return (i, j, delta) if known.all() else (i[known], j[known], delta[known])


def check_connected(n: int, i: np.ndarray, j: np.ndarray, owner: str) -> None:
    """Refuse points, or groups of them, that no known distance joins to the others."""
    known = np.zeros(n, bool)
    known[i] = known[j] = True
    if not known.all():
        row = int(np.argmin(known))
        raise DataError(
            f"{owner}: no distance of row {row} is known (or has a weight above 0), so that it "
            "could be anywhere; leave it out."
        )
    links = scipy.sparse.csr_array((np.ones(len(i), np.int8), (i, j)), shape=(n, n))
    n_parts, part = scipy.sparse.csgraph.connected_components(links, directed=False)
    if n_parts > 1:
        other = int(np.argmax(part != part[0]))
        raise DataError(
            f"{owner}: the known distances (those with a weight above 0) leave {n_parts} groups of "
            f"rows unconnected, as of rows 0 and {other}; scale each group by itself."
        )


def check_new_distances(X: Any, n: int, *, owner: str, may_miss: bool) -> np.ndarray:
    """Distances of new rows to the n fitted ones, (m, n), checked."""
    if is_sparse(X):
        raise DataError(
            f"{owner}: distances of new rows to the fitted ones must be dense, with NaN for those "
            "that are not known."
        )
    D = check_matrix(X, owner=owner, finite=False)
    if D.shape[1] != n:
        raise DataError(
            f"X has {D.shape[1]} features, but {owner} is expecting {n} features as input: the "
            "distances to the fitted rows."
        )
    _check_values(D, owner, may_miss)
    if np.isnan(D).all(axis=1).any():
        row = int(np.argmax(np.isnan(D).all(axis=1)))
        raise DataError(f"{owner}: no distance of new row {row} is known; leave it out.")
    return D


def distance_matrix(
    X: Any,
    metric: Any,
    metric_params: dict[str, Any] | None,
    dtype: Any,
    *,
    owner: str,
    advice: str,
    threads: int,
    monitor: Monitor,
) -> np.ndarray:
    """All distances of the rows of X, (n, n)."""
    n = X.shape[0]
    require_memory(
        n * n * np.dtype(dtype).itemsize,
        task=f"{owner} with all distances of {n} rows",
        alternative=advice,
    )
    source = distance_rows(X, metric, metric_params, threads)
    D, rows = np.empty((n, n), dtype), np.arange(n)
    mirrored = isinstance(source, DenseRows)
    with monitor.phase("distances", total=n) as phase:
        for block in blocks_of(rows, n):
            since = int(block[0]) if mirrored else 0
            part = source.of(block, since)
            D[block[0] : block[-1] + 1, since:] = part
            if mirrored:
                D[since:, block[0] : block[-1] + 1] = part.T
            phase.advance(len(block))
    np.fill_diagonal(D, 0.0)
    return D


def twins(D: np.ndarray) -> np.ndarray:
    """For each row the first row at distance 0 and with the same distances to all, or itself."""
    first = np.arange(len(D))
    for start in range(0, len(D), 512):
        rows = slice(start, start + 512)
        first[rows] = np.minimum(first[rows], (D[rows] == 0).argmax(axis=1))
    for i in np.flatnonzero(first < np.arange(len(D))):
        if not np.array_equal(D[i], D[first[i]], equal_nan=True):
            first[i] = i
    return first
