"""Double centering H A H of a symmetric matrix, H = I - 11^T/n: in place, or as an operator.

For a kernel matrix K this centers the rows in feature space (Schoelkopf, Smola & Mueller 1998,
appendix B); for squared distances -1/2 H D^2 H are the inner products of the points around their
mean (Torgerson 1952).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def double_center(A: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Replace A by scale * H A H, in place; returns the means of the columns of A.

    An A whose sums overflow has means that are not finite, which the caller has to check.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        means = A.mean(axis=0, dtype=np.float64)
        A -= means
        A -= (means - means.mean())[:, None]
        if scale != 1.0:
            A *= scale
    return means


class CenteredOperator:
    """V -> scale * H A H V for a symmetric A that is known by its products only.

    Attributes
    ----------
    means : ndarray of shape (n,) or None
        A 1 / n, computed along with the first product; None before, or if ``with_means`` is False.
    """

    def __init__(
        self,
        times: Callable[[np.ndarray], np.ndarray],
        scale: float = 1.0,
        *,
        with_means: bool = False,
    ) -> None:
        self.times, self.scale, self.with_means = times, scale, with_means
        self.means: np.ndarray | None = None

    def __call__(self, V: np.ndarray) -> np.ndarray:
        V = V - V.mean(axis=0)
        if self.with_means and self.means is None:
            image = self.times(np.hstack([V, np.full((len(V), 1), 1.0 / len(V))]))
            self.means = image[:, -1].copy()
            image = image[:, :-1]
        else:
            image = self.times(V)
        image = image - image.mean(axis=0)
        return image if self.scale == 1.0 else self.scale * image
