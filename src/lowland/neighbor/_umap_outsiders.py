"""Rows without neighbors, and edges that are too long to count."""

from __future__ import annotations

import numpy as np

from lowland._core.errors import DataError
from lowland._engines.neighbors.graph import NeighborGraph
from lowland.neighbor._fuzzy_graph import FuzzyGraph

MARGIN = 1.15  # radius of the circle around the map, in radii of the map


def without_far(near: NeighborGraph, longest: float) -> NeighborGraph:
    """The graph without neighbors at ``longest`` or more."""
    far = near.distances >= longest
    indices = np.where(far, -1, near.indices)
    distances = np.where(far, np.inf, near.distances).astype(near.distances.dtype)
    return NeighborGraph(indices, distances, near.n_points, near.metric)


def no_edges(near: NeighborGraph, cut: bool) -> DataError:
    """The error of a graph without edges; ``cut`` says that long edges were left out."""
    way = "add edges." if not cut else "take a larger disconnection_distance."
    if (near.indices >= 0).any():
        way = "take a larger set_op_mix_ratio, or a smaller target_weight."
    return DataError(f"UMAP: no row has a neighbor; {way}")


def graph_of_kept(graph: FuzzyGraph, kept: np.ndarray) -> FuzzyGraph:
    """The graph of the kept rows, where all others have no edges."""
    place = np.zeros(graph.n, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    starts = np.concatenate([graph.indptr[:1], graph.indptr[1:][kept]])
    return FuzzyGraph(starts, place[graph.indices], graph.weights)


def known_squares(graph: FuzzyGraph, near: NeighborGraph) -> np.ndarray:
    """Squared distances of the pairs of a symmetric graph, each from the row that knows it."""
    n, there = len(near), near.indices >= 0
    rows, places = np.nonzero(there)
    columns, squares = near.indices[rows, places], near.distances[rows, places].astype(float) ** 2
    keys = np.concatenate([rows * n + columns, columns.astype(np.int64) * n + rows])
    keys, first = np.unique(keys, return_index=True)
    squares = np.concatenate([squares, squares])[first]
    wanted = graph.rows().astype(np.int64) * n + graph.indices
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, squares[at], 0.0)  # a target may add pairs


def beside_the_map(Y: np.ndarray, isolated: np.ndarray) -> np.ndarray:
    """The map of the others, and the isolated rows evenly on a circle around it."""
    if not isolated.any():
        return Y
    n, d = len(isolated), Y.shape[1]
    center = (Y.min(axis=0) + Y.max(axis=0)) / 2
    radius = MARGIN * max(float(np.sqrt(((Y - center) ** 2).sum(axis=1)).max()), 1.0)
    count = int(isolated.sum())
    ring = np.zeros((count, d), Y.dtype)
    if d == 1:
        ring[:, 0] = np.where(np.arange(count) % 2, -1, 1) * radius * (1 + np.arange(count) / count)
    else:
        turns = 2 * np.pi * np.arange(count) / count
        ring[:, 0], ring[:, 1] = radius * np.cos(turns), radius * np.sin(turns)
    found = np.empty((n, d), Y.dtype)
    found[~isolated], found[isolated] = Y, center + ring
    return found
