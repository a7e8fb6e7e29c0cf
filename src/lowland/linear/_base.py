"""The base of linear maps: transform, inverse transform, and the check for overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.base import Invertible
from lowland._core.card import Estimate
from lowland._core.context import FitContext
from lowland._core.meanings.contents import count
from lowland._core.params import fitted
from lowland._core.traits import Reading
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen_costs import all_pairs_cost
from lowland._engines.linalg.moments import moments_cost
from lowland._engines.linalg.products import gram_cost, times_cost

START = Estimate(0.005, 0)  # checks, threads and modules, whatever the size


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
    mean_: np.ndarray = fitted("n_features", unit="x")
    n_components_: int = fitted(type=int, meaning=count(1))

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
        sums = moments_cost(n, p) if p <= n else gram_cost(n, p) + times_cost(n, p, n)
        return (START + sums + all_pairs_cost(size).holding(8 * size * size)).holding(8 * n * p)

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
        return products.times(X, self.mean_, self._encoder(), run.threads)

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        X = products.times(Y, np.zeros(Y.shape[1]), self._decoder(), run.threads)
        return X + self.mean_.astype(Y.dtype)
