"""The bases of methods that see the data through a graph of nearest neighbors.

:class:`NeighborGraphReducer` serves maps of the fitted rows and linear maps alike: it declares the
parameters of the graph, checks the input and builds a connected graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from lowland._base.base import Reducer
from lowland._base.constraints import Integer, OneOf
from lowland._base.context import FitContext
from lowland._base.errors import DataError, DataTypeError, ParameterError
from lowland._base.models.checks import Starts, above, index_of, share, some_of
from lowland._base.params import Declared, fitted, param
from lowland._base.traits import Reading
from lowland._base.validation import dense_if_small, is_sparse
from lowland._engines.distances.distance_rows import CrossDistances, check_distances
from lowland._engines.graphs.components import ConnectedGraph, connected_components
from lowland._engines.graphs.geodesics import geodesics_of_new_rows
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.graph import NeighborGraph, check_fitted_rows, no_fitted_rows
from lowland._engines.neighbors.search import given_neighbors, stored_graph
from lowland.methods._bases.by_metric import ByMetric


class NeighborGraphReducer(ByMetric, Reducer):
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
    on_disconnected: str = param(OneOf("bridge", "largest", "raise"), default="bridge")

    n_connected_components_: int = fitted(type=int)

    accepts_sparse = True

    # --- input --------------------------------------------------------------------------------

    def _check_training_rows(self, X: Any) -> Any:
        """Rows (dense if they are small), a matrix of distances, or a graph of neighbors."""
        owner = type(self).__name__
        if isinstance(X, NeighborGraph):
            if not self.accepts_graph:
                raise DataTypeError(
                    f"{owner}: X is a NeighborGraph, but the rows themselves are needed."
                )
            check_fitted_rows(X, owner)
            return X.in_distances()
        if self._has_distances and not self.accepts_distances:
            raise ParameterError(
                f"{owner}: metric='precomputed' is not allowed, because the rows themselves are "
                "needed; give rows and the name of a metric."
            )
        checked = super()._check_training_rows(X)
        if not self._has_distances:
            return dense_if_small(checked)
        self._check_distances(checked)
        return checked

    def _check_distances(self, D: Any) -> None:
        check_distances(D, "X", square=True)

    def _is_graph(self, X: Any) -> bool:
        """Whether the distances of some pairs only are known."""
        return isinstance(X, NeighborGraph) or (self._has_distances and is_sparse(X))

    # --- the graph ----------------------------------------------------------------------------

    def _neighbors(self, X: Any, k: int, run: FitContext) -> NeighborGraph:
        """The k nearest other rows of every row of X."""
        if isinstance(X, NeighborGraph):
            return X
        if self._is_graph(X):
            return stored_graph(X, k)
        return self._nearest_others(X, k, run, self._graph_metric)

    def _edges(self, X: Any, run: FitContext) -> scipy.sparse.csr_matrix:
        """The edges, in both directions: d_ij = d_ji; a method may choose them in another way."""
        return symmetrize(self._neighbors(X, int(self.n_neighbors), run))

    def _connected_graph(self, X: Any, run: FitContext) -> ConnectedGraph:
        """The neighbor graph of X, connected as ``on_disconnected`` says."""
        return self._connect(self._edges(X, run), X, run)

    def _connect(self, graph: Any, X: Any, run: FitContext, metric: Any = None) -> ConnectedGraph:
        """The graph with one connected component, and the rows of X that are in it."""
        if self._is_graph(X) and self.on_disconnected == "bridge":
            n_components = connected_components(graph)[0]
            if n_components > 1:
                raise DataError(
                    f"{type(self).__name__}: the graph has {n_components} connected components, "
                    "and X holds no distances between them, which on_disconnected='bridge' needs; "
                    "give the rows or all distances, give more neighbors, or set "
                    "on_disconnected='largest'."
                )
        return super()._connect(graph, X, run, metric)


# The base of maps that are made from the neighbor graph: coordinates of the fitted rows.
#
# A method writes ``_embed``, the map of a connected graph, and ``_place``, the coordinates of new
# rows from their edges to the fitted rows. The base builds the graph, keeps the rows that new rows
# are compared with, and places the rows that are outside the connected graph.


# What maps mean that unfold a neighbor graph; the scale is for the method to say.
GRAPH_READING = Reading(
    axes="The axes have no meaning except their order.",
    distances="The map unfolds a graph of nearest neighbors. A path through the points has a "
    "meaning; the straight line across an empty region has none.",
    gaps="A few wrong edges of the graph can close a gap, fold the map or make a spike. "
    "Compare with another number of neighbors.",
    sizes="Sizes and densities are set by the method, not by the data.",
    scale="The method sets the scale of the axes, not the data.",
)


class GraphEmbedding(NeighborGraphReducer):
    """A map of the fitted rows, made from their neighbor graph.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbors of each row in the graph. Two rows are connected if either is a
        neighbor of the other. X may also be a ``NeighborGraph``, which is used as it is.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows. Excluded rows are NaN if X was a graph, which does not tell their
        places.
    excluded_ : ndarray of shape (n_excluded,)
        Indices of the rows excluded from the fit by ``on_disconnected="largest"``.
    fitted_rows_ : array of shape (n_kept, n_features) or None
        Rows that new rows are compared with. None if X held distances or was a graph.
    """

    embedding_: np.ndarray = fitted("n_samples", "n_components", allows_nan=True)
    excluded_: np.ndarray = fitted(
        "n_excluded", type=int, may_be_empty=True, meaning=some_of("n_samples")
    )
    fitted_rows_: Any = fitted("n_kept", "n_features", optional=True, sparse=True)

    size_rules = {"n_samples": "n_kept + n_excluded"}

    accepts_graph = True
    accepts_distances = True
    reading = GRAPH_READING

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: distances or a graph stand in place of rows."""
        given = self._has_distances or self.fitted_rows_ is None
        return self._rows_flaw(len(self.embedding_), given) or super().inconsistency()

    # --- what a method writes -----------------------------------------------------------------

    def _embed(self, graph: scipy.sparse.csr_matrix, run: FitContext) -> np.ndarray:
        """The map of a connected graph of distances; sets the method's other attributes."""
        raise NotImplementedError

    def _place(self, links: Any, run: FitContext) -> np.ndarray:
        """Coordinates of new rows from ``links``, their distances to some fitted rows."""
        raise NotImplementedError

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        connected = self._connected_graph(X, run)
        self._keep_rows(X, connected.kept)
        return self._with_excluded(self._embed(connected.graph, run), X, run)

    def _keep_rows(self, X: Any, kept: np.ndarray) -> None:
        """Remember which rows make the map, and the rows themselves if there are any."""
        n = X.shape[0]
        self.excluded_ = np.setdiff1d(np.arange(n), kept)
        self.fitted_rows_ = None
        if not (isinstance(X, NeighborGraph) or self._has_distances):
            self.fitted_rows_ = X.copy() if kept.size == n else X[kept]

    def _with_excluded(self, Y: np.ndarray, X: Any, run: FitContext) -> np.ndarray:
        """The map of all rows; the excluded rows are placed like new rows, or are NaN."""
        dtype = map_dtype(X)
        self.embedding_ = Y.astype(dtype)
        if self.excluded_.size:
            n = len(Y) + self.excluded_.size
            whole = np.full((n, Y.shape[1]), np.nan, dtype)
            whole[self._kept(n)] = Y
            self.embedding_ = whole
            if not self._is_graph(X):
                whole[self.excluded_] = self._transform(X[self.excluded_], run)
        return self.embedding_.copy()

    def _check_axes(self, n_rows: int, most: int) -> int:
        """``n_components``, if a connected graph of ``n_rows`` rows has so many axes."""
        q = int(self.n_components)
        if q > most:
            raise ParameterError(
                f"{type(self).__name__}: n_components={q} is more than the connected graph of "
                f"n_samples={n_rows} rows allows; ask for at most {most}."
            )
        return q

    # --- new rows -----------------------------------------------------------------------------

    def _check_new_rows(self, X: Any) -> Any:
        self._require_fitted()
        if self.fitted_rows_ is None and not self._has_distances:
            raise no_fitted_rows(type(self).__name__)
        return super()._check_new_rows(X)

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        links = self._links(X, run)
        Z = self._place(links, run)
        return self._keep_fitted_places(Z, links).astype(map_dtype(X), copy=False)

    def _links(self, X: Any, run: FitContext) -> Any:
        """Edges from new rows to the fitted rows: a NeighborGraph or a CSR matrix."""
        return self._nearest_fitted(X, int(self.n_neighbors), run)

    def _kept(self, n: int) -> np.ndarray:
        """Indices of the rows that make the map, among n."""
        return np.setdiff1d(np.arange(n), self.excluded_)

    def _rows_at(self, numbers: np.ndarray) -> np.ndarray:
        """Indices of some of the rows that make the map, by their numbers among those.

        ``_kept(n)[numbers]``, without the time of n rows: each excluded row moves later ones by 1.
        """
        kept_before = self.excluded_ - np.arange(self.excluded_.size)
        return numbers + np.searchsorted(kept_before, numbers, side="right")

    def _nearest_fitted(self, X: Any, k: int, run: FitContext) -> NeighborGraph:
        """The k nearest rows among those that make the map; all of them if they are fewer."""
        k = min(k, len(self.embedding_) - self.excluded_.size)
        if self.fitted_rows_ is None:
            D = X[:, self._kept(X.shape[1])] if self.excluded_.size else X
            return given_neighbors(D, k, monitor=run.monitor)
        return self._nearest_of(self.fitted_rows_, X, k, run, self._graph_metric)

    def _distances_to_fitted(self, X: Any, run: FitContext) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of rows with their distances to all rows that make the map, in float64."""
        if not self._has_distances:
            cross = CrossDistances(
                self.fitted_rows_, self._graph_metric, self.metric_params, run.threads
            )
            yield from cross.blocks(X)
            return
        kept = self._kept(X.shape[1])
        for rows in row_blocks(X.shape[0], rows_within(8 * X.shape[1])):
            block = X[rows].toarray() if is_sparse(X) else X[rows]
            # C order: a choice of columns is in Fortran order, in which sums round otherwise
            yield rows, np.ascontiguousarray(block[:, kept], np.float64)

    def _keep_fitted_places(self, Z: np.ndarray, links: Any) -> np.ndarray:
        """Z with the place of the fitted row for every new row at distance 0 from one."""
        links = links.to_csr() if isinstance(links, NeighborGraph) else links
        new = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))
        equal = links.data == 0
        rows, first = np.unique(new[equal], return_index=True)
        Z[rows] = self.embedding_[self._rows_at(links.indices[equal][first])]
        return Z


def map_dtype(X: Any) -> Any:
    """The float type of the map of X: that of the data, else float64."""
    dtype = X.distances.dtype if isinstance(X, NeighborGraph) else X.dtype
    return np.float32 if dtype == np.float32 else np.float64


DOUBLE_ROWS = 2000  # up to this size, double precision costs little


class KeptEdges(Declared):
    """The neighbor graph, which is kept for the geodesic distances of new rows.

    Attributes
    ----------
    edge_starts_ : ndarray of shape (n_kept + 1,)
        Where the edges of each row begin in ``edge_ends_`` and ``edge_lengths_``.
    edge_ends_ : ndarray of shape (n_edges,)
        Row at the end of each edge.
    edge_lengths_ : ndarray of shape (n_edges,)
        Length of each edge, divided by ``longest_edge_``.
    longest_edge_ : float
        Length of the longest edge.
    """

    edge_starts_: np.ndarray = fitted("n_kept + 1", type=int, meaning=Starts("n_edges"))
    edge_ends_: np.ndarray = fitted(
        "n_edges", type=int, may_be_empty=True, meaning=index_of("n_kept")
    )
    edge_lengths_: np.ndarray = fitted("n_edges", may_be_empty=True, meaning=share())
    longest_edge_: float = fitted(meaning=above(0))

    def _keep_edges(self, graph: scipy.sparse.csr_matrix, dtype: Any = None) -> None:
        """Remember the graph in units of its longest edge."""
        if dtype is None:
            dtype = np.float64 if graph.shape[0] <= DOUBLE_ROWS else np.float32
        self.longest_edge_ = float(graph.data.max(initial=0.0)) or 1.0
        self.edge_starts_, self.edge_ends_ = graph.indptr, graph.indices
        self.edge_lengths_ = (graph.data / self.longest_edge_).astype(dtype)

    def _graph(self) -> scipy.sparse.csr_matrix:
        n = len(self.edge_starts_) - 1
        return scipy.sparse.csr_matrix(
            (self.edge_lengths_, self.edge_ends_, self.edge_starts_), shape=(n, n)
        )

    def _geodesics_of_new_rows(
        self, links: scipy.sparse.csr_matrix, rows: np.ndarray, run: FitContext
    ) -> np.ndarray:
        """Distances of new rows with edges ``links`` to some rows, in units of the longest edge."""
        return geodesics_of_new_rows(self._graph(), links, self.longest_edge_, rows, run)


NEW_ROWS = 512  # new rows whose geodesic distances are computed at a time


class GeodesicEmbedding(KeptEdges, GraphEmbedding):
    """A map of geodesic distances from landmarks; new rows are placed by theirs.

    A method writes ``_embed``, which sets ``landmarks_``, and ``_by_geodesics``.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks,)
        Indices of the landmarks among the rows of the map.
    """

    landmarks_: np.ndarray = fitted("n_landmarks", type=int, meaning=some_of("n_kept"))

    def _by_geodesics(self, D: np.ndarray, links: Any, run: FitContext) -> np.ndarray:
        """Places of rows from distances to the landmarks, both in units of the longest edge."""
        raise NotImplementedError

    def _links(self, X: Any, run: FitContext) -> scipy.sparse.csr_matrix:
        return super()._links(X, run).to_csr()

    def _place(self, links: Any, run: FitContext) -> np.ndarray:
        Z = np.empty((links.shape[0], int(self.n_components)))
        for rows in row_blocks(len(Z), NEW_ROWS):
            D = self._geodesics_of_new_rows(links[rows], self.landmarks_, run)
            Z[rows] = self._by_geodesics(D, links[rows], run)
        return Z * self.longest_edge_
