"""The base of maps on a fuzzy neighbor graph: its parameters, and the graph of a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.constraints import Integer, Null, OneOf, Real
from lowland._core.context import FitContext
from lowland._core.meanings.contents import at_least, count
from lowland._core.params import fitted, param
from lowland._core.validation import dense_if_small
from lowland._engines.neighbors.graph import NeighborGraph, check_fitted_rows
from lowland.neighbor._fuzzy_graph import FuzzyGraph, fuzzy_graph
from lowland.neighbor._neighbor_map import NeighborMap
from lowland.neighbor._umap_outsiders import no_edges, without_far
from lowland.neighbor._umap_target import with_target


class Seen(NamedTuple):
    """What a fit sees: rows of features (None if there are none), neighbors, and the graph."""

    rows: Any
    near: NeighborGraph
    graph: FuzzyGraph


class FuzzyMap(NeighborMap):
    """A map of the fuzzy neighbor graph of the rows.

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of neighbors of each row, the row itself counted. Large values show coarse structure.
    set_op_mix_ratio : float, default=1.0
        1 keeps an edge if one of its rows has it (fuzzy union), 0 only if both have (intersection).
    local_connectivity : float, default=1.0
        Number of neighbors at which each row counts as fully connected.
    target_metric : {"categorical", "euclidean"}, default="categorical"
        What ``y`` of ``fit`` holds, if it is given: classes (-1 or None: unknown), or numbers.
    target_weight : float, default=0.5
        Weight of the target, from 0 (ignored) to 1 (classes are torn apart).
    disconnection_distance : float or None, default=None
        Rows that have no neighbor nearer than this are set aside. None sets no row aside.

    Attributes
    ----------
    n_neighbors_ : int
        Number of other rows among the neighbors of each row.
    nearest_distances_ : ndarray of shape (n_samples,)
        Distance rho of each row to its nearest neighbor.
    widths_ : ndarray of shape (n_samples,)
        Width sigma of the memberships of each row's neighbors; 0 if all memberships are 1.
    isolated_ : ndarray of shape (n_samples,)
        True for rows without neighbors. They are put on a circle around the map.
    """

    n_neighbors: int = param(Integer(2), default=15)
    set_op_mix_ratio: float = param(Real(0, 1, closed="both"), default=1.0)
    local_connectivity: float = param(Real(0, closed="left"), default=1.0)
    target_metric: str = param(OneOf("categorical", "euclidean"), default="categorical")
    target_weight: float = param(Real(0, 1, closed="both"), default=0.5)
    disconnection_distance: float | None = param(Null() | Real(0), default=None, unit="d")

    n_neighbors_: int = fitted(type=int, meaning=count(1, "n_samples"))
    nearest_distances_: np.ndarray = fitted("n_samples", meaning=at_least(0), unit="d")
    widths_: np.ndarray = fitted("n_samples", meaning=at_least(0), unit="d")
    isolated_: np.ndarray = fitted("n_samples", type=bool)

    uses_target = True

    def _seen(self, X: Any, y: Any, run: FitContext) -> Seen:
        """The graph of X, changed by the target y if there is one; sets what is fitted of it."""
        features = not isinstance(X, NeighborGraph) and self.metric != "precomputed"
        rows = dense_if_small(X) if features else X
        near = self._neighbors_of(rows, run)
        if run.shared is not None:
            run.shared.graph = near
        if self.disconnection_distance is not None:
            near = without_far(near, self.disconnection_distance)
        k = min(int(self.n_neighbors), near.n_neighbors + 1)
        graph, local = fuzzy_graph(
            near, k, self.local_connectivity, self.set_op_mix_ratio, run.threads
        )
        if y is not None:
            weight = float(self.target_weight)
            graph = with_target(graph, y, self.target_metric, weight, k, run)
        self.isolated_ = np.diff(graph.indptr) == 0
        if self.isolated_.all():
            raise no_edges(near, self.disconnection_distance is not None)
        self.n_neighbors_, self.nearest_distances_ = near.n_neighbors, local.nearest
        self.widths_ = np.where(np.isfinite(local.widths), local.widths, 0.0)
        self.fitted_rows_ = rows.copy() if features else None
        return Seen(rows if features else None, near, graph)

    def _neighbors_of(self, rows: Any, run: FitContext) -> NeighborGraph:
        if isinstance(rows, NeighborGraph):
            check_fitted_rows(rows, type(self).__name__)
            return rows
        k = min(int(self.n_neighbors), rows.shape[0]) - 1
        return self._nearest_rows(rows, k, run, at_least=0)

    def _known_neighbors(self) -> int:
        return self.n_neighbors_
