"""The neighbor graph that searches return and that methods and metrics take."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland._core.units import unit_powers
from lowland._engines.distances.metrics import has_directions, unit_power
from lowland._engines.neighbors.graph_checks import as_lists, check_facts, check_lists, own_neighbor


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """The k nearest neighbors of every row, nearest first, ties by index, never the row itself.

    Whoever makes one gets it checked, because compiled code follows the indices: indices from -1 to
    ``n_points`` - 1, no neighbor of a row twice, distances >= 0 that do not decrease along a row,
    and infinity exactly where the index is -1. The cost is O(n k), about 1 % of a search. A fit
    also refuses rows that are their own neighbors; a graph of new rows may hold them.

    Attributes
    ----------
    indices : ndarray of shape (n, k), int32 or int64
        Row numbers of the neighbors among the fitted rows; -1 where a neighbor is missing.
    distances : ndarray of shape (n, k)
        Distances in the metric, in the float type of the data; infinity for a missing neighbor.
    n_points : int
        Number of fitted rows, which ``indices`` refer to; n, except for a query.
    metric : str
        The metric's name.
    recall_ : float or None
        Measured share of true neighbors that were found; None when the search was exact.
    recall_sample_ : int
        Number of rows that the recall was measured on.
    """

    indices: np.ndarray
    distances: np.ndarray
    n_points: int
    metric: str = "euclidean"
    recall_: float | None = None
    recall_sample_: int = 0

    def __post_init__(self) -> None:
        indices, distances = as_lists(self.indices, self.distances)
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "distances", distances)
        check_facts(self.n_points, self.metric, self.recall_, self.recall_sample_)
        check_lists(indices, distances, int(self.n_points))

    @property
    def n_neighbors(self) -> int:
        return self.indices.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of fitted rows: the shape of :meth:`to_csr`."""
        return self.indices.shape[0], self.n_points

    def __len__(self) -> int:
        return self.indices.shape[0]

    def __repr__(self) -> str:
        recall = "exact" if self.recall_ is None else f"recall {self.recall_:.3f}"
        return f"NeighborGraph({len(self)} rows x {self.n_neighbors} neighbors, {recall})"

    def in_distances(self) -> NeighborGraph:
        """The same graph with Euclidean distances instead of squared ones."""
        if self.metric != "sqeuclidean":
            return self
        return self.with_distances(np.sqrt(self.distances), "euclidean")

    def with_distances(self, distances: np.ndarray, metric: str | None = None) -> NeighborGraph:
        """The same neighbors at other distances of the same order, which are not checked again."""
        changed = copy.copy(self)
        object.__setattr__(changed, "distances", distances)
        object.__setattr__(changed, "metric", metric or self.metric)
        return changed

    def to_csr(self) -> Any:
        """Directed n x n_points CSR matrix of distances; zero distances are stored entries.

        Missing neighbors (index -1) are left out.
        """
        import scipy.sparse

        there = self.indices >= 0
        starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return scipy.sparse.csr_matrix(
            (self.distances[there], self.indices[there], starts), shape=self.shape
        )


def check_fitted_rows(graph: NeighborGraph, owner: str) -> None:
    """Refuse a graph whose rows are new rows; a fit needs the neighbors of the fitted rows."""
    if len(graph) != graph.n_points:
        raise DataError(
            f"{owner}: the graph has the neighbors of {len(graph)} new rows; a fit needs those of "
            f"the {graph.n_points} fitted rows (knn_graph)."
        )
    refuse_own_neighbors(graph, owner)


def refuse_own_neighbors(graph: NeighborGraph, owner: str) -> None:
    """Refuse a graph of the fitted rows in which a row is its own neighbor."""
    row = own_neighbor(graph.indices)
    if row is not None:
        raise DataError(
            f"{owner}: row {row} of the graph is its own neighbor; leave the row itself out "
            "(knn_graph does)."
        )


def graph_powers(X: Any, metric: Any) -> dict[str, int] | None:
    """Powers of the unit of X in the units of a method on the neighbor graph; None: do not scale.

    The edges are distances, also if the metric is that of squared ones. Directions of rows are
    found row by row, whatever the size of the row.
    """
    if isinstance(X, NeighborGraph):
        return unit_powers(1)
    power = None if has_directions(metric) else unit_power(metric)
    return None if power is None else unit_powers(min(power, 1))


def no_fitted_rows(owner: str) -> ParameterError:
    """The error of ``transform`` after a fit on a graph, where new rows have nothing to be near."""
    return ParameterError(
        f"{owner} was fitted on a NeighborGraph, so there are no rows to compare new ones with; "
        "fit on the rows, or set metric='precomputed' and give the distances of the new rows to "
        "the fitted ones."
    )
