"""The likelihood of a Gaussian process whose outputs are the columns of a table.

    log p(Y | X) = -n D/2 log 2 pi - D/2 log |K| - 1/2 tr(K^-1 Y Y^T),  K = k(X, X) + s^2 I

for n rows and D columns; s^2 is the variance of the noise. O(n^3 + n^2 D) time, O(n^2) memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.linalg import products
from lowland._engines.linalg.cholesky import gaussian_sums, inverse_from, lower_factor, solve_lower
from lowland._engines.linalg.products import row_blocks, rows_within

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
    any Y with the same products, and ``n_columns`` says how many columns it had.
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
