"""Matrices of dissimilarities: checks of given ones, and distances of all rows of a table.

A dense matrix may hold NaN for unknown entries. A condensed vector is the upper triangle row by
row. Of a sparse matrix only stored entries are known; a stored 0 is a distance of 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._base.validation import as_array, check_matrix, check_size, is_sparse, largest_value
from lowland._engines.distances.distance_rows import DenseRows, blocks_of, distance_rows
from lowland._engines.distances.metrics import check_symmetric
from lowland._engines.linalg.products import row_blocks

SAME = 1e-5  # of the largest: d_ij and d_ji may differ by rounding, as in files of six digits


def given_dissimilarities(X: Any, *, owner: str, allow_missing: bool) -> Any:
    """A symmetric (n, n) array with zeros on the diagonal and NaN for unknown entries, or CSR."""
    if is_sparse(X):
        X = _given_sparse(X, owner, allow_missing)
        return X if allow_missing else _filled(X)
    if len(getattr(X, "shape", ())) != 2:  # a data frame keeps its names
        X = as_array(X, "X")
    if len(X.shape) == 1:
        X = _square(X, owner)
    D = check_matrix(X, owner=owner, min_rows=2, finite=False)
    _check_square(D, owner)
    check_size(largest_value(D))
    if _flawless(D):
        return D
    _check_values(D, owner, allow_missing)
    largest = float(np.nanmax(D, initial=0.0))
    _check_diagonal(np.diagonal(D), SAME * largest, owner)
    D = D.copy()
    for rows in row_blocks(len(D), 512):
        start = rows.start
        here, there = D[rows, start:], D[start:, rows].T
        gap = np.nan_to_num(np.abs(here - there))
        if gap.max(initial=0.0) > SAME * largest:
            i, j = np.unravel_index(int(gap.argmax()), gap.shape)
            raise _asymmetric(start + int(i), start + int(j), here[i, j], there[i, j], owner)
        mean = (here + there) / 2  # NaN if either is
        both = np.where(np.isnan(mean), np.where(np.isnan(here), there, here), mean)
        D[rows, start:] = both
        D[start:, rows] = both.T
    np.fill_diagonal(D, 0.0)
    return D


def _flawless(D: np.ndarray) -> bool:
    """Whether D is exactly symmetric and complete, the usual case, by one fast pass."""
    least = float(D.min())
    if not (least >= 0 and np.isfinite(D.max()) and not np.diagonal(D).any()):
        return False
    side = 128  # blocks that fit into the cache while they are read by columns
    return all(
        np.array_equal(D[i : i + side, j : j + side], D[j : j + side, i : i + side].T)
        for i in range(0, len(D), side)
        for j in range(i, len(D), side)
    )


def _check_diagonal(diagonal: np.ndarray, slack: float, owner: str) -> None:
    off = np.nan_to_num(diagonal)
    if off.max(initial=0.0) > slack:
        i = int(off.argmax())
        raise DataError(
            f"{owner}: the distance of row {i} to itself is {off[i]:g}; metric='precomputed' needs "
            "zeros on the diagonal. Similarities must be turned into distances first."
        )


def _asymmetric(i: int, j: int, there: float, back: float, owner: str) -> DataError:
    return DataError(
        f"{owner}: metric='precomputed' needs a symmetric matrix, but X[{i}, {j}] = {there:g} and "
        f"X[{j}, {i}] = {back:g}; use (X + X.T) / 2 if that is what you mean."
    )


def _square(v: np.ndarray, owner: str) -> np.ndarray:
    n = int((1 + np.sqrt(1 + 8 * len(v))) / 2)
    if n * (n - 1) // 2 != len(v):
        raise DataError(
            f"{owner}: a condensed vector of distances has n (n - 1) / 2 entries, and {len(v)} is "
            "not such a number; give the n x n matrix instead."
        )
    v = check_matrix(v[:, None], owner=owner, min_rows=0, finite=False)[:, 0]
    D = np.zeros((n, n), v.dtype)
    D[np.triu_indices(n, 1)] = v
    return D + D.T


def _check_square(D: Any, owner: str) -> None:
    if D.shape[0] != D.shape[1]:
        raise DataError(
            f"{owner}: metric='precomputed' needs a square matrix of distances, not {D.shape}; use "
            "another metric if X is a table of features."
        )


def _check_values(D: Any, owner: str, allow_missing: bool) -> None:
    """Refuse infinity and negative values, and NaN for methods that need all distances."""
    values = D.data if is_sparse(D) else D
    others = (
        "mark unknown distances as NaN" if allow_missing else "use MDS if a distance is unknown"
    )
    for bad, what, advice in (
        (np.isinf(values), "infinity", others),
        (values < 0, "a negative number", "similarities must be turned into distances first"),
        (
            np.isnan(values) & (not allow_missing),
            "NaN",
            f"{owner} needs all distances; MDS, NonmetricMDS and Sammon accept unknown ones",
        ),
    ):
        if bad.any():
            first = tuple(np.argwhere(bad)[0])
            row, column = _place(D, first[0]) if is_sparse(D) else first
            raise DataError(
                f"Input X contains {what}: column {column}, first in row {row} "
                f"({values[first]:g}); {advice}."
            )


def _place(X: Any, stored: int) -> tuple[int, int]:
    """Row and column of a stored entry of a CSR matrix."""
    return int(np.searchsorted(X.indptr, stored, side="right")) - 1, int(X.indices[stored])


def _given_sparse(X: Any, owner: str, allow_missing: bool) -> Any:
    """The upper triangle, as CSR, of entries stored in either triangle; NaN is unknown."""
    _check_square(X, owner)
    X = check_matrix(X, owner=owner, accept_sparse=True, min_rows=2, finite=False)
    check_size(largest_value(X))
    _check_values(X, owner, allow_missing)
    n, coo = X.shape[0], X.tocoo()
    lower, upper = np.minimum(coo.row, coo.col), np.maximum(coo.row, coo.col)
    slack = SAME * float(np.nanmax(coo.data, initial=0.0))
    _check_diagonal(X.diagonal(), slack, owner)
    off = (lower < upper) & ~np.isnan(coo.data)
    pair, data = lower[off].astype(np.int64) * n + upper[off], coo.data[off]
    key, first, of = np.unique(pair, return_index=True, return_inverse=True)
    gap = np.abs(data[first][of] - data)  # the two values of a pair that is stored twice
    if gap.max(initial=0.0) > slack:
        at = int(gap.argmax())
        i, j = int(coo.row[off][at]), int(coo.col[off][at])
        raise _asymmetric(i, j, data[at], data[first][of][at], owner)
    if not allow_missing and len(key) < n * (n - 1) // 2:
        raise DataError(
            f"{owner}: a sparse matrix of distances leaves pairs unknown, {len(key)} of "
            f"{n * (n - 1) // 2} are stored, but {owner} needs all distances; give a dense matrix, "
            "or use MDS."
        )
    return scipy.sparse.csr_array((data[first], (key // n, key % n)), shape=(n, n))


def _filled(upper: Any) -> np.ndarray:
    """A symmetric array from the upper triangle of a sparse matrix that holds all pairs."""
    D = upper.toarray()
    return D + D.T


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
    """Refuse rows, or groups of rows, that no known distance connects to the others."""
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


def check_new_distances(X: Any, n: int, *, owner: str, allow_missing: bool) -> np.ndarray:
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
    check_size(largest_value(D), part=True)
    _check_values(D, owner, allow_missing)
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
        for block in blocks_of(rows, n, metric):
            since = int(block[0]) if mirrored else 0
            part = source.of(block, since)
            D[block[0] : block[-1] + 1, since:] = part
            if mirrored:
                D[since:, block[0] : block[-1] + 1] = part.T
            phase.advance(len(block))
    if callable(metric):
        check_symmetric(D, metric)
    np.fill_diagonal(D, 0.0)
    return D
