"""Laplacian score (He, Cai & Niyogi 2005)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.constraints import Integer, Null, Real
from lowland._base.context import FitContext
from lowland._base.params import param
from lowland._engines.graphs.laplacian import laplacian
from lowland._engines.graphs.weights import root_mean_square, symmetrize, weighted_graph
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.search import neighbor_graph
from lowland.selection._filter import Filter


class LaplacianScore(Filter):
    """Keep the columns that are smooth on the neighbor graph: f~^T L f~ / f~^T D f~, small is good.

    It needs no target. A column is good if neighboring rows agree in it while distant rows differ.
    f~ is the column minus its mean weighted by D; L = D - W with heat weights on the k nearest
    neighbors. Distances use all columns, so give the columns one scale first. Cost: O(n^2 p) for
    the neighbors, then O(n k p).

    Parameters
    ----------
    threshold : float or None, default=None
        Keep only columns with a score below this value. None sets no limit.
    n_neighbors : int, default=5
        Number of neighbors of each row. Two rows are connected if either is a neighbor of the
        other. With fewer other rows, all of them are used.
    bandwidth : float or None, default=None
        Bandwidth t of the weights exp(-d^2 / t). None takes the mean squared distance of neighbors.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Score of each column, between 0 and 2; smaller is better. A constant column has 2.

    Notes
    -----
    A column that is an eigenvector of L f = l D f has the score l. A column that is constant on
    each connected component of the graph has the score 0.

    References
    ----------
    He, Cai & Niyogi (2005), Laplacian score for feature selection, NIPS 18.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> LaplacianScore(2).fit(iris().X).get_support(indices=True)
    array([2, 3])
    """

    n_neighbors: int = param(Integer(1), default=5)
    bandwidth: float | None = param(Real(0) | Null(), default=None)

    reference = "He, Cai & Niyogi (2005)"
    accepts_sparse = False
    lower_is_better = True
    constant_score = 2.0

    def _score(self, X: Any, target: Any, run: FitContext) -> np.ndarray:
        k = min(int(self.n_neighbors), X.shape[0] - 1)
        found = neighbor_graph(X, k, threads=run.threads, rng=run.rng, monitor=run.monitor)
        # the paper's default, not that of weighted_graph, the median edge
        t = None if self.bandwidth is None else float(self.bandwidth)
        width = root_mean_square(found.distances) if t is None else float(np.sqrt(t))
        W, _ = weighted_graph(symmetrize(found), "heat", width, least=0.0)
        L, degree = laplacian(W)
        scores = np.empty(X.shape[1])
        for part in row_blocks(X.shape[1], rows_within(8 * X.shape[0])):
            # without its first value, a column of 1e9 + noise keeps the digits of the noise
            F = X[:, part] - X[:1, part].astype(np.float64)
            F -= degree @ F / degree.sum()
            smooth = np.einsum("ij,ij->j", F, L @ F)
            scores[part] = smooth / np.einsum("i,ij,ij->j", degree, F, F)
        return np.clip(scores, 0.0, 2.0)
