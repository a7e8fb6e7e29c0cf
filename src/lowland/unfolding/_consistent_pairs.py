"""Pairs of rows whose geodesic distance the boundary of the surface cannot have changed.

A shortest path that runs along the boundary, around a hole or a bay, is longer than the straight
line that a flat map has between its ends. Two criteria keep a pair (i, j):

    "path"      a shortest path from i to j has no boundary row strictly inside
    "distance"  delta_ij < delta(i, dM) + delta(j, dM), dM the boundary

A path through a boundary row b has delta_ij = delta_ib + delta_bj, which is not below the right
side: "distance" implies "path". It also holds on the surface itself, between whose rows a path may
touch the boundary unseen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._engines.graphs.checking import row_numbers
from lowland._engines.graphs.new_rows import geodesics_of_new_rows
from lowland._engines.linalg.blocks import row_blocks

BLOCK = 512  # rows whose paths are compared at a time
# a path through the boundary is as long as the right side, up to rounding
MARGIN = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


def without_passage(graph: scipy.sparse.csr_matrix, boundary: np.ndarray) -> Any:
    """The graph without the edges that leave boundary rows: paths may only end there."""
    inside = np.ones(graph.shape[0], bool)
    inside[boundary] = False
    kept = inside[row_numbers(graph)]
    starts = np.concatenate([[0], np.cumsum(kept)])[graph.indptr]
    return scipy.sparse.csr_matrix((graph.data[kept], graph.indices[kept], starts), graph.shape)


class Surface(NamedTuple):
    """A neighbor graph in units of its longest edge, and which of its rows are on the boundary."""

    graph: scipy.sparse.csr_matrix
    boundary: np.ndarray
    criterion: str
    owner: str

    @property
    def is_free(self) -> bool:
        """Whether all pairs are consistent."""
        return self.criterion == "all" or not self.boundary.size

    def reach(self, run: FitContext) -> np.ndarray:
        """delta(i, dM) of all rows, by a search that begins at all boundary rows."""
        n, b = self.graph.shape[0], self.boundary
        link = scipy.sparse.csr_matrix((np.zeros(b.size), b, [0, b.size]), shape=(1, n))
        return self._geodesics(self.graph, link, np.arange(n), 1.0, run)[0]

    def of_rows(self, D: np.ndarray, rows: np.ndarray, run: FitContext) -> np.ndarray:
        """Which distances D (len(rows), n) from some rows to all rows are consistent."""
        keep = np.ones(D.shape, bool)
        if self.is_free:
            return keep
        everyone, reach = np.arange(D.shape[1]), self.reach(run)
        for part in row_blocks(len(rows), BLOCK):
            if self.criterion == "path":
                keep[part] = self._by_path(D[part], self.graph[rows[part]], everyone, 1.0, run)
            else:
                keep[part] = self._by_distance(D[part], reach[rows[part]], reach)
        return keep

    def of_new_rows(
        self, D: np.ndarray, links: Any, rows: np.ndarray, unit: float, run: FitContext
    ) -> np.ndarray:
        """Which distances D (m, len(rows)) from new rows to ``rows`` are consistent.

        ``links`` are the edges of the new rows, in a unit in which the longest edge is ``unit``.
        """
        if self.is_free:
            return np.ones(D.shape, bool)
        if self.criterion == "path":
            return self._by_path(D, links, rows, unit, run)
        reach = self.reach(run)
        ways = links.data.astype(np.float64) / unit + reach[links.indices]
        own = np.minimum.reduceat(ways, links.indptr[:-1])
        return self._by_distance(D, own, reach[rows])

    def _by_path(
        self, D: np.ndarray, links: Any, rows: np.ndarray, unit: float, run: FitContext
    ) -> np.ndarray:
        inside = without_passage(self.graph, self.boundary)
        # the same sums in the same order: equal to the last bit if a path stays inside
        return np.asarray(self._geodesics(inside, links, rows, unit, run) <= D)

    def _by_distance(self, D: np.ndarray, reach: np.ndarray, others: np.ndarray) -> np.ndarray:
        least = 1 - MARGIN[np.dtype(self.graph.dtype)]
        return np.asarray(least * (reach[:, None] + others) > D)

    def _geodesics(
        self, graph: Any, links: Any, rows: np.ndarray, unit: float, run: FitContext
    ) -> np.ndarray:
        return geodesics_of_new_rows(graph, links, unit, rows, run, owner=self.owner)
