"""Laplacian score (He, Cai & Niyogi 2005)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.constraints import Integer, Null, Real
from lowland._core.context import FitContext
from lowland._core.params import param
from lowland._engines.graphs.laplacian import laplacian
from lowland._engines.graphs.symmetrize import symmetrize
from lowland._engines.graphs.weights import root_mean_square, weighted_graph
from lowland._engines.linalg.blocks import row_blocks
from lowland._engines.neighbors.search import neighbor_graph
from lowland.selection._filter import Filter

__all__ = ["LaplacianScore"]


class LaplacianScore(Filter):
    """Keep the columns that are smooth on the neighbor graph: f~^T L f~ / f~^T D f~, small is good.

    Without a target: a column is good if near rows agree in it while far rows differ. f~ is the
    column minus its mean weighted by D; L = D - W with heat weights on the k nearest neighbors.
    Distances mix all columns: bring them to one scale first. Cost: O(n^2 p) for the neighbors,
    then O(n k p).

    Parameters
    ----------
    n_features : int, float or None, default=None
        Columns to keep: how many, or which share. None: half of them, or all below ``threshold``.
    threshold : float or None, default=None
        Keep only columns with a smaller score.
    n_neighbors : int, default=5
        Neighbors of each row; two rows are joined if either is a neighbor of the other. At most
        all other rows are used.
    bandwidth : float or None, default=None
        t of the weights exp(-d^2 / t). None: the mean squared distance of neighbors.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Between 0 and 2, smaller is better; 2 for a column that does not vary.
    support_, ranking_ : ndarrays of shape (n_features,)
        Whether a column is kept; its rank, from 1.

    Notes
    -----
    A column that is an eigenvector of L f = l D f scores l. In a graph of several pieces a column
    that is constant on each of them scores 0.

    References
    ----------
    He, Cai & Niyogi (2005), Laplacian score for feature selection, NIPS 18.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> LaplacianScore(2).fit(iris().X).get_support(indices=True)
    array([2, 3])
    """

    n_neighbors: int = param(Integer(1), default=5, doc="neighbors of each row")
    bandwidth: float | None = param(
        Real(0) | Null(),
        default=None,
        doc="t of exp(-d^2 / t); None: the mean squared distance of neighbors",
    )

    reference = "He, Cai & Niyogi (2005)"
    accepts_sparse = False
    lower_is_better = True
    constant_score = 2.0

    def _score(self, X: Any, target: Any, run: FitContext) -> np.ndarray:
        k = min(self.n_neighbors, X.shape[0] - 1)
        found = neighbor_graph(X, k, threads=run.threads, rng=run.rng, monitor=run.monitor)
        # not weighted_graph's own default, the median edge: the score keeps its published rule
        t = self.bandwidth
        width = root_mean_square(found.distances) if t is None else float(np.sqrt(t))
        W, _ = weighted_graph(symmetrize(found), "heat", width, least=0.0)
        L, degree = laplacian(W)
        scores = np.empty(X.shape[1])
        step = max(1, 2**22 // X.shape[0])
        for part in row_blocks(X.shape[1], step):  # blocks of columns
            F = X[:, part] - X[:1, part].astype(np.float64)  # a column that is 1e9 + noise is noise
            F -= degree @ F / degree.sum()
            smooth = np.einsum("ij,ij->j", F, L @ F)
            scores[part] = smooth / np.einsum("i,ij,ij->j", degree, F, F)
        return np.clip(scores, 0.0, 2.0)
