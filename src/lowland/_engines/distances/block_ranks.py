"""Queries against one block of a table: the nearest rows of the block, and how many are nearer.

A table that is read block by block is never held as a whole. The nearest rows of all blocks are
merged, and the numbers of nearer rows are added:

    r_ij = 1 + |{ l != i : (d_il, l) < (d_ij, j) }|

Ties are ordered by row number in the whole table, as in :mod:`neighbor_ranks`.
"""

from __future__ import annotations

import numpy as np

from lowland import _native
from lowland._engines.distances.filter_space import FilterSpace, PackedPoints
from lowland._engines.distances.metrics import pair_distances
from lowland._engines.linalg.blocks import row_blocks

TILE = 1 << 22  # distances per block: 32 MB


def square_distances(A: np.ndarray, B: np.ndarray, threads: int) -> np.ndarray:
    """|a_i - b_i|^2 in the arithmetic that decides about ranks."""
    squares = np.empty(len(A))
    _native.pair_squares(np.ascontiguousarray(A), np.ascontiguousarray(B), squares, threads)
    return squares


def nearer_in_block(
    X: np.ndarray,
    start: int,
    queries: np.ndarray,
    numbers: np.ndarray,
    partners: np.ndarray,
    heights: np.ndarray,
    metric: str,
    threads: int,
) -> np.ndarray:
    """How many rows of the block X come before each of the partners (m, k), seen from the queries.

    The block begins with row ``start`` of the table; ``numbers`` are those of the queries in it.
    ``heights`` are the distances of the partners, squared if the metric is Euclidean. O(m b d).
    """
    own = np.where(
        (numbers >= start) & (numbers < start + len(X)), numbers - start, np.int64(-1)
    ).astype(np.int32)
    # rows at exactly the distance of the partner come before it if their numbers are smaller
    ties = np.clip(partners - start, 0, len(X)).astype(np.int32)
    if metric != "euclidean":
        return _counted_in_tiles(X, queries, own, ties, heights, metric)
    # All coordinates: a lower bound of the distance would not prove that a row is nearer.
    space = FilterSpace.of(X, threads, full=True)
    points = PackedPoints.of(
        space.coordinates(X, threads), np.arange(len(X), dtype=np.int32), threads
    )
    sought = PackedPoints.of(
        space.coordinates(queries, threads), np.arange(len(queries), dtype=np.int32), threads
    )
    m, k = partners.shape
    counts = np.zeros(m * k, np.int64)
    _native.count_nearer(
        points.panels,
        points.halves,
        np.ascontiguousarray(X),
        sought.panels,
        sought.halves,
        np.ascontiguousarray(queries),
        own,
        np.arange(0, m * k + 1, k, dtype=np.int64),
        np.ascontiguousarray(heights, np.float64).ravel(),
        np.ascontiguousarray(ties).ravel(),
        points.rounding,
        counts,
        threads,
    )
    return counts.reshape(m, k)


def _counted_in_tiles(
    X: np.ndarray,
    queries: np.ndarray,
    own: np.ndarray,
    ties: np.ndarray,
    heights: np.ndarray,
    metric: str,
) -> np.ndarray:
    """The same in any metric of scipy, from tiles of distances."""
    counts = np.zeros(ties.shape, np.int64)
    places = np.arange(len(X))
    for rows in row_blocks(len(queries), max(1, TILE // len(X))):
        D = pair_distances(queries[rows], X, metric)
        inside = np.flatnonzero(own[rows] >= 0)
        D[inside, own[rows][inside]] = np.inf
        for place in range(ties.shape[1]):
            height = heights[rows, place, None]
            before = (height > D) | ((height == D) & (places < ties[rows, place, None]))
            counts[rows, place] = before.sum(axis=1)
    return counts
