"""Centering in feature space: the rows phi(x) minus their mean, without ever having phi.

With H = I - 11^T/n the centered kernel matrix is H K H. A new row's centered values are

    k(x, x_j) - mean_j k(x, x_j) - m_j + mean(m),      m = K 1 / n,

and projected on an axis whose dual vector a sums to 0 only  k(x, .) a - m.a  is left of them: one
number to subtract per axis (Schoelkopf, Smola & Mueller 1998, appendix B).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError

__all__ = ["CenteredKernel", "center_matrix"]


def center_matrix(K: np.ndarray) -> np.ndarray:
    """H K H in place of K; returns m, the means of its columns."""
    with np.errstate(over="ignore", invalid="ignore"):  # said in our words instead
        means = _checked(K.mean(axis=0))
    K -= means
    K -= means[:, None]
    K += means.mean()
    return means


class CenteredKernel:
    """The operator V -> H K H V for a kernel matrix that only multiplies.

    Attributes
    ----------
    means : ndarray of shape (n,) or None
        m = K 1 / n, which comes along with the first product.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.means: np.ndarray | None = None

    def __call__(self, V: np.ndarray) -> np.ndarray:
        V = V - V.mean(axis=0)
        if self.means is None:
            V = np.hstack([V, np.full((len(V), 1), 1.0 / len(V))])
            image = self.kernel.times(V)
            self.means = _checked(image[:, -1].copy())
            image = image[:, :-1]
        else:
            image = self.kernel.times(V)
        return image - image.mean(axis=0)


def _checked(means: np.ndarray) -> np.ndarray:
    if not np.isfinite(means).all():
        row = int(np.flatnonzero(~np.isfinite(means))[0])
        raise DataError(
            f"kernel: its values overflow, first for row {row}; scale the columns of X, or choose "
            "a smaller gamma or degree."
        )
    return means
