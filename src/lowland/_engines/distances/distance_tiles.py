"""Distances between chosen rows of a table, by tiles: any metric, never the whole matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lowland._core.errors import DataError, ParameterError, unknown_name
from lowland._core.validation import is_sparse

__all__ = ["TREE_METRICS", "DistanceSource"]

# Metrics that a KD tree knows, and the exponent it knows them by.
TREE_METRICS: dict[Any, float] = {"euclidean": 2, "cityblock": 1, "chebyshev": np.inf}
ALIASES = {"manhattan": "cityblock", "l1": "cityblock", "l2": "euclidean"}
BOOLEAN = ["dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"]
OTHERS = [
    *("braycurtis", "canberra", "correlation", "cosine", "hamming", "jensenshannon"),
    *("mahalanobis", "minkowski", "precomputed", "seuclidean", "sqeuclidean"),
]
METRICS = sorted([*TREE_METRICS, *ALIASES, *BOOLEAN, *OTHERS])

TREE_FEATURES = 12  # beyond about this, a tree looks at nearly all rows
TILE = 1 << 22  # distances of one tile: 32 MB


class DistanceSource:
    """d(x_i, x_j) for rows of X, dense or sparse, or entries of a matrix of distances.

    Attributes
    ----------
    n : int
        Number of rows.
    dtype : dtype
        float32 if X is, else float64; distances themselves are computed in float64.
    suits_tree : bool
        Whether a KD tree is the faster way to search.
    """

    def __init__(self, X: Any, metric: Any, metric_params: dict[str, Any] | None = None) -> None:
        if isinstance(metric, str):
            if metric not in METRICS:
                raise ParameterError(unknown_name("metric", metric, METRICS))
            metric = ALIASES.get(metric, metric)
        self.X = X.tocsr() if is_sparse(X) else np.asarray(X)
        self.metric = metric
        self.params = dict(metric_params or {})
        self.n, self.n_features = self.X.shape
        self.precomputed = isinstance(metric, str) and metric == "precomputed"
        self.dtype = self.X.dtype if self.X.dtype == np.float32 else np.dtype(np.float64)
        if self.precomputed and (is_sparse(X) or self.n != self.n_features):
            kind = "a sparse matrix" if is_sparse(X) else f"shape {self.X.shape}"
            raise DataError(f'metric="precomputed" needs a square array of distances; got {kind}.')
        if metric == "seuclidean" and "V" not in self.params:
            raise ParameterError('metric="seuclidean" needs metric_params={"V": variances}.')
        if metric == "mahalanobis" and "VI" not in self.params:
            raise ParameterError('metric="mahalanobis" needs metric_params={"VI": inverse}.')
        known = isinstance(metric, str) and metric in TREE_METRICS and not self.params
        self.suits_tree = known and self.n_features <= TREE_FEATURES

    def dense(self, rows: Any) -> np.ndarray:
        """Rows of X as a dense array that ``cdist`` takes."""
        return self._friendly(self.X[rows])

    def _friendly(self, part: Any) -> np.ndarray:
        part = part.toarray() if is_sparse(part) else part
        boolean = isinstance(self.metric, str) and self.metric in BOOLEAN
        return part.astype(bool) if boolean else np.asarray(part, np.float64)

    def tile(self, rows: Any, columns: Any) -> np.ndarray:
        """Distances between some rows and others; of a matrix, the lesser of d_ij and d_ji."""
        if self.precomputed:
            here, there = self.X[rows][:, columns], self.X[columns][:, rows].T
            return np.minimum(here, there).astype(np.float64)
        from scipy.spatial.distance import cdist

        here, there = self.dense(rows), self.X[columns]
        # only sparse rows become dense by parts, so that the table as a whole never does
        step = max(1, TILE // self.n_features) if is_sparse(self.X) else max(1, there.shape[0])
        parts = [
            cdist(here, self._friendly(there[start : start + step]), self.metric, **self.params)
            for start in range(0, there.shape[0], step)
        ]
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def between(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """d(x_i, x_j) pair by pair, for the metrics of trees."""
        p, out = TREE_METRICS[self.metric], np.empty(i.size)
        step = max(1, TILE // self.n_features)
        for start in range(0, i.size, step):
            part = slice(start, start + step)
            gap = np.abs(self.dense(i[part]) - self.dense(j[part]))
            out[part] = np.linalg.norm(gap, p, axis=1)
        return out

    def blocks(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """The rows, so many at a time that their distances to all others are one tile."""
        step = max(1, TILE // max(self.n, self.n_features))
        for start in range(0, rows.size, step):
            yield rows[start : start + step]
