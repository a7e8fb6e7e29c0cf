"""All pairs of rows within a radius, as a symmetric graph of distances."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse
import scipy.spatial

from lowland._base.errors import ParameterError
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._engines.distances.distance_rows import DistanceTiles
from lowland._engines.distances.metrics import canonical, check_metric

# Bytes per edge while the graph is put together: pair, distance, both directions, and the result.
BYTES_PER_EDGE = 96


def radius_graph(
    X: Any,
    radius: float,
    metric: Any = "euclidean",
    *,
    metric_params: dict[str, Any] | None = None,
    threads: int = 1,
    monitor: Monitor | None = None,
) -> scipy.sparse.csr_matrix:
    """w_ij = d(x_i, x_j) for all i != j with d <= radius; equal rows are edges of length 0.

    Low-dimensional rows go through a KD tree, O(n log n + edges); others, other metrics and
    ``metric="precomputed"`` by tiles, O(n^2 d) time. O(edges) memory, checked before it is used.
    """
    if not isinstance(radius, numbers.Real) or not 0 <= radius < np.inf:
        raise ParameterError(f"radius={radius!r} is not allowed; give a finite number >= 0.")
    check_metric(X, metric, metric_params)
    metric = canonical(metric)
    source, reach = DistanceTiles(X, metric, metric_params), float(radius)
    with (monitor or Monitor()).phase("radius graph", source.n) as phase:
        if source.tree_exponent is not None:
            i, j = _pairs_from_tree(source, reach)
            phase.advance(source.n)
            d = source.between(i, j)
        else:
            i, j, d = _pairs_from_tiles(source, reach, phase)
    near = d <= reach
    i, j, d = i[near], j[near], d[near].astype(source.dtype)
    place = (np.concatenate([i, j]), np.concatenate([j, i]))
    graph = scipy.sparse.coo_matrix((np.concatenate([d, d]), place), shape=(source.n, source.n))
    graph = graph.tocsr()
    graph.sort_indices()
    return graph


def _pairs_from_tree(source: DistanceTiles, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs i < j within the radius, and perhaps some that are beyond it by rounding."""
    tree = scipy.spatial.cKDTree(source.dense(slice(None)))
    wide, p = radius * (1 + 1e-12), source.tree_exponent
    n_pairs = (int(tree.count_neighbors(tree, wide, p=p)) - source.n) // 2
    _require(n_pairs, radius)
    pairs = tree.query_pairs(wide, p=p, output_type="ndarray")
    return pairs[:, 0], pairs[:, 1]


def _pairs_from_tiles(
    source: DistanceTiles, radius: float, phase: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs i < j within the radius, and their distances."""
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    n_pairs = 0
    for rows in source.blocks(np.arange(source.n)):
        D = source.tile(rows, slice(rows[0], None))
        above = np.arange(rows[0], source.n) > rows[:, None]
        a, b = np.nonzero((radius >= D) & above)
        found.append((rows[a], b + rows[0], D[a, b]))
        n_pairs += a.size
        _require(n_pairs, radius)
        phase.advance(rows.size)
    i, j, d = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return i, j, d


def _require(n_pairs: int, radius: float) -> None:
    require_memory(
        2 * n_pairs * BYTES_PER_EDGE,
        task=f"a graph of at least {2 * n_pairs} edges within radius={radius:g}",
        alternative="take a smaller radius, or n_neighbors",
    )
