"""The base of methods that start from distances: given ones, or those between rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from lowland._base.base import Reducer
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.params import fitted
from lowland._base.traits import Estimate, Reading
from lowland._base.validation import dense_if_small, is_usual, largest_value
from lowland._engines.distances.dissimilarities import (
    check_new_distances,
    distance_matrix,
    given_dissimilarities,
)
from lowland._engines.distances.distance_rows import CrossDistances
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.stress import initial_map
from lowland._engines.stress.sparse_pairs import distances_to_some
from lowland.methods._bases.by_metric import ByMetric

FARTHEST = 1e150  # a distance whose square is a number
FLOAT64_ROWS = 1000  # distances of more rows are float32, which halves the memory that is read


def random_landmarks(
    asked: Any, n: int, auto: tuple[int, int], owner: str, run: FitContext
) -> np.ndarray:
    """Numbers of the rows that ``landmarks=asked`` means, ascending; None means all of n rows.

    With ``auto`` = (most, some), "auto" means all of at most ``most`` rows, and ``some`` of more.
    """
    if asked == "auto":
        asked = None if n <= auto[0] else auto[1]
    if asked is None or asked == n:
        return np.arange(n)
    if asked > n:
        raise ParameterError(
            f"{owner}: landmarks={asked} is more than n_samples={n}; ask for at most {n}, or for "
            "all with landmarks=None."
        )
    return np.sort(run.rng.choice(n, int(asked), replace=False))


class DistanceReducer(ByMetric, Reducer):
    """A map of rows with a metric, or of distances that are given.

    A method writes ``_fit``, which gets the matrix of all distances from ``_distances``, and
    ``_place``, which gets the distances of new rows to the fitted rows.

    Parameters
    ----------
    metric : str or function, default="euclidean"
        Distance between rows: a name, a function of two rows, or "precomputed". With
        "precomputed", X holds the distances of the fitted rows, n x n or condensed, and new rows
        are given by their distances to the fitted rows.

    Attributes
    ----------
    stress_per_point_ : ndarray of shape (n_samples,)
        Relative stress of each row, sqrt(sum_j w (delta - d)^2 / sum_j w delta^2).
    fitted_rows_ : ndarray or sparse matrix of shape (n_samples, n_features), or None
        Rows that new rows are compared with. None if distances were given, or if new rows are
        placed by a product.
    """

    embedding_: np.ndarray = fitted("n_samples", "n_components")
    stress_per_point_: np.ndarray = fitted("n_samples")
    fitted_rows_: Any = fitted("n_samples", "n_features", optional=True, sparse=True)

    accepts_sparse = True
    accepts_distances = True
    reading = Reading(
        axes="The axes have no meaning. Only distances can be read.",
        distances="The map keeps distances as well as it can: near and far can be read, within the "
        "stress reported. Large distances are kept better than small ones.",
        gaps="A gap between groups is a gap in the data, as far as the stress is small.",
        sizes="The size of a group is its size in the data, as far as the stress is small. Do not "
        "read the order of neighbors inside a dense group.",
        scale="The axes have the unit of the distances.",
    )
    uses_order_only: ClassVar[bool] = False  # only the order of the distances matters

    @classmethod
    def _distances_cost(cls, n: int, p: int) -> Estimate:
        """Cost of the matrix of all Euclidean distances."""
        return Estimate(n * n * (1e-9 + 1e-10 * p), (8 if n <= FLOAT64_ROWS else 4) * n * n)

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: given distances stand in place of rows."""
        flaw = None
        if self._has_distances or self._compares_rows():
            n = 0 if self.embedding_ is None else len(self.embedding_)
            flaw = self._rows_flaw(n, self._has_distances)
        return flaw or super().inconsistency()

    def _compares_rows(self) -> bool:
        """Whether new rows are compared with ``fitted_rows_``."""
        return not self._has_distances

    # --- fitted rows --------------------------------------------------------------------------

    def _check_training_rows(self, X: Any) -> Any:
        name = type(self).__name__
        if self._has_distances:
            X = given_dissimilarities(X, owner=name, allow_missing=self.accepts_missing)
        else:
            X = dense_if_small(super()._check_training_rows(X))
        self._check_not_beyond_rows(X.shape[0])
        return X

    def _distances(self, X: Any, run: FitContext, advice: str) -> np.ndarray:
        """The matrix of all distances: given, or those of the rows of X.

        ``advice`` states what to do if there is too little memory for it.
        """
        if self._has_distances:
            return X
        large = X.shape[0] > FLOAT64_ROWS and is_usual(largest_value(X))
        return distance_matrix(
            X,
            self.metric,
            self.metric_params,
            np.float32 if large and not callable(self.metric) else np.float64,
            owner=type(self).__name__,
            advice=advice,
            threads=run.threads,
            monitor=run.monitor,
        )

    def _landmark_start(self, X: Any, unit: float, run: FitContext) -> np.ndarray:
        """A start from the distances to a few random rows, in this unit."""
        n = X.shape[0]
        some = np.sort(run.rng.choice(n, min(n, initial_map.LANDMARKS), replace=False))
        D = distances_to_some(X, some, self.metric, self.metric_params, run)
        return initial_map.landmark_map(D / unit, some, int(self.n_components), run)

    # --- new rows -----------------------------------------------------------------------------

    def _check_new_rows(self, X: Any) -> Any:
        if not self._has_distances:
            return super()._check_new_rows(X)
        self._require_fitted()
        owner, n = type(self).__name__, self.n_features_in_
        return check_new_distances(X, n, owner=owner, allow_missing=self.accepts_missing)

    def _place(self, D: np.ndarray, run: FitContext) -> np.ndarray:
        """Places (m, q) of rows with the distances D (m, n) to the fitted rows, one by one."""
        raise NotImplementedError

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        Z = np.empty((X.shape[0], int(self.n_components)))
        for rows, D in self._distances_to_fitted(X, run):
            Z[rows] = self._place(D, run)
        return Z.astype(X.dtype)

    def _distances_to_fitted(self, X: Any, run: FitContext) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of new rows, with their distances to the fitted rows."""
        for rows, D in self._unchecked_distances(X, run):
            if not np.fmax.reduce(D, axis=None) <= FARTHEST:
                row, column = np.unravel_index(np.nan_to_num(D).argmax(), D.shape)
                raise DataError(
                    f"{type(self).__name__}: new row {rows.start + row} is at distance "
                    f"{D[row, column]:g} from a fitted row, too far to be squared; leave it out."
                )
            yield rows, D

    def _compared(self) -> Any:
        """Which of the fitted rows new rows are compared with: all, or some landmarks."""
        return slice(None)

    def _unchecked_distances(self, X: Any, run: FitContext) -> Iterator[tuple[slice, np.ndarray]]:
        if self._has_distances:
            for rows in row_blocks(X.shape[0], rows_within(8 * X.shape[1])):
                yield rows, np.ascontiguousarray(X[rows][:, self._compared()], np.float64)
            return
        cross = CrossDistances(self.fitted_rows_, self.metric, self.metric_params, run.threads)
        yield from cross.blocks(X)
