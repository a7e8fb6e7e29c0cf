"""Laplacian eigenmaps (Belkin & Niyogi 2003)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.card import Card, Estimate
from lowland._core.constraints import Null, OneOf, Real
from lowland._core.context import FitContext
from lowland._core.params import fitted, param
from lowland._engines.graphs.spectrum import graph_spectrum
from lowland._engines.graphs.weights import weighted_graph
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland.spectral._graph import GraphReducer, float_of

__all__ = ["LaplacianEigenmaps"]

SURE = 0.05  # eigenvalues of the walk below this say nothing about new rows


class LaplacianEigenmaps(GraphReducer):
    """The smoothest functions on the neighbor graph: L y = lambda D y, L = D - W.

    Minimizes sum_ij w_ij |y_i - y_j|^2 under Y^T D Y = I: neighbors stay together, and nothing else
    is asked for. Finds clusters and their order along a path, as spectral clustering does, at
    the cost of a sparse eigenproblem. Not for sizes: distances in the map are no distances of the
    data, long sheets become curves (the second axis is a function of the first), and a graph nearly
    in pieces becomes a few points. Cost: O(n k q) time and memory beside the search for neighbors.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors that each row is joined with; i and j are joined if either is one of the other.
    weights : {"heat", "binary"}, default="heat"
        w_ij = exp(-d_ij^2 / t), or 1 for all that are joined.
    bandwidth : float or None, default=None
        t of the heat kernel; None: the median squared length of the edges.
    metric : str or function, default="euclidean"
        Distance between rows, or "precomputed": X holds all distances, or as a sparse matrix some
        of them. X may also be a ``NeighborGraph``.
    on_disconnected : {"bridge", "largest", "raise"}, default="bridge"
        What to do with a graph in pieces: join them by the shortest edges there are; map the
        largest and place the other rows like new ones (NaN where only a graph was given); refuse.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The map, Y^T D Y = I.
    eigenvalues_ : ndarray of shape (n_components,)
        lambda, smallest first, from 0 (another piece) to 2; the trivial 0 is left out.
    degrees_ : ndarray of shape (n_kept,)
        The diagonal of D.
    bandwidth_ : float or None
        t in use.
    n_connected_components_, excluded_
        Pieces the graph was in; rows that had no say in the map under "largest".
    residual_ : float
        The largest |D^(-1/2) L D^(-1/2) v - lambda v| of the pairs, relative to the largest lambda.
    rows_
        What new rows are compared with.

    Notes
    -----
    New rows are placed by Nystroem's formula, y = (1 - lambda)^(-1) sum_j w_j y_j / sum_j w_j over
    their nearest fitted rows (Bengio et al. 2004); where 1 - lambda is below 0.05, which only
    happens far down the spectrum, by the mean itself. Equal rows get one place, the mean of theirs,
    and a new row equal to them gets it too. Weights below 1e-9 are 1e-9, so that a long edge is
    still an edge. For one and the same W ``sklearn.manifold.SpectralEmbedding`` gives the same map,
    but it makes another: there a row is one of its own k neighbors, and edges that only one end has
    chosen weigh 1/2. The signs are fixed by the entry of D^(1/2) y that is largest.

    References
    ----------
    Belkin & Niyogi (2003), Laplacian eigenmaps for dimensionality reduction and data
    representation, Neural Computation 15, doi:10.1162/089976603321780317.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> LaplacianEigenmaps(2).fit_transform(swiss_roll(400, random_state=0).X).shape
    (400, 2)
    """

    weights: str = param(
        OneOf("heat", "binary"), default="heat", doc="of the edges: exp(-d^2 / bandwidth), or 1"
    )
    bandwidth: float | None = param(
        Null() | Real(0), default=None, doc="t of the heat kernel; None: median squared edge"
    )

    degrees_: np.ndarray = fitted("n_kept", doc="sums of the weights of each row")
    bandwidth_: float | None = fitted(doc="t in use; None for binary weights", optional=True)

    card = Card(
        keeps="who is a neighbor of whom, as smoothly as possible",
        use="for clusters joined by paths, as a start for other maps, for very many rows",
        avoid="when sizes and distances matter; a sheet much longer than wide becomes a curve",
        cost="O(n k) time and memory beside the neighbors",
    )
    reference = "Belkin & Niyogi (2003)"
    aliases = ("spectral_embedding",)
    reading = GraphReducer.reading._replace(
        gaps="Groups with few edges between them are pulled apart and shrink to points. The width "
        "of a gap has no meaning.",
        scale="The squares of each axis, weighted by the degrees of the rows, sum to 1. The scale "
        "says nothing about the data.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        return Estimate(0.02 + 5e-5 * n + 2e-11 * n * n * p, 8 * n * (p + 400))

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        rows = self._as_searched(X)
        graph = self._neighbor_distances(rows, int(self.n_neighbors), run)
        joined = self._in_one_piece(graph, rows, run)
        q = self._check_axes(joined.kept.size, joined.kept.size - 1)
        if self.weights == "heat":
            self._check_squarable(joined.graph.data)
        width = None if self.bandwidth is None else float(np.sqrt(self.bandwidth))
        W, width = weighted_graph(joined.graph, self.weights, width)  # type: ignore[arg-type]
        self.bandwidth_ = None if width is None else (self.bandwidth or width**2)
        modes, self.degrees_ = graph_spectrum(W, q, run)
        self.eigenvalues_, self.residual_ = 1 - modes.values, modes.residual
        Y = modes.vectors / np.sqrt(self.degrees_)[:, None]
        Y = at_common_place(Y, equal_in_graph(joined.graph))
        return self._with_excluded(Y, rows, float_of(X), run)

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        near = self._nearest_fitted(X, int(self.n_neighbors), run)
        w = np.ones(near.distances.shape)
        if self.bandwidth_ is not None:
            w = np.exp(-self._beyond_nearest(near.distances, self.bandwidth_))
        total = w.sum(axis=1)
        fitted_places = self.embedding_[self._kept(len(self.embedding_))].astype(np.float64)
        Z = np.zeros((len(near), self.embedding_.shape[1]))
        for j in range(near.n_neighbors):
            Z += (w[:, j] / total)[:, None] * fitted_places[near.indices[:, j]]
        walk = 1 - self.eigenvalues_
        Z /= np.where(walk > SURE, walk, 1.0)
        return self._at_home(Z, near.to_csr()).astype(float_of(X), copy=False)
