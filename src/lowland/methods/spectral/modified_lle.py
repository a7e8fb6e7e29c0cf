"""Modified locally linear embedding (Zhang & Wang 2006)."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland._base.constraints import OneOf, Real
from lowland._base.context import FitContext
from lowland._base.params import param
from lowland._base.traits import Card
from lowland._engines.patches.patch_weights import (
    MOST_REG,
    Points,
    barycentric,
    in_chunks,
    spectra,
    sum_of_patches,
)
from lowland.methods.spectral._locally_linear import (
    ISOMETRIC_READING,
    LocallyLinearReducer,
    Neighborhoods,
)

ROUNDING = 1e-12  # smaller shares of variance are rounding errors


class ModifiedLLE(LocallyLinearReducer):
    """LLE with several weights per row: min sum_i sum_l |y_i - sum_j w_ij^(l) y_j|^2.

    With more neighbors than dimensions many weights reproduce a row almost equally well. LLE takes
    one of them, and its maps suffer from the choice. Here s_i independent weights are used per row.
    Use it where LLE would be used; it hardly ever collapses. Not for clusters. Cost: O(n^2 p) for
    neighbors, O(n k^2 (k + p)) for weights, and factors of a sparse matrix, whose size grows with
    the width of the data's shape.

    Parameters
    ----------
    n_neighbors : int, default=12
        Number of neighbors of each row, at least n_components + 1. It should be so small that a
        neighborhood is nearly flat. With fewer other rows, all of them are used.
    reg : float, default=0.001
        Ridge of LLE's weights, relative to the trace of the local Gram matrix.
    normalize : {"isometric", "orthonormal"}, default="isometric"
        Scale of the map. "isometric" stretches the map so that patches have, on average, the size
        and shape that they have in the data. "orthonormal" gives every coordinate the variance 1.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the sum of squared errors over all weights, smallest first: 0 where the data
        are flat.

    Notes
    -----
    s_i is at least 1 and at most k - n_components, as in the paper (scikit-learn has no upper bound
    and ignores ``reg``). The bound decides where the two differ: without it the maps of connected
    graphs keep the same neighbors. Of 53 tables, trustworthiness is higher by more than .005 with
    the bound on 21 and without it on 8, mostly images and noise (``benchmarks/defaults.py``). Equal
    rows count once and get one place. New rows are placed by LLE's weights; ``inverse_transform``
    computes them in the map and applies them to the data.

    With metric="precomputed" the inner products within a patch are (d_ij^2 + d_il^2 - d_jl^2) / 2,
    which equal those of the rows if the distances are Euclidean; of other distances the positive
    part of this matrix is used. There are no rows then, and no ``inverse_transform``. Sparse tables
    of up to 2^23 numbers are made dense.

    References
    ----------
    Zhang & Wang (2006), MLLE: modified locally linear embedding using multiple weights, NIPS 19.

    Examples
    --------
    >>> from lowland.datasets import s_curve
    >>> ModifiedLLE(2).fit_transform(s_curve(300, random_state=0).X).shape
    (300, 2)
    """

    normalize: str = param(OneOf("isometric", "orthonormal"), default="isometric")
    reg: float = param(Real(1e-12, closed="left"), default=1e-3)

    card = Card(
        keeps="how each row is combined from its neighbors, in several ways",
        use="to unroll a smooth sheet; more stable than LLE",
        avoid="for clusters and noise as large as a neighborhood",
        cost="O(n^2 p + n k^3) time and factors of a sparse matrix, O(n k^2) memory and more",
    )
    reference = "Zhang & Wang (2006)"
    aliases = ("mlle",)
    reading = ISOMETRIC_READING
    seconds_per_row = 1.5e-4
    bytes_per_row = 10_000

    def _least_neighbors(self, q: int) -> int:
        return q + 1

    def _matrix(self, neighborhoods: Neighborhoods, run: FitContext) -> scipy.sparse.csr_matrix:
        points, neighbors = neighborhoods
        n, k = neighbors.shape

        def local(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            near, at = neighbors[rows], points.rows[rows]
            return spectra(points, near, at)

        size = k * (points.width(k) + 2 * k)
        parts = in_chunks(local, n, size, run.threads, run.monitor, "weights")
        squares, V = (np.concatenate(part) for part in zip(*parts, strict=True))
        counts = almost_null(squares, int(self.n_components))
        errors = np.zeros((n, k + 1, counts.max()))

        def fill(rows: slice) -> None:
            w = regularized(squares[rows], V[rows], float(self.reg))
            for s in np.unique(counts[rows]):
                alike = counts[rows] == s
                own = rows.start + np.flatnonzero(alike)
                errors[own, 0, :s] = -1.0
                errors[own, 1:, :s] = several_weights(V[own, :, k - s :], w[alike])

        in_chunks(fill, n, 4 * k * k, run.threads, run.monitor, "errors")
        return sum_of_patches(neighborhoods.with_self, errors, n=n, threads=run.threads)

    def _weights(self, points: Points, ids: np.ndarray, X: np.ndarray) -> np.ndarray:
        return barycentric(points, ids, X, float(self.reg))


def regularized(squares: np.ndarray, V: np.ndarray, reg: float) -> np.ndarray:
    """LLE's weights, (C + reg tr(C) I) w = 1 scaled to sum 1, from C = V diag(squares) V^T."""
    ridge = min(reg, MOST_REG) * squares.sum(axis=1, keepdims=True)
    w = (V @ (V.sum(axis=1) * (ridge / (squares + ridge)))[:, :, None])[:, :, 0]
    return w / w.sum(axis=1, keepdims=True)


def almost_null(squares: np.ndarray, q: int) -> np.ndarray:
    """s_i, the largest l <= k - q whose l smallest eigenvalues are less than eta of the others.

    eta is the median over rows of (sum of all but the q largest) / (sum of these).
    """
    k = squares.shape[1]
    smallest = np.cumsum(squares[:, ::-1], axis=1)[:, : k - q]  # column l - 1: the l smallest
    largest = np.cumsum(squares, axis=1)[:, q - 1 : k - 1][:, ::-1]  # the others
    share = smallest / largest
    eta = max(float(np.median(share[:, -1])), ROUNDING)
    return np.maximum((share < eta).sum(axis=1), 1)


def several_weights(V: np.ndarray, w: np.ndarray) -> np.ndarray:
    """W = (1 - a) w 1^T + V H: s columns of weights, each of sum 1.

    V are s eigenvectors, a = |V^T 1| / sqrt(s), and H = I - 2 h h^T takes V^T 1 to a 1.
    """
    sums = V.sum(axis=1)
    s = sums.shape[1]
    a = np.sqrt((sums**2).sum(axis=1) / s)
    h = a[:, None] - sums
    length = np.sqrt((h**2).sum(axis=1, keepdims=True))
    h = np.where(length > ROUNDING, h / np.where(length > ROUNDING, length, 1.0), 0.0)
    reflected = V - 2 * (V @ h[:, :, None]) * h[:, None, :]
    return reflected + ((1 - a)[:, None] * w)[:, :, None]
