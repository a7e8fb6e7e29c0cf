"""Approximate Euclidean neighbors of many rows from nearby cells, with measured recall.

1. k-means on a sample cuts space into cells of a few hundred rows; rows are laid out cell by cell;
2. every row is scored against the rows of the cells whose centers are nearest to it. Chunks of
   neighboring rows are searched together: those that share a cell meet it in one dense tile;
3. neighbors of neighbors are tried as well;
4. the recall is measured on a random sample of rows against the exact neighbors; while it is below
   the target, step 3 is repeated; if that is not enough, the search is repeated with more cells.

Cost about O(n^1.2 q) for a fixed target (cells and their number both grow); memory O(n (k + q)).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.monitor import Monitor
from lowland._engines.distances.filter_space import FilterSpace, PackedPoints, panel_width
from lowland._engines.linalg.products import row_blocks
from lowland._engines.neighbors.exact_search import (
    Candidates,
    NeighborSquares,
    finish,
    nearest_points,
)

# The recall of a search: the share of true neighbors found, on a random sample of rows.


class SampleTruth:
    """The exact neighbors of a random sample of packed rows of X, to measure recall by."""

    def __init__(
        self,
        X: np.ndarray,
        points: PackedPoints,
        n_rows: int,
        k: int,
        threads: int,
        rng: np.random.Generator,
    ) -> None:
        taken = np.flatnonzero(points.ids >= 0)
        self.places = np.sort(rng.choice(taken, n_rows, replace=False))
        self.rows = points.ids[self.places]
        self.X, self.points, self.k, self.threads = X, points, k, threads
        width = points.panels.shape[2]
        F = np.ascontiguousarray(points.panels[self.places // width, :, self.places % width])
        # With the row itself, which is its own nearest: k + 1.
        exact = nearest_points(X[self.rows], F, X, points, k + 1, threads, Monitor())
        self.true = exact.squares[:, 1:]

    def recall(self, kept: Candidates) -> float:
        """Share of the true neighbors among the candidates kept so far; ties count as found."""
        points, X, sample = self.points, self.X, kept.of(self.places)
        here = np.arange(len(self.rows), dtype=np.int32)
        sought = replace(points, halves=points.halves[self.places], ids=here)
        found = finish(
            X[self.rows], X, sought, points, sample, self.k, self.threads, Monitor(), False
        )
        return float((found.squares <= self.true[:, -1:]).mean())


CELL_ROWS = 500
CHUNK_ROWS = 8192  # rows that are searched together
# Neighbors of neighbors cost O(k^2) per row, cells O(1). For many neighbors, more cells are
# searched and only the nearest neighbors are asked for theirs: at 300 000 rows, k = 90, 0.7 of the
# time of 16 cells and all neighbors, for the same recall (.987).
FEW_NEIGHBORS = 40
FIRST_PROBES, WIDE_PROBES = 16, 32  # cells searched per row, for few neighbors and for more
MORE_PROBES = 56  # in a second try, if the first does not reach the recall
ROUNDS = 3  # of looking at neighbors of neighbors, at most
SAMPLE_ROWS = 500
TARGET_RECALL = 0.985


class ApproximateNeighbors(NamedTuple):
    """Neighbors found, and the share of the true ones among them on a sample of rows."""

    found: NeighborSquares
    recall: float
    sample_rows: int


class Layout(NamedTuple):
    """Points packed cell by cell, the same row by row, and the panels of each cell."""

    points: PackedPoints
    rows: np.ndarray
    cell_panels: np.ndarray


def cells_join(
    X: np.ndarray, k: int, threads: int, rng: np.random.Generator, monitor: Monitor
) -> ApproximateNeighbors:
    """The k nearest other rows of every row of X, with a recall of at least about 0.985."""
    F = FilterSpace.of(X, threads, full=True).coordinates(X, threads)
    centers = cell_centers(F, max(2, len(F) // CELL_ROWS), threads, rng, monitor)
    first = FIRST_PROBES if k <= FEW_NEIGHBORS else WIDE_PROBES
    probes = nearest_centers(F, centers, min(first, len(centers)), threads, monitor)
    layout = laid_out(F, probes[:, 0], len(centers), threads)
    points = layout.points
    truth = SampleTruth(X, points, min(SAMPLE_ROWS, len(X)), k, threads, rng)
    kept, recall = _searched(layout, probes, k, truth, threads, monitor)
    if recall < TARGET_RECALL and probes.shape[1] < len(centers):
        probes = nearest_centers(F, centers, min(MORE_PROBES, len(centers)), threads, monitor)
        kept, recall = _searched(layout, probes, k, truth, threads, monitor)
    del F, layout
    found = finish(X, X, points, points, kept, k, threads, monitor, prove=False)
    return ApproximateNeighbors(found, recall, len(truth.rows))


def cell_centers(
    F: np.ndarray,
    n_cells: int,
    threads: int,
    rng: np.random.Generator,
    monitor: Monitor,
    rows_per_cell: int = 40,
    steps: int = 5,
) -> np.ndarray:
    """Centers of the cells by a few steps of k-means on a sample of so many rows per cell."""
    n_sample = min(len(F), rows_per_cell * n_cells)
    sample = F[np.sort(rng.choice(len(F), n_sample, replace=False))]
    centers = sample[rng.choice(len(sample), n_cells, replace=False)].copy()
    with monitor.phase("cells", total=steps) as phase:
        for _ in range(steps):
            cell = nearest_center(sample, centers, threads)
            by_cell = np.argsort(cell, kind="stable")
            sizes = np.bincount(cell, minlength=n_cells)
            filled = np.flatnonzero(sizes)
            starts = np.concatenate([[0], np.cumsum(sizes[filled])[:-1]])
            sums = np.add.reduceat(sample[by_cell], starts, axis=0, dtype=np.float64)
            centers[filled] = sums / sizes[filled, None]
            phase.advance()
    return centers


def nearest_center(F: np.ndarray, centers: np.ndarray, threads: int) -> np.ndarray:
    """The number of the center nearest to each row; equal distances go to the first of them."""
    shift = centers.mean(axis=0, dtype=np.float64).astype(F.dtype)
    nearest, squares = np.empty((len(F), 1), np.int32), np.empty((len(F), 1))
    _native.nearest_units(F, centers, shift, False, nearest, squares, threads)
    return nearest[:, 0]


def nearest_centers(
    F: np.ndarray,
    centers: np.ndarray,
    n_nearest: int,
    threads: int,
    monitor: Monitor,
    packed: PackedPoints | None = None,
) -> np.ndarray:
    """Numbers of the centers nearest to each row, nearest first.

    ``packed`` are the packed centers, if they are known already.
    """
    there = PackedPoints.of(centers, threads) if packed is None else packed
    nearest = np.empty((len(F), n_nearest), np.int32)
    with monitor.phase("nearest cells", total=len(F)) as phase:
        for rows in row_blocks(len(F), 2**17):
            block = np.ascontiguousarray(F[rows])
            found = nearest_points(
                block, block, centers, there, n_nearest, threads, Monitor(), prove=False
            )
            nearest[rows] = found.ids
            phase.advance(len(block))
    return nearest


def laid_out(F: np.ndarray, cell_of: np.ndarray, n_cells: int, threads: int) -> Layout:
    """Rows packed cell by cell, each cell in its own panels."""
    width = panel_width(F.dtype)
    by_cell = np.argsort(cell_of, kind="stable")
    sizes = np.bincount(cell_of, minlength=n_cells)
    n_panels = -(-sizes // width)
    ends = np.cumsum(n_panels)
    within = np.arange(len(F)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.full(int(ends[-1]) * width, -1, np.int32)
    places[np.repeat((ends - n_panels) * width, sizes) + within] = by_cell
    rows = F[places]
    points = PackedPoints.of(rows, threads, places)
    return Layout(points, rows, np.column_stack([ends - n_panels, ends]))


def _probe(
    layout: Layout, probes: np.ndarray, kept: Candidates, threads: int, monitor: Monitor
) -> None:
    """Score every row against the cells it probes, chunk by chunk."""
    taken = np.flatnonzero(layout.points.ids >= 0).astype(np.int32)
    chunks = [taken[rows] for rows in row_blocks(len(taken), CHUNK_ROWS)]
    with monitor.phase("neighbors", total=len(chunks)) as phase:
        for some in row_blocks(len(chunks), 4 * threads):
            batch = chunks[some]
            asked = [probes[layout.points.ids[chunk]] for chunk in batch]
            score_cells(layout, layout.rows, batch, asked, kept, threads)
            phase.advance(len(batch))


def score_cells(
    layout: Layout,
    queries: np.ndarray,
    chunks: list[np.ndarray],
    probes: list[np.ndarray],
    kept: Candidates,
    threads: int,
    **sought: Any,
) -> None:
    """Score the queries of each chunk against the rows of the cells that each of them probes.

    ``sought`` are the half squares and tails of queries that are not points themselves.
    """
    tasks, cells, sizes, asking = [0], [], [], []
    for chunk, probed in zip(chunks, probes, strict=True):
        wanted = probed.ravel()
        if len(layout.cell_panels) < 2**16:
            wanted = wanted.astype(np.uint16)  # which numpy sorts fastest
        order = np.argsort(wanted, kind="stable")
        counts = np.bincount(wanted, minlength=len(layout.cell_panels))
        cells.append(np.flatnonzero(counts))
        sizes.append(counts[cells[-1]])
        asking.append(chunk[order // probed.shape[1]])
        tasks.append(tasks[-1] + len(cells[-1]))
    points = layout.points
    _native.probe_lists(
        points.panels,
        points.halves,
        queries,
        np.array(tasks),
        layout.cell_panels[np.concatenate(cells)],
        np.concatenate([[0], np.cumsum(np.concatenate(sizes))]),
        np.concatenate(asking),
        *kept,
        threads,
        tails=points.tails,
        lead=points.lead,
        rounding=points.rounding,
        **sought,
    )


def _searched(
    layout: Layout, probes: np.ndarray, k: int, truth: SampleTruth, threads: int, monitor: Monitor
) -> tuple[Candidates, float]:
    """Candidates from the probed cells and from neighbors of neighbors, and their recall."""
    kept = Candidates.empty(len(layout.rows), k, layout.rows.dtype)
    _probe(layout, probes[:, :2], kept, threads, monitor)  # the nearest first: tight thresholds
    _probe(layout, probes[:, 2:], kept, threads, monitor)
    return kept, _refine(layout, k, truth, kept, threads, monitor)


def _refine(
    layout: Layout, k: int, truth: SampleTruth, kept: Candidates, threads: int, monitor: Monitor
) -> float:
    """Look at neighbors of neighbors while that helps; the recall reached."""
    recall = truth.recall(kept)
    near = np.empty((len(layout.rows), min(k, FEW_NEIGHBORS)), np.int32)
    with monitor.phase("neighbors of neighbors", total=ROUNDS) as phase:
        for _ in range(ROUNDS):
            if recall >= TARGET_RECALL:
                break
            _native.refine_neighbors(layout.rows, layout.points.halves, near, *kept, threads)
            before, recall = recall, truth.recall(kept)
            phase.advance()
            if recall - before < 0.002:
                break
    return recall
