"""Exact neighbors among points with few columns: a KD tree (scipy's), ties put in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._engines.knn_blocks import Nearest, nearest_in_rows

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
) -> Nearest:
    """The k nearest rows of X for each query, by (distance, row number)."""
    from scipy.spatial import cKDTree

    p = float((metric_params or {}).get("p", EXPONENTS[metric]))
    points, asked = X.astype(np.float64), queries.astype(np.float64)
    wanted = min(k + self_join + SPARE, len(points))
    tree = cKDTree(points)
    _, ids = tree.query(asked, wanted, p=p, workers=threads)
    ids = ids.reshape(len(asked), wanted)
    D = _distances(points[ids], asked[:, None, :], p)
    if self_join:
        D[ids == np.arange(len(asked))[:, None]] = np.inf
    found = Nearest(len(asked), k)
    order = np.lexsort((ids, D), axis=1)
    found.ids[:] = np.take_along_axis(ids, order[:, :k], axis=1)
    D = np.take_along_axis(D, order, axis=1)
    found.distances[:] = D[:, :k]
    if wanted < len(points):
        # The spare candidates must be farther than the k-th, or others may tie with it.
        last = D[:, wanted - 1 - self_join]
        for row in np.flatnonzero(last <= D[:, k - 1] * (1 + 1e-12)):
            everyone = _distances(points, asked[row], p)
            if self_join:
                everyone[row] = np.inf
            ids_of, distances = nearest_in_rows(everyone[None, :], k)
            found.ids[row], found.distances[row] = ids_of[0], distances[0]
    if metric == "sqeuclidean":
        found.distances **= 2
    return found


def _distances(a: np.ndarray, b: np.ndarray, p: float) -> np.ndarray:
    gap = np.abs(a - b)
    if p == 2.0:
        return np.sqrt((gap**2).sum(axis=-1))
    if p == 1.0:
        return gap.sum(axis=-1)
    return gap.max(axis=-1) if np.isinf(p) else (gap**p).sum(axis=-1) ** (1 / p)
