"""Neighborhoods of the rows in a connected graph: the start of locally linear methods."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._engines.graphs.components import ConnectedGraph
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.patches.patch_points import Points
from lowland._engines.patches.patch_sums import across_bridges


class Neighborhoods(NamedTuple):
    """Distinct rows of a connected graph, and the indices of the neighbors of each, (n, k)."""

    points: Points
    neighbors: np.ndarray

    @property
    def with_self(self) -> np.ndarray:
        """Patches of a row and its neighbors, the row first."""
        own = np.arange(len(self.points), dtype=self.neighbors.dtype)
        return np.column_stack([own, self.neighbors])


def neighborhoods_of(
    points: Points, graph: NeighborGraph, connected: ConnectedGraph
) -> Neighborhoods:
    """The neighborhoods of the kept rows of a graph that was connected.

    Rows at the ends of an added edge get neighbors from both sides of it. Kept rows have kept
    neighbors only, since they form a connected component.
    """
    neighbors = graph.indices.astype(np.int32)
    if len(connected.added.rows):
        neighbors = across_bridges(neighbors, connected.added)
    if len(connected.kept) < len(points):
        new_index = np.full(len(points), -1, np.int32)
        new_index[connected.kept] = np.arange(len(connected.kept))
        neighbors = new_index[neighbors[connected.kept]]
    return Neighborhoods(points.take(connected.kept), neighbors)
