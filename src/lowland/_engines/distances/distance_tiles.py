"""Distances between chosen rows of a table, by tiles, in any metric, without the whole matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import is_sparse
from lowland._engines.distances.metrics import (
    TREE_COLUMNS,
    canonical,
    pair_distances,
    pairs_at_once,
    tree_exponent,
    unit_power,
)
from lowland._engines.linalg.blocks import row_blocks

TILE = 1 << 22  # distances of one tile: 32 MB


class DistanceTiles:
    """d(x_i, x_j) for rows of X, dense or sparse, or entries of a matrix of distances.

    Attributes
    ----------
    n : int
        Number of rows.
    dtype : dtype
        float32 if X is, else float64; distances themselves are computed in float64.
    tree_exponent : float or None
        The exponent of the Minkowski distance for a KD tree; None if a tree is not the faster way
        to search, or does not know the metric.
    """

    def __init__(self, X: Any, metric: Any, metric_params: dict[str, Any] | None = None) -> None:
        self.X = X.tocsr() if is_sparse(X) else np.asarray(X)
        self.metric = canonical(metric)
        self.params = dict(metric_params or {})
        self.n, self.n_features = self.X.shape
        self.precomputed = isinstance(self.metric, str) and self.metric == "precomputed"
        self.dtype = self.X.dtype if self.X.dtype == np.float32 else np.dtype(np.float64)
        if self.precomputed and (is_sparse(X) or self.n != self.n_features):
            kind = "a sparse matrix" if is_sparse(X) else f"shape {self.X.shape}"
            raise DataError(f'metric="precomputed" needs a square array of distances; got {kind}.')
        suited = self.n_features <= TREE_COLUMNS and unit_power(self.metric) == 1
        self.tree_exponent = tree_exponent(self.metric, self.params) if suited else None

    def dense(self, rows: Any) -> np.ndarray:
        """Rows of X as a dense float64 array."""
        return _dense(self.X[rows])

    def tile(self, rows: Any, columns: Any) -> np.ndarray:
        """Distances between some rows and others; of a matrix, the lesser of d_ij and d_ji."""
        if self.precomputed:
            here, there = self.X[rows][:, columns], self.X[columns][:, rows].T
            return np.minimum(here, there).astype(np.float64)
        here, there = self.dense(rows), self.X[columns]
        # sparse rows become dense by parts, so that the table as a whole never does
        step = max(1, TILE // self.n_features) if is_sparse(self.X) else max(1, there.shape[0])
        parts = [
            pair_distances(here, _dense(there[some]), self.metric, self.params)
            for some in row_blocks(there.shape[0], step)
        ]
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def between(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """d(x_i, x_j) pair by pair, for the metrics of trees."""
        assert self.tree_exponent is not None
        out = np.empty(i.size)
        step = max(1, TILE // self.n_features)
        for part in row_blocks(i.size, step):
            gap = np.abs(self.dense(i[part]) - self.dense(j[part]))
            out[part] = np.linalg.norm(gap, self.tree_exponent, axis=1)
        return out

    def blocks(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """The rows, so many at a time that their distances to all others are one tile."""
        step = max(1, pairs_at_once(self.metric, TILE) // max(self.n, self.n_features))
        for part in row_blocks(rows.size, step):
            yield rows[part]


def _dense(part: Any) -> np.ndarray:
    return np.asarray(part.toarray() if is_sparse(part) else part, np.float64)
