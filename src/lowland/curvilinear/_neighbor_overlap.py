"""The LC meta-criterion (Chen & Buja 2009): the overlap of neighborhoods in data and map.

    M_K = 1/(n K) sum_i |N_K(i) in the data  and  N_K(i) in the map|,    adjusted: M_K - K / (n - 1)

K / (n - 1) is the expectation for a random map.
"""

from __future__ import annotations

import numpy as np

from lowland._engines.neighbors.search import neighbor_query

SAMPLE = 2000  # rows that the mean is taken over: its standard error is below 0.7 %


class NeighborOverlap:
    """The adjusted M_K of maps, from the lists (n, K) of neighbors in the data.

    The neighbors in the map are searched among all points, for evenly spread rows if there are
    many.
    """

    def __init__(self, lists: np.ndarray, threads: int) -> None:
        n, self.size = lists.shape
        self.rows = np.arange(n) if n <= SAMPLE else np.linspace(0, n - 1, SAMPLE).astype(np.int64)
        self.lists, self.threads = lists[self.rows], threads
        self.by_chance = self.size / (n - 1)

    def __call__(self, Y: np.ndarray) -> float:
        Y = np.ascontiguousarray(Y)
        found = neighbor_query(Y, Y[self.rows], self.size + 1, threads=self.threads).indices
        own = found == self.rows[:, None]
        own[:, -1] |= ~own.any(axis=1)  # more equal places than neighbors: the row was not listed
        near = found[~own].reshape(len(found), self.size)
        shared = (near[:, :, None] == self.lists[:, None, :]).any(axis=2)
        return float(shared.mean()) - self.by_chance
