"""Approximate Euclidean neighbors of many rows: search only the cells nearby, and measure.

1. k-means on a sample cuts space into cells of a few hundred rows; rows are laid out cell by cell,
   near ones together;
2. every group of some fifty neighboring rows is scored, in dense tiles, against the cells whose
   centers are nearest to its own;
3. the recall is measured on a random sample of rows against the exact answer; while it is below
   the target, the next nearest cells are searched as well.

Cost about O(n^1.1 q) for a fixed target; memory O(n (k + q)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.monitor import Monitor
from lowland._engines.filter_space import FilterSpace, PackedPoints, panel_width
from lowland._engines.knn_exact import Candidates, Found, finish, search, spatial_order

__all__ = ["Approximate", "cells_join"]

CELL_ROWS = 400
GROUP_PANELS = 2
FIRST_PROBES = 16
MORE_PROBES = 12
MOST_PROBES = 160
SAMPLE_ROWS = 500
TARGET_RECALL = 0.985


class Approximate(NamedTuple):
    """Neighbors found, and the share of the true ones among them on a sample of rows."""

    found: Found
    recall: float
    sample_rows: int


def cells_join(
    X: np.ndarray, k: int, threads: int, rng: np.random.Generator, monitor: Monitor
) -> Approximate:
    """The k nearest other rows of every row of X, nearly always."""
    F = FilterSpace.of(X, threads).coordinates(X, threads)
    centers, cell_of = _cells(F, max(2, len(F) // CELL_ROWS), threads, rng, monitor)
    points, cell_panels = _laid_out(F, cell_of, len(centers), threads)
    groups, group_cells = _groups(points, centers, cell_panels, threads)
    del F
    kept = Candidates.empty(len(points.ids), k, points.halves.dtype)
    truth = _SampleTruth(X, points, min(SAMPLE_ROWS, len(X)), k, threads, rng)
    most = min(MOST_PROBES, group_cells.shape[1])
    begin, end = 0, min(FIRST_PROBES, most)
    while True:
        ranges = cell_panels[group_cells[:, begin:end]].reshape(-1, 2)
        starts = np.arange(len(groups)) * (end - begin)
        search(points, points, groups, starts, ranges, points.ids, kept, threads, monitor)
        recall = truth.recall(truth.found(kept))
        if recall >= TARGET_RECALL or end == most:
            break
        begin, end = end, min(end + MORE_PROBES, most)
    found = finish(X, X, points, points, kept, k, True, threads, monitor, prove=False)
    return Approximate(found, recall, len(truth.rows))


def _cells(
    F: np.ndarray, n_cells: int, threads: int, rng: np.random.Generator, monitor: Monitor
) -> tuple[np.ndarray, np.ndarray]:
    """Centers by a few steps of k-means on a sample, and the cell of every row."""
    sample = F[np.sort(rng.choice(len(F), min(len(F), 40 * n_cells), replace=False))]
    centers = sample[rng.choice(len(sample), n_cells, replace=False)].copy()
    with monitor.phase("cells", total=7) as phase:
        for _ in range(6):
            cell = _nearest(sample, centers, threads)
            sums = np.zeros(centers.shape)
            np.add.at(sums, cell, sample)
            sizes = np.bincount(cell, minlength=n_cells)
            filled = sizes > 0
            centers[filled] = sums[filled] / sizes[filled, None]
            phase.advance()
        cell = _nearest(F, centers, threads)
        phase.advance()
    return centers, cell


def _nearest(F: np.ndarray, centers: np.ndarray, threads: int) -> np.ndarray:
    """Number of the center nearest to each row, up to rounding."""
    half = np.einsum("ij,ij->i", centers, centers) / 2
    cell = np.empty(len(F), np.int64)
    for start in range(0, len(F), 4096):
        rows = slice(start, start + 4096)
        cell[rows] = np.argmax(F[rows] @ centers.T - half, axis=1)
    return cell


def _laid_out(
    F: np.ndarray, cell_of: np.ndarray, n_cells: int, threads: int
) -> tuple[PackedPoints, np.ndarray]:
    """Rows packed cell by cell, each cell in panels of its own; the panels of each cell."""
    width = panel_width(F.dtype)
    by_cell = np.argsort(cell_of, kind="stable")
    sizes = np.bincount(cell_of, minlength=n_cells)
    n_panels = -(-sizes // width)
    ends = np.cumsum(n_panels)
    cell_panels = np.column_stack([ends - n_panels, ends])
    places = np.full(int(ends[-1]) * width, -1, np.int32)
    begin = 0
    for size, first_panel in zip(sizes, cell_panels[:, 0], strict=True):
        rows = by_cell[begin : begin + size]
        inside = spatial_order(F[rows], GROUP_PANELS * width)
        places[first_panel * width : first_panel * width + size] = rows[inside]
        begin += size
    return PackedPoints.of(F[places], places, threads), cell_panels


def _groups(
    points: PackedPoints, centers: np.ndarray, cell_panels: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the groups of panels, and for each group the cells, nearest first."""
    width = points.panels.shape[2]
    bounds = [np.arange(first, last, GROUP_PANELS) for first, last in cell_panels]
    groups = np.append(np.concatenate(bounds), len(points.panels))
    real = (points.ids >= 0).reshape(-1, 1, width)
    sums = np.add.reduceat(np.where(real, points.panels, 0).sum(axis=2), groups[:-1], axis=0)
    counts = np.add.reduceat(real.sum(axis=(1, 2)), groups[:-1])
    means = (sums / np.maximum(counts, 1)[:, None]).astype(centers.dtype)
    half = np.einsum("ij,ij->i", centers, centers) / 2
    filled = np.flatnonzero(np.diff(cell_panels, axis=1)[:, 0])
    most = min(MOST_PROBES, len(filled))
    order = np.empty((len(means), most), np.int64)
    for start in range(0, len(means), 2048):
        rows = slice(start, start + 2048)
        scores = half[filled] - means[rows] @ centers[filled].T
        near = np.argpartition(scores, most - 1, axis=1)[:, :most]
        near_scores = np.take_along_axis(scores, near, axis=1)
        ranked = np.argsort(near_scores, axis=1, kind="stable")
        order[rows] = filled[np.take_along_axis(near, ranked, axis=1)]
    return groups, order


class _SampleTruth:
    """The exact neighbors of a random sample of rows, to measure recall by."""

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
        panels, width = points.panels, points.panels.shape[2]
        F = panels[self.places // width, :, self.places % width]
        sought = PackedPoints.of(np.ascontiguousarray(F), np.arange(n_rows), threads)
        ids = np.full(len(sought.ids), -2, np.int32)
        ids[:n_rows] = self.rows
        kept = Candidates.empty(len(sought.ids), k, points.halves.dtype)
        n = len(sought.panels)
        search(
            sought,
            points,
            np.arange(n + 1),
            np.arange(n + 1),
            np.tile([0, len(panels)], (n, 1)),
            ids,
            kept,
            threads,
            Monitor(),
        )
        self.true = finish(
            X[self.rows], X, sought, points, kept, k, False, threads, Monitor(), prove=False
        ).ids

    def found(self, kept: Candidates) -> np.ndarray:
        """The neighbors that the search has found for the sample so far."""
        sample = Candidates(
            kept.entries[self.places],
            kept.counts[self.places],
            kept.thresholds[self.places],
            kept.keep,
        )
        places = np.arange(len(self.rows), dtype=np.int32)
        sought = PackedPoints(
            self.points.panels, self.points.halves[self.places], places, self.points.rounding
        )
        return finish(
            self.X[self.rows],
            self.X,
            sought,
            self.points,
            sample,
            self.k,
            False,
            self.threads,
            Monitor(),
            prove=False,
        ).ids

    def recall(self, found: np.ndarray) -> float:
        """Share of the true neighbors that were found."""
        hits = [np.isin(row, near).mean() for row, near in zip(self.true, found, strict=True)]
        return float(np.mean(hits))
