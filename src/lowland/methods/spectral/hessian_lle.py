"""Hessian eigenmaps (Donoho & Grimes 2003)."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland._base.constraints import OneOf
from lowland._base.context import FitContext
from lowland._base.params import param
from lowland._base.traits import Card
from lowland._engines.patches.patch_weights import all_tangents, hessian_estimators, sum_of_patches
from lowland.methods.spectral._locally_linear import (
    ISOMETRIC_READING,
    LocallyLinearReducer,
    Neighborhoods,
)


class HessianLLE(LocallyLinearReducer):
    """Functions without curvature: min sum_i |H_i^T Y_i|^2, H_i the Hessian in tangent coordinates.

    On a sheet that is bent but not stretched only linear functions of its own coordinates have no
    Hessian, whatever the outline of the sheet: it may have holes, where Isomap fails. It needs more
    rows and less noise than its relatives, since it estimates second derivatives. Not for clusters.
    Cost: O(n^2 p) for neighbors, O(n k (p min(k, p) + q^4)) for Hessians, and factors of a sparse
    matrix, whose size grows with the width of the data's shape.

    Parameters
    ----------
    n_components : int, default=2
        Dimension q of the map and of the tangent planes.
    n_neighbors : int, default=12
        Number of neighbors of each row, at least 1 + q + q (q + 1) / 2, the number of coefficients
        of a quadratic function. With fewer other rows, all of them are used.
    normalize : {"isometric", "orthonormal"}, default="isometric"
        Scale of the map. "isometric" stretches the map so that patches have, on average, the size
        and shape that they have in the data. "orthonormal" gives every coordinate the variance 1.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the Hessian form, smallest first: 0 where the data are flat.

    Notes
    -----
    The paper makes the map orthonormal on one neighborhood, which is isometric if that is round.
    Here the scale is the mean over the tangent coordinates of all neighborhoods, so that the map
    has the units of the data. A patch contains the neighbors without the row itself, as in the
    authors' program. A row that is not a neighbor of any row would be in no patch; it replaces its
    farthest neighbor in its own patch. scikit-learn's "hessian" uses all directions orthogonal to
    the tangent plane, not only those of the quadratic forms, and so computes LTSA. Equal rows count
    once and get one place. A new row is placed by the affine map from the tangent plane of its
    nearest fitted rows to their places; ``inverse_transform`` uses weights as LLE does.

    With metric="precomputed" the inner products within a patch are (d_ij^2 + d_il^2 - d_jl^2) / 2,
    which equal those of the rows if the distances are Euclidean; of other distances the positive
    part of this matrix is used. There are no rows then, and no ``inverse_transform``. Sparse tables
    of up to 2^23 numbers are made dense.

    References
    ----------
    Donoho & Grimes (2003), Hessian eigenmaps: locally linear embedding techniques for
    high-dimensional data, PNAS 100, doi:10.1073/pnas.1031596100.

    Examples
    --------
    >>> from lowland.datasets import s_curve
    >>> HessianLLE(2).fit_transform(s_curve(300, random_state=0).X).shape
    (300, 2)
    """

    normalize: str = param(OneOf("isometric", "orthonormal"), default="isometric")

    card = Card(
        keeps="lengths within a sheet that is bent but not stretched, also around holes",
        use="to unroll a sheet of any outline that is sampled densely",
        avoid="for noisy or sparse samples and for clusters; second derivatives need many rows",
        cost="O(n^2 p + n k^2 p) time and factors of a sparse matrix, O(n k^2) memory and more",
    )
    reference = "Donoho & Grimes (2003)"
    aliases = ("hessian_eigenmaps", "hlle")
    reading = ISOMETRIC_READING
    seconds_per_row = 8e-5

    def _least_neighbors(self, q: int) -> int:
        return 1 + q + q * (q + 1) // 2

    def _matrix(self, neighborhoods: Neighborhoods, run: FitContext) -> scipy.sparse.csr_matrix:
        patches = neighborhoods.neighbors.copy()
        orphans = np.setdiff1d(np.arange(len(patches)), patches)  # rows that are in no patch
        patches[orphans, -1] = orphans
        q = int(self.n_components)
        U = all_tangents(neighborhoods.points, patches, q, run.threads, run.monitor).bases
        H = hessian_estimators(U)
        return sum_of_patches(patches, H, n=len(patches), threads=run.threads)
