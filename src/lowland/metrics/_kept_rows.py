"""Whole rows of distances and ranks that are computed once and kept.

They are used for tables in which computing a distance again costs more than keeping it.
"""

from __future__ import annotations

import numpy as np

from lowland._engines.distances.distance_rows import DistanceRows, blocks_of
from lowland._engines.distances.neighbor_ranks import ranks_in


class KeptRows:
    """Distances (float64) and ranks (int32) from m of the rows to all n: 12 m n bytes.

    It implements :class:`DistanceRows` for these rows.
    """

    def __init__(self, source: DistanceRows, rows: np.ndarray, threads: int) -> None:
        self.n, self.rows, self._source = source.n, rows, source
        self._place = np.full(self.n, -1)
        self._place[rows] = np.arange(len(rows))
        self._D = np.empty((len(rows), self.n))
        self._ranks = np.empty((len(rows), self.n), np.int32)
        for block in blocks_of(rows, self.n):
            self._D[self._place[block]] = source.of(block)
            self._ranks[self._place[block]] = ranks_in(self.of(block), block, threads)

    def of(self, rows: np.ndarray, since: int = 0) -> np.ndarray:
        """Distances of kept rows to all rows from ``since`` on, a fresh array."""
        return np.ascontiguousarray(self._D[self._place[rows], since:])

    def ranks_of(self, rows: np.ndarray) -> np.ndarray:
        """Ranks of all rows seen from kept ones, a fresh (len(rows), n), 0 for the row itself."""
        return self._ranks[self._place[rows]]

    def nearest(self, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest other rows of kept ones, nearest first, and their distances."""
        places = self._place[rows]
        indices = np.empty((len(rows), k + 1), np.int64)
        for found, place in zip(indices, places, strict=True):
            near = np.flatnonzero(self._ranks[place] <= k)
            found[self._ranks[place, near]] = near
        indices = indices[:, 1:]  # without the row itself
        return indices, self._D[places[:, None], indices]

    def subset(self, rows: np.ndarray) -> DistanceRows:
        """Distances of the chosen rows among themselves."""
        return self._source.subset(rows)
