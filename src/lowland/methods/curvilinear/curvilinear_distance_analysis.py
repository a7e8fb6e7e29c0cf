"""Curvilinear distance analysis (Lee, Lendasse, Donckers & Verleysen 2000)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from lowland._base.constraints import Integer, OneOf
from lowland._base.context import FitContext
from lowland._base.models.checks import Ascending, Starts, above, index_of, share
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate
from lowland._base.validation import as_dense, is_sparse
from lowland._engines.graphs.components import connect
from lowland._engines.graphs.geodesics import (
    geodesics_of_new_rows,
    shortest_paths,
    shortest_paths_cost,
)
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.linalg.products import row_blocks
from lowland._engines.local_stress.objective import RADIAL, Law
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import (
    given_neighbors,
    neighbor_graph,
    neighbor_graph_cost,
    query_fitted,
)
from lowland.methods._bases.distances import FLOAT64_ROWS
from lowland.methods.curvilinear._radial import ALL_ROWS, LANDMARKS, RadialReducer

NEW_ROWS = 512  # new rows that are placed at a time


class CurvilinearDistanceAnalysis(RadialReducer):
    """CCA of distances along the neighbor graph: E = 1/2 sum (delta_G - d)^2 F(d, r).

    Distances along the graph unroll a surface, as in Isomap; the weights F tear what cannot lie
    flat, as in CCA: a roll is unrolled, and a cylinder, a sphere or a torus is cut open. Use it for
    curved and closed surfaces. One edge across a gap bends the map, so compare several
    ``n_neighbors``. Cost: O(m n k) for the distances along the graph and O(m^2) per step for m
    landmarks, all rows up to 4000.

    Parameters
    ----------
    weighting : {"step", "exp", "sigmoid"}, default="step"
        F: 1 up to r ("step"), exp(-d / r), or a smooth fall from 1 at r / 2 to 0 at 3 r / 2
        ("sigmoid").
    n_neighbors : int, default=10
        Number k of neighbors in the graph. The radius r shrinks to the mean distance along the
        graph to the k-th nearest row.

    Attributes
    ----------
    radii_ : ndarray of shape (n_landmarks,)
        Final radius r, the same for all.
    fitted_rows_ : ndarray or sparse matrix of shape (n_kept, n_features), or None
        Rows of the graph, with which new rows are compared. None if distances were given.
    excluded_ : ndarray of shape (n_excluded,)
        Rows outside of the largest component, with ``on_disconnected="largest"``. They are placed
        like new rows.
    edge_starts_ : ndarray of shape (n_kept + 1,)
        Where the edges of each row begin in ``edge_ends_`` and ``edge_lengths_``.
    edge_ends_ : ndarray of shape (n_edges,)
        Row at the end of each edge.
    edge_lengths_ : ndarray of shape (n_edges,)
        Length of each edge, divided by ``longest_edge_``.
    longest_edge_ : float
        Length of the longest edge.

    Notes
    -----
    The paper quantizes the data first, links the prototypes and interpolates the other rows; here
    all rows are in the graph, and random landmarks make the map of many rows. The radius begins at
    the largest distance along the graph. With a complete graph the map is that of CCA from the same
    start. A new row is linked with its k nearest rows, and placed by its distances along the graph.

    References
    ----------
    Lee, Lendasse, Donckers & Verleysen (2000), A robust nonlinear projection method, ESANN; Lee,
    Lendasse & Verleysen (2004), Nonlinear projection with curvilinear distances: Isomap versus
    curvilinear distance analysis, Neurocomputing 57, 49-76.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> X = swiss_roll(300, random_state=0).X
    >>> CurvilinearDistanceAnalysis(random_state=0).fit_transform(X).shape
    (300, 2)
    """

    weighting: str = param(OneOf(*RADIAL), default="step")
    n_neighbors: int = param(Integer(1), default=10)
    on_disconnected: str = param(OneOf("bridge", "largest", "raise"), default="bridge")

    fitted_rows_: Any = fitted("n_kept", "n_features", optional=True, sparse=True)
    excluded_: np.ndarray = fitted(
        "n_excluded",
        type=int,
        may_be_empty=True,
        meaning=(index_of("n_samples"), Ascending(strict=True)),
    )
    edge_starts_: np.ndarray = fitted("n_kept + 1", type=int, meaning=Starts("n_edges"))
    edge_ends_: np.ndarray = fitted(
        "n_edges", type=int, may_be_empty=True, meaning=index_of("n_kept")
    )
    edge_lengths_: np.ndarray = fitted("n_edges", may_be_empty=True, meaning=share())
    longest_edge_: float = fitted(meaning=above(0))
    n_connected_components_: int = fitted(type=int)

    size_rules = {"n_samples": "n_kept + n_excluded"}

    card = Card(
        keeps="short distances along the surface that the rows lie on",
        use="for curved and closed surfaces: rolls are unrolled, spheres and cylinders cut open",
        avoid="for clusters far apart; when short cuts cross gaps, lower k",
        cost="O(n^2 k) time and n^2 numbers up to 4000 rows, O(n) beyond",
    )
    reference = "Lee, Lendasse, Donckers & Verleysen (2000)"
    aliases = ("cda",)
    reading = RadialReducer.reading._replace(
        distances="Short distances are those along the surface that the rows lie on. Long "
        "distances are given up where they contradict short ones.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        m = n if n <= ALL_ROWS else LANDMARKS
        paths = shortest_paths_cost(m, n, 10, 8 if n <= FLOAT64_ROWS else 4)
        return (neighbor_graph_cost(n, p, 10) + paths + cls._radial_cost(n, 3)).holding(16 * n * p)

    def _law(self) -> Law:
        return Law(self.weighting)

    def _radii(self, kth: np.ndarray) -> np.ndarray:
        return np.full(len(kth), float(kth.mean()) or 1.0)

    def _radii_of_new(self, kth: np.ndarray) -> np.ndarray:
        return np.maximum(kth, self.radii_[0])

    def _widest(self, Y: np.ndarray, delta: np.ndarray) -> float:
        return float(delta.max())

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: landmarks are rows of the graph."""
        if np.isin(self.landmarks_, self.excluded_).any():
            return "'landmarks_' has rows of 'excluded_'"
        return super().inconsistency()

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n = X.shape[0]
        kept = self._keep_graph(X, run)
        chosen = self._choose_landmarks(len(kept), run)
        self.landmarks_ = kept[chosen]
        D = shortest_paths(
            self._graph(),
            chosen,
            threads=run.threads,
            monitor=run.monitor,
            dtype=self.edge_lengths_.dtype,
        )
        D *= self.longest_edge_
        among = D[:, chosen]
        among = (among + among.T) / 2  # sums of edges differ in the last digits by direction
        problem = self._problem(among, run)
        start = self._start_of_landmarks(X[self.landmarks_], among, n, run)
        self._keep(self._descend(problem, start, run), problem, X.dtype, n)
        others = np.setdiff1d(np.arange(len(kept)), chosen)
        blocks = row_blocks(len(others), NEW_ROWS)
        self._place_all(kept[others], ((rows, D[:, others[rows]].T) for rows in blocks), run)
        if self.excluded_.size:
            outside = self._distances_to_fitted(X[self.excluded_], run)
            self._place_all(self.excluded_, outside, run)
        return self.embedding_.copy()

    def _keep_graph(self, X: Any, run: FitContext) -> np.ndarray:
        """Build the connected graph, remember it, and return the rows that are in it."""
        metric = {"metric": self._graph_metric, "metric_params": self.metric_params}
        shared = {"threads": run.threads, "monitor": run.monitor}
        k = min(int(self.n_neighbors), X.shape[0] - 1)
        edges = symmetrize(neighbor_graph(X, k, rng=run.rng, **metric, **shared))
        policy: Any = self.on_disconnected
        connected = connect(edges, X, policy, **metric, **shared)
        graph, kept = connected.graph, connected.kept
        self.n_connected_components_ = connected.n_components
        self.excluded_ = np.setdiff1d(np.arange(X.shape[0]), kept)
        self.longest_edge_ = float(graph.data.max(initial=0.0)) or 1.0
        self.edge_starts_, self.edge_ends_ = graph.indptr, graph.indices
        dtype = np.float64 if X.shape[0] <= FLOAT64_ROWS else np.float32
        self.edge_lengths_ = (graph.data / self.longest_edge_).astype(dtype)
        self.fitted_rows_ = None if self._has_distances else X[kept]
        return kept

    def _graph(self) -> scipy.sparse.csr_matrix:
        n = len(self.edge_starts_) - 1
        return scipy.sparse.csr_matrix(
            (self.edge_lengths_, self.edge_ends_, self.edge_starts_), shape=(n, n)
        )

    @property
    def _graph_metric(self) -> Any:
        """Lengths of edges are distances, never squared distances."""
        return "euclidean" if self.metric == "sqeuclidean" else self.metric

    # --- new rows -----------------------------------------------------------------------------

    def _unchecked_distances(self, X: Any, run: FitContext) -> Iterator[tuple[slice, np.ndarray]]:
        """Distances along the graph from new rows to the landmarks."""
        kept = np.setdiff1d(np.arange(len(self.embedding_)), self.excluded_)
        landmarks = np.searchsorted(kept, self.landmarks_)
        for rows in row_blocks(X.shape[0], NEW_ROWS):
            links = self._links(X[rows], kept, run).to_csr()
            D = geodesics_of_new_rows(self._graph(), links, self.longest_edge_, landmarks, run)
            yield rows, D * self.longest_edge_

    def _links(self, X: Any, kept: np.ndarray, run: FitContext) -> NeighborGraph:
        """The nearest rows of the graph."""
        k = min(int(self.n_neighbors), len(kept))
        if self._has_distances:
            return given_neighbors(np.ascontiguousarray(X[:, kept]), k, monitor=run.monitor)
        if is_sparse(X) and not is_sparse(self.fitted_rows_):
            X = as_dense(X, type(self).__name__)
        return query_fitted(
            self.fitted_rows_,
            X,
            k,
            metric=self._graph_metric,
            metric_params=self.metric_params,
            run=run,
        )
