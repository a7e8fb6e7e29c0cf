"""What methods on the graph of neighbors share: the graph in one piece, and new rows beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from lowland._core.base import Reducer
from lowland._core.constraints import Function, Integer, Mapping, Null, OneOf
from lowland._core.context import FitContext
from lowland._core.errors import DataError, ParameterError
from lowland._core.params import fitted, param
from lowland._core.traits import Reading
from lowland._core.validation import as_dense, dense_if_small, is_sparse
from lowland._engines.distances.cross_distances import CrossDistances
from lowland._engines.distances.metrics import METRICS
from lowland._engines.distances.precomputed import check_distances
from lowland._engines.graphs.graph import ConnectedGraph, connect, connected_components, symmetrize
from lowland._engines.kernels.kernel_matrix import panel_blocks
from lowland._engines.linalg.magnitude import check_fits, check_magnitude
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph, neighbor_query, stored_graph

__all__ = ["GraphReducer", "float_of"]


class GraphReducer(Reducer):
    """A method that sees the data through the graph of nearest neighbors."""

    n_neighbors: Any = param(Integer(1), default=10, doc="neighbors of each row in the graph")
    metric: Any = param(
        OneOf(*METRICS) | Function(), default="euclidean", doc="distance between rows"
    )
    metric_params: dict[str, Any] | None = param(
        Null() | Mapping(), default=None, doc="parameters of the metric"
    )
    on_disconnected: str = param(
        OneOf("bridge", "largest", "raise"),
        default="bridge",
        doc="a graph in pieces: join them by shortest edges, keep the largest, or refuse",
    )

    embedding_: np.ndarray = fitted(
        "n_samples",
        "n_components",
        doc="the map of the fitted rows; NaN for an excluded row of which only a graph is known",
        allows_nan=True,
    )
    eigenvalues_: np.ndarray = fitted("n_components", doc="of the axes of the map")
    residual_: float = fitted(doc="largest relative residual of the eigenpairs")
    n_connected_components_: int = fitted(type=int, doc="pieces that the graph was in at first")
    excluded_: np.ndarray = fitted(
        "n_excluded", type=int, doc="rows outside the largest piece, which had no say in the map"
    )
    rows_: Any = fitted(
        "n_kept",
        "n_features",
        doc="the rows that made the map; None if distances or a graph were given",
        optional=True,
    )

    accepts_sparse = True
    accepts_graph = True
    accepts_distances = True
    reading = Reading(
        axes="The axes have no meaning of their own beyond their order.",
        distances="The map unfolds a graph of nearest neighbors. A path through the points has a "
        "meaning; the straight line across an empty region has none.",
        gaps="A few wrong edges of the graph can close a gap, fold the map or make a spike. "
        "Compare "
        "with another number of neighbors.",
        sizes="Sizes and densities are set by the method, not by the data.",
        scale="The method sets the scale of the axes, not the data.",
    )

    # --- fit ----------------------------------------------------------------------------------

    def _check_training_rows(self, X: Any) -> Any:
        return X if isinstance(X, NeighborGraph) else super()._check_training_rows(X)

    def _as_searched(self, X: Any) -> Any:
        """X as the search takes it: distances checked, small sparse tables dense."""
        if isinstance(X, NeighborGraph):
            if len(X) != X.n_points:
                raise DataError(
                    f"{type(self).__name__}: the graph has the neighbors of {len(X)} new rows; a "
                    f"fit needs those of the {X.n_points} fitted rows (knn_graph)."
                )
            return X
        if self.metric == "precomputed":
            check_distances(X, "X", square=True)
            return X
        return dense_if_small(X)

    def _is_graph(self, X: Any) -> bool:
        """Whether only the distances of some pairs are known."""
        return isinstance(X, NeighborGraph) or (self.metric == "precomputed" and is_sparse(X))

    def _distance(self) -> Any:
        """The metric in use: squared distances are taken back to distances."""
        return "euclidean" if self.metric == "sqeuclidean" else self.metric

    def _search(self, rows: Any, k: int, run: FitContext) -> NeighborGraph:
        """The k nearest other rows of every row."""
        return neighbor_graph(
            rows,
            k,
            metric=self._distance(),
            metric_params=self.metric_params,
            threads=run.threads,
            rng=run.rng,
            monitor=run.monitor,
        )

    def _neighbor_distances(self, rows: Any, k: int, run: FitContext) -> scipy.sparse.csr_matrix:
        """Distances of neighbors, in both directions if in one: w_ij = d(x_i, x_j)."""
        if isinstance(rows, NeighborGraph):
            found = rows.in_distances()
        elif self.metric == "precomputed" and is_sparse(rows):
            found = stored_graph(rows, k)
        else:
            found = self._search(rows, k, run)
        return symmetrize(_stored(found), "union")

    def _in_one_piece(
        self, graph: scipy.sparse.csr_matrix, rows: Any, run: FitContext
    ) -> ConnectedGraph:
        """The graph connected by the policy; remembers what became of the rows."""
        if self._is_graph(rows) and self.on_disconnected == "bridge":
            n_components = connected_components(graph)[0]
            if n_components > 1:
                raise DataError(
                    f"{type(self).__name__}: the graph falls into {n_components} components, and "
                    "no distances between them were given to join them by; give the rows or all "
                    "distances, more neighbors, or set on_disconnected='largest'."
                )
        found = connect(
            graph,
            rows,
            self.on_disconnected,  # type: ignore[arg-type]
            metric=self._distance(),
            metric_params=self.metric_params,
            threads=run.threads,
            monitor=run.monitor,
        )
        n = graph.shape[0]
        self.n_connected_components_ = found.n_components
        self.excluded_ = np.setdiff1d(np.arange(n), found.kept)
        no_rows = isinstance(rows, NeighborGraph) or self.metric == "precomputed"
        self.rows_ = None if no_rows else _copied(rows, found.kept)
        return found

    def _check_squarable(self, distances: np.ndarray) -> None:
        """Refuse lengths of edges, or distances to all rows, whose squares are no numbers."""
        check_magnitude(float(distances.max(initial=0.0)), type(self).__name__)

    def _in_units(self, distances: np.ndarray, unit: float, most: float) -> np.ndarray:
        """Distances of new rows in a unit of the fit, in float64; none may be beyond ``most``."""
        with np.errstate(over="ignore"):
            d = distances.astype(np.float64) / unit
        if not d.max(initial=0.0) <= most:
            raise DataError(
                f"{type(self).__name__}: a new row is {distances.max():.0e} away from fitted rows, "
                "so far that nothing can be said about its place; leave it out."
            )
        return d

    def _beyond_nearest(self, distances: np.ndarray, bandwidth: float) -> np.ndarray:
        """(d^2 - min d^2) / bandwidth of each new row: what its weights follow from, however far.

        The smallest difference is 0, so that a nearest row keeps its weight.
        """
        d = self._in_units(distances, float(np.sqrt(bandwidth)), np.finfo(float).max / 2)
        nearest = d.min(axis=1, keepdims=True)
        with np.errstate(over="ignore"):  # the weight of infinity is 0
            return (d - nearest) * (d + nearest)

    def _check_axes(self, n_rows: int, most: int) -> int:
        q = int(self.n_components)
        if q > most:
            raise ParameterError(
                f"{type(self).__name__}: n_components={q} is more than {n_rows} rows in one piece "
                f"allow (n_samples={n_rows}); ask for at most {most}."
            )
        return q

    def _with_excluded(self, Y: np.ndarray, X: Any, dtype: Any, run: FitContext) -> np.ndarray:
        """The map of all rows: those outside the largest piece are placed like new ones.

        NaN where only a graph was given, which tells nothing about their places.
        """
        check_fits(Y, dtype, type(self).__name__)
        self.embedding_ = Y.astype(dtype)
        if self.excluded_.size:
            n = len(Y) + self.excluded_.size
            whole = np.full((n, Y.shape[1]), np.nan, dtype)
            whole[self._kept(n)] = Y
            self.embedding_ = whole
            if not self._is_graph(X):
                whole[self.excluded_] = self._transform(X[self.excluded_], run)
        return self.embedding_.copy()

    # --- new rows -----------------------------------------------------------------------------

    def _check_new_rows(self, X: Any) -> Any:
        self._require_fitted()
        if self.rows_ is None and self.metric != "precomputed":
            raise ParameterError(
                f"{type(self).__name__} was fitted on a NeighborGraph, so there are no rows to "
                "compare new ones with; fit on the rows, or set metric='precomputed' and give the "
                "distances of the new rows to the fitted ones."
            )
        return super()._check_new_rows(X)

    def _kept(self, n: int) -> np.ndarray:
        return np.setdiff1d(np.arange(n), self.excluded_)

    def _nearest_fitted(self, X: Any, k: int, run: FitContext) -> NeighborGraph:
        """The k nearest of the rows that made the map; with fewer, all of them."""
        n_kept = len(self.embedding_) - self.excluded_.size
        points, queries = self.rows_, X
        if points is None:
            points = np.broadcast_to(np.float32(0), (n_kept, n_kept))  # only its shape is asked for
            queries = X[:, self._kept(X.shape[1])] if self.excluded_.size else X
        elif is_sparse(X) and not is_sparse(points):
            queries = as_dense(X, type(self).__name__)
        return neighbor_query(
            points,
            queries,
            min(k, n_kept),
            metric=self._distance(),
            metric_params=self.metric_params,
            threads=run.threads,
            monitor=run.monitor,
        )

    def _distances_to_fitted(self, X: Any, run: FitContext) -> Iterator[tuple[slice, np.ndarray]]:
        """Some rows at a time, with their distances to all rows that made the map, in float64."""
        if self.metric != "precomputed":
            distance = self._distance()
            cross = CrossDistances(self.rows_, distance, self.metric_params, run.threads)
            yield from cross.blocks(X)
            return
        kept = self._kept(X.shape[1])
        for some in panel_blocks(X.shape[0], X.shape[1]):
            part = X[some].toarray() if is_sparse(X) else X[some]
            yield some, part[:, kept].astype(np.float64)

    def _at_home(self, Z: np.ndarray, links: scipy.sparse.csr_matrix) -> np.ndarray:
        """Rows at distance 0 from a fitted one get its place; ``links`` holds distances to some."""
        new = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))
        home, first = np.unique(new[links.data == 0], return_index=True)
        kept = self._kept(len(self.embedding_))
        Z[home] = self.embedding_[kept[links.indices[links.data == 0][first]]]
        return Z

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags


def _stored(graph: NeighborGraph) -> scipy.sparse.csr_matrix:
    """Distances of the neighbors that exist: rows of a sparse matrix may have stored fewer."""
    there = graph.indices >= 0
    starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return scipy.sparse.csr_matrix(
        (graph.distances[there], graph.indices[there], starts), shape=graph.shape
    )


def _copied(rows: Any, kept: np.ndarray) -> Any:
    return rows.copy() if kept.size == rows.shape[0] else rows[kept]


def float_of(X: Any) -> Any:
    """The float type of the map of X."""
    dtype = X.distances.dtype if isinstance(X, NeighborGraph) else X.dtype
    return np.float32 if dtype == np.float32 else np.float64
