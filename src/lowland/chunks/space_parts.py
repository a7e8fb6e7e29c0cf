"""Parts of space for rows that do not fit in memory: each row goes to its nearest few.

The centers of the parts are k-means centers of a sample. Two neighbors meet if one of the r parts
of the one is a part of the other, so r = 2 or 3 finds most neighbors across the borders.

A part must fit in memory. Parts that the sample shows to be too large are divided by more centers.
Where that does not help, rows are divided by their numbers. Rows of which there are very many equal
ones ("heavy" rows) would fill parts with copies: they get parts of their own, and only some of them
go to the parts around, where others find them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lowland._base.monitor import Monitor
from lowland._base.rows.folding import row_keys, sampled_rows
from lowland._base.rows.leaves import Block
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas, resolve_n_jobs
from lowland._base.units import largest
from lowland._engines.distances.distance_rows import metric_unit
from lowland._engines.linalg.magnitude import scaled
from lowland._engines.neighbors.cell_search import cell_centers
from lowland._engines.neighbors.duplicates import equal_rows
from lowland._engines.neighbors.search import neighbor_query

SAMPLE_ROWS = 100_000  # that centers and sizes of parts are found on, at most ...
SAMPLE_BYTES = 1 << 28  # ... unless they are wide
CENTER_ROWS = 40  # rows of the sample per center, at least
ROUNDS = 4  # of dividing parts that are too large


class PartLimits(NamedTuple):
    """Rows of a part, with the copies: how many it should have, and how many at most."""

    wanted: int
    most: int


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

    def __init__(
        self,
        centers: np.ndarray,
        slices: np.ndarray,
        heavy: np.ndarray,
        heavy_slices: np.ndarray,
        shown: np.ndarray,
        copies: int,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self.centers, self.slices, self.heavy = centers, slices, heavy
        self.heavy_slices, self.shown = heavy_slices, shown
        self.copies, self.seed, self.n_jobs = min(copies, len(centers)), seed, n_jobs

    @property
    def n_parts(self) -> int:
        return int(self.slices.sum() + self.heavy_slices.sum())

    @property
    def width(self) -> int:
        """The columns of what a call gives: the copies, and one for the parts of heavy rows."""
        return self.copies + bool(len(self.heavy))

    def with_copies(self, copies: int) -> SpaceParts:
        """The same parts, with another number of parts per row."""
        return SpaceParts(
            self.centers,
            self.slices,
            self.heavy,
            self.heavy_slices,
            self.shown,
            copies,
            self.seed,
            self.n_jobs,
        )

    def as_one(self) -> SpaceParts:
        """One part of all rows."""
        nobody, one = self.heavy[:0], np.ones(1, np.int64)
        center = self.centers[:1]
        return SpaceParts(center, one, nobody, one[:0], one[:0], 1, self.seed, self.n_jobs)

    def __call__(self, block: Block) -> np.ndarray:
        keys = row_keys(block.start, block.start + block.n_rows, self.seed)
        return self.of(block.X, keys)

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


def space_parts(
    rows: Rows,
    n_parts: int,
    copies: int,
    limits: PartLimits,
    *,
    seed: int,
    n_jobs: int | None,
    monitor: Monitor,
) -> SpaceParts:
    """About ``n_parts`` parts for the rows of a table; it reads a sample."""
    n, p = rows.shape
    wanted = max(CENTER_ROWS * n_parts, min(SAMPLE_ROWS, SAMPLE_BYTES // (8 * p)))
    S = np.asarray(rows.take(sampled_rows(n, wanted, seed), monitor).X, rows.dtype)
    times, threads = n / len(S), resolve_n_jobs(n_jobs)
    rng = np.random.default_rng(seed)
    with limit_blas(1):
        groups = equal_rows(S, threads)
        distinct, counts = S, np.ones(len(S), np.int64)
        if groups is not None:
            distinct, counts = S[groups.first], np.bincount(groups.group)
        sizes = counts * times
        tenth = limits.wanted / 10
        is_heavy = (sizes * copies > tenth) & (counts >= 10)  # so often is no accident
        heavy = np.flatnonzero(is_heavy)
        heavy_slices = np.ceil(sizes[heavy] / limits.wanted).astype(np.int64)
        shown = np.minimum(1.0, tenth / sizes[heavy])
        weights = np.where(is_heavy, np.minimum(sizes, tenth), sizes)
        found = _divided(distinct, weights, n_parts, copies, limits, threads, rng, monitor)
    return SpaceParts(
        *found, distinct[heavy], heavy_slices, shown, copies=copies, seed=seed, n_jobs=n_jobs
    )


def _divided(
    S: np.ndarray,
    weights: np.ndarray,
    n_parts: int,
    copies: int,
    limits: PartLimits,
    threads: int,
    rng: np.random.Generator,
    monitor: Monitor,
) -> tuple[np.ndarray, np.ndarray]:
    """Centers for different rows that stand for ``weights`` rows each, and their slices."""
    unit = metric_unit(largest(S), "euclidean")
    rows = scaled(S, unit)
    centers = _means(rows, min(n_parts, len(rows)), threads, rng, monitor)
    if n_parts == 1:
        return scaled(centers, 1 / unit), np.ones(1, np.int64)
    for left in reversed(range(ROUNDS)):
        near = neighbor_query(centers, rows, min(copies, len(centers)), threads=threads).indices
        sizes = np.bincount(near.ravel(), np.repeat(weights, near.shape[1]), minlength=len(centers))
        members = np.bincount(near[:, 0], minlength=len(centers))
        large = np.flatnonzero((sizes > limits.most) & (members >= 2))
        if not len(large) or not left:
            break
        pieces = []
        for center in large:
            mine = rows[near[:, 0] == center]
            into = min(math.ceil(sizes[center] / limits.wanted), len(mine))
            pieces.append(_means(mine, into, threads, rng, Monitor()))
        centers = np.unique(np.concatenate([np.delete(centers, large, axis=0), *pieces]), axis=0)
    slices = np.maximum(1, np.ceil(sizes / limits.most)).astype(np.int64)
    return scaled(centers, 1 / unit), slices


def _means(
    rows: np.ndarray, n: int, threads: int, rng: np.random.Generator, monitor: Monitor
) -> np.ndarray:
    """Different centers of rows, n or fewer."""
    if n == 1:
        return rows.mean(axis=0, dtype=np.float64, keepdims=True).astype(rows.dtype)
    return np.unique(cell_centers(rows, n, threads, rng, monitor), axis=0)
