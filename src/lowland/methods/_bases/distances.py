"""The bases of methods that compare rows by a metric, and of those that need all distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from lowland._base.base import Reducer
from lowland._base.constraints import Function, Mapping, Null, OneOf
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.params import Declared, fitted, param
from lowland._base.traits import Estimate, Reading
from lowland._base.validation import as_dense, dense_if_small, is_sparse, is_usual, largest_value
from lowland._engines.distances.cross_distances import CrossDistances
from lowland._engines.distances.dissimilarities import (
    check_new_distances,
    distance_matrix,
    given_dissimilarities,
)
from lowland._engines.distances.metrics import METRICS
from lowland._engines.graphs.components import ConnectedGraph, connect
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.index import query_fitted
from lowland._engines.neighbors.search import neighbor_graph

FARTHEST = 1e150  # a distance whose square is a number
FLOAT64_ROWS = 1000  # distances of more rows are float32, which halves the memory that is read


class ByMetric(Declared):
    """Rows that are compared by a metric, or distances in place of rows: a part of several bases.

    ``metric="sqeuclidean"`` gives squared distances; lengths of edges are never squared.
    """

    metric: Any = param(OneOf(*METRICS) | Function(), default="euclidean")
    metric_params: dict[str, Any] | None = param(Null() | Mapping(), default=None)

    @property
    def _has_distances(self) -> bool:
        """Whether X holds distances instead of rows."""
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @property
    def _graph_metric(self) -> Any:
        """The metric of the edges of a graph."""
        return "euclidean" if self.metric == "sqeuclidean" else self.metric

    def _part_of(self, X: Any, rows: np.ndarray) -> Any:
        """Some rows of X, or the distances among them."""
        if len(rows) == X.shape[0]:
            return X
        return np.ascontiguousarray(X[np.ix_(rows, rows)]) if self._has_distances else X[rows]

    def _nearest_others(self, X: Any, k: int, run: FitContext, metric: Any = None) -> NeighborGraph:
        """The k nearest other rows of every row of X."""
        return neighbor_graph(
            X,
            k,
            metric=metric or self.metric,
            metric_params=self.metric_params,
            threads=run.threads,
            rng=run.rng,
            monitor=run.monitor,
        )

    def _nearest_of(
        self, rows: Any, X: Any, k: int, run: FitContext, metric: Any = None
    ) -> NeighborGraph:
        """The k nearest of the fitted ``rows`` for every new row of X."""
        if is_sparse(X) and not is_sparse(rows):
            X = as_dense(X, type(self).__name__)
        metric, params = metric or self.metric, self.metric_params
        return query_fitted(rows, X, k, metric=metric, metric_params=params, run=run)

    def _connect(self, graph: Any, X: Any, run: FitContext, metric: Any = None) -> ConnectedGraph:
        """The graph of the rows X, connected as ``on_disconnected`` says."""
        connected = connect(
            graph,
            X,
            self.on_disconnected,  # type: ignore[attr-defined]
            metric=metric or self._graph_metric,
            metric_params=self.metric_params,
            threads=run.threads,
            monitor=run.monitor,
        )
        self.n_connected_components_ = connected.n_components
        return connected

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self._has_distances
        return tags


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
        axes="The axes have no meaning of their own. Only distances can be read.",
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

        ``advice`` tells what to do if there is too little memory for it.
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
