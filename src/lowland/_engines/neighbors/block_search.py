"""Exact neighbors from blocks of distances, in any metric.

For metrics that the native kernels do not compute, for sparse data, for given distances and for
Python functions. O(n^2 d) time; the memory of one block of distances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError
from lowland._base.monitor import Monitor
from lowland._engines.distances.distance_rows import row_squares, unit_rows
from lowland._engines.distances.metrics import pair_distances, pairs_at_once, tree_exponent
from lowland._engines.linalg.products import row_blocks

TILE = 1 << 22  # distances per block: 32 MB


class NeighborLists(NamedTuple):
    """The k nearest of every row, nearest first: their row numbers and distances, (n, k)."""

    ids: np.ndarray
    distances: np.ndarray

    @classmethod
    def empty(cls, n_rows: int, k: int) -> NeighborLists:
        """Lists to be filled block by block."""
        return cls(np.empty((n_rows, k), np.int32), np.empty((n_rows, k)))


def nearest_in_rows(D: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and values of the k least entries of each row, ties by column number."""
    if k < D.shape[1]:
        ids = np.sort(np.argpartition(D, k - 1, axis=1)[:, :k], axis=1)
        kth = np.take_along_axis(D, ids, axis=1).max(axis=1)
        # Several entries tie for the last place: those with the smallest numbers are taken.
        tied = np.flatnonzero((kth[:, None] >= D).sum(axis=1) > k)
        if tied.size:
            part, last = D[tied], kth[tied, None]
            nearer, equal = part < last, part == last
            free = k - nearer.sum(axis=1, keepdims=True)
            chosen = nearer | (equal & (np.cumsum(equal, axis=1, dtype=np.int32) <= free))
            ids[tied] = np.nonzero(chosen)[1].reshape(-1, k)
    else:
        ids = np.tile(np.arange(k), (len(D), 1))
    values = np.take_along_axis(D, ids, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(values, order, axis=1)


def block_search(
    n_queries: int,
    n_points: int,
    k: int,
    distances: Callable[[slice], np.ndarray],
    self_join: bool,
    monitor: Monitor,
    rows_at_once: int | None = None,
) -> NeighborLists:
    """The k nearest by rows of distances; ``distances(rows)`` is a new (b, n_points) array."""
    found = NeighborLists.empty(n_queries, k)
    step = TILE // n_points if rows_at_once is None else rows_at_once
    step = max(1, min(n_queries, step))
    with monitor.phase("neighbors", total=n_queries) as phase:
        for rows in row_blocks(n_queries, step):
            D = distances(rows)
            if self_join:
                D[np.arange(len(D)), np.arange(rows.start, rows.stop)] = np.inf
            found.ids[rows], found.distances[rows] = nearest_in_rows(D, k)
            phase.advance(len(D))
    return found


def metric_search(
    X: np.ndarray,
    queries: np.ndarray | None,
    k: int,
    metric: Any,
    metric_params: dict[str, Any] | None,
    monitor: Monitor,
) -> NeighborLists:
    """The k nearest rows of X for each query, in any metric of dense rows.

    None asks for the neighbors of the rows of X themselves, without the row itself.
    """
    asked = X if queries is None else queries

    def distances(rows: slice) -> np.ndarray:
        return pair_distances(asked[rows], X, metric, metric_params)

    step = pairs_at_once(metric, TILE) // len(X)
    return block_search(len(asked), len(X), k, distances, queries is None, monitor, step)


def sparse_search(X: Any, queries: Any, k: int, metric: str, monitor: Monitor) -> NeighborLists:
    """Euclidean, squared Euclidean or cosine neighbors of CSR rows, which stay sparse.

    As :func:`metric_search`. Candidates come from products of sparse rows; distances of those near
    the k-th are computed again from differences, so that equal rows are at distance 0 exactly.
    """
    import scipy.sparse

    X, among = scipy.sparse.csr_matrix(X, dtype=np.float64), queries is None
    asked = X if among else scipy.sparse.csr_matrix(queries, dtype=np.float64)
    if metric == "cosine":
        X, asked = unit_rows(X), unit_rows(asked)
    squares, asked_squares = row_squares(X), row_squares(asked)
    transposed = X.T.tocsc()

    def distances(rows: slice) -> np.ndarray:
        block = asked[rows]
        D = np.asarray((block @ transposed).toarray())
        D *= -2
        D += asked_squares[rows, None]
        D += squares
        if among:
            D[np.arange(len(D)), np.arange(rows.start, rows.stop)] = np.inf
        _refine(D, block, X, asked_squares[rows], squares, k)
        if metric == "cosine":
            D /= 2
            empty, no_query = squares == 0, asked_squares[rows] == 0
            D[np.ix_(no_query, ~empty)] = 1.0
            D[np.ix_(~no_query, empty)] = 1.0
        elif metric == "euclidean":
            np.sqrt(np.maximum(D, 0.0, out=D), out=D)
        return D

    return block_search(asked.shape[0], X.shape[0], k, distances, among, monitor)


def _refine(
    D: np.ndarray, block: Any, X: Any, block_squares: np.ndarray, squares: np.ndarray, k: int
) -> None:
    """Replace squared distances up to the k-th (and a margin for rounding) by exact ones."""
    kth = np.partition(D, k - 1, axis=1)[:, k - 1]
    margin = 1e-12 * (block_squares + squares.max(initial=0.0))
    i, j = np.nonzero((kth + margin)[:, None] >= D)
    for part in row_blocks(len(i), 1 << 15):
        gap = block[i[part]] - X[j[part]]
        D[i[part], j[part]] = row_squares(gap)


def stored_neighbors(
    graph: Any, k: int, self_join: bool, argument: str = "X", *, at_least: int | None = None
) -> NeighborLists:
    """The k least stored entries of each row of a sparse matrix of distances.

    With ``at_least``, rows may store fewer than k entries, but not fewer than that; their missing
    neighbors have the number -1 and the distance infinity.
    """
    graph = graph.tocsr()
    n = graph.shape[0]
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    ids, values = graph.indices, graph.data
    if self_join:
        others = ids != rows
        rows, ids, values = rows[others], ids[others], values[others]
    counts = np.bincount(rows, minlength=n)
    needed = k if at_least is None else at_least
    if counts.min() < needed:
        row = int(np.argmax(counts < needed))
        raise DataError(
            f"{argument}, row {row}: the graph of distances stores {counts[row]} neighbors, but "
            + (f"n_neighbors={k}" if at_least is None else f"{needed} is the least")
            + "; store more or ask for fewer."
        )
    order = np.lexsort((ids, values, rows))
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    order, rank = order[rank < k], rank[rank < k]
    found = NeighborLists.empty(n, min(k, int(counts.max())))
    found.ids.fill(-1)
    found.distances.fill(np.inf)
    found.ids[rows[order], rank], found.distances[rows[order], rank] = ids[order], values[order]
    return found


# Exact neighbors of rows with few columns by scipy's KD tree, with ties in order.


SPARE = 4  # candidates beyond k, to see whether others tie with the k-th


def tree_of(X: np.ndarray) -> Any:
    """The KD tree of the rows of X."""
    from scipy.spatial import cKDTree

    return cKDTree(X.astype(np.float64))


def tree_search(
    tree: Any,
    queries: np.ndarray | None,
    k: int,
    metric: str,
    metric_params: dict[str, Any] | None,
    threads: int,
    monitor: Monitor,
) -> NeighborLists:
    """The k nearest rows of a :func:`tree_of` rows for each query, by (distance, row number).

    None asks for the neighbors of the rows themselves, without the row itself.
    """
    p = tree_exponent(metric, metric_params)
    assert p is not None
    points, among = tree.data, queries is None
    asked = points if queries is None else queries.astype(np.float64)
    wanted = min(k + among + SPARE, len(points))
    found = NeighborLists.empty(len(asked), k)
    with monitor.phase("neighbors", total=len(asked)) as phase:
        for block in row_blocks(len(asked), 2**15):
            rows = np.arange(block.start, block.stop)
            _, ids = tree.query(asked[rows], wanted, p=p, workers=threads)
            ids, own = ids.reshape(len(rows), wanted), rows if among else None
            found.ids[rows], found.distances[rows] = _ranked(points, asked[rows], ids, own, k, p)
            phase.advance(len(rows))
    if metric == "sqeuclidean":
        np.square(found.distances, out=found.distances)
    return found


def _ranked(
    points: np.ndarray, asked: np.ndarray, ids: np.ndarray, own: np.ndarray | None, k: int, p: float
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of the candidates by (distance, row number); of all rows where ties are cut."""
    D = _distances(points[ids], asked[:, None, :], p)
    if own is not None:
        D[ids == own[:, None]] = np.inf
    order = np.lexsort((ids, D), axis=1)
    best = np.take_along_axis(ids, order[:, :k], axis=1)
    D = np.take_along_axis(D, order, axis=1)
    if ids.shape[1] < len(points):
        # If the last candidate is as near as the k-th, rows that are not candidates may tie.
        last = D[:, ids.shape[1] - 1 - (own is not None)]
        for row in np.flatnonzero(last <= D[:, k - 1] * (1 + 1e-12)):
            everyone = _distances(points, asked[row], p)
            if own is not None:
                everyone[own[row]] = np.inf
            best[row], D[row, :k] = (part[0] for part in nearest_in_rows(everyone[None, :], k))
    return best, D[:, :k]


def _distances(a: np.ndarray, b: np.ndarray, p: float) -> np.ndarray:
    gap = np.abs(a - b)
    if p == 2.0:
        return np.sqrt((gap**2).sum(axis=-1))
    if p == 1.0:
        return gap.sum(axis=-1)
    return gap.max(axis=-1) if np.isinf(p) else (gap**p).sum(axis=-1) ** (1 / p)
