"""Principal axes of centered data by three solvers: covariance, Gram matrix, block Krylov.

All return :class:`PrincipalAxes`; which is cheapest depends on the shape. With
X the centered (and perhaps scaled) data, n x p:

    covariance   X^T X, p x p      O(n p^2)        few columns; mergeable
    gram         X X^T, n x n      O(n^2 p)        few rows, many columns
    krylov       X and X^T times blocks of vectors: both large, or sparse

A method that needs a few leading axes calls :func:`leading_axes`, which takes the cheapest solver;
one that lets its users choose, or streams, calls a solver itself. :func:`orthonormal_basis` is for
methods that need all directions in which the rows vary, whatever the units of the columns are.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate
from lowland._base.validation import is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import (
    BLOCK_WIDTH,
    Operator,
    all_eigenpairs,
    all_pairs_cost,
    fix_signs,
    largest_eigenpairs,
    largest_pairs_cost,
    operator_pairs_cost,
    rank_cutoff,
)
from lowland._engines.linalg.moments import (
    ColumnSums,
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
    return by_krylov(X, n_axes, False, FitContext(rng, threads, monitor), rough=True)


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
    X: Any, n_axes: int, scaled: bool, run: FitContext, *, rough: bool = False
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
        return products.times(X, mean, V * weights, run.threads)

    def backward(Z: np.ndarray) -> np.ndarray:
        return products.transpose_times(X, mean, Z, run.threads, transposed) * weights

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
            rng=run.rng,
            monitor=run.monitor,
            rough=rough,
        )
        axes = pairs.vectors
        if p > n:
            axes = np.linalg.qr(backward(pairs.vectors))[0]
    variances, per_column = np.maximum(pairs.values, 0) / (n - 1), _per_column(squares, scale, n)
    return PrincipalAxes(mean, scale, fix_signs(axes).T, variances, per_column, n)


# Vectors per product of a table in chunks: reading rows takes longer than multiplying them by a few
# more vectors, and wider blocks need fewer passes.
FEWEST, MOST = 64, 128


def by_krylov_in_chunks(
    rows: Rows, sums: ColumnSums, n_axes: int, scaled: bool, run: FitContext
) -> PrincipalAxes:
    """Axes by block Lanczos on the scatter matrix, which is not formed: some ten passes.

    ``sums`` are those of all columns. The tolerance is that of the solver in memory. O(n p q) per
    pass for q vectors at a time.
    """
    n, p = rows.shape
    width = min(p, MOST, max(FEWEST, 2 * n_axes))
    require_memory(
        16 * p * (n_axes + 8 * width),
        task=f"{n_axes} axes of {p} columns",
        alternative="ask for fewer axes",
    )
    scale = column_scale(sums.squares, n) if scaled else None
    weights = np.ones((p, 1)) if scale is None else 1.0 / scale[:, None]

    def times(V: np.ndarray) -> np.ndarray:
        work = functools.partial(_scatter_times, mean=sums.mean, V=V * weights, threads=run.threads)
        return rows.total(work, np.add, run.monitor, "products") * weights

    pairs = largest_eigenpairs(
        times,
        n_axes,
        order=p,
        tol=1e-8 if rows.dtype == np.float64 else 1e-5,
        rng=run.rng,
        monitor=run.monitor,
        width=width,
    )
    variances = np.maximum(pairs.values, 0.0) / (n - 1)
    per_column = _per_column(sums.squares, scale, n)
    return PrincipalAxes(sums.mean, scale, fix_signs(pairs.vectors).T, variances, per_column, n)


def _scatter_times(block: Block, mean: np.ndarray, V: np.ndarray, threads: int) -> np.ndarray:
    """(X - 1 m^T)^T (X - 1 m^T) V of one block."""
    with limit_blas(1):
        Z = products.times(block.X, mean, V, threads)
        return products.transpose_times(block.X, mean, Z, threads)


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


# An orthonormal basis of the centered columns of a table, whatever their units are.
#
#     U = (X - 1 m^T) C,     U^T U = I,     U U^T (X - 1 m^T) = X - 1 m^T  up to rounding
#
# Columns are scaled to unit length first, so that a column in large units does not hide the others.
# A direction counts only if it is longer than the rounding of the data, which depends on the type
# of X: seven float32 columns of which one is a sum of the others have rank 6.


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
