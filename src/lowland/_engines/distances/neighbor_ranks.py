"""The rank of one row seen from another: 1 for the nearest, ties by row number.

    r_ij = 1 + |{ l != i : (d_il, l) < (d_ij, j) }|

A few ranks per row are counted inside tiles of scores (native, O(n k) memory, no sorting); all
ranks of a row cost a sort of it.
"""

from __future__ import annotations

import numpy as np

from lowland import _native
from lowland._core.monitor import Monitor
from lowland._engines.distances.distance_rows import DenseRows, DistanceRows, blocks_of
from lowland._engines.distances.filter_space import FilterSpace, PackedPoints

__all__ = ["full_ranks", "partner_ranks", "ranks_in"]

STEPS = 20  # of the progress bar
MANY = 200  # ranks per row from which on sorting the row is cheaper than counting


def full_ranks(source: DistanceRows, rows: np.ndarray, threads: int) -> np.ndarray:
    """Ranks of all rows seen from some: (len(rows), n), 0 for the row itself."""
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
    """Rank of ``partners[p]`` seen from ``rows[i]``, for p in ``starts[i] .. starts[i + 1]``.

    Exactly the ranks of the distances in double precision, whatever way they are found. Cost
    O(len(rows) n d); memory O(n d) for two packed copies of the rows, which ``by_sorting`` does
    without: it sorts whole rows of distances.
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
    X = source.rows
    # All coordinates: a lower bound of the distance could not prove that a row is nearer.
    F = FilterSpace.of(X, threads, full=True).coordinates(X, threads)
    points = PackedPoints.of(F, np.arange(len(X), dtype=np.int32), threads)
    del F
    ranks = np.empty(len(partners), np.int32)
    step = max(400 * threads, -(-len(rows) // STEPS))
    with monitor.phase("ranks", total=len(rows)) as phase:
        for first in range(0, len(rows), step):
            last = min(first + step, len(rows))
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
