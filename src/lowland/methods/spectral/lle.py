"""Locally linear embedding (Roweis & Saul 2000)."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland._base.constraints import Real
from lowland._base.context import FitContext
from lowland._base.params import param
from lowland._base.traits import Card
from lowland._engines.patches.patch_weights import Points, barycentric, in_chunks, sum_of_patches
from lowland.methods.spectral._locally_linear import LocallyLinearReducer, Neighborhoods


class LLE(LocallyLinearReducer):
    """Rows stay the same combinations of their neighbors: min |Y - W Y|^2, with Y^T Y = n I.

    W_i are the weights, of sum 1, that reproduce row i best from its neighbors. Use it to unroll
    smooth, evenly sampled sheets. Not for clusters, nor where the density varies much: the map then
    folds or collapses into spikes. ModifiedLLE and LTSA, which use more than one combination of
    neighbors, are more stable. Cost: O(n^2 p) for neighbors, O(n k^2 (k + p)) for weights, and
    factors of a sparse matrix, whose size grows with the width of the data's shape.

    Parameters
    ----------
    reg : float, default=0.001
        Ridge of the weights, relative to the trace of the local Gram matrix. It makes the weights
        unique where there are more neighbors than columns.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of M = (I - W)^T (I - W), smallest first: the mean squared error of each
        coordinate.

    Notes
    -----
    Equal rows count once and get one place. If there are too few distinct rows for more than one
    patch, the map is the tangent plane of that patch. New rows are placed by their own weights.
    ``inverse_transform`` computes the weights in the map and applies them to the data.

    With metric="precomputed" the inner products within a patch are (d_ij^2 + d_il^2 - d_jl^2) / 2,
    which equal those of the rows if the distances are Euclidean; of other distances the positive
    part of this matrix is used. There are no rows then, and no ``inverse_transform``. Sparse tables
    of up to 2^23 numbers are made dense.

    References
    ----------
    Roweis & Saul (2000), Nonlinear dimensionality reduction by locally linear embedding, Science
    290, doi:10.1126/science.290.5500.2323; Saul & Roweis (2003), Think globally, fit locally,
    Journal of Machine Learning Research 4.

    Examples
    --------
    >>> from lowland.datasets import s_curve
    >>> LLE(2).fit_transform(s_curve(300, random_state=0).X).shape
    (300, 2)
    """

    reg: float = param(Real(1e-12, closed="left"), default=1e-3)

    card = Card(
        keeps="how each row is combined from its neighbors",
        use="to unroll a smooth sheet that is sampled evenly",
        avoid="for clusters or uneven sampling, where the map collapses into spikes",
        cost="O(n^2 p + n k^3) time and factors of a sparse matrix, O(n k^2) memory and more",
    )
    reference = "Roweis & Saul (2000)"
    aliases = ("locally_linear_embedding",)

    def _least_neighbors(self, q: int) -> int:
        return 1

    def _matrix(self, neighborhoods: Neighborhoods, run: FitContext) -> scipy.sparse.csr_matrix:
        points, neighbors = neighborhoods
        n, k = neighbors.shape

        def weights(rows: slice) -> np.ndarray:
            return self._weights(points, neighbors[rows], points.rows[rows])

        size = k * (points.width(k) + k)
        parts = in_chunks(weights, n, size, run.threads, run.monitor, "weights")
        errors = np.ones((n, k + 1, 1))  # rows of I - W
        errors[:, 1:, 0] = -np.concatenate(parts)
        return sum_of_patches(neighborhoods.with_self, errors, n=n, threads=run.threads)

    def _weights(self, points: Points, ids: np.ndarray, X: np.ndarray) -> np.ndarray:
        return barycentric(points, ids, X, float(self.reg))
