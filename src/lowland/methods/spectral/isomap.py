"""Isomap (Tenenbaum, de Silva & Langford 2000), and with landmarks (de Silva & Tenenbaum 2003)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse

from lowland._base.constraints import Integer, Null, Real
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.models.checks import Ascending, at_least, index_of
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate
from lowland._engines.linalg.products import row_blocks
from lowland._engines.neighbors.radius import radius_graph
from lowland._engines.neighbors.search import neighbor_graph_cost
from lowland._engines.stress.classical_scaling import gower_placement
from lowland.methods._bases.graphs import DOUBLE_ROWS, GeodesicEmbedding
from lowland.methods.spectral._geodesic_axes import (
    GeodesicAxes,
    edges_within,
    from_all_rows,
    from_landmarks,
    links_within,
)

NEW_ROWS = 512  # new rows that are placed at a time


class Isomap(GeodesicEmbedding):
    """Classical MDS of distances along the neighbor graph: -1/2 H D_G^2 H = V L V^T, Y = V L^(1/2).

    Unrolls a curved sheet: if the rows lie on a bent but unstretched convex piece of R^q, the map
    is that piece up to a rigid motion, with its true distances. Use it for rolls, bent sheets,
    images under changing pose and light. Not for sheets with holes or for closed surfaces, which
    have no flat map. One edge across a gap bends the whole map, so compare several
    ``n_neighbors``. Cost: O(n^2 k) time and n^2 / 2 numbers of memory, or less memory and more time
    where they do not fit; O(n m k) time and O(n m) memory with m landmarks.

    Parameters
    ----------
    radius : float or None, default=None
        Connect all rows within this distance, instead of ``n_neighbors``.
    landmarks : int or None, default=None
        Number of random rows that geodesic distances are computed from. None takes all rows. From
        a few hundred landmarks on, the map is nearly the same.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Sum of squares of each coordinate, largest first, over the landmarks if there are some.
    residual_variance_ : ndarray of shape (n_components,)
        1 - r^2 of geodesic distances and distances in the first 1, 2, ... coordinates, in the
        order of the axes. The bend of this curve shows the dimension of the data, as in the paper.
        Beyond 500 rows, distances from 500 of them to all rows are used.
    reconstruction_error_ : float
        |B - Y Y^T|_F / n for B = -1/2 H D_G^2 H, over the landmarks if there are some.
    lowest_eigenvalue_ : float
        Smallest eigenvalue found. If it is clearly negative, no flat map has these distances.
    landmarks_ : ndarray of shape (n_landmarks,)
        Indices of the landmarks among the rows of the map.
    dual_vectors_ : ndarray of shape (n_landmarks, n_components)
        Matrix that squared distances are multiplied by to place new rows.
    mean_squares_ : ndarray of shape (n_landmarks,)
        Mean squared distance to each landmark.

    Notes
    -----
    New rows are connected with their nearest fitted rows, and their distances d along the graph
    give y = 1/2 L^(-1) Y^T (mean(D_G^2) - d^2) (Gower 1968; Bengio et al. 2004). Beyond 2000 rows
    geodesic distances are kept in single precision, correct to about six digits. The sign of an
    axis makes the largest entry of its eigenvector positive.

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

    radius: float | None = param(Null() | Real(0), default=None)
    landmarks: int | None = param(Null() | Integer(2), default=None)

    eigenvalues_: np.ndarray = fitted("n_components")
    residual_: float = fitted()
    residual_variance_: np.ndarray = fitted("n_components")
    reconstruction_error_: float = fitted()
    lowest_eigenvalue_: float = fitted()
    landmarks_: np.ndarray = fitted(
        "n_landmarks", type=int, meaning=(index_of("n_kept"), Ascending(strict=True))
    )
    dual_vectors_: np.ndarray = fitted("n_landmarks", "n_components")
    mean_squares_: np.ndarray = fitted("n_landmarks", meaning=at_least(0))

    card = Card(
        keeps="distances along the surface that the rows lie on",
        use="to unroll a bent sheet without holes: poses, gradients, one or two smooth factors",
        avoid="for clusters, closed surfaces and holes; when short cuts cross gaps, lower k",
        cost="O(n^2 k) time, n^2 / 2 numbers; with m landmarks O(n m k) time and O(n m) memory",
    )
    reference = "Tenenbaum, de Silva & Langford (2000)"
    reading = GeodesicEmbedding.reading._replace(
        distances="Distances in the map are distances along the surface that the rows lie on, as "
        "far as the residual variance is small.",
        sizes="The size of a group is its size along the surface.",
        scale="The axes have the unit of the distances in the data.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        search = neighbor_graph_cost(n, p, 10)
        return Estimate(search.seconds + 2.5e-8 * n * n, 2 * n * n + 8 * n * (p + 400))

    # --- fit ----------------------------------------------------------------------------------

    def _embed(self, graph: scipy.sparse.csr_matrix, run: FitContext) -> np.ndarray:
        n = graph.shape[0]
        q = self._check_axes(n, n)
        self._keep_edges(graph, double=n <= DOUBLE_ROWS)
        if self.landmarks is None:
            self.landmarks_ = np.arange(n)
            axes = from_all_rows(self._graph(), q, run)
        else:
            self.landmarks_ = self._choose_landmarks(n, run)
            axes = from_landmarks(self._graph(), self.landmarks_, q, run)
        self._keep_axes(axes)
        return axes.scores * self.longest_edge_

    def _edges(self, X: Any, run: FitContext) -> scipy.sparse.csr_matrix:
        if self.radius is None:
            return super()._edges(X, run)
        radius = float(self.radius)
        if self._is_graph(X):
            return edges_within(self._edges_of(X, X.shape[1] - 1, run), radius)
        metric = {"metric": self._graph_metric, "metric_params": self.metric_params}
        return radius_graph(X, radius, threads=run.threads, monitor=run.monitor, **metric)

    def _choose_landmarks(self, n: int, run: FitContext) -> np.ndarray:
        m = int(self.landmarks or 0)
        if not int(self.n_components) < m <= n:
            raise ParameterError(
                f"Isomap: landmarks={m} must be more than n_components={self.n_components} and at "
                f"most the {n} rows of the map."
            )
        return np.sort(run.rng.choice(n, m, replace=False))

    def _keep_axes(self, axes: GeodesicAxes) -> None:
        """Set the fitted attributes, in the units of the data."""
        square = self.longest_edge_ * self.longest_edge_
        q, positive = len(axes.eigenvalues), int((axes.eigenvalues > 0).sum())
        largest = float(axes.eigenvalues[0])
        if positive < q and axes.lowest < -1e-3 * largest:
            warnings.warn(
                f"only {positive} of {q} components have a positive eigenvalue, and the others are "
                "0: geodesic distances are those of a flat map in no further direction "
                f"(eigenvalues from {axes.lowest * square:.3g} to {largest * square:.3g}).",
                stacklevel=6,
            )
        self.eigenvalues_ = axes.eigenvalues * square
        self.lowest_eigenvalue_ = axes.lowest * square
        self.reconstruction_error_ = axes.error * square
        self.residual_, self.residual_variance_ = axes.residual, axes.residual_variance
        self.dual_vectors_, self.mean_squares_ = axes.duals, axes.mean_squares

    # --- new rows -----------------------------------------------------------------------------

    def _links(self, X: Any, run: FitContext) -> scipy.sparse.csr_matrix:
        if self.radius is None:
            return super()._links(X, run).to_csr()
        return links_within(self._distances_to_fitted(X, run), float(self.radius))

    def _place(self, links: Any, run: FitContext) -> np.ndarray:
        Z = np.empty((links.shape[0], self.dual_vectors_.shape[1]))
        for rows in row_blocks(len(Z), NEW_ROWS):
            D = self._geodesics_of_new_rows(links[rows], self.landmarks_, run)
            Z[rows] = gower_placement(D * D, self.mean_squares_, self.dual_vectors_, run.threads)
        return Z * self.longest_edge_
