"""The base of methods that see the data through a graph of nearest neighbors.

It serves maps of the fitted rows (``_bases/graph_embedding.py``) and linear maps alike: it
declares the parameters of the graph, checks the input and builds a connected graph.
"""

from __future__ import annotations

from typing import Any

import scipy.sparse

from lowland._core.base import Reducer
from lowland._core.constraints import Function, Integer, Mapping, Null, OneOf
from lowland._core.context import FitContext
from lowland._core.errors import DataError, DataTypeError, ParameterError
from lowland._core.meanings.contents import count
from lowland._core.params import fitted, param
from lowland._core.units import largest
from lowland._core.validation import dense_if_small, is_sparse
from lowland._engines.distances.metrics import METRICS
from lowland._engines.distances.precomputed import check_distances
from lowland._engines.graphs.components import ConnectedGraph, connect, connected_components
from lowland._engines.graphs.symmetrize import symmetrize
from lowland._engines.linalg.magnitude import check_magnitude
from lowland._engines.neighbors.graph import NeighborGraph, check_fitted_rows, graph_powers
from lowland._engines.neighbors.search import neighbor_graph, stored_graph


class NeighborGraphReducer(Reducer):
    """A method on the neighbor graph of the data.

    ``_connected_graph`` gives the graph. The traits ``accepts_distances`` and ``accepts_graph``
    decide whether X may hold distances or be a ``NeighborGraph``; ``_fit`` gets what was accepted.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbors of each row in the graph. Two rows are connected if either is a
        neighbor of the other.
    """

    n_neighbors: Any = param(Integer(1), default=10)
    metric: Any = param(OneOf(*METRICS) | Function(), default="euclidean")
    metric_params: dict[str, Any] | None = param(Null() | Mapping(), default=None)
    on_disconnected: str = param(OneOf("bridge", "largest", "raise"), default="bridge")

    n_connected_components_: int = fitted(type=int, meaning=count(1))

    accepts_sparse = True

    # --- input --------------------------------------------------------------------------------

    def _check_training_rows(self, X: Any) -> Any:
        """Rows (dense if they are small), a matrix of distances, or a graph of neighbors."""
        if isinstance(X, NeighborGraph):
            self._check_graph(X)
            return X.in_distances()
        self._check_distances_accepted()
        checked = super()._check_training_rows(X)
        if not self._has_distances:
            return dense_if_small(checked)
        self._check_distances(checked)
        return checked

    def _check_distances(self, D: Any) -> None:
        check_distances(D, "X", square=True)

    def _check_graph(self, graph: NeighborGraph) -> None:
        name = type(self).__name__
        if not self.accepts_graph:
            raise DataTypeError(
                f"{name}: X is a NeighborGraph, but the rows themselves are needed."
            )
        check_fitted_rows(graph, name)

    def _check_distances_accepted(self) -> None:
        if self._has_distances and not self.accepts_distances:
            raise ParameterError(
                f"{type(self).__name__}: metric='precomputed' is not allowed, because the rows "
                "themselves are needed; give rows and the name of a metric."
            )

    @property
    def _has_distances(self) -> bool:
        """Whether X holds distances instead of rows."""
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _is_graph(self, X: Any) -> bool:
        """Whether the distances of some pairs only are known."""
        return isinstance(X, NeighborGraph) or (self._has_distances and is_sparse(X))

    def _unit_powers(self, X: Any) -> dict[str, int] | None:
        return graph_powers(X, self.metric)

    # --- the graph ----------------------------------------------------------------------------

    @property
    def _graph_metric(self) -> Any:
        """The metric of the edges: their lengths are distances, never squared distances."""
        return "euclidean" if self.metric == "sqeuclidean" else self.metric

    def _neighbors(self, X: Any, k: int, run: FitContext) -> NeighborGraph:
        """The k nearest other rows of every row of X."""
        if isinstance(X, NeighborGraph):
            return X
        if self._is_graph(X):
            return stored_graph(X, k)
        return neighbor_graph(
            X,
            k,
            metric=self._graph_metric,
            metric_params=self.metric_params,
            threads=run.threads,
            rng=run.rng,
            monitor=run.monitor,
        )

    def _edges(self, X: Any, run: FitContext) -> scipy.sparse.csr_matrix:
        """The edges of the neighbor graph; a method may choose them in another way."""
        return self._edges_of(X, int(self.n_neighbors), run)

    def _edges_of(self, X: Any, k: int, run: FitContext) -> scipy.sparse.csr_matrix:
        """Distances of k neighbors, in both directions: d_ij = d_ji = d(x_i, x_j)."""
        return symmetrize(self._neighbors(X, k, run))

    def _connected_graph(self, X: Any, run: FitContext) -> ConnectedGraph:
        """The neighbor graph of X, connected as ``on_disconnected`` says."""
        return self._connect(self._edges(X, run), X, run)

    def _connect(self, graph: scipy.sparse.csr_matrix, X: Any, run: FitContext) -> ConnectedGraph:
        """The graph with one connected component, and the rows of X that are in it."""
        if callable(self.metric):  # its values may be of any size
            check_magnitude(largest(graph.data), type(self).__name__)
        if self._is_graph(X) and self.on_disconnected == "bridge":
            n_components = connected_components(graph)[0]
            if n_components > 1:
                raise DataError(
                    f"{type(self).__name__}: the graph has {n_components} connected components, "
                    "and X holds no distances between them, which on_disconnected='bridge' needs; "
                    "give the rows or all distances, give more neighbors, or set "
                    "on_disconnected='largest'."
                )
        connected = connect(
            graph,
            X,
            self.on_disconnected,  # type: ignore[arg-type]
            metric=self._graph_metric,
            metric_params=self.metric_params,
            threads=run.threads,
            monitor=run.monitor,
        )
        self.n_connected_components_ = connected.n_components
        return connected

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._has_distances
        return tags
