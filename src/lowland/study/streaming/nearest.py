"""The nearest rows of some queries among all rows of a table, leaf by leaf, and exact ranks.

Two passes over the table: the first merges the k nearest of each leaf, the second adds up how many
rows are nearer than given ones. Ties are ordered by row number, as in :mod:`lowland.metrics`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.monitor import Monitor
from lowland._core.rows.leaves import Block
from lowland._core.rows.table import Rows
from lowland._core.threads import resolve_n_jobs
from lowland._engines.distances.block_ranks import nearer_in_block, square_distances
from lowland._engines.distances.metrics import pair_distances
from lowland._engines.linalg.blocks import row_blocks
from lowland._engines.neighbors.block_search import nearest_in_rows
from lowland._engines.neighbors.exact_search import exact_query

TILE = 1 << 22  # distances per block: 32 MB


class Queries(NamedTuple):
    """Some rows of a table and their numbers; ``view`` makes them of the blocks of the table."""

    points: np.ndarray  # (m, d)
    numbers: np.ndarray  # (m,), ascending
    metric: str = "euclidean"
    view: Any = None  # a step, such as the projection of a PCA; None: the columns as they are

    def seen(self, X: Any) -> np.ndarray:
        """The block as the queries see it."""
        found = X if self.view is None else self.view(X)
        return np.ascontiguousarray(found, self.points.dtype)


class Asked(NamedTuple):
    """Queries, rows (m, k) whose ranks are asked for, and their distances."""

    queries: Queries
    partners: np.ndarray
    heights: np.ndarray


class Lists(NamedTuple):
    """Numbers (m, k) and distances of the nearest rows so far; -1 and infinity: there is none."""

    ids: np.ndarray
    heights: np.ndarray


def nearest_rows(
    rows: Rows, several: list[Queries], k: int, n_jobs: int | None, monitor: Monitor | None = None
) -> list[np.ndarray]:
    """The k nearest other rows (m, k) of several sets of queries, in one pass over the table."""
    found = rows.total(Search(several, k, n_jobs), merged_lists, monitor, "neighbors")
    return [lists.ids for lists in found]


def nearer_rows(
    rows: Rows, several: list[Asked], n_jobs: int | None, monitor: Monitor | None = None
) -> list[np.ndarray]:
    """The ranks (m, k) of all partners, 1 for the nearest, in one pass over the table."""
    found = rows.total(Count(several, n_jobs), added, monitor, "ranks")
    return [counts + 1 for counts in found]


def partner_heights(queries: Queries, partners: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Distances (m, k) of queries to partners (m k, d), squared if they are Euclidean."""
    m = len(queries.points)
    k = len(partners) // m
    if queries.metric == "euclidean":
        own = np.repeat(queries.points, k, axis=0)
        return square_distances(own, partners, resolve_n_jobs(n_jobs)).reshape(m, k)
    parts = partners.reshape(m, k, -1)
    return np.concatenate(
        [
            pair_distances(queries.points[i : i + 1], parts[i], queries.metric, None)
            for i in range(m)
        ]
    )


class Search:
    """The k nearest rows of a block, for several sets of queries."""

    def __init__(self, several: list[Queries], k: int, n_jobs: int | None) -> None:
        self.several, self.k, self.n_jobs = several, k, n_jobs

    def __call__(self, block: Block) -> list[Lists]:
        return [self._of(queries, block) for queries in self.several]

    def _of(self, queries: Queries, block: Block) -> Lists:
        X = queries.seen(block.X)
        wanted = min(self.k + 1, len(X))  # each row finds itself
        if queries.metric == "euclidean":
            threads = resolve_n_jobs(self.n_jobs)
            ids, heights = exact_query(X, queries.points, wanted, threads, Monitor())
        else:
            ids, heights = _in_tiles(X, queries, wanted)
        numbers = ids.astype(np.int64) + block.start
        heights = np.where(numbers == queries.numbers[:, None], np.inf, heights)
        return _first(numbers, heights, self.k)


def _in_tiles(X: np.ndarray, queries: Queries, k: int) -> tuple[np.ndarray, np.ndarray]:
    m = len(queries.points)
    ids, heights = np.empty((m, k), np.int64), np.empty((m, k))
    for part in row_blocks(m, max(1, TILE // len(X))):
        D = pair_distances(queries.points[part], X, queries.metric, None)
        ids[part], heights[part] = nearest_in_rows(D, k)
    return ids, heights


def _first(ids: np.ndarray, heights: np.ndarray, k: int) -> Lists:
    """The k entries of each row that come first by distance, then by number; filled up to k."""
    ids = np.where(np.isinf(heights), np.int64(-1), ids)
    if ids.shape[1] < k:
        more = ((0, 0), (0, k - ids.shape[1]))
        ids = np.pad(ids, more, constant_values=-1)
        heights = np.pad(heights, more, constant_values=np.inf)
    order = np.lexsort((ids, heights))[:, :k]
    return Lists(np.take_along_axis(ids, order, 1), np.take_along_axis(heights, order, 1))


def merged_lists(a: list[Lists], b: list[Lists]) -> list[Lists]:
    """The nearest of two sets of rows together."""
    return [
        _first(np.hstack([x.ids, y.ids]), np.hstack([x.heights, y.heights]), x.ids.shape[1])
        for x, y in zip(a, b, strict=True)
    ]


class Count:
    """How many rows of a block are nearer than the partners, for several sets of queries."""

    def __init__(self, several: list[Asked], n_jobs: int | None) -> None:
        self.several, self.n_jobs = several, n_jobs

    def __call__(self, block: Block) -> list[np.ndarray]:
        threads = resolve_n_jobs(self.n_jobs)
        return [
            nearer_in_block(
                asked.queries.seen(block.X),
                block.start,
                asked.queries.points,
                asked.queries.numbers,
                asked.partners,
                asked.heights,
                asked.queries.metric,
                threads,
            )
            for asked in self.several
        ]


def added(a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:
    """Counts of two sets of rows together."""
    return [x + y for x, y in zip(a, b, strict=True)]
