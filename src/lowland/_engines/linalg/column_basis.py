"""An orthonormal basis of the centered columns of a table, whatever their units are.

    U = (X - 1 m^T) C,     U^T U = I,     U U^T (X - 1 m^T) = X - 1 m^T  up to rounding

Columns are scaled to unit length first, so that a column in large units does not hide the others.
A direction counts only if it is longer than the rounding of the data, which depends on the type of
X: seven float32 columns of which one is a sum of the others have rank 6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate
from lowland._base.validation import is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_eigenpairs, all_pairs_cost, rank_cutoff
from lowland._engines.linalg.moments import column_moments, moments, moments_cost
from lowland._engines.linalg.products import gram_cost, times_cost

ROUNDINGS = 4.0  # operations, each of them rounded, that a column may be the result of


class ColumnBasis(NamedTuple):
    """Directions in which the rows vary, those with the largest variance first.

    Attributes
    ----------
    U : ndarray of shape (n, r)
        The basis; U = (X - 1 m^T) coefficients. A table without variance has r = 1 and U = 0.
    mean : ndarray of shape (p,)
        m, the means of the columns.
    coefficients : ndarray of shape (p, r)
        C above.
    loadings : ndarray of shape (r, p)
        U^T (X - 1 m^T).
    """

    U: np.ndarray
    mean: np.ndarray
    coefficients: np.ndarray
    loadings: np.ndarray

    @property
    def axes(self) -> np.ndarray:
        """The principal axes of the rows, (r, p): loadings of unit length."""
        size = np.abs(self.loadings).max(axis=1, keepdims=True)
        scaled = self.loadings / np.where(size > 0, size, 1.0)
        length = np.linalg.norm(scaled, axis=1, keepdims=True)
        return scaled / np.where(length > 0, length, 1.0)

    def weights(self, A: np.ndarray) -> np.ndarray:
        """W (p, q) of U A = (X - 1 m^T) W."""
        return np.einsum("pr,rq->pq", self.coefficients, A)

    def variables(self, W: np.ndarray) -> np.ndarray:
        """A (r, q) of U A = (X - 1 m^T) W."""
        return np.einsum("rp,pq->rq", self.loadings, W)


def orthonormal_basis_cost(n: int, p: int) -> Estimate:
    """Of :func:`orthonormal_basis` of dense rows."""
    r = min(n, p)
    gram = moments_cost(n, p) if p <= n else gram_cost(n, p)
    copies = Estimate(8e-9 * n * p, 8 * n * p)
    work = copies + gram + all_pairs_cost(r) + 4 * times_cost(n, p, r) + all_pairs_cost(r)
    return work.holding(8 * n * (p + r))


def orthonormal_basis(X: Any, threads: int, monitor: Monitor) -> ColumnBasis:
    """A basis of the columns of X, dense or sparse, minus their means; O(n p min(n, p)).

    From the Gram matrix of the scaled columns, or of the rows if there are fewer, in float64, and
    orthogonalized once more, as the Gram matrix squares the condition number. A direction counts if
    its length is above both errors: that of the data, 4 eps |x_j| in each column with eps of the
    type of X, and that of the Gram matrix, the root of :func:`.rank_cutoff`.
    """
    n, p = X.shape
    Z, mean, unit, size = _unit_columns(X)
    shift = mean / unit
    if p <= n:
        squares, V = all_eigenpairs(moments(Z, threads, monitor).scatter)
    else:
        squares, V = all_eigenpairs(products.sample_gram(Z, shift, threads))
    lengths = np.sqrt(np.maximum(squares, 0.0))
    noise = ROUNDINGS * float(np.finfo(X.dtype).eps) * size
    summed = size if is_sparse(X) else lengths[0]  # sparse columns are summed before centering
    least = max(noise, np.sqrt(rank_cutoff(min(n, p), np.float64)) * summed)
    r = int((lengths > least).sum())
    if r == 0:
        return ColumnBasis(np.zeros((n, 1)), mean, np.zeros((p, 1)), np.zeros((1, p)))
    if p > n:
        V = products.transpose_times(Z, shift, V[:, :r], threads) / lengths[:r]
    first = V[:, :r] / lengths[:r]
    U = products.times(Z, shift, first, threads)
    none = np.zeros(r)
    inner = products.transpose_times(U, none, U, threads)
    loadings = products.transpose_times(Z, shift, U, threads).T * unit
    with limit_blas(1):
        L = np.linalg.inv(np.linalg.cholesky((inner + inner.T) / 2))
        loadings = L @ loadings
        scaled = loadings / np.abs(loadings).max()  # squares must not overflow
        P = all_eigenpairs(scaled @ scaled.T).vectors
        turn = L.T @ P
        return ColumnBasis(
            products.times(U, none, turn, threads),
            mean,
            (first @ turn) / unit[:, None],
            P.T @ loadings,
        )


def _unit_columns(X: Any) -> tuple[Any, np.ndarray, np.ndarray, float]:
    """X / unit with centered columns of length 1, in float64; the means of X; unit; the size.

    The size is the norm of X / unit, not centered, to which rounding errors are proportional. The
    unit of a constant column is a power of two near its value, and adds nothing to the size.
    """
    n = X.shape[0]
    greatest = np.abs(X).max(axis=0)
    greatest = greatest.toarray().ravel() if is_sparse(X) else greatest
    exponent = np.clip(np.frexp(greatest.astype(np.float64))[1], -1000, 1000)
    power = np.ldexp(1.0, exponent)
    Z = _divided(X.astype(np.float64), power)
    mean, squares = column_moments(Z)
    varies = squares > 0
    length = np.sqrt(np.where(varies, squares, 1.0))
    whole = np.where(varies, squares + n * mean**2, 0.0)  # |x_j|^2
    size = float(np.sqrt((whole / length**2).sum()))
    return _divided(Z, length), mean * power, length * power, size


def _divided(X: Any, unit: np.ndarray) -> Any:
    return X.multiply(1 / unit).tocsr() if is_sparse(X) else X / unit
