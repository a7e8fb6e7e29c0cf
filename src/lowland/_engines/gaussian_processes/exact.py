"""The likelihood of a Gaussian process whose outputs are the columns of a table.

    log p(Y | X) = -n D/2 log 2 pi - D/2 log |K| - 1/2 tr(K^-1 Y Y^T),  K = k(X, X) + s^2 I

for n rows and D columns; s^2 is the variance of the noise. O(n^3 + n^2 D) time, O(n^2) memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lowland._base.threads import limit_blas
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.linalg import products
from lowland._engines.linalg.products import mirror, row_blocks, rows_within

# Dense Cholesky factors A = L L^T, solutions with them, and inverses; LAPACK with one thread.


def lower_factor(A: np.ndarray) -> np.ndarray:
    """L of a positive definite matrix; ``LinAlgError`` if it is not. Reads the upper triangle."""
    with limit_blas(1):
        # LAPACK reads columns, so the transpose of a symmetric array in rows needs no copy
        L, info = _lapack().dpotrf(A.T, lower=1)
    if info != 0:
        raise np.linalg.LinAlgError(f"the leading minor of order {info} is not positive")
    return L


def solve_lower(L: np.ndarray, B: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """L^-1 B, or L^-T B."""
    with limit_blas(1):
        solution, info = _lapack().dtrtrs(L, B, lower=1, trans=1 if transposed else 0)
    if info != 0:
        raise np.linalg.LinAlgError("a diagonal element of the factor is 0")
    return solution


def inverse_from(L: np.ndarray) -> np.ndarray:
    """(L L^T)^-1, symmetric to the last bit."""
    with limit_blas(1):
        result, info = _lapack().dpotri(L, lower=1)  # the lower triangle only
    if info != 0:
        raise np.linalg.LinAlgError("a diagonal element of the factor is 0")
    return mirror(result.T)


class GaussianSums(NamedTuple):
    """log |K|, tr(Y^T K^-1 Y), and the upper triangle of (K^-1 Y Y^T K^-1 - D K^-1) / 2."""

    log_det: float
    squares: float
    slope: np.ndarray


def gaussian_sums(K: np.ndarray, Y: np.ndarray, D: int) -> GaussianSums:
    """What the likelihood of a Gaussian with covariance K is made of; K is overwritten.

    Only the upper triangle of K is read. It becomes the factor, its inverse and the slope in turn,
    in one place: a step of an optimizer must not allocate n x n numbers thrice.
    """
    lapack = _lapack()
    with limit_blas(1):
        # LAPACK reads columns: the upper triangle in rows is its lower one
        L, info = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            raise np.linalg.LinAlgError(f"the leading minor of order {info} is not positive")
        log_det = 2 * float(np.log(np.diag(L)).sum())
        A, _ = lapack.dpotrs(L, Y, lower=1)
        squares = float(np.einsum("ij,ij->", Y, A))
        inverse, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
        slope = _blas().dsyrk(0.5, A, beta=-0.5 * D, c=inverse, lower=1, overwrite_c=1)
    return GaussianSums(log_det, squares, slope.T)


def _blas() -> Any:
    import scipy.linalg.blas

    return scipy.linalg.blas


def _lapack() -> Any:
    import scipy.linalg.lapack

    return scipy.linalg.lapack


# The posterior of a Gaussian process: mean and variance at any place.
#
#     mean(x) = k(x, Z) A,   var(x) = k(x, x) - k(x, Z) P k(Z, x)
#
# Z are the fitted places (A = K^-1 Y, P = K^-1), or inducing points.


class Posterior(NamedTuple):
    """The covariance with its log parameters, Z (m, q), A (m, D), P (m, m) and the noise s^2.

    Each row of a result depends on its own place only, to the last bit.
    """

    covariance: Covariance
    theta: np.ndarray
    inputs: np.ndarray
    weights: np.ndarray
    precision: np.ndarray
    noise: float

    def mean(self, X: np.ndarray, threads: int) -> np.ndarray:
        """mean(x) of each place (n, D)."""
        result = np.empty((len(X), self.weights.shape[1]))
        for rows, K in self._blocks(X, threads):
            result[rows] = products.times(K, np.zeros(K.shape[1]), self.weights, threads)
        return result

    def variance(self, X: np.ndarray, threads: int) -> np.ndarray:
        """var(x) of each place (n,), without the noise of a row; at least 0."""
        result = np.empty(len(X))
        for rows, K in self._blocks(X, threads):
            KP = products.times(K, np.zeros(K.shape[1]), self.precision, threads)
            prior = self.covariance.diagonal(self.theta, X[rows])
            result[rows] = prior - np.einsum("ij,ij->i", K, KP)
        return np.maximum(result, 0.0)

    def _blocks(self, X: np.ndarray, threads: int) -> Iterator[tuple[slice, np.ndarray]]:
        for rows in row_blocks(len(X), rows_within(24 * len(self.inputs))):
            yield rows, self.covariance.matrix(self.theta, X[rows], self.inputs, threads)


class ExactLikelihood(NamedTuple):
    """The value, and its slopes by log parameters, by log s^2 and by the rows of X."""

    value: float
    theta: np.ndarray
    noise: float
    X: np.ndarray


def log_likelihood(
    covariance: Covariance,
    theta: np.ndarray,
    log_noise: float,
    X: np.ndarray,
    Y: np.ndarray,
    n_columns: int | None = None,
    threads: int = 1,
) -> ExactLikelihood:
    """log p(Y | X) and its slopes.

    Only Y Y^T and the number of columns matter: a table that is wider than long may be replaced by
    any Y with the same products, and ``n_columns`` is the number of its columns.
    """
    n, D = len(Y), n_columns or Y.shape[1]
    noise = float(np.exp(log_noise))
    K = _with_noise(covariance, theta, noise, X, threads)
    log_det, squares, G = gaussian_sums(K, Y, D)  # G is the slope by K
    value = -0.5 * (n * D * float(np.log(2 * np.pi)) + D * log_det + squares)
    slopes = covariance.symmetric_slopes(theta, X, G, threads)
    return ExactLikelihood(value, slopes.theta, noise * float(np.trace(G)), slopes.X)


def _with_noise(
    covariance: Covariance, theta: np.ndarray, noise: float, X: np.ndarray, threads: int
) -> np.ndarray:
    """The upper triangle of K."""
    K = covariance.upper_matrix(theta, X, threads)
    K.flat[:: len(K) + 1] += noise
    return K


def exact_posterior(
    covariance: Covariance,
    theta: np.ndarray,
    log_noise: float,
    X: np.ndarray,
    Y: np.ndarray,
    threads: int = 1,
) -> Posterior:
    """What the process is at other places, given the rows."""
    noise = float(np.exp(log_noise))
    L = lower_factor(_with_noise(covariance, theta, noise, X, threads))
    weights = solve_lower(L, solve_lower(L, Y), transposed=True)
    return Posterior(covariance, theta, X, weights, inverse_from(L), noise)
