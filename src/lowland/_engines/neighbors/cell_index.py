"""Nearest fitted rows of new rows from nearby cells: built once, asked again and again.

1. k-means on a sample cuts space into cells of some hundred rows; the rows are packed cell by cell;
2. how many cells a query has to search is found on a sample of the rows, whose exact neighbors are
   known: the least number of nearest cells that hold a share of ``AIM`` of them;
3. a query is scored against the rows of so many cells, those with the nearest centers, and the best
   few are ranked again in exact arithmetic.

Which rows a query is compared with depends on that query only, so no query has an influence on
another one. Cells and sample come from a fixed seed: the answers depend on the rows alone.

Cost of building O(n^1.5 q), of a query about O(n^0.5 q) if the data have structure; memory O(n q).
"""

from __future__ import annotations

import math

import numpy as np

from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._engines.distances.filter_space import (
    FILTER_COLUMNS,
    FULL_COLUMNS,
    FilterSpace,
    PackedPoints,
)
from lowland._engines.linalg.products import row_blocks
from lowland._engines.neighbors import cell_search
from lowland._engines.neighbors.duplicates import equal_rows
from lowland._engines.neighbors.exact_search import (
    Candidates,
    NeighborSquares,
    finish,
    nearest_points,
)

CELL_ROWS = 200  # at least; more where there are many rows, so that cells are few
TRAINED_ROWS = 25  # per cell, and so many steps: more of k-means finds hardly better cells
TRAINED_STEPS = 4
SEED = 0
SAMPLE_ROWS = 500
AIM = 0.9875  # more than the target: another sample has a little less
QUERY_ROWS = 2**15  # queries at a time
CHUNK_ROWS = 4096  # queries of one task: those of a cell are scored together
FIRST_CELLS = 2  # searched before the others, for tight thresholds


class CellIndex:
    """Rows of X in cells, for the k nearest of any number of queries.

    Attributes
    ----------
    probes : int
        Number of cells that a query searches.
    recall : float
        Share of the true neighbors found, on a sample of the rows of X.
    sample_rows : int
    """

    _truth: tuple[np.ndarray, ...] | None = None

    def __init__(self, X: np.ndarray, k: int, threads: int, monitor: Monitor) -> None:
        self.X, self.k = X, k
        rows = _at_most(X, k, threads)
        wide = X.shape[1] > FULL_COLUMNS
        self._build(rows, wide, threads, monitor)
        if (
            wide and self.recall < cell_search.TARGET_RECALL
        ):  # the leading directions are not enough
            self._build(rows, False, threads, monitor)

    def _build(self, rows: np.ndarray, leading: bool, threads: int, monitor: Monitor) -> None:
        """Pack ``rows`` in cells; of wide tables the leading directions, or all columns."""
        X, rng = self.X, np.random.default_rng(SEED)
        require_memory(
            12 * len(rows) * (FILTER_COLUMNS if leading else X.shape[1]),
            task=f"the index of {len(X)} fitted rows for neighbors of new rows",
            alternative="fit fewer rows",
        )
        self.space = FilterSpace.of(X, threads, full=not leading)
        F = self.space.coordinates(X if len(rows) == len(X) else X[rows], threads)
        n_cells = _number_of_cells(len(rows))
        self.centers = cell_search.cell_centers(
            F, n_cells, threads, rng, monitor, rows_per_cell=TRAINED_ROWS, steps=TRAINED_STEPS
        )
        self._packed_centers = PackedPoints.of(self.centers, threads)
        cell_of = cell_search.nearest_center(F, self.centers, threads)
        layout = cell_search.laid_out(F, _short(cell_of), n_cells, threads)
        self._layout, points = layout._replace(rows=F[:0].copy()), layout.points
        sample = np.sort(rng.choice(len(rows), min(SAMPLE_ROWS, len(rows)), replace=False))
        sampled = F[sample]
        del F, layout
        taken = points.ids >= 0
        points.ids[taken] = rows[points.ids[taken]]
        self.sample_rows = len(sample)
        cells = np.empty(len(X), np.int32)
        cells[rows] = cell_of
        # Scores by leading directions are bounds, which order the rows less well.
        self._spare = self.k // 2 if leading else 0
        self._calibrate(rows[sample], sampled, cells, threads)
        if leading and self.recall < cell_search.TARGET_RECALL:
            self._spare = 2 * self.k
            self._measure(threads)
        self._truth = None

    @property
    def nbytes(self) -> int:
        """Memory in addition to X."""
        return self._layout.points.nbytes + self._packed_centers.nbytes + self.centers.nbytes

    def query(self, queries: np.ndarray, k: int, threads: int, monitor: Monitor) -> NeighborSquares:
        """The k rows of X nearest to each query, of which some may be missed."""
        found = NeighborSquares(np.empty((len(queries), k), np.int32), np.empty((len(queries), k)))
        with monitor.phase("neighbors", total=len(queries)) as phase:
            for rows in row_blocks(len(queries), QUERY_ROWS):
                some = np.ascontiguousarray(queries[rows])
                F = self.space.coordinates(some, threads)
                found.ids[rows], found.squares[rows] = self._nearest(some, F, k, threads)
                phase.advance(len(some))
        return found

    def _nearest(self, queries: np.ndarray, F: np.ndarray, k: int, threads: int) -> NeighborSquares:
        n_probes = min(self.probes, len(self.centers))
        probes = self._nearest_centers(F, n_probes, threads)
        points, m = self._layout.points, len(F)
        sought = PackedPoints.of(F, threads, lead=points.lead)
        kept = Candidates.empty(len(sought.ids), k + self._spare, F.dtype)
        order = np.argsort(_short(probes[:, 0]), kind="stable").astype(np.int32)
        size = min(CHUNK_ROWS, math.ceil(m / threads))
        chunks = [order[rows] for rows in row_blocks(m, size)]
        own = {"query_halves": sought.halves[:m], "query_tails": sought.tails[:m]}
        for some in (probes[:, :FIRST_CELLS], probes[:, FIRST_CELLS:]):
            if some.shape[1]:
                asked = [some[chunk] for chunk in chunks]
                here = kept.of(slice(m))
                cell_search.score_cells(self._layout, F, chunks, asked, here, threads, **own)
        return finish(queries, self.X, sought, points, kept, k, threads, Monitor(), prove=False)

    def _nearest_centers(self, F: np.ndarray, n_nearest: int, threads: int) -> np.ndarray:
        packed = self._packed_centers
        return cell_search.nearest_centers(F, self.centers, n_nearest, threads, Monitor(), packed)

    # --- recall ---------------------------------------------------------------------------------

    def _calibrate(
        self, sample: np.ndarray, F: np.ndarray, cell_of: np.ndarray, threads: int
    ) -> None:
        """Choose the number of cells to search; a row of the sample does not find itself."""
        asked = np.ascontiguousarray(self.X[sample])
        points = self._layout.points
        wanted = self._wanted = min(self.k + 1, int((points.ids >= 0).sum()))
        exact = nearest_points(asked, F, self.X, points, wanted, threads, Monitor())
        others = exact.ids != sample[:, None]
        n_cells = len(self.centers)
        order = self._nearest_centers(F, n_cells, threads)
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(n_cells, dtype=np.int32)[None, :], axis=1)
        ranks = np.take_along_axis(rank, cell_of[exact.ids], axis=1)[others]
        within = np.cumsum(np.bincount(ranks, minlength=n_cells)) / max(1, len(ranks))
        self.probes = min(n_cells, 1 + int(np.searchsorted(within, AIM)))
        self._truth = asked, F, exact.squares[:, -1:], sample
        self._measure(threads)
        while self.recall < cell_search.TARGET_RECALL and not self._spare and self.probes < n_cells:
            self.probes = min(n_cells, self.probes + 1 + self.probes // 4)
            self._measure(threads)

    def _measure(self, threads: int) -> None:
        """The recall of the search as it is, on the sample."""
        assert self._truth is not None
        asked, F, farthest, sample = self._truth
        found = self._nearest(asked, F, self._wanted, threads)
        near = (found.squares <= farthest) & (found.ids != sample[:, None])
        others = len(sample) * (self._wanted - 1)
        self.recall = min(1.0, float(near.sum() / others)) if others else 1.0


def _number_of_cells(n: int) -> int:
    """Few enough that to find the cell of each row, O(n n_cells), stays short."""
    return max(1, n // max(CELL_ROWS, math.isqrt(n) // 2))


def _at_most(X: np.ndarray, k: int, threads: int) -> np.ndarray:
    """The rows of X, but of equal rows the first k only: no query finds more of them."""
    equal = equal_rows(X, threads, only_if_many=True)
    if equal is None:
        return np.arange(len(X), dtype=np.int32)
    by_group = np.argsort(equal.group, kind="stable")
    sizes = np.bincount(equal.group)
    within = np.arange(len(X)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(by_group[within < k]).astype(np.int32)


def _short(cells: np.ndarray) -> np.ndarray:
    """Numbers of cells in the type that numpy sorts fastest."""
    return cells.astype(np.uint16) if cells.size and cells.max() < 2**16 else cells
