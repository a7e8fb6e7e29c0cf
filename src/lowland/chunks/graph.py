"""The neighbor graph of tables larger than memory, from the graphs of overlapping parts.

1. k-means on a sample cuts space into parts; each row goes to its r nearest parts
   (:func:`space_parts`, ``Rows.exchange``);
2. the neighbor join runs within each part, and the lists of a row are merged
   (:class:`NeighborLists`);
3. the recall is measured on sampled rows, whose exact neighbors among all rows are found in one
   pass (:func:`exact_lists`). Before the join, these rows show which share of the true neighbors
   meets in a part for each r, and r is chosen so that the recall is as large as asked for.

References: Chen et al. (2021), SPANN: highly-efficient billion-scale approximate nearest neighbor
search, NeurIPS 34 (rows near a border in several parts).
"""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Integer, Null, Real, check_argument
from lowland._base.errors import ParameterError, shown
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block
from lowland._base.rows.fitting import as_rows, block_check, float_type
from lowland._base.rows.folding import row_keys, sampled_rows
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas, resolve_n_jobs
from lowland._base.validation import is_usual, largest
from lowland._engines.linalg.products import row_blocks
from lowland._engines.neighbors.cell_search import cell_centers
from lowland._engines.neighbors.duplicates import equal_rows
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import (
    check_k,
    neighbor_graph,
    neighbor_graph_cost,
    neighbor_query,
)

# Parts of space for rows that do not fit in memory: each row goes to its nearest few.
#
# The centers of the parts are k-means centers of a sample. Two neighbors meet if one of the r parts
# of the one is a part of the other, so r = 2 or 3 finds most neighbors across the borders.
#
# A part must fit in memory. Parts that the sample shows to be too large are divided by more
# centers. Where that does not help, rows are divided by their numbers. Rows of which there are
# very many equal ones ("heavy" rows) would fill parts with copies: they get parts of their own,
# and only some of them go to the parts around, where others find them.


SAMPLE_ROWS = 100_000  # that centers and sizes of parts are found on, at most ...
SAMPLE_BYTES = 1 << 28  # ... unless they are wide
CENTER_ROWS = 40  # rows of the sample per center, at least
ROUNDS = 4  # of dividing parts that are too large


class How(NamedTuple):
    """How the steps of the search go: they share the seed, the threads and the monitor."""

    seed: int
    n_jobs: int | None
    monitor: Monitor

    @property
    def threads(self) -> int:
        return resolve_n_jobs(self.n_jobs)


@dataclasses.dataclass(frozen=True)
class SpaceParts:
    """The parts of each row: a function of a block, for :meth:`Rows.exchange`.

    Parameters
    ----------
    centers : ndarray of shape (c, p)
        Centers of parts, all different.
    slices : int ndarray of shape (c,)
        Into how many parts the rows around each center are divided, by their numbers.
    heavy : ndarray of shape (h, p)
        Rows that have very many equal ones.
    heavy_slices : int ndarray of shape (h,)
        Into how many parts those are divided.
    shown : ndarray of shape (h,)
        Share of them that goes to the parts around: about a tenth of a part.
    copies : int
        How many parts a row goes to, at most c.
    """

    centers: np.ndarray
    slices: np.ndarray
    heavy: np.ndarray
    heavy_slices: np.ndarray
    shown: np.ndarray
    copies: int
    seed: int
    n_jobs: int | None

    @property
    def n_parts(self) -> int:
        return int(self.slices.sum() + self.heavy_slices.sum())

    @property
    def width(self) -> int:
        """The columns of what a call gives: the copies, and one for the parts of heavy rows."""
        return self.copies + bool(len(self.heavy))

    def with_copies(self, copies: int) -> SpaceParts:
        """The same parts, with another number of parts per row."""
        return dataclasses.replace(self, copies=copies)

    def as_one(self) -> SpaceParts:
        """One part of all rows."""
        one = np.ones(1, np.int64)
        nobody = {"heavy": self.heavy[:0], "heavy_slices": one[:0], "shown": one[:0]}
        return dataclasses.replace(self, centers=self.centers[:1], slices=one, copies=1, **nobody)

    def __call__(self, block: Block) -> np.ndarray:
        return self.of(block.X, row_keys(block.start, block.start + block.n_rows, self.seed))

    def of(self, X: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The parts of rows with these keys (:func:`row_keys`), nearest first, -1 for none."""
        threads = resolve_n_jobs(self.n_jobs)
        with limit_blas(1):
            near = neighbor_query(self.centers, X, self.copies, threads=threads).indices
            parts = _sliced(near, self.slices, keys[:, None])
            if not len(self.heavy):
                return parts
            heaviest = neighbor_query(self.heavy, X, 1, threads=threads)
        which = heaviest.indices[:, 0]
        equal = heaviest.distances[:, 0] == 0
        own = self.slices.sum() + _sliced(which, self.heavy_slices, keys)
        chance = (keys >> np.uint64(11)) * 2.0**-53
        parts[equal & (chance >= self.shown[which])] = -1
        return np.column_stack([np.where(equal, own, -1), parts])


def _sliced(near: np.ndarray, slices: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Numbers of parts: slices of the nearest centers, by the keys of the rows."""
    first = np.cumsum(slices) - slices
    slice_of = (keys % slices[near].astype(np.uint64)).astype(np.int64)
    return first[near] + slice_of


def space_parts(rows: Rows, n_parts: int, copies: int, part_rows: int, how: How) -> SpaceParts:
    """About ``n_parts`` parts for the rows of a table; it reads a sample."""
    n, p = rows.shape
    wanted = max(CENTER_ROWS * n_parts, min(SAMPLE_ROWS, SAMPLE_BYTES // (8 * p)))
    S = np.asarray(rows.take(sampled_rows(n, wanted, how.seed), how.monitor).X, rows.dtype)
    with limit_blas(1):
        groups = equal_rows(S, how.threads)
        distinct, counts = S, np.ones(len(S), np.int64)
        if groups is not None:
            distinct, counts = S[groups.first], np.bincount(groups.group)
        sizes = counts * (n / len(S))
        tenth = part_rows / 10
        is_heavy = (sizes * copies > tenth) & (counts >= 10)  # too many for chance
        heavy = np.flatnonzero(is_heavy)
        heavy_slices = np.ceil(sizes[heavy] / part_rows).astype(np.int64)
        shown = np.minimum(1.0, tenth / sizes[heavy])
        weights = np.where(is_heavy, np.minimum(sizes, tenth), sizes)
        centers, slices = _divided(distinct, weights, n_parts, copies, part_rows, how)
    copies = min(copies, len(centers))
    parts = centers, slices, distinct[heavy], heavy_slices, shown
    return SpaceParts(*parts, copies, how.seed, how.n_jobs)


def _divided(
    S: np.ndarray, weights: np.ndarray, n_parts: int, copies: int, part_rows: int, how: How
) -> tuple[np.ndarray, np.ndarray]:
    """Centers for different rows that stand for ``weights`` rows each, and their slices."""
    rng, quiet = np.random.default_rng(how.seed), how._replace(monitor=Monitor())
    centers = _means(S, min(n_parts, len(S)), rng, how)
    if n_parts == 1:
        return centers, np.ones(1, np.int64)
    for left in reversed(range(ROUNDS)):
        nearest = min(copies, len(centers))
        near = neighbor_query(centers, S, nearest, threads=how.threads).indices
        sizes = np.bincount(near.ravel(), np.repeat(weights, near.shape[1]), minlength=len(centers))
        members = np.bincount(near[:, 0], minlength=len(centers))
        large = np.flatnonzero((sizes > 2 * part_rows) & (members >= 2))
        if not len(large) or not left:
            break
        pieces = []
        for center in large:
            mine = S[near[:, 0] == center]
            into = min(math.ceil(sizes[center] / part_rows), len(mine))
            pieces.append(_means(mine, into, rng, quiet))
        centers = np.unique(np.concatenate([np.delete(centers, large, axis=0), *pieces]), axis=0)
    return centers, np.maximum(1, np.ceil(sizes / (2 * part_rows))).astype(np.int64)


def _means(rows: np.ndarray, n: int, rng: np.random.Generator, how: How) -> np.ndarray:
    """Different centers of rows, n or fewer."""
    if n == 1:
        return rows.mean(axis=0, dtype=np.float64, keepdims=True).astype(rows.dtype)
    return np.unique(cell_centers(rows, n, how.threads, rng, how.monitor), axis=0)


# Neighbor lists that are found part by part, and merged into those of all rows.


CELLS_ROWS = 50_000  # from here on, cells take less time than all pairs of a part
BLOCK_ROWS = 1 << 15  # whose lists are merged at a time
LARGEST = np.float32(np.finfo(np.float32).max)


class PartLists(NamedTuple):
    """Neighbors within a part: numbers of rows, numbers of their neighbors, nearest first, and
    distances."""

    rows: np.ndarray
    ids: np.ndarray
    distances: np.ndarray


@dataclasses.dataclass(frozen=True)
class PartJoin:
    """The work on one part: its neighbor graph, in the numbers of the whole table.

    Distances are multiplied by ``scale`` and stored in float32.
    """

    k: int
    scale: float
    seed: int
    n_jobs: int | None

    def __call__(self, part: int, X: np.ndarray, numbers: np.ndarray) -> PartLists:
        k = min(self.k, len(X) - 1)
        if k < 1:
            return PartLists(numbers[:0], np.empty((0, 0), np.int32), np.empty((0, 0), np.float32))
        with limit_blas(1):
            graph = neighbor_graph(
                X,
                k,
                method="cells" if len(X) >= CELLS_ROWS else "auto",
                threads=resolve_n_jobs(self.n_jobs),
                rng=np.random.default_rng([self.seed, part]),
            )
        distances = graph.distances if self.scale == 1.0 else graph.distances * self.scale
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


# Exact neighbors of a few rows among all rows of a table, in one pass.


class ExactLists(NamedTuple):
    """The nearest other rows of some rows: by distance, ties by row number."""

    rows: np.ndarray  # numbers of the rows, ascending
    X: np.ndarray  # the rows themselves
    ids: np.ndarray
    distances: np.ndarray


def nearest_first(ids: np.ndarray, distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k entries of each row that come first by distance, then by number.

    Infinite distances mean that there is no neighbor: its number becomes -1. Short rows are filled
    up to k by such entries.
    """
    ids = np.where(np.isinf(distances), np.int64(-1), ids)
    more = ((0, 0), (0, max(0, k - ids.shape[1])))
    ids = np.pad(ids, more, constant_values=-1)
    distances = np.pad(distances, more, constant_values=np.inf)
    order = np.lexsort((ids, distances))[:, :k]
    return np.take_along_axis(ids, order, 1), np.take_along_axis(distances, order, 1)


@dataclasses.dataclass(frozen=True)
class _Nearest:
    """The nearest rows of a block to some rows of the table, which are not their own neighbors."""

    rows: np.ndarray
    X: np.ndarray
    k: int
    n_jobs: int | None

    def __call__(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        k = min(self.k + 1, block.n_rows)
        with limit_blas(1):
            found = neighbor_query(block.X, self.X, k, threads=resolve_n_jobs(self.n_jobs))
        ids = found.indices.astype(np.int64) + block.start
        own = ids == self.rows[:, None]
        return nearest_first(ids, np.where(own, np.inf, found.distances.astype(float)), self.k)

    def merge(
        self, a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The nearest of both."""
        return nearest_first(np.hstack([a[0], b[0]]), np.hstack([a[1], b[1]]), self.k)


def exact_lists(rows: Rows, numbers: np.ndarray, k: int, how: How) -> ExactLists:
    """The k nearest other rows of the rows with these numbers, ascending. O(m n p), two passes."""
    X = np.asarray(rows.take(numbers, how.monitor).X, rows.dtype)
    nearest = _Nearest(numbers, X, k, how.n_jobs)
    ids, distances = rows.total(nearest, nearest.merge, how.monitor, "exact neighbors")
    return ExactLists(numbers, X, ids, distances)


PART_ROWS = 250_000  # of a part, with the copies
PART_BYTES = 1 << 30
MOST_COPIES = 8
MOST_ROWS = 2**31 - 1
RECALL_ROWS = 1000
COMPLETED_ROWS = 20_000  # rows with too few neighbors that are searched for among all rows


def knn_graph(
    rows: Rows,
    k: int,
    *,
    metric: str = "euclidean",
    n_parts: int | None = None,
    copies: int = 2,
    target_recall: float = 0.985,
    seed: int = 0,
    n_jobs: int | None = None,
    monitor: Monitor | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> NeighborGraph:
    """The k nearest other rows of every row of a table, approximately, with measured recall.

    The same files and seed give the same graph on any engine, for any ``n_jobs``. Cost about
    O(copies n), and four passes over the table; memory 8 n k bytes for the graph, and one part;
    disk ``copies`` times the table while it runs.

    Parameters
    ----------
    rows : Rows
        The table: dense, finite, less than 2^31 rows.
    k : int
        Number of neighbors, at most n - 1.
    metric : "euclidean"
        No other is possible: parts are cut by means.
    n_parts : int or None
        Number of parts; None takes as many as give parts of 250 000 rows, with copies. One part
        makes the search that of ``lowland.neighbors.knn_graph``.
    copies : int
        Number of parts r that each row goes to, at least. It is raised, up to 8, until sampled rows
        show the recall asked for.
    target_recall : float
        Share of the true neighbors that are to be found.
    seed : int
        Decides about the samples and the centers of the parts.
    n_jobs : int or None
        Threads within a part; the result does not depend on it.
    folder : path or None
        Where the parts are written, see :meth:`Rows.exchange`.

    Returns
    -------
    NeighborGraph
        With int32 indices, float32 distances and the recall that was reached in ``recall_``, which
        may be below the target. Distances that agree in float32 count as ties. Rows in parts with
        too few rows may have less than k neighbors, with the index -1, if there are more than
        20 000 such rows.
    """
    monitor = monitor or Monitor()
    table = _checked(rows, k, metric)
    n, p = table.shape
    check_argument("knn_graph: n_parts", n_parts, Null() | Integer(1, max(1, n // (k + 1))))
    check_argument("knn_graph: copies", copies, Integer(1, MOST_COPIES))
    check_argument("knn_graph: target_recall", target_recall, Real(0, 1, closed="both"))
    check_argument("knn_graph: seed", seed, Integer(0, 2**62))
    resolve_n_jobs(n_jobs)
    how, part_rows = How(seed, n_jobs, monitor), _part_rows(p)
    if n_parts is None:
        n_parts = 1 if n <= part_rows else math.ceil(n * copies / part_rows)
    part = min(n, 2 * part_rows)
    need = 8 * n * k + part * (8 * p + 8) + neighbor_graph_cost(part, p, k).n_bytes
    require_memory(
        int(need),
        task=f"the graph of {k} neighbors of {n} rows",
        alternative="ask for fewer neighbors, or take rows.sample(n)",
    )
    parts = space_parts(table, int(n_parts), copies, part_rows, how)
    truth = exact_lists(table, sampled_rows(n, RECALL_ROWS, seed + 1), k, how)
    reach = max(largest(parts.centers), largest(truth.X))
    scale = 1.0 if is_usual(reach) else 2.0 ** -np.round(np.log2(reach))
    parts = parts.with_copies(_enough_copies(table, parts, truth, target_recall, monitor))
    if 1 < parts.copies == len(parts.centers) and n <= 4 * part_rows:
        parts = parts.as_one()  # every part would hold all rows
    lists = NeighborLists(n, k)
    join = PartJoin(k, scale, seed, n_jobs)
    while True:
        for found in table.exchange(
            parts, join, parts.n_parts, copies=parts.width, folder=folder, monitor=monitor
        ):
            lists.add(found)
        short = lists.incomplete()[:COMPLETED_ROWS]
        if len(short):  # rows whose parts had too few are searched for among all rows
            exact = exact_lists(table, short, k, how)
            found = exact.ids.astype(np.int32), (exact.distances * scale).astype(np.float32)
            lists.add(PartLists(short, *found))
        # the share of true neighbors found; ties with the last of them count
        farthest = (truth.distances[:, -1:] * scale).astype(np.float32)
        recall = float((lists.distances[truth.rows] <= farthest).mean())
        if recall >= target_recall or parts.copies >= min(MOST_COPIES, len(parts.centers)):
            break
        parts = parts.with_copies(parts.copies + 1)
    distances = lists.distances if scale == 1.0 else lists.distances.astype(np.float64) / scale
    return NeighborGraph(lists.ids, distances, n, "euclidean", recall, len(truth.rows))


def _part_rows(p: int) -> int:
    """How many rows a part should have, with the copies; it has at most twice as many."""
    return max(1000, min(PART_ROWS, PART_BYTES // (8 * p)))


def _enough_copies(
    rows: Rows, parts: SpaceParts, truth: ExactLists, target: float, monitor: Monitor
) -> int:
    """The number of parts per row with which enough true neighbors of sampled rows meet.

    The join within a part may miss some of them: a third of what may be missed is left to it.
    """
    most = min(MOST_COPIES, len(parts.centers))
    if parts.copies >= most:
        return parts.copies
    every = parts.with_copies(most)
    there = np.unique(truth.ids)
    near = np.asarray(rows.take(there, monitor).X, rows.dtype)
    theirs = every.of(near, _keys_of(there, parts.seed))[np.searchsorted(there, truth.ids)]
    mine = every.of(truth.X, _keys_of(truth.rows, parts.seed))
    spare = every.width - every.copies  # the column of heavy rows comes first
    for copies in range(parts.copies, most):
        a, b = mine[:, None, : spare + copies, None], theirs[:, :, None, : spare + copies]
        met = ((a == b) & (a >= 0)).any(axis=(2, 3)) | (truth.distances == 0)
        if met.mean() >= target + (1 - target) / 3:
            return copies
    return most


def _keys_of(numbers: np.ndarray, seed: int) -> np.ndarray:
    return np.array([row_keys(i, i + 1, seed)[0] for i in numbers.tolist()], np.uint64)


# --- checks ------------------------------------------------------------------------------------


def _checked(rows: Any, k: Any, metric: Any) -> Rows:
    """The table whose blocks are checked, if it may have such a graph."""
    table = as_rows(rows)
    if table is None:
        raise ParameterError(
            "knn_graph: rows is not a table of rows; open one with lowland.chunks.open_rows, or "
            "use lowland.neighbors.knn_graph for data in memory."
        )
    n = table.shape[0]
    if metric not in ("euclidean", "l2"):
        raise ParameterError(
            f"knn_graph: metric={shown(metric)} is not possible across parts; only 'euclidean' is."
        )
    if n > MOST_ROWS:
        raise ParameterError(f"knn_graph: {n} rows are more than a graph may have, {MOST_ROWS}.")
    check_k(k, n - 1, n)
    return table.map(block_check("knn_graph"), dtype=float_type(table.dtype))
