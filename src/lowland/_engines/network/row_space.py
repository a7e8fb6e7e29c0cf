"""Networks of tables with many more columns than rows, trained on fewer columns.

n rows lie in a space of at most n dimensions. Let A (r x p) hold an orthonormal basis of it in its
rows. A layer that sees these rows sees X A^T only, and outputs outside of the space only add to a
squared error. So a network is trained on s X A^T, and its outer layers are multiplied by A
afterwards, at r / p of the cost. s = sqrt(r / p) gives these values the size that X has, and errors
per value are the same; penalties are on the weights in these units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import thin_svd
from lowland._engines.network.layers import Network

WIDE = 2  # so many times more columns than rows
NO_LENGTH = 1e-12  # share of the largest singular value


class RowSpace(NamedTuple):
    """The basis A (r, p), and the factor s of coordinates in it; None and 1: rows as they are."""

    axes: np.ndarray | None = None
    size: float = 1.0

    def coordinates(self, X: np.ndarray, threads: int) -> np.ndarray:
        """s X A^T in the type of X."""
        if self.axes is None:
            return X
        return products.times(X, np.zeros(X.shape[1]), self.size * self.axes.T, threads)

    def unscaled(self, X: np.ndarray, threads: int) -> np.ndarray:
        """X A^T, rows with the inner products of those of X."""
        return X if self.axes is None else self.coordinates(X, threads) / self.size

    def restored(self, V: np.ndarray) -> np.ndarray:
        """V A: vectors in the columns of the table, from vectors of :meth:`unscaled` rows."""
        if self.axes is None:
            return V
        with limit_blas(1):
            return V @ self.axes

    def widened(
        self, network: Network, weights: np.ndarray, *, inputs: bool = False, outputs: bool = False
    ) -> np.ndarray:
        """Weights for all columns, of a network whose inputs, outputs or both are coordinates."""
        if self.axes is None:
            return weights
        into, back = self.size * self.axes.T, self.axes / self.size
        layers = [(W, b) for W, b, _ in network.layers(weights)]
        with limit_blas(1):
            if inputs:
                layers[0] = into @ layers[0][0], layers[0][1]
            if outputs:
                layers[-1] = layers[-1][0] @ back, layers[-1][1] @ back
        return np.concatenate([part.ravel() for layer in layers for part in layer])


def seen_columns(n: int, p: int) -> int:
    """The number of columns that a network of n rows is trained on."""
    return n if p >= WIDE * n else p


def row_space_cost(n: int, p: int) -> Estimate:
    """Of :func:`row_space` and coordinates in it."""
    return Estimate(2e-10 * n * n * p, 32.0 * n * p) if p >= WIDE * n else Estimate(0.0, 0.0)


def row_space(X: np.ndarray) -> RowSpace:
    """That of a wide table; rows are taken as they are if it is not wide, or all values are 0.

    A column of zeros is exactly 0 in the axes.
    """
    n, p = X.shape
    if seen_columns(n, p) == p:
        return RowSpace()
    with limit_blas(1):
        found = thin_svd(X.astype(np.float64, copy=False))
    if not found.lengths[0] > 0:
        return RowSpace()
    axes = found.right[found.lengths > NO_LENGTH * found.lengths[0]]
    return RowSpace(np.where(X.any(axis=0), axes, 0.0), float(np.sqrt(len(axes) / p)))
