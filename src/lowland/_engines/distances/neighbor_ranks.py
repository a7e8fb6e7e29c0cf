"""Neighbor ranks: the rank of row j among the distances from row i, 1 for the nearest.

    r_ij = 1 + |{ l != i : (d_il, l) < (d_ij, j) }|

Ties are ordered by row number. A few ranks per row are counted in tiles of scores by a native
kernel, without sorting, with O(n k) memory; all ranks of a row need a sort of its distances.
"""

from __future__ import annotations

import numpy as np

from lowland import _native
from lowland._base.monitor import Monitor
from lowland._engines.distances.distance_rows import DenseRows, DistanceRows, blocks_of
from lowland._engines.distances.filter_space import FilterSpace, PackedPoints, filter_scale
from lowland._engines.distances.metrics import pair_distances
from lowland._engines.linalg.products import row_blocks

STEPS = 20  # of the progress bar
MANY = 200  # from so many ranks per row, sorting the row is cheaper than counting


def full_ranks(source: DistanceRows, rows: np.ndarray, threads: int) -> np.ndarray:
    """Ranks of all rows from each of some rows: (len(rows), n), 0 for the row itself."""
    kept = getattr(source, "ranks_of", None)
    if kept is not None:
        return kept(rows)
    return ranks_in(source.of(rows), rows, threads)


def ranks_in(D: np.ndarray, rows: np.ndarray, threads: int) -> np.ndarray:
    """Ranks in whole rows of distances, which are overwritten."""
    D[np.arange(len(rows)), rows] = -1.0  # the row itself comes first
    ranks = np.empty(D.shape, np.int32)
    _native.sort_rows(D, True, ranks, threads)
    return ranks


def partner_ranks(
    source: DistanceRows,
    rows: np.ndarray,
    starts: np.ndarray,
    partners: np.ndarray,
    threads: int,
    monitor: Monitor,
    *,
    by_sorting: bool = False,
) -> np.ndarray:
    """The rank of ``partners[p]`` from ``rows[i]``, for p in ``starts[i] .. starts[i + 1]``.

    All algorithms give exactly the ranks of the distances in double precision. O(len(rows) n d)
    time; O(n d) memory for two packed copies of the rows. ``by_sorting`` needs no such copies: it
    sorts whole rows of distances.
    """
    few = len(partners) <= MANY * len(rows)
    if not by_sorting and few and isinstance(source, DenseRows) and source.empty is None:
        return _counted(source, rows, starts, partners, threads, monitor)
    ranks = np.empty(len(partners), np.int32)
    with monitor.phase("ranks", total=len(rows)) as phase:
        done = 0
        for block in blocks_of(rows, source.n):
            stop = done + len(block)
            asked = slice(starts[done], starts[stop])
            owner = np.repeat(np.arange(len(block)), np.diff(starts[done : stop + 1]))
            ranks[asked] = full_ranks(source, block, threads)[owner, partners[asked]]
            done = stop
            phase.advance(len(block))
    return ranks


def _counted(
    source: DenseRows,
    rows: np.ndarray,
    starts: np.ndarray,
    partners: np.ndarray,
    threads: int,
    monitor: Monitor,
) -> np.ndarray:
    scale = filter_scale(source.rows)  # ranks do not depend on it
    X = source.rows if scale == 1.0 else source.rows * scale
    # All coordinates: a lower bound of the distance would not prove that a row is nearer.
    F = FilterSpace.of(X, threads, full=True).coordinates(X, threads)
    points = PackedPoints.of(F, threads)
    del F
    ranks = np.empty(len(partners), np.int32)
    step = max(400 * threads, -(-len(rows) // STEPS))
    with monitor.phase("ranks", total=len(rows)) as phase:
        for block in row_blocks(len(rows), step):
            first, last = block.start, block.stop
            asked = slice(starts[first], starts[last])
            _native.count_ranks(
                points.panels,
                points.halves,
                X,
                rows[first:last].astype(np.int32),
                np.ascontiguousarray(starts[first : last + 1] - starts[first], np.int64),
                np.ascontiguousarray(partners[asked], np.int32),
                points.rounding,
                ranks[asked],
                threads,
            )
            phase.advance(last - first)
    return ranks


# Queries against one block of a table: the nearest rows of the block, and how many are nearer.
#
# A table that is read block by block is never held as a whole. The nearest rows of all blocks are
# merged, and the numbers of nearer rows are added:
#
#     r_ij = 1 + |{ l != i : (d_il, l) < (d_ij, j) }|
#
# Ties are ordered by row number in the whole table.


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
    scale = min(filter_scale(X), filter_scale(queries))  # that of the larger values
    if scale != 1.0:
        X, queries, heights = X * scale, queries * scale, heights * scale**2
    # All coordinates: a lower bound of the distance would not prove that a row is nearer.
    space = FilterSpace.of(X, threads, full=True)
    points = PackedPoints.of(space.coordinates(X, threads), threads)
    sought = PackedPoints.of(space.coordinates(queries, threads), threads)
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
