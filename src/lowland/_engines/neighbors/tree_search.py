"""Exact neighbors among points with few columns: a KD tree (scipy's), ties put in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.monitor import Monitor
from lowland._engines.neighbors.block_search import Nearest, nearest_in_rows

__all__ = ["EXPONENTS", "FEW_COLUMNS", "tree_search"]

FEW_COLUMNS = 8  # beyond, a tree looks at most of the points
EXPONENTS: dict[Any, float] = {
    "euclidean": 2.0,
    "sqeuclidean": 2.0,
    "manhattan": 1.0,
    "chebyshev": np.inf,
    "minkowski": 2.0,
}
SPARE = 4


def tree_search(
    X: np.ndarray,
    queries: np.ndarray,
    k: int,
    metric: str,
    metric_params: dict[str, Any] | None,
    self_join: bool,
    threads: int,
    monitor: Monitor | None = None,
) -> Nearest:
    """The k nearest rows of X for each query, by (distance, row number)."""
    from scipy.spatial import cKDTree

    p = float((metric_params or {}).get("p", EXPONENTS[metric]))
    points, asked = X.astype(np.float64), queries.astype(np.float64)
    wanted = min(k + self_join + SPARE, len(points))
    tree = cKDTree(points)
    found = Nearest(len(asked), k)
    with (monitor or Monitor()).phase("neighbors", total=len(asked)) as phase:
        for start in range(0, len(asked), 2**15):
            rows = np.arange(start, min(start + 2**15, len(asked)))
            _, ids = tree.query(asked[rows], wanted, p=p, workers=threads)
            own = rows if self_join else None
            found.ids[rows], found.distances[rows] = _ranked(
                points, asked[rows], ids.reshape(len(rows), wanted), own, k, p
            )
            phase.advance(len(rows))
    if metric == "sqeuclidean":
        found.distances **= 2
    return found


def _ranked(
    points: np.ndarray,
    asked: np.ndarray,
    ids: np.ndarray,
    own: np.ndarray | None,
    k: int,
    p: float,
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of the tree's candidates by (distance, number), and of all rows in doubt."""
    D = _distances(points[ids], asked[:, None, :], p)
    if own is not None:
        D[ids == own[:, None]] = np.inf
    order = np.lexsort((ids, D), axis=1)
    best = np.take_along_axis(ids, order[:, :k], axis=1)
    D = np.take_along_axis(D, order, axis=1)
    if ids.shape[1] < len(points):
        # The spare candidates must be farther than the k-th, or others may tie with it.
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
