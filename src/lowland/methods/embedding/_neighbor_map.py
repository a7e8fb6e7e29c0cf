"""The base of maps in which new rows are placed by their nearest fitted rows.

A method writes ``_fit``, and ``_places`` for the neighbors of new rows. Rows may be dense or
sparse, distances or, for a fit, a ``NeighborGraph``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowland._base.base import Reducer
from lowland._base.constraints import Function, Mapping, Null, OneOf
from lowland._base.context import FitContext
from lowland._base.params import fitted, param
from lowland._base.validation import is_sparse
from lowland._engines.distances.metrics import METRICS
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.graph import NeighborGraph, no_fitted_rows
from lowland._engines.neighbors.search import (
    given_neighbors,
    neighbor_graph,
    query_fitted,
    stored_graph,
)

NEIGHBOR_BYTES = 64  # of one neighbor of a new row: candidates, distance, affinity
PLACED_BYTES = 1 << 28  # of the new rows that are placed at a time


class NeighborMap(Reducer):
    """A map of the fitted rows, and places of new rows near their neighbors.

    Parameters
    ----------
    metric : str or function, default="euclidean"
        Distance between rows: a name, a function of two rows, or "precomputed". With
        "precomputed", X holds the n x n distances of the fitted rows, dense or sparse, and new rows
        are given by their distances to the fitted rows. X may also be a ``NeighborGraph``.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows. Equal rows share one place.
    fitted_rows_ : array of shape (n_samples, n_features) or None
        Rows that new rows are compared with. None if X held distances or was a graph.
    """

    metric: Any = param(OneOf(*METRICS) | Function(), default="euclidean")
    metric_params: dict[str, Any] | None = param(Null() | Mapping(), default=None)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray = fitted("n_samples", "n_components")
    fitted_rows_: Any = fitted("n_samples", "n_features", optional=True, sparse=True)

    accepts_sparse = True
    accepts_distances = True
    accepts_graph = True
    wants_pca = True

    # --- what a method writes -------------------------------------------------------------------

    def _known_neighbors(self) -> int:
        """How many fitted neighbors a new row needs."""
        raise NotImplementedError

    def _places(self, near: NeighborGraph, run: FitContext) -> np.ndarray:
        """Places for rows with these fitted neighbors; each row alone."""
        raise NotImplementedError

    # --- fit ------------------------------------------------------------------------------------

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: distances or a graph stand in place of rows."""
        given = self.metric == "precomputed" or self.fitted_rows_ is None
        return self._rows_flaw(len(self.embedding_), given) or super().inconsistency()

    def _check_training_rows(self, X: Any) -> Any:
        given_graph = isinstance(X, NeighborGraph)
        # affinities square the distances
        X = X.in_distances() if given_graph else super()._check_training_rows(X)
        self._check_not_beyond_rows(X.shape[0])
        return X

    def _nearest_rows(self, rows: Any, k: int, run: FitContext, at_least: int = 1) -> NeighborGraph:
        """The k nearest other rows of every fitted row; those that a sparse matrix stores."""
        if self.metric == "precomputed" and is_sparse(rows):
            return stored_graph(rows, k, at_least=at_least)
        found = neighbor_graph(
            rows,
            k,
            metric=self.metric,
            metric_params=self.metric_params,
            threads=run.threads,
            rng=run.rng,
            monitor=run.monitor,
        )
        return found.in_distances()

    # --- new rows -------------------------------------------------------------------------------

    def _check_new_rows(self, X: Any) -> Any:
        self._require_fitted()
        if self.fitted_rows_ is None and self.metric != "precomputed":
            raise no_fitted_rows(type(self).__name__)
        return super()._check_new_rows(X)

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        k = min(self._known_neighbors(), len(self.embedding_))
        step = rows_within(NEIGHBOR_BYTES * k, PLACED_BYTES)
        parts = [self._placed_rows(X[rows], k, run) for rows in row_blocks(X.shape[0], step)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _placed_rows(self, X: Any, k: int, run: FitContext) -> np.ndarray:
        """Some new rows in the map; a row equal to a fitted row gets the same place."""
        near = self._nearest_fitted(X, k, run)
        Z = self._places(near, run).astype(self.embedding_.dtype)
        equal = near.distances[:, 0] == 0
        Z[equal] = self.embedding_[near.indices[equal, 0]]
        return Z.astype(X.dtype, copy=False)

    def _nearest_fitted(self, X: Any, k: int, run: FitContext) -> NeighborGraph:
        if self.fitted_rows_ is None:
            return given_neighbors(X, k, monitor=run.monitor).in_distances()
        found = query_fitted(
            self.fitted_rows_,
            X.toarray() if is_sparse(X) and not is_sparse(self.fitted_rows_) else X,
            k,
            metric=self.metric,
            metric_params=self.metric_params,
            run=run,
        )
        return found.in_distances()
