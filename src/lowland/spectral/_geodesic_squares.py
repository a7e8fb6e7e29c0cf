"""The matrix of squared geodesic distances as a linear operator.

    A_ij = d(i, j)^2,    d the length of the shortest path from i to j

The matrix is symmetric and is kept as tiles of its upper half, n^2 / 2 numbers. Where these do not
fit into memory, the distances are computed again for every product, a block of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lowland import _native
from lowland._core.memory import available_memory
from lowland._core.monitor import Monitor
from lowland._engines.graphs.geodesics import shortest_path_blocks
from lowland._engines.linalg import products

BLOCK_BYTES = 1 << 26  # of distances that are computed at a time


class GeodesicSquares:
    """A of a connected graph; ``kept`` says whether it is kept or computed for each product.

    Attributes
    ----------
    row_sums : ndarray of shape (n,)
        A 1. This and the next two are known after the first pass over the distances.
    sum_of_squares : float
        The sum of A_ij^2.
    sampled : ndarray of shape (n_sampled, n)
        Distances (not squared) from the rows ``sample``.
    """

    def __init__(
        self,
        graph: Any,
        dtype: Any,
        sample: np.ndarray,
        threads: int,
        monitor: Monitor,
    ) -> None:
        self.n, self.dtype = graph.shape[0], np.dtype(dtype)
        self.graph, self.threads, self.monitor = graph, threads, monitor
        self.row_sums, self.sum_of_squares = np.zeros(self.n), 0.0
        self.sampled = np.empty((sample.size, self.n), dtype)
        self._place = np.full(self.n, -1)  # of a row in the sample
        self._place[sample] = np.arange(sample.size)
        self._known = False
        single = self.dtype == np.float32
        self._side = _native.TILE_SIDE_FLOAT32 if single else _native.TILE_SIDE_FLOAT64
        groups = -(-self.n // self._side)
        shape = (groups * (groups + 1) // 2, self._side, self._side)
        self.kept = int(np.prod(shape)) * self.dtype.itemsize <= available_memory() // 2
        self._tiles = self._filled(shape) if self.kept else None

    def times(self, V: np.ndarray) -> np.ndarray:
        """A V in float64, up to the rounding of ``dtype``."""
        out = np.empty(V.shape)
        if self._tiles is None:
            for rows, squares in self._squares():
                out[rows] = products.times(squares, np.zeros(self.n), V, self.threads)
            return out
        V = np.ascontiguousarray(V, dtype=self.dtype)
        _native.symmetric_times(self._tiles, V, out, self.threads)
        return out

    def _filled(self, shape: tuple[int, int, int]) -> np.ndarray:
        """Tile (I, J), I <= J, at place I g - I (I - 1) / 2 + J - I of g groups of rows."""
        side = self._side
        groups = -(-self.n // side)
        tiles = np.zeros(shape, self.dtype)
        padded = np.zeros(groups * side, self.dtype)
        in_tiles = padded.reshape(groups, side)
        for rows, squares in self._squares():
            for row, values in zip(rows, squares, strict=True):
                I, at = divmod(int(row), side)  # noqa: E741
                first = I * groups - I * (I - 1) // 2
                padded[: self.n] = values
                tiles[first : first + groups - I, at] = in_tiles[I:]
        return tiles

    def _squares(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The rows of A by blocks: their numbers and values."""
        affordable = min(BLOCK_BYTES, available_memory() // 8) // (self.n * self.dtype.itemsize)
        lanes = _native.PATH_LANES
        for rows, distances in shortest_path_blocks(
            self.graph,
            threads=self.threads,
            monitor=self.monitor,
            dtype=self.dtype,
            block_rows=max(1, affordable // lanes) * lanes,
        ):
            wanted = self._place[rows] >= 0
            self.sampled[self._place[rows[wanted]]] = distances[wanted]
            squares = np.square(distances, out=distances)
            if not self._known:
                self.row_sums[rows] = squares.sum(axis=1, dtype=np.float64)
                fourth = np.einsum("ij,ij->", squares, squares, dtype=np.float64)
                self.sum_of_squares += float(fourth)
            yield rows, squares
        self._known = True
