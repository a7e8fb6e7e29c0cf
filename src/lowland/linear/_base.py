"""The base of linear maps: transform, inverse transform, and the check for overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.base import Invertible
from lowland._core.card import Estimate
from lowland._core.context import FitContext
from lowland._core.errors import DataError
from lowland._core.params import fitted
from lowland._core.traits import Reading
from lowland._core.validation import all_finite, is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.magnitude import largest

__all__ = ["LinearMap"]


class LinearMap(Invertible):
    """The map z = W^T (x - m). A method writes ``_fit``, which calls ``_keep_map``.

    A method whose fit needs sums over the rows only, and can take rows in batches, inherits from
    :class:`lowland.linear._moments.MomentsReducer` instead.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Axes of the map, one in each row.
    mean_ : ndarray of shape (n_features,)
        What is subtracted from each row: the mean of the columns.
    """

    components_: np.ndarray = fitted("n_components", "n_features")
    mean_: np.ndarray = fitted("n_features")
    n_components_: int = fitted(type=int)

    accepts_sparse = True
    components_limit = "rank"
    reading = Reading(
        axes="Each axis is a weighted sum of the columns, so a position along an axis has a "
        "meaning.",
        distances="Rows that are far apart in the map are far apart in the data. Rows that "
        "coincide in the map may differ in the directions that are not shown.",
        gaps="A gap in the map is a gap in the data along these axes.",
        sizes="The spread of a group is its spread in the data along these axes.",
        scale="The axes have the units of the columns, or of the scaled columns.",
    )
    transform_uses_blas = False

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: sums of products, then an eigenproblem."""
        size = min(n, p)
        return Estimate(0.01 + 2e-11 * n * p * size + 3e-10 * size**3, 8 * (n * p + 4 * size**2))

    def _keep_map(self, components: np.ndarray, mean: np.ndarray) -> None:
        """Set the fitted attributes that define the map; the axes are rows of ``components``."""
        self.components_ = np.ascontiguousarray(components)
        self.mean_, self.n_components_ = mean, len(components)

    def _encoder(self) -> np.ndarray:
        """W (p, q), by which centered rows are multiplied."""
        return self.components_.T

    def _decoder(self) -> np.ndarray:
        """The matrix (q, p) by which points of the map are multiplied before the mean is added."""
        return self.components_

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        Z = products.times(X, self.mean_, self._encoder(), run.threads)
        self._check_overflow(Z, X, run)
        return Z

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        X = products.times(Y, np.zeros(Y.shape[1]), self._decoder(), run.threads)
        with np.errstate(over="ignore", invalid="ignore"):
            X += self.mean_.astype(Y.dtype)
        self._check_overflow(X, Y, run)
        return X

    def _check_overflow(self, result: np.ndarray, given: Any, run: FitContext) -> None:
        """Refuse a result with numbers that the data type of the given rows cannot hold."""
        if all_finite(result, run.threads):
            return
        greatest = largest(given.data if is_sparse(given) else given)
        float64 = ", or give it as float64" if given.dtype == np.float32 else ""
        raise DataError(
            f"{type(self).__name__}: the largest value of X is {greatest:g}, and the result is "
            f"larger than {given.dtype} can hold; divide X by {greatest:.0e} before fitting"
            f"{float64}."
        )
