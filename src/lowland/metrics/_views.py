"""One side of a comparison, the data or the map, as seen from the measured rows."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland._core.memory import available_memory
from lowland._core.monitor import Monitor
from lowland._engines.distances import neighbor_ranks
from lowland._engines.distances.distance_rows import DistanceRows, distance_rows
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import PRUNED_COLUMNS, neighbor_graph, neighbor_query
from lowland.metrics._remembered_rows import RememberedRows

__all__ = ["GraphView", "Near", "View"]

# From so many columns on, whole rows of distances are kept where they take this share of memory.
WIDE, SHARE = 200, 0.25


class Near(NamedTuple):
    """Neighbors of the measured rows, nearest first, ties by row number: (m, k) each."""

    indices: np.ndarray
    distances: np.ndarray

    def first(self, k: int) -> Near:
        return Near(self.indices[:, :k], self.distances[:, :k])


class View:
    """Who is near whom, at which rank and how far, from the measured rows to all n.

    Neighbor lists are found once, for the largest number asked for so far. ``rows`` is None when
    all rows are measured.
    """

    def __init__(
        self, X: Any, rows: np.ndarray | None, metric: Any, params: Any, threads: int
    ) -> None:
        self.X, self.n, self.threads = X, X.shape[0], threads
        self.sampled, self.rows = rows is not None, np.arange(self.n) if rows is None else rows
        self.metric, self.params = metric, params
        self._near: Near | None = None
        self._source: DistanceRows | None = None
        self._remembered: RememberedRows | None = None

    @property
    def table(self) -> Any:
        """The rows themselves."""
        return self.X

    def among(self, rows: np.ndarray) -> View:
        """The same side, seen from other rows."""
        other = copy.copy(self)
        other.rows, other.sampled, other._near = rows, len(rows) < self.n, None
        return other

    def nearest(self, k: int, monitor: Monitor) -> Near:
        """The k nearest other rows of every measured row, exact."""
        if self._near is None or self._near.indices.shape[1] < k:
            self._near = self._search(k, monitor)
        return self._near.first(k)

    @property
    def known_neighbors(self) -> np.ndarray:
        """As much of the neighbor lists as has been asked for, (m, k); k may be 0."""
        return np.empty((len(self.rows), 0), int) if self._near is None else self._near.indices

    def _search(self, k: int, monitor: Monitor) -> Near:
        known = {"metric": self.metric, "metric_params": self.params, "threads": self.threads}
        # "auto" would be approximate for very many rows, unless a tree does for few columns
        method = "auto" if self.X.shape[1] <= PRUNED_COLUMNS else "exact"
        source = self._rows_kept()
        if source is not None:
            return Near(*source.nearest(self.rows, k))
        if not self.sampled:
            graph = neighbor_graph(self.X, k, method=method, monitor=monitor, **known)
            return Near(graph.indices, graph.distances)
        found = neighbor_query(self.X, self.X[self.rows], k + 1, monitor=monitor, **known)
        # Each row finds itself, or, among more than k equal ones, perhaps not.
        own = found.indices == self.rows[:, None]
        own[~own.any(axis=1), -1] = True
        shape = (len(self.rows), k)
        return Near(found.indices[~own].reshape(shape), found.distances[~own].reshape(shape))

    def _rows_kept(self) -> RememberedRows | None:
        """Whole rows of distances from the measured rows, where it pays to keep them."""
        pays = self.sampled and self.X.shape[1] >= WIDE
        if pays and self._remembered is None:
            n_bytes = RememberedRows.BYTES * len(self.rows) * self.n
            if n_bytes > SHARE * available_memory():
                return None
            source = distance_rows(self.X, self.metric, self.params, self.threads)
            self._remembered = RememberedRows(source, self.rows, self.threads)
        return self._remembered

    @property
    def source(self) -> DistanceRows:
        """Whole rows of distances."""
        kept = self._rows_kept()
        if kept is not None:
            return kept
        if self._source is None:
            self._source = distance_rows(self.X, self.metric, self.params, self.threads)
        return self._source

    def ranks(self, partners: np.ndarray, asked: np.ndarray, monitor: Monitor) -> np.ndarray:
        """Ranks of the partners (m, k) of the measured rows; only those ``asked`` for, in order."""
        counts = asked.sum(axis=1)
        some = np.flatnonzero(counts)
        starts = np.concatenate([[0], np.cumsum(counts[some])])
        return neighbor_ranks.partner_ranks(
            self.source, self.rows[some], starts, partners[asked], self.threads, monitor
        )

    def all_ranks(self, rows: np.ndarray) -> np.ndarray:
        """Ranks of all rows seen from a block of them, 0 for the row itself."""
        return neighbor_ranks.full_ranks(self.source, rows, self.threads)


class GraphView(View):
    """A neighbor graph in place of data: it knows the nearest of every row, and no more."""

    def __init__(self, graph: NeighborGraph, rows: np.ndarray | None, threads: int) -> None:
        super().__init__(np.empty((len(graph), 1)), rows, graph.metric, None, threads)
        self.graph = graph
        if graph.n_points != len(graph):
            raise DataError(
                f"X: this graph has the neighbors of {len(graph)} queries among {graph.n_points} "
                "rows; a graph of the rows among themselves is needed, as knn_graph makes it."
            )

    def _search(self, k: int, monitor: Monitor) -> Near:
        if k > self.graph.n_neighbors:
            raise ParameterError(
                f"n_neighbors={k} is more than the {self.graph.n_neighbors} neighbors that the "
                "graph given as X knows; make a larger graph or ask for fewer."
            )
        return Near(self.graph.indices[self.rows], self.graph.distances[self.rows])

    @property
    def table(self) -> Any:
        raise DataError("X is a neighbor graph; this measure needs the data themselves.")

    @property
    def source(self) -> DistanceRows:
        raise DataError(
            "X is a neighbor graph, which knows neither the distances nor the ranks of rows that "
            "are not neighbors; this measure needs the data or a matrix of distances."
        )
