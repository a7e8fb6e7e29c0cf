"""What methods that start from distances share: where the distances come from, and new rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from lowland._core.base import Reducer
from lowland._core.constraints import Function, Mapping, Null, OneOf
from lowland._core.context import FitContext
from lowland._core.params import fitted, param
from lowland._core.traits import Reading
from lowland._core.validation import dense_if_small, is_sparse
from lowland._engines.distances.cross_distances import CrossDistances
from lowland._engines.distances.dissimilarities import (
    check_new_distances,
    distance_matrix,
    given_dissimilarities,
)
from lowland._engines.distances.metrics import METRICS
from lowland._engines.linalg.magnitude import check_magnitude, largest, unit_for

__all__ = ["DOUBLE_ROWS", "DistanceReducer"]

DOUBLE_ROWS = 1000  # distances of more rows are kept in float32, which halves what is read


class DistanceReducer(Reducer):
    """A map of rows with a metric, or of distances that are given."""

    metric: Any = param(
        OneOf(*METRICS) | Function(), default="euclidean", doc="distance between rows"
    )
    metric_params: dict[str, Any] | None = param(
        Null() | Mapping(), default=None, doc="parameters of the metric"
    )

    embedding_: np.ndarray = fitted("n_samples", "n_components", doc="the map of the fitted rows")
    stress_per_point_: np.ndarray = fitted(
        "n_samples", doc="sqrt(sum_j w (delta - d)^2 / sum_j w delta^2) of each row"
    )
    rows_: Any = fitted(
        "n_kept",
        "n_features",
        doc="the rows that new ones are compared with; None if distances were given",
        optional=True,
    )

    accepts_sparse = True
    accepts_distances = True
    reading = Reading(
        axes="The axes have no meaning of their own. Only distances can be read.",
        distances="The map keeps distances as well as it can: near and far can be read, within the "
        "stress reported. Large distances are kept better than small ones.",
        gaps="A gap between groups is a gap in the data, as far as the stress is small.",
        sizes="The size of a group is its size in the data, as far as the stress is small. Do not "
        "read the order of neighbors inside a dense group.",
        scale="The axes have the unit of the distances.",
    )
    only_order: ClassVar[bool] = False  # whether the size of distances means nothing

    @property
    def _given(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    # --- what comes in ------------------------------------------------------------------------

    def _check_training_rows(self, X: Any) -> Any:
        if self._given:
            return given_dissimilarities(
                X, owner=type(self).__name__, allow_missing=self.accepts_missing
            )
        return dense_if_small(super()._check_training_rows(X))

    def _check_new_rows(self, X: Any) -> Any:
        if not self._given:
            return super()._check_new_rows(X)
        self._require_fitted()
        owner, n = type(self).__name__, self.n_features_in_
        return check_new_distances(X, n, owner=owner, allow_missing=self.accepts_missing)

    def _distances(self, X: Any, run: FitContext, advice: str) -> np.ndarray:
        """The matrix of all distances: given, or those of the rows of X."""
        if self._given:
            return X
        return distance_matrix(
            X,
            self.metric,
            self.metric_params,
            np.float32 if X.shape[0] > DOUBLE_ROWS and _moderate(X) else np.float64,
            owner=type(self).__name__,
            advice=advice,
            threads=run.threads,
            monitor=run.monitor,
        )

    # --- new rows -----------------------------------------------------------------------------

    def _blocks_of_distances(self, X: Any, run: FitContext) -> Iterator[tuple[slice, np.ndarray]]:
        """Some new rows at a time, with their distances to the kept rows."""
        for rows, D in self._any_distances(X, run):
            if not self.only_order:
                check_magnitude(float(np.nanmax(D)), type(self).__name__)
            yield rows, D

    def _any_distances(self, X: Any, run: FitContext) -> Iterator[tuple[slice, np.ndarray]]:
        if self._given:
            step = max(1, 2**22 // X.shape[1])
            for start in range(0, X.shape[0], step):
                rows = slice(start, min(start + step, X.shape[0]))
                yield rows, np.ascontiguousarray(X[rows], np.float64)
            return
        cross = CrossDistances(self.rows_, self.metric, self.metric_params, run.threads)
        yield from cross.blocks(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._given
        return tags


def _moderate(X: Any) -> bool:
    """Whether distances of such rows, and their squares, are within float32."""
    return unit_for(largest(X.data if is_sparse(X) else X)) == 1.0
