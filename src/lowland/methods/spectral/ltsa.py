"""Local tangent space alignment (Zhang & Zha 2004)."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland._base.context import FitContext
from lowland._base.traits import Card
from lowland._engines.patches.patch_weights import all_tangents, sum_of_patches
from lowland.methods.spectral._locally_linear import LocallyLinearReducer, Neighborhoods


class LTSA(LocallyLinearReducer):
    """Tangent planes aligned: min sum_i |(I - G_i G_i^T) Y_i|^2, G_i = [1/sqrt(k), U_i].

    U_i are the coordinates of a row and its neighbors in their tangent plane: the leading left
    singular vectors of the centered patch. The map of each patch is to be an affine image of them.
    Use it to unroll smooth sheets, also unevenly sampled ones. Not for clusters or strong noise,
    where patches have no tangent plane. Cost: O(n^2 p) for neighbors, O(n k p min(k, p)) for
    tangents, and factors of a sparse matrix, whose size grows with the width of the data's shape.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map and of the tangent planes.
    n_neighbors : int, default=12
        Number of neighbors of each row, at least n_components + 1. It should be so small that a
        neighborhood is nearly flat. With fewer other rows, all of them are used.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the alignment matrix, smallest first: 0 where the data are flat.

    Notes
    -----
    The patch of a row contains the row itself, as in the paper (scikit-learn leaves it out). A
    patch with fewer dimensions than the map constrains only these dimensions. Equal rows count once
    and get one place. A new row is placed by the affine map from the tangent plane of its nearest
    fitted rows to their places; ``inverse_transform`` uses weights as LLE does.

    With metric="precomputed" the inner products within a patch are (d_ij^2 + d_il^2 - d_jl^2) / 2,
    which equal those of the rows if the distances are Euclidean; of other distances the positive
    part of this matrix is used. There are no rows then, and no ``inverse_transform``. Sparse tables
    of up to 2^23 numbers are made dense.

    References
    ----------
    Zhang & Zha (2004), Principal manifolds and nonlinear dimensionality reduction via tangent space
    alignment, SIAM Journal on Scientific Computing 26, doi:10.1137/S1064827502419154.

    Examples
    --------
    >>> from lowland.datasets import s_curve
    >>> LTSA(2).fit_transform(s_curve(300, random_state=0).X).shape
    (300, 2)
    """

    card = Card(
        keeps="the flat neighborhood of each row, up to a linear change of scale",
        use="to unroll a smooth sheet, also one sampled unevenly",
        avoid="for clusters and noise as large as a neighborhood",
        cost="O(n^2 p + n k^2 p) time and factors of a sparse matrix, O(n k^2) memory and more",
    )
    reference = "Zhang & Zha (2004)"
    aliases = ("local_tangent_space_alignment",)

    def _least_neighbors(self, q: int) -> int:
        return q + 1

    def _matrix(self, neighborhoods: Neighborhoods, run: FitContext) -> scipy.sparse.csr_matrix:
        patches = neighborhoods.with_self
        n, size = patches.shape
        q = int(self.n_components)
        U = all_tangents(neighborhoods.points, patches, q, run.threads, run.monitor).bases
        G = np.concatenate([np.full((n, size, 1), size**-0.5), U], axis=2)
        return sum_of_patches(patches, G, complement=True, n=n, threads=run.threads)
