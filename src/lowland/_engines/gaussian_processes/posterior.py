"""The posterior of a Gaussian process: mean and variance at any place.

    mean(x) = k(x, Z) A,   var(x) = k(x, x) - k(x, Z) P k(Z, x)

Z are the fitted places (A = K^-1 Y, P = K^-1), or inducing points.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.linalg import products
from lowland._engines.linalg.blocks import row_blocks, rows_within


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
