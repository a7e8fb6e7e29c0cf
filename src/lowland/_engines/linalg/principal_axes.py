"""Principal axes of centered data by three solvers: covariance, Gram matrix, block Krylov.

All return :class:`PrincipalAxes`; which is cheapest depends on the shape. With
X the centered (and perhaps scaled) data, n x p:

    covariance   X^T X, p x p      O(n p^2)        few columns; mergeable
    gram         X X^T, n x n      O(n^2 p)        few rows, many columns
    krylov       X and X^T times blocks of vectors: both large, or sparse
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate
from lowland._base.validation import is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import (
    BLOCK_WIDTH,
    Operator,
    fix_signs,
    largest_eigenpairs,
    largest_pairs_cost,
    operator_pairs_cost,
)
from lowland._engines.linalg.moments import (
    Moments,
    column_moments,
    float32_holds,
    moments,
    moments_cost,
)
from lowland._engines.linalg.products import gram_cost, times_cost

# Of leading_axes: the most columns for the covariance, the most rows for the Gram matrix.
COVARIANCE_COLUMNS, GRAM_ROWS = 3000, 2000


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


def principal_axes_cost(n: int, p: int, n_axes: int) -> Estimate:
    """Of :func:`leading_axes` of dense rows."""
    if p <= COVARIANCE_COLUMNS:
        return moments_cost(n, p) + largest_pairs_cost(p, n_axes).holding(8 * p * p)
    if n <= GRAM_ROWS:
        return gram_cost(n, p) + largest_pairs_cost(n, n_axes).holding(8 * n * n)
    product = times_cost(n, p, BLOCK_WIDTH) + times_cost(n, p, BLOCK_WIDTH)
    return operator_pairs_cost(min(n, p), n_axes, product)


def leading_axes(
    X: Any, n_axes: int, threads: int, rng: np.random.Generator, monitor: Monitor
) -> PrincipalAxes:
    """A few axes by the cheapest solver; inexact axes of block Krylov give no warning."""
    n, p = X.shape
    if p <= COVARIANCE_COLUMNS and not is_sparse(X):
        return by_covariance(moments(X, threads, monitor), n_axes, scaled=False)
    if n <= GRAM_ROWS and not is_sparse(X):
        return by_gram(X, n_axes, False, threads)
    return by_krylov(X, n_axes, False, threads, rng, monitor, rough=True)


def by_covariance(sums: Moments, n_axes: int, scaled: bool) -> PrincipalAxes:
    """Eigenvectors of the covariance matrix S / (n - 1)."""
    covariance = sums.scatter / (sums.n_rows - 1)
    scale = None
    if scaled:
        scale = column_scale(np.diag(sums.scatter), sums.n_rows)
        covariance /= np.outer(scale, scale)
    found = largest_eigenpairs(covariance, n_axes, semidefinite=True)
    return PrincipalAxes(
        sums.mean, scale, found.vectors.T, found.values, np.diag(covariance).copy(), sums.n_rows
    )


def by_gram(X: np.ndarray, n_axes: int, scaled: bool, threads: int) -> PrincipalAxes:
    """Through the n x n inner products: if X X^T u = s^2 u then the axis is X^T u / s."""
    n, p = X.shape
    mean, squares = column_moments(X)
    if X.dtype == np.float32 and not float32_holds(squares, n):
        X = X.astype(np.float64)
    scale = column_scale(squares, n) if scaled else None
    if scale is not None:
        X = ((X - mean) / scale).astype(X.dtype)
    shift = np.zeros(p) if scaled else mean
    gram = products.sample_gram(X, shift, threads)
    found = largest_eigenpairs(gram, min(n_axes, n), semidefinite=True)
    axes = products.transpose_times(X, shift, found.vectors, threads)
    # Orthonormal even where s is 0 (the last axis of centered rows): QR instead of dividing by s.
    with limit_blas(1):
        axes = fix_signs(np.linalg.qr(axes)[0])
    variances = found.values / (n - 1)
    return PrincipalAxes(mean, scale, axes.T, variances, _per_column(squares, scale, n), n)


def by_krylov(
    X: Any,
    n_axes: int,
    scaled: bool,
    threads: int,
    rng: np.random.Generator,
    monitor: Monitor,
    *,
    rough: bool = False,
) -> PrincipalAxes:
    """Block Lanczos on the smaller of X^T X and X X^T, neither of which is formed."""
    n, p = X.shape
    mean, squares = column_moments(X)
    if X.dtype == np.float32 and not float32_holds(squares, n):
        X = X.astype(np.float64)
    scale = column_scale(squares, n) if scaled else None
    weights = np.ones((p, 1)) if scale is None else 1.0 / scale[:, None]
    transposed = X.T.tocsr().astype(np.float64, copy=False) if is_sparse(X) else None

    def forward(V: np.ndarray) -> np.ndarray:
        return products.times(X, mean, V * weights, threads)

    def backward(Z: np.ndarray) -> np.ndarray:
        return products.transpose_times(X, mean, Z, threads, transposed) * weights

    # One BLAS thread: the small dense steps must not depend on the number of threads either.
    with limit_blas(1):
        small: Operator = (
            (lambda V: backward(forward(V))) if p <= n else (lambda Z: forward(backward(Z)))
        )
        pairs = largest_eigenpairs(
            small,
            n_axes,
            order=min(n, p),
            tol=1e-8 if X.dtype == np.float64 else 1e-5,
            rng=rng,
            monitor=monitor,
            rough=rough,
        )
        axes = pairs.vectors
        if p > n:
            axes = np.linalg.qr(backward(pairs.vectors))[0]
    variances, per_column = np.maximum(pairs.values, 0) / (n - 1), _per_column(squares, scale, n)
    return PrincipalAxes(mean, scale, fix_signs(axes).T, variances, per_column, n)


# Where a falling curve of variances flattens, and what chance alone would give.


def elbow(values: np.ndarray) -> int:
    """The number of the entry, from 1, at which a curve bends most.

    Both axes are scaled to [0, 1], and the entry farthest from the straight line between the first
    and the last one is taken (Satopää et al. 2011); of equals the first. A straight line, and a
    curve of fewer than three entries, bends nowhere: 1.
    """
    values = np.asarray(values, dtype=np.float64)
    values = values / (float(np.abs(values).max()) or 1.0)  # differences do not overflow
    height = abs(float(values[0]) - float(values[-1]))
    if len(values) < 3 or height == 0:
        return 1
    fallen = np.abs(values - values[0]) / height
    apart = fallen - np.linspace(0.0, 1.0, len(values))
    return int(np.argmax(apart)) + 1 if apart.max() > 1e-9 else 1


def broken_stick(n_pieces: int) -> np.ndarray:
    """Expected lengths, longest first, of a stick of length 1 broken at random: sum_{i>=k} 1/i / p.

    >>> broken_stick(3).round(3)
    array([0.611, 0.278, 0.111])
    """
    return np.cumsum(1.0 / np.arange(n_pieces, 0, -1))[::-1] / n_pieces
