"""Exact Euclidean neighbors: a self-join of packed points, and queries against them.

Three steps, all in native threads:

1. score all pairs in filter space (``distances/filter_space.py``) and keep, per row, a few more
   candidates than asked for;
2. evaluate the candidates in exact arithmetic and check whether the worst kept score proves that
   no other row can be nearer;
3. for rows without that proof, evaluate exactly every row whose score does not exclude it.

Cost O(n^2 q) for a self-join, half of it by symmetry; memory O(n k).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._engines.distances.filter_space import FilterSpace, PackedPoints, panel_width
from lowland._engines.linalg.products import row_blocks

SPARE = 8  # candidates kept beyond k; more make the proof of step 2 easier
MIN_ROOM = 24  # places for candidates beyond those kept, at least
BOX_COLUMNS = 8  # coordinates of the boxes by which pairs of blocks are pruned


class NeighborSquares(NamedTuple):
    """The k nearest rows of every row: their numbers and squared distances, nearest first."""

    ids: np.ndarray
    squares: np.ndarray


class Candidates(NamedTuple):
    """Buffers of the best-scored candidates, one row per place in the panels."""

    entries: np.ndarray
    counts: np.ndarray
    thresholds: np.ndarray
    keep: int

    def of(self, places: slice | np.ndarray) -> Candidates:
        """The candidates of some places only."""
        entries, counts, thresholds, keep = self
        return Candidates(entries[places], counts[places], thresholds[places], keep)

    @classmethod
    def empty(cls, n_places: int, k: int, dtype: np.dtype) -> Candidates:
        single = dtype == np.float32
        entry = _native.ENTRY_BYTES_FLOAT32 if single else _native.ENTRY_BYTES_FLOAT64
        keep = k + SPARE
        capacity = keep + max(keep, MIN_ROOM)
        n_bytes = n_places * capacity * entry
        require_memory(
            n_bytes,
            task=f"a search for {k} neighbors of {n_places} rows",
            alternative="ask for fewer neighbors",
        )
        return cls(
            np.empty((n_places, capacity * entry), np.uint8),
            np.zeros(n_places, np.int32),
            np.full(n_places, np.finfo(dtype).min, dtype),
            keep,
        )


def exact_join(X: np.ndarray, k: int, threads: int, monitor: Monitor) -> NeighborSquares:
    """The k nearest other rows of every row of X."""
    F = FilterSpace.of(X, threads).coordinates(X, threads)
    panels_per_block = 16 if F.shape[1] > BOX_COLUMNS else 4
    order = spatial_order(F, panel_width(F.dtype))
    points = PackedPoints.of(F[order], threads, order)
    del F
    kept = Candidates.empty(len(points.ids), k, points.halves.dtype)
    _join(points, panels_per_block, kept, threads, monitor)
    return finish(X, X, points, points, kept, k, threads, monitor)


def _join(
    points: PackedPoints, panels_per_block: int, kept: Candidates, threads: int, monitor: Monitor
) -> None:
    n_blocks = -(-len(points.panels) // panels_per_block)
    low, high = _boxes(points, panels_per_block)
    n = int((points.ids >= 0).sum())
    block = panels_per_block * points.panels.shape[2]
    top_halves = np.maximum.reduceat(points.halves[:n], np.arange(0, n, block))
    n_rounds = 1 << (n_blocks - 1).bit_length()
    step = max(1, n_rounds // 50)
    with monitor.phase("neighbors", total=n_rounds) as phase:
        for rounds in row_blocks(n_rounds, step):
            _native.join_rounds(
                points.panels,
                points.halves,
                low,
                high,
                top_halves,
                panels_per_block,
                points.rounding,
                *kept,
                rounds.start,
                rounds.stop,
                threads,
                tails=points.tails,
                lead=points.lead,
            )
            phase.advance(rounds.stop - rounds.start)


def _boxes(points: PackedPoints, panels_per_block: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounding boxes of the blocks in the first coordinates; empty places do not count."""
    width = points.panels.shape[2]
    leading = points.panels[:, :BOX_COLUMNS].transpose(0, 2, 1)
    empty = (points.ids < 0).reshape(-1, width, 1)
    starts = np.arange(0, len(points.panels), panels_per_block)
    low = np.minimum.reduceat(np.where(empty, np.inf, leading).min(axis=1), starts)
    high = np.maximum.reduceat(np.where(empty, -np.inf, leading).max(axis=1), starts)
    kind = points.panels.dtype
    return np.ascontiguousarray(low, kind), np.ascontiguousarray(high, kind)


def spatial_order(F: np.ndarray, leaf: int) -> np.ndarray:
    """An order of the rows in which runs of ``leaf`` are near in space, and runs of runs.

    A run of leaves is split after a power of two of them, along the coordinate of largest spread:
    leaves whose numbers differ in low bits only are neighbors.
    """
    order = np.arange(len(F), dtype=np.int32)
    runs = [(0, len(F))]
    while runs:
        start, stop = runs.pop()
        n_leaves = -(-(stop - start) // leaf)
        if n_leaves <= 1:
            continue
        rows = order[start:stop]
        sample = F[rows[:: max(1, len(rows) // 64)], :32]
        axis = int(np.argmax(sample.max(axis=0) - sample.min(axis=0)))
        cut = (1 << (n_leaves - 1).bit_length() - 1) * leaf
        order[start:stop] = rows[np.argpartition(F[rows, axis], cut)]
        runs += [(start, start + cut), (start + cut, stop)]
    return order


class ExactIndex:
    """Rows of X in filter space, packed once for any number of queries."""

    def __init__(self, X: np.ndarray, threads: int) -> None:
        self.X, self.space = X, FilterSpace.of(X, threads)
        self.points = PackedPoints.of(self.space.coordinates(X, threads), threads)

    @property
    def nbytes(self) -> int:
        """Memory in addition to X."""
        return self.points.nbytes

    def query(self, queries: np.ndarray, k: int, threads: int, monitor: Monitor) -> NeighborSquares:
        """The k rows of X nearest to each query."""
        F = self.space.coordinates(queries, threads)
        return nearest_points(queries, F, self.X, self.points, k, threads, monitor)


def nearest_points(
    queries: np.ndarray,
    F: np.ndarray,
    X: np.ndarray,
    points: PackedPoints,
    k: int,
    threads: int,
    monitor: Monitor,
    prove: bool = True,
) -> NeighborSquares:
    """The k rows of X, packed as ``points``, nearest to each query, which is F in filter space."""
    sought = PackedPoints.of(F, threads, lead=points.lead)
    kept = Candidates.empty(len(sought.ids), k, F.dtype)
    _score_all(sought, points, kept, threads, monitor)
    return finish(queries, X, sought, points, kept, k, threads, monitor, prove)


def _score_all(
    sought: PackedPoints, points: PackedPoints, kept: Candidates, threads: int, monitor: Monitor
) -> None:
    """Score every query against all points."""
    # Query panels that share a pass over the points; enough groups to keep all threads busy.
    together = min(4, max(1, len(sought.panels) // (4 * threads)))
    bounds = np.append(np.arange(0, len(sought.panels), together), len(sought.panels))
    n_groups, nobody = len(bounds) - 1, np.full(len(sought.ids), -2, np.int32)  # is left out
    one_each = np.arange(n_groups + 1, dtype=np.int64)
    ranges = np.tile(np.array([0, len(points.panels)], np.int64), (n_groups, 1))
    step = max(4 * threads, n_groups // 50)
    with monitor.phase("neighbors", total=n_groups) as phase:
        for groups in row_blocks(n_groups, step):
            _native.query_groups(
                sought.panels,
                sought.halves,
                points.panels,
                points.halves,
                bounds,
                one_each,
                ranges,
                groups.start,
                groups.stop,
                nobody,
                points.ids,
                *kept,
                threads,
                query_tails=sought.tails,
                tails=points.tails,
                lead=points.lead,
                rounding=points.rounding,
            )
            phase.advance(groups.stop - groups.start)


def finish(
    queries: np.ndarray,
    X: np.ndarray,
    sought: PackedPoints,
    points: PackedPoints,
    kept: Candidates,
    k: int,
    threads: int,
    monitor: Monitor,
    prove: bool = True,
) -> NeighborSquares:
    """Steps 2 and 3: exact distances of the candidates, and proof (unless ``prove`` is False).

    Queries have the type of X, or they are float64. If they are X itself (``sought`` is
    ``points``), no row is its own neighbor.
    """
    ids, squares = np.empty((len(queries), k), np.int32), np.empty((len(queries), k))
    certain = np.ones(len(sought.ids), np.uint8)
    queries, X = np.ascontiguousarray(queries), np.ascontiguousarray(X)
    _native.rerank(
        queries,
        X,
        sought.ids,
        *kept,
        points.ids,
        sought.halves,
        points.rounding,
        ids,
        squares,
        certain,
        threads,
    )
    doubtful = np.flatnonzero(certain == 0)
    if not prove:  # only rows that have fewer than k neighbors so far
        doubtful = doubtful[(ids[sought.ids[doubtful]] < 0).any(axis=1)]
    step = max(2400, len(doubtful) // 20)
    with monitor.phase("proof", total=len(doubtful)) as phase:
        for block in row_blocks(len(doubtful), step):
            rows = np.ascontiguousarray(doubtful[block], np.int64)
            _native.complete(
                sought.panels,
                sought.halves,
                points.panels,
                points.halves,
                queries,
                X,
                rows,
                sought.ids,
                points.ids,
                sought is points,
                points.rounding,
                ids,
                squares,
                threads,
            )
            phase.advance(len(rows))
    return NeighborSquares(ids, squares)
