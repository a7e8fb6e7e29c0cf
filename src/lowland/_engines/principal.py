"""Principal axes of centered data by three roads: covariance, Gram matrix, block Krylov.

All give the same thing, :class:`PrincipalAxes`; which is cheapest depends on the shape. With
X the centered (and perhaps scaled) data, n x p:

    covariance   X^T X, p x p      O(n p^2)        few columns; mergeable
    gram         X X^T, n x n      O(n^2 p)        few rows, many columns
    krylov       X and X^T times blocks of vectors: both large, or sparse
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import ConvergenceWarning
from lowland._core.monitor import Monitor
from lowland._core.threads import limit_blas
from lowland._core.validation import is_sparse
from lowland._engines import products
from lowland._engines.linalg import EigenPairs, fix_signs, solve_eigenproblem
from lowland._engines.statistics import Moments, column_moments

__all__ = ["PrincipalAxes", "by_covariance", "by_gram", "by_krylov", "column_scale"]


# Vectors per product: enough to use each number of X several times, few enough to converge.
BLOCK_WIDTH = 16


class PrincipalAxes(NamedTuple):
    """Axes in rows with the variance (n - 1) along each, descending; variances of the columns."""

    mean: np.ndarray
    scale: np.ndarray | None
    axes: np.ndarray
    variances: np.ndarray
    column_variances: np.ndarray
    n_rows: int

    @property
    def total_variance(self) -> float:
        return float(self.column_variances.sum())


def column_scale(squares: np.ndarray, count: int) -> np.ndarray:
    """Standard deviations for scaling; 1 for columns that do not vary."""
    deviation = np.sqrt(squares / (count - 1))
    return np.where(deviation > 0, deviation, 1.0)


def _per_column(squares: np.ndarray, scale: np.ndarray | None, count: int) -> np.ndarray:
    """Variances of the columns after scaling."""
    variances = squares / (count - 1)
    return variances if scale is None else variances / scale**2


def by_covariance(sums: Moments, n_axes: int, scaled: bool) -> PrincipalAxes:
    """Eigenvectors of the covariance matrix S / (n - 1)."""
    covariance = sums.scatter / (sums.n_rows - 1)
    scale = None
    if scaled:
        scale = column_scale(np.diag(sums.scatter), sums.n_rows)
        covariance /= np.outer(scale, scale)
    values, vectors = solve_eigenproblem(covariance, n_axes)
    return PrincipalAxes(
        sums.mean, scale, vectors.T, values, np.diag(covariance).copy(), sums.n_rows
    )


def by_gram(X: np.ndarray, n_axes: int, scaled: bool, threads: int) -> PrincipalAxes:
    """Through the n x n inner products: if X X^T u = s^2 u then the axis is X^T u / s."""
    n, p = X.shape
    mean, squares = column_moments(X)
    scale = column_scale(squares, n) if scaled else None
    if scale is not None:
        X = ((X - mean) / scale).astype(X.dtype)
    shift = np.zeros(p) if scaled else mean
    gram = products.sample_gram(X, shift, threads)
    values, vectors = solve_eigenproblem(gram, min(n_axes, n))
    axes = products.transpose_times(X, shift, vectors, threads)
    # Orthonormal even where s is 0 (the last axis of centered rows): QR instead of dividing by s.
    with limit_blas(1):
        axes = fix_signs(np.linalg.qr(axes)[0])
    return PrincipalAxes(mean, scale, axes.T, values / (n - 1), _per_column(squares, scale, n), n)


def by_krylov(
    X: Any, n_axes: int, scaled: bool, threads: int, rng: np.random.Generator, monitor: Monitor
) -> PrincipalAxes:
    """Block Lanczos on the smaller of X^T X and X X^T, neither of which is ever formed."""
    n, p = X.shape
    mean, squares = column_moments(X)
    scale = column_scale(squares, n) if scaled else None
    weights = np.ones((p, 1)) if scale is None else 1.0 / scale[:, None]
    transposed = X.T.tocsr().astype(np.float64, copy=False) if is_sparse(X) else None

    def forward(V: np.ndarray) -> np.ndarray:
        return products.times(X, mean, V * weights, threads)

    def backward(Z: np.ndarray) -> np.ndarray:
        return products.transpose_times(X, mean, Z, threads, transposed) * weights

    # One BLAS thread: the small dense steps must not depend on the number of threads either.
    with limit_blas(1):
        tol = 1e-8 if X.dtype == np.float64 else 1e-5
        if p <= n:
            pairs = _krylov(lambda V: backward(forward(V)), p, n_axes, tol, rng, monitor)
            axes = pairs.vectors
        else:
            pairs = _krylov(lambda Z: forward(backward(Z)), n, n_axes, tol, rng, monitor)
            axes = np.linalg.qr(backward(pairs.vectors))[0]
    per_column = _per_column(squares, scale, n)
    return PrincipalAxes(mean, scale, fix_signs(axes).T, pairs.values / (n - 1), per_column, n)


def _krylov(
    apply: Callable[[np.ndarray], np.ndarray],
    order: int,
    n_pairs: int,
    tol: float,
    rng: np.random.Generator,
    monitor: Monitor,
) -> EigenPairs:
    """Top pairs of a symmetric operator C by block Lanczos from a random block.

    With an orthonormal basis Q of the Krylov space, C Q = Q T + Q_next R E^T: T = Q^T C Q is small,
    its eigenpairs (l, y) give those of C as (l, Q y), and |R y_last| is their residual
    |C Q y - l Q y|. The basis grows, fully reorthogonalized, until all residuals are below
    ``tol`` times the largest l (Golub & Underwood 1977; Musco & Musco 2015 on random starts).
    """
    width = min(BLOCK_WIDTH, order)
    most = min(order, 10 * n_pairs + 20 * width)
    newest = np.linalg.qr(rng.standard_normal((order, width)))[0]
    basis = np.empty((order, 0))
    T = np.empty((0, 0))
    with monitor.phase("block Lanczos", total=-(-most // width)) as phase:
        while True:
            basis = np.hstack([basis, newest[:, : order - basis.shape[1]]])
            newest = basis[:, T.shape[0] :]
            image = np.asarray(apply(newest), dtype=np.float64)
            column = basis.T @ image
            image -= basis @ column
            again = basis.T @ image  # once is not enough: rounding grows with the basis
            image -= basis @ again
            T = _grown(T, column + again)
            newest, R = np.linalg.qr(image)
            if np.abs(np.diag(R)).min() <= 1e-10 * np.abs(T).max():
                # C adds nothing in some direction: go on with a random one outside the basis.
                newest = _outside(basis, newest, rng)
            phase.advance()
            if T.shape[0] < n_pairs:
                continue
            values, y = solve_eigenproblem(T, n_pairs)
            residual = np.linalg.norm(R @ y[-R.shape[1] :], axis=0).max()
            if residual <= tol * values[0] or T.shape[0] == order:
                break
            if T.shape[0] >= most:
                warnings.warn(
                    "the last axes may be inexact: block Lanczos stopped at a relative residual "
                    f"of {residual / values[0]:.1e} (tol={tol:g}); ask for fewer components or "
                    "use another solver.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
                break
    return EigenPairs(values, basis @ y)


def _outside(basis: np.ndarray, block: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An orthonormal block orthogonal to the basis, near the given one where that has substance."""
    block = block + 1e-8 * rng.standard_normal(block.shape)
    for _ in range(3):
        block = np.linalg.qr(block - basis @ (basis.T @ block))[0]
    return block


def _grown(T: np.ndarray, column: np.ndarray) -> np.ndarray:
    """T with one more block of columns and, because it is symmetric, of rows."""
    old, new = T.shape[0], column.shape[0]
    grown = np.empty((new, new))
    grown[:old, :old] = T
    grown[:, old:] = column
    grown[old:, :old] = column[:old].T
    grown[old:, old:] = (column[old:] + column[old:].T) / 2
    return grown
