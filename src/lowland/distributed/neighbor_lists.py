"""Neighbor lists that are found part by part, and merged into those of all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.threads import limit_blas, resolve_n_jobs
from lowland._engines.linalg.blocks import row_blocks
from lowland._engines.neighbors.search import neighbor_graph

CELLS_ROWS = 50_000  # from here on, cells take less time than all pairs of a part
BLOCK_ROWS = 1 << 15  # whose lists are merged at a time
LARGEST = np.float32(np.finfo(np.float32).max)


class PartLists(NamedTuple):
    """Neighbors within a part: numbers of rows, numbers of their neighbors, nearest first, and
    distances."""

    rows: np.ndarray
    ids: np.ndarray
    distances: np.ndarray


class PartJoin:
    """The work on one part: its neighbor graph, in the numbers of the whole table.

    Distances are multiplied by ``unit`` and stored in float32.
    """

    def __init__(self, k: int, unit: float, seed: int, n_jobs: int | None) -> None:
        self.k, self.unit, self.seed, self.n_jobs = k, unit, seed, n_jobs

    def __call__(self, part: int, X: np.ndarray, numbers: np.ndarray) -> PartLists:
        k = min(self.k, len(X) - 1)
        if k < 1:
            none = np.empty((0, 0), np.float32)
            return PartLists(np.empty(0, np.int64), none.astype(np.int32), none)
        with limit_blas(1):
            graph = neighbor_graph(
                X,
                k,
                method="cells" if len(X) >= CELLS_ROWS else "auto",
                threads=resolve_n_jobs(self.n_jobs),
                rng=np.random.default_rng([self.seed, part]),
            )
        distances = graph.distances if self.unit == 1.0 else graph.distances * self.unit
        with np.errstate(over="ignore"):
            distances = np.minimum(distances.astype(np.float32, copy=False), LARGEST)
        return PartLists(numbers, numbers.astype(np.int32)[graph.indices], distances)


class NeighborLists:
    """The k nearest neighbors of n < 2^31 rows found so far: by distance, ties by row number.

    Missing neighbors have the number -1 and the distance infinity. Memory 8 n k bytes.
    """

    def __init__(self, n: int, k: int) -> None:
        self.ids = np.full((n, k), -1, np.int32)
        self.distances = np.full((n, k), np.inf, np.float32)

    def add(self, found: PartLists) -> None:
        """Merge lists of some rows, each row once, into those that are there."""
        for some in row_blocks(len(found.rows), BLOCK_ROWS):
            rows = found.rows[some]
            new = _keys(found.ids[some], found.distances[some])
            old_ids = self.ids[rows]
            known = np.flatnonzero(old_ids[:, 0] >= 0)
            again = (found.ids[some][known, :, None] == old_ids[known, None, :]).any(axis=2)
            new[known] = np.where(again, NOBODY, new[known])
            keys = np.concatenate([_keys(old_ids, self.distances[rows]), new], axis=1)
            keys.sort(axis=1)
            keys = keys[:, : self.ids.shape[1]]
            self.ids[rows] = (keys & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
            self.distances[rows] = (keys >> 32).astype(np.int32).view(np.float32)

    def incomplete(self) -> np.ndarray:
        """Numbers of the rows with fewer than k neighbors."""
        return np.flatnonzero(self.ids[:, -1] < 0)


def _keys(ids: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Integers that sort as (distance, number) do: bits of floats >= 0 sort as the floats."""
    bits = np.ascontiguousarray(distances + np.float32(0)).view(np.int32)  # -0 and 0 are equal
    return (bits.astype(np.int64) << 32) | ids.astype(np.uint32)


NOBODY = int(_keys(np.array([-1], np.int32), np.array([np.inf], np.float32))[0])
