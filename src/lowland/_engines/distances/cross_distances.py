"""Distances of new rows to fitted rows in any metric, by blocks; no row depends on the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lowland import _native
from lowland._base.validation import is_sparse
from lowland._engines.distances.distance_rows import BUSY_ROWS, TILE, DistanceTiles, rows_of
from lowland._engines.distances.filter_space import panel_width
from lowland._engines.distances.metrics import (
    canonical,
    check_metric_params,
    from_products,
    has_directions,
    pairs_at_once,
)
from lowland._engines.linalg.products import row_blocks


class CrossDistances:
    """d(x, y_j) for new rows x and the fitted rows y_j, in float64.

    A row that is equal to a fitted row is at distance 0 from it. Sparse rows are made dense, some
    at a time, never the whole table.
    """

    def __init__(
        self, points: Any, metric: Any, metric_params: dict[str, Any] | None, threads: int
    ) -> None:
        check_metric_params(canonical(metric), metric_params)
        self.metric, self.threads = canonical(metric), threads
        self.params, self.n = metric_params or {}, points.shape[0]
        self.panels: np.ndarray | None = None
        self.points = points if is_sparse(points) else _dense(points)
        if from_products(self.metric) and not is_sparse(points):
            rows, self.empty = rows_of(self.points, self.metric, "X")
            width, d = panel_width(rows.dtype), rows.shape[1]
            self.panels = np.empty((-(-self.n // width), d, width), rows.dtype)
            _native.pack_points(rows, self.panels, threads)

    def blocks(self, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Some rows of X at a time, with their distances to all fitted rows."""
        step = max(BUSY_ROWS, TILE // max(self.n, X.shape[1]))
        if callable(self.metric):
            step = max(1, pairs_at_once(self.metric, TILE) // self.n)
        for rows in row_blocks(X.shape[0], step):
            yield rows, self.of(_dense(X[rows]))

    def of(self, X: np.ndarray) -> np.ndarray:
        """Distances of a few dense rows."""
        if is_sparse(self.points):
            step = max(1, TILE // X.shape[1])
            parts = [self.points[rows] for rows in row_blocks(self.n, step)]
            shared = (self.metric, self.params, self.threads)
            return np.hstack([CrossDistances(_dense(part), *shared).of(X) for part in parts])
        if self.panels is None:
            both = DistanceTiles(np.vstack([self.points, X]), self.metric, self.params)
            n = len(self.points)
            return both.tile(slice(n, None), slice(0, n))
        rows, empty = rows_of(X, self.metric, "X")
        D = np.empty((len(X), self.n))
        _native.distance_rows(self.panels, rows, self.metric == "euclidean", D, self.threads)
        if has_directions(self.metric):
            D /= 2
            assert self.empty is not None
            assert empty is not None
            D[empty[:, None] != self.empty] = 1.0
        return D


def _dense(X: Any) -> np.ndarray:
    dense = X.toarray() if is_sparse(X) else X
    return np.ascontiguousarray(dense, np.float64)
