"""Rows of any table as points with Euclidean distances, for tests on a few of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.monitor import Monitor
from lowland._core.units import exponent_for, in_unit, largest_value
from lowland._core.validation import is_sparse
from lowland._engines.distances.directions import Directions
from lowland._engines.linalg import products
from lowland._engines.linalg.centering import double_center
from lowland._engines.linalg.eigen import largest_eigenpairs
from lowland._engines.linalg.principal_axes import PrincipalAxes, leading_axes
from lowland._engines.neighbors.graph import NeighborGraph
from lowland.metrics._options import Options
from lowland.metrics._views import View

MOST_COLUMNS = 100  # more are reduced by PCA
AXES = 50
AXES_ROWS = 5_000  # of which the principal axes are computed


class Cloud:
    """Points whose distances are those of the rows: ``of(rows)`` gives coordinates of some rows.

    Dense rows are taken as they are; with more than 100 columns, and if they are sparse, their
    scores on the 50 leading principal axes. Cosine and correlation are Euclidean distances of
    directions. Any other metric is measured among the rows asked for, and classical scaling gives
    up to 50 coordinates.
    """

    def __init__(self, X: Any, options: Options) -> None:
        if isinstance(X, NeighborGraph):
            raise DataError("X is a neighbor graph; this measure needs the data.")
        self.X = options.checked(X, "X")
        self.n = self.X.shape[0]
        self.options, self.metric = options, options.metric
        self._axes: PrincipalAxes | None = None
        self._exponent = 0
        columns = self.metric in ("euclidean", "sqeuclidean", "cosine", "correlation")
        dense = not is_sparse(self.X)
        self._by_columns = columns and (dense or self.metric in ("euclidean", "sqeuclidean"))
        if self._by_columns and (not dense or self.X.shape[1] > MOST_COLUMNS):
            self._exponent = exponent_for(largest_value(self.X))  # squares must not overflow
            self._axes = self._leading_axes()

    @classmethod
    def over(cls, X: Any, options: Options) -> Cloud:
        """X itself if it is a cloud, else the cloud of a table."""
        return X if isinstance(X, Cloud) else cls(X, options)

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Coordinates of some rows, (m, p) in float64."""
        if not self._by_columns:
            return self._scaled(rows)
        if self._axes is None:
            return np.ascontiguousarray(self._taken(rows), dtype=np.float64)
        threads = self.options.threads
        mean, axes = self._axes.mean, self._axes.axes
        scores = products.times(self._taken(rows), mean, np.ascontiguousarray(axes.T), threads)
        return in_unit(np.asarray(scores, dtype=np.float64), -self._exponent)

    def _taken(self, rows: np.ndarray) -> Any:
        taken = in_unit(self.X[rows], self._exponent)
        directed = self.metric in ("cosine", "correlation")
        return Directions.of(taken, self.metric).rows if directed else taken

    def _leading_axes(self) -> PrincipalAxes:
        rng = np.random.default_rng(0)
        some = np.sort(rng.choice(self.n, min(self.n, AXES_ROWS), replace=False))
        taken = self._taken(some)
        n_axes = min(AXES, *taken.shape)
        with self.options.working() as monitor:
            return leading_axes(taken, n_axes, self.options.threads, rng, monitor)

    def _scaled(self, rows: np.ndarray) -> np.ndarray:
        """Classical scaling of the distances among some rows."""
        options = self.options
        view = View(self.X, None, options.metric, options.metric_params, options.threads)
        D = view.distances_among(rows).of(np.arange(len(rows)))
        e = exponent_for(largest_value(D))
        B = in_unit(D, e) ** 2
        B = (B + B.T) / 2  # given distances may differ in the last bit
        double_center(B, -0.5)
        with Monitor("metrics", verbose=False):
            found = largest_eigenpairs(B, min(AXES, len(rows) - 1))
        return in_unit(found.vectors * np.sqrt(np.maximum(found.values, 0)), -e)
