"""Laplacian eigenmaps (Belkin & Niyogi 2003)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse

from lowland._base.constraints import Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate
from lowland._engines.graphs import laplacian
from lowland._engines.graphs.weights import half_length, local_graph, local_weights, weighted_graph
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.search import neighbor_graph_cost
from lowland.methods._bases.graphs import GraphEmbedding


class LaplacianEigenmaps(GraphEmbedding):
    """The smoothest functions on the neighbor graph: L y = lambda D y, L = D - W.

    Minimizes sum_ij w_ij |y_i - y_j|^2 under Y^T D Y = I: neighbors stay together, and nothing else
    is optimized. Shows clusters and their order along a path, as spectral clustering does, at the
    cost of a sparse eigenproblem. Not for sizes: distances in the map are not distances of the
    data, a sheet much longer than wide becomes a curve (the second axis is a function of the
    first), and groups with few edges between them shrink to points. Cost: O(n k q) time and memory,
    and the neighbor search.

    Parameters
    ----------
    weights : {"heat", "binary"}, default="heat"
        Weights of the edges. "heat" is w_ij = exp(-d_ij^2 / t), "binary" is w_ij = 1.
    bandwidth : float, "median" or None, default=None
        Bandwidth t of the heat kernel; None follows the density of the rows. None is t = s_i s_j,
        where s_i is half the distance from row i to its last neighbor, and no weight is below
        exp(-4) (self-tuning weights). "median" is the squared median length of the edges.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows, with Y^T D Y = I. Excluded rows are NaN if X was a graph.
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues lambda, smallest first, between 0 and 2, without the trivial 0.
    residual_ : float
        Largest |D^(-1/2) L D^(-1/2) v - lambda v|, relative to the largest lambda.
    degrees_ : ndarray of shape (n_kept,)
        Sum of the weights of each row, the diagonal of D.
    bandwidth_ : float or None
        Bandwidth in use. None for binary weights and for local scales.
    scales_ : ndarray of shape (n_kept,) or None
        Local scale s_i of each row. None for other weights.

    Notes
    -----
    New rows are placed by Nystroem's formula, y = (1 - lambda)^(-1) sum_j w_j y_j / sum_j w_j over
    their nearest fitted rows (Bengio et al. 2004). Where 1 - lambda is below 0.05, which happens
    only for late axes, the weighted mean itself is used. Equal rows get one place, the mean of
    theirs, and so does a new row equal to them. With a given or median bandwidth, weights below
    1e-9 are set to 1e-9, so that long edges keep the graph connected. On the 53
    tables that the rule was chosen on, local scales keep more neighbors on average than one
    bandwidth or binary weights; on 10 of them one of these two is better by more than .01 of
    trustworthiness, and ``bandwidth`` and ``weights`` are there to try it. For the
    same W ``sklearn.manifold.SpectralEmbedding`` gives the same map, but its W differs: there a row
    is one of its own k neighbors, and an edge that only one end has chosen weighs 1/2. The sign of
    an axis makes the largest entry of D^(1/2) y positive.

    References
    ----------
    Belkin & Niyogi (2003), Laplacian eigenmaps for dimensionality reduction and data
    representation, Neural Computation 15, doi:10.1162/089976603321780317; Zelnik-Manor & Perona
    (2004), Self-tuning spectral clustering, NIPS 17.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> LaplacianEigenmaps(2).fit_transform(swiss_roll(400, random_state=0).X).shape
    (400, 2)
    """

    weights: Literal["heat", "binary"] = param(OneOf("heat", "binary"), default="heat")
    bandwidth: float | str | None = param(Null() | OneOf("median") | Real(0), default=None)

    eigenvalues_: np.ndarray = fitted("n_components")
    residual_: float = fitted()
    degrees_: np.ndarray = fitted("n_kept", meaning=above(0))
    bandwidth_: float | None = fitted(optional=True, meaning=above(0))
    scales_: np.ndarray | None = fitted("n_kept", optional=True, meaning=above(0))

    card = Card(
        keeps="who is a neighbor of whom, as smoothly as possible",
        use="for clusters joined by paths, as a start for other maps, for very many rows",
        avoid="when sizes and distances matter; a sheet much longer than wide becomes a curve",
        cost="O(n k) time and memory, and the neighbor search",
    )
    reference = "Belkin & Niyogi (2003)"
    aliases = ("spectral_embedding",)
    reading = GraphEmbedding.reading._replace(
        gaps="Groups with few edges between them are pulled apart and shrink to points. The width "
        "of a gap has no meaning.",
        scale="Each axis has unit variance, weighted by the degrees of the rows.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        search = neighbor_graph_cost(n, p, 10)
        return Estimate(search.seconds + 5e-5 * n, 8 * n * (p + 400))

    def _embed(self, graph: scipy.sparse.csr_matrix, run: FitContext) -> np.ndarray:
        q = self._check_axes(graph.shape[0], graph.shape[0] - 1)
        W = self._weights(graph)
        modes, self.degrees_ = laplacian.graph_spectrum(W, q, run)
        self.eigenvalues_, self.residual_ = 1 - modes.values, modes.residual
        Y = modes.vectors / np.sqrt(self.degrees_)[:, None]
        return at_common_place(Y, equal_in_graph(graph))

    def _weights(self, graph: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
        """The weights of the edges; sets what new rows need to get theirs."""
        self.bandwidth_ = self.scales_ = None
        if self.weights == "heat" and self.bandwidth is None:
            W, self.scales_ = local_graph(graph)
            return W
        given = None if self.bandwidth in (None, "median") else float(self.bandwidth)  # type: ignore[arg-type]
        W, width = weighted_graph(graph, self.weights, None if given is None else np.sqrt(given))
        self.bandwidth_ = None if width is None else float(given or width**2)
        return W

    def _place(self, links: Any, run: FitContext) -> np.ndarray:
        w = np.ones(links.distances.shape)
        if self.scales_ is not None:
            own = half_length(links.distances.max(axis=1, keepdims=True))
            w = local_weights(links.distances, own, self.scales_[links.indices])
        elif self.bandwidth_ is not None:
            w = np.exp(laplacian.heat_exponents(links.distances, self.bandwidth_))
        p = w / w.sum(axis=1, keepdims=True)
        Z = laplacian.weighted_sum(p, self._rows_at(links.indices), self.embedding_)
        return Z / laplacian.nystrom_divisors(self.eigenvalues_)
