"""Exact neighbors of rows with few columns by scipy's KD tree, with ties in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.monitor import Monitor
from lowland._engines.distances.metrics import tree_exponent
from lowland._engines.linalg.products import row_blocks
from lowland._engines.neighbors.block_search import NeighborLists, nearest_in_rows

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
    points: np.ndarray,
    asked: np.ndarray,
    ids: np.ndarray,
    own: np.ndarray | None,
    k: int,
    p: float,
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
