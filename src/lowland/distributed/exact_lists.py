"""Exact neighbors of a few rows among all rows of a table, in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.monitor import Monitor
from lowland._core.rows.leaves import Block
from lowland._core.rows.table import Rows
from lowland._core.threads import limit_blas, resolve_n_jobs
from lowland._engines.neighbors.search import neighbor_query


class ExactLists(NamedTuple):
    """The nearest other rows of some rows: by distance, ties by row number."""

    rows: np.ndarray  # numbers of the rows, ascending
    X: np.ndarray  # the rows themselves
    ids: np.ndarray
    distances: np.ndarray


class _Nearest:
    """The nearest rows of a block to some rows of the table, which are not their own neighbors."""

    def __init__(self, rows: np.ndarray, X: np.ndarray, k: int, n_jobs: int | None) -> None:
        self.rows, self.X, self.k, self.n_jobs = rows, X, k, n_jobs

    def __call__(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        k = min(self.k + 1, block.n_rows)
        with limit_blas(1):
            found = neighbor_query(block.X, self.X, k, threads=resolve_n_jobs(self.n_jobs))
        ids = found.indices.astype(np.int64) + block.start
        distances = found.distances.astype(np.float64)
        own = ids == self.rows[:, None]
        ids[own], distances[own] = np.iinfo(np.int64).max, np.inf
        return self._first(ids, distances)

    def merge(
        self, a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The nearest of both."""
        return self._first(np.hstack([a[0], b[0]]), np.hstack([a[1], b[1]]))

    def _first(self, ids: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = np.lexsort((ids, distances))[:, : self.k]
        return np.take_along_axis(ids, order, 1), np.take_along_axis(distances, order, 1)


def exact_lists(
    rows: Rows, numbers: np.ndarray, k: int, *, n_jobs: int | None, monitor: Monitor
) -> ExactLists:
    """The k nearest other rows of the rows with these numbers, ascending. O(m n p), two passes."""
    X = np.asarray(rows.take(numbers, monitor).X, rows.dtype)
    nearest = _Nearest(numbers, X, k, n_jobs)
    ids, distances = rows.total(nearest, nearest.merge, monitor, "exact neighbors")
    return ExactLists(numbers, X, ids, distances)
