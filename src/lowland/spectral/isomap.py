"""Isomap (Tenenbaum, de Silva & Langford 2000), and with landmarks (de Silva & Tenenbaum 2003)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse

from lowland._core.card import Card, Estimate
from lowland._core.constraints import Integer, Null, Real
from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.params import fitted, param
from lowland._core.validation import is_sparse
from lowland._engines.graphs.geodesics import shortest_paths
from lowland._engines.linalg.blocks import row_blocks
from lowland._engines.linalg.magnitude import check_fits
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.radius import radius_graph
from lowland._engines.stress.classical_scaling import gower_placement
from lowland.spectral._geodesic_axes import GeodesicAxes, from_all_rows, from_landmarks
from lowland.spectral._graph import GraphReducer, float_of

__all__ = ["Isomap"]

DOUBLE_ROWS = 2000  # up to so many, double precision costs nothing to speak of
FARTHEST = 1e140  # longest edges: beyond it, sums of squares are no numbers
NEW_ROWS = 512  # new rows that are placed at a time


class Isomap(GraphReducer):
    """Classical MDS of distances along the neighbor graph: -1/2 H D_G^2 H = V L V^T, Y = V L^(1/2).

    Unrolls a curved sheet: if the rows lie on a bent but unstretched convex piece of R^q, the map
    is that piece up to a rigid motion, with its true distances. Use it for rolls, bent sheets,
    images under changing pose and light. Not for sheets with holes or for closed surfaces, which
    have no flat map, and beware of short cuts: one edge across a gap bends everything, so look at
    several ``n_neighbors``. Cost: O(n^2 k) time and n^2 / 2 numbers, less memory for more time
    where they do not fit; O(n m k) time and O(n m) memory with m landmarks.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors that each row is joined with.
    radius : float or None, default=None
        Join all rows within this distance instead.
    landmarks : int or None, default=None
        Use distances to so many random rows only. The map is nearly the same from a few hundred on.
    metric : str or function, default="euclidean"
        Distance between rows, or "precomputed": X holds all distances, or as a sparse matrix some
        of them. X may also be a ``NeighborGraph``.
    on_disconnected : {"bridge", "largest", "raise"}, default="bridge"
        What to do with a graph in pieces: join them by the shortest edges there are; map the
        largest and place the other rows like new ones (NaN where only a graph was given); refuse.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The map.
    eigenvalues_ : ndarray of shape (n_components,)
        Sum of squares of each coordinate, over the landmarks where there are some.
    residual_variance_ : ndarray of shape (n_components,)
        1 - r^2 of geodesic distances and those in the first 1, 2, ... coordinates: the paper's
        curve, whose bend shows the dimension. Beyond 500 rows from 500 of them to all.
    reconstruction_error_ : float
        |B - Y Y^T|_F / n for B = -1/2 H D_G^2 H; over the landmarks where there are some.
    lowest_eigenvalue_ : float
        The smallest eigenvalue seen. Clearly negative: no flat map has these distances.
    n_connected_components_, excluded_
        Pieces the graph was in; rows that had no say in the map under "largest".
    residual_, landmarks_, edge_starts_, edge_ends_, edge_lengths_, unit_, dual_vectors_,
    mean_squares_, rows_
        How well the eigenpairs are known, and what new rows are placed with.

    Notes
    -----
    New rows are joined with their nearest fitted rows, and their distances along the graph, d, give
    y = 1/2 L^(-1) Y^T (mean(D_G^2) - d^2) (Gower 1968; Bengio et al. 2004). Beyond 2000 rows
    geodesic distances are kept in single precision, right to some six digits. The signs are fixed
    by the entry of each eigenvector that is largest.

    References
    ----------
    Tenenbaum, de Silva & Langford (2000), A global geometric framework for nonlinear dimensionality
    reduction, Science 290, doi:10.1126/science.290.5500.2319; de Silva & Tenenbaum (2003), Global
    versus local methods in nonlinear dimensionality reduction, NIPS 15; Bengio et al. (2004),
    Out-of-sample extensions for LLE, Isomap, MDS, eigenmaps and spectral clustering, NIPS 16.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> Isomap(2, n_neighbors=8).fit_transform(swiss_roll(400, random_state=0).X).shape
    (400, 2)
    """

    radius: float | None = param(
        Null() | Real(0), default=None, doc="join all rows within it instead of n_neighbors"
    )
    landmarks: int | None = param(
        Null() | Integer(2), default=None, doc="rows that distances are measured from; None: all"
    )

    residual_variance_: np.ndarray = fitted(
        "n_components", doc="1 - r^2 of geodesic distances and those of the map"
    )
    reconstruction_error_: float = fitted(doc="|B - Y Y^T| / n")
    lowest_eigenvalue_: float = fitted(doc="the smallest eigenvalue seen")
    landmarks_: np.ndarray = fitted(
        "n_landmarks", type=int, doc="rows, of those in the map, that distances are measured from"
    )
    edge_starts_: np.ndarray = fitted("n_kept + 1", type=int, doc="where a row's edges begin")
    edge_ends_: np.ndarray = fitted("n_edges", type=int, doc="rows that they lead to")
    edge_lengths_: np.ndarray = fitted("n_edges", doc="their lengths, the longest being 1")
    unit_: float = fitted(doc="length of the longest edge")
    dual_vectors_: np.ndarray = fitted(
        "n_landmarks", "n_components", doc="what squared distances are multiplied with"
    )
    mean_squares_: np.ndarray = fitted("n_landmarks", doc="mean squared distance to the landmarks")

    card = Card(
        keeps="distances along the surface that the rows lie on",
        use="to unroll a bent sheet without holes: poses, gradients, one or two smooth factors",
        avoid="for clusters, closed surfaces and holes; when short cuts cross gaps, lower k",
        cost="O(n^2 k) time, n^2 / 2 numbers; with m landmarks O(n m k) time and O(n m) memory",
    )
    reference = "Tenenbaum, de Silva & Langford (2000)"
    reading = GraphReducer.reading._replace(
        distances="Distances in the map are distances along the surface that the rows lie on, as "
        "far as the residual variance is small.",
        sizes="The size of a group is its size along the surface.",
        scale="The axes have the unit of the distances in the data.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        return Estimate(0.02 + 2.5e-8 * n * n + 1e-10 * n * n * p, 2 * n * n + 8 * n * (p + 400))

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        rows = self._as_searched(X)
        joined = self._in_one_piece(self._joined_rows(rows, run), rows, run)
        graph, n = joined.graph, joined.kept.size
        self._check_squarable(graph.data)
        dtype = np.float64 if n <= DOUBLE_ROWS else np.float32
        self.unit_ = float(graph.data.max(initial=0.0)) or 1.0
        self.edge_starts_, self.edge_ends_ = graph.indptr, graph.indices
        self.edge_lengths_ = (graph.data / self.unit_).astype(dtype)
        graph = scipy.sparse.csr_matrix((self.edge_lengths_, graph.indices, graph.indptr), (n, n))
        self._check_axes(n, n)
        if self.landmarks is None:
            self.landmarks_ = np.arange(n)
            found = from_all_rows(graph, int(self.n_components), run)
        else:
            self.landmarks_ = self._choose_landmarks(n, run)
            found = from_landmarks(graph, self.landmarks_, int(self.n_components), run)
        self._remember(found)
        return self._with_excluded(found.scores * self.unit_, rows, float_of(X), run)

    def _joined_rows(self, rows: Any, run: FitContext) -> scipy.sparse.csr_matrix:
        """The graph of neighbors, in as many pieces as it has."""
        if self.radius is None:
            return self._neighbor_distances(rows, int(self.n_neighbors), run)
        if isinstance(rows, NeighborGraph) or (self.metric == "precomputed" and is_sparse(rows)):
            stored = self._neighbor_distances(rows, rows.shape[1] - 1, run)
            far = stored.data > self.radius
            starts = np.concatenate([[0], np.cumsum(~far)])[stored.indptr]
            return scipy.sparse.csr_matrix(
                (stored.data[~far], stored.indices[~far], starts), stored.shape
            )
        return radius_graph(
            rows,
            float(self.radius),
            self._distance(),
            metric_params=self.metric_params,
            threads=run.threads,
            monitor=run.monitor,
        )

    def _choose_landmarks(self, n: int, run: FitContext) -> np.ndarray:
        m = int(self.landmarks or 0)
        if not int(self.n_components) < m <= n:
            raise ParameterError(
                f"Isomap: landmarks={m} must be more than n_components={self.n_components} and at "
                f"most the {n} rows of the map."
            )
        return np.sort(run.rng.choice(n, m, replace=False))

    def _remember(self, found: GeodesicAxes) -> None:
        """Set the fitted attributes, in the units of the data."""
        square = self.unit_ * self.unit_
        q, positive = len(found.eigenvalues), int((found.eigenvalues > 0).sum())
        largest = float(found.eigenvalues[0])
        if positive < q and found.lowest < -1e-3 * largest:
            warnings.warn(
                f"only {positive} of {q} components have a positive eigenvalue, the others are 0: "
                "there are no more directions in which geodesic distances are those of a flat map "
                f"(eigenvalues from {found.lowest * square:.3g} to {largest * square:.3g}).",
                stacklevel=5,
            )
        self.eigenvalues_ = found.eigenvalues * square
        self.lowest_eigenvalue_ = found.lowest * square
        self.reconstruction_error_ = found.error * square
        self.residual_, self.residual_variance_ = found.residual, found.residual_variance
        self.dual_vectors_, self.mean_squares_ = found.duals, found.mean_squares

    # --- new rows -----------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        links = self._links(X, run)
        Z = np.empty((links.shape[0], self.dual_vectors_.shape[1]))
        for some in row_blocks(len(Z), NEW_ROWS):
            D = self._geodesics_from(links[some], run).astype(np.float64)
            Z[some] = gower_placement(D * D, self.mean_squares_, self.dual_vectors_, run.threads)
        Z *= self.unit_
        check_fits(Z, float_of(X), "Isomap")
        return self._at_home(Z, links).astype(float_of(X), copy=False)

    def _links(self, X: Any, run: FitContext) -> scipy.sparse.csr_matrix:
        """Edges from new rows to fitted ones, (n_new, n_kept)."""
        if self.radius is None:
            return self._nearest_fitted(X, int(self.n_neighbors), run).to_csr()
        parts = []
        for _, D in self._distances_to_fitted(X, run):
            near = np.maximum(D.min(axis=1, keepdims=True), self.radius) >= D  # one at least
            starts = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
            parts.append(scipy.sparse.csr_matrix((D[near], np.nonzero(near)[1], starts), D.shape))
        return scipy.sparse.vstack(parts, format="csr")

    def _geodesics_from(self, links: scipy.sparse.csr_matrix, run: FitContext) -> np.ndarray:
        """Distances to the landmarks of new rows that only have edges to fitted ones.

        Edges lead away from new rows, so that no path goes through another of them.
        """
        m, n = links.shape
        dtype = self.edge_lengths_.dtype
        starts = np.concatenate([self.edge_starts_, self.edge_starts_[-1] + links.indptr[1:]])
        ends = np.concatenate([self.edge_ends_, links.indices])
        new_lengths = self._in_units(links.data, self.unit_, FARTHEST).astype(dtype)
        lengths = np.concatenate([self.edge_lengths_, new_lengths])
        D = shortest_paths(
            scipy.sparse.csr_matrix((lengths, ends, starts), shape=(n + m, n + m)),
            np.arange(n, n + m),
            threads=run.threads,
            monitor=run.monitor,
            dtype=dtype,
        )
        return D[:, self.landmarks_]
