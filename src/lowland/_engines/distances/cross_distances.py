"""Distances of new rows to fitted rows, each row as if it came alone: any metric, by blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lowland import _native
from lowland._core.validation import is_sparse
from lowland._engines.distances.distance_rows import BUSY_ROWS
from lowland._engines.distances.distance_tiles import TILE, DistanceSource
from lowland._engines.distances.filter_space import panel_width
from lowland._engines.distances.metric_rows import in_units, rows_of
from lowland._engines.distances.metrics import PRODUCT_METRICS
from lowland._engines.linalg.magnitude import largest, scaled, unit_for

__all__ = ["CrossDistances"]


class CrossDistances:
    """d(x, y_j) for rows x that come later and the fitted rows y_j, in float64.

    Rows that are equal to a fitted one are at distance 0 from it. Sparse rows become dense, a part
    at a time: the table as a whole never does.
    """

    def __init__(
        self, points: Any, metric: Any, metric_params: dict[str, Any] | None, threads: int
    ) -> None:
        self.metric, self.threads = metric, threads
        self.params, self.n = metric_params or {}, points.shape[0]
        self.panels: np.ndarray | None = None
        self.points = points if is_sparse(points) else _dense(points)
        if metric in PRODUCT_METRICS and not is_sparse(points):
            rows, self.empty = rows_of(self.points, metric, "X")
            self.unit = unit_for(largest(rows), metric)
            rows = scaled(rows, self.unit)
            width, d = panel_width(rows.dtype), rows.shape[1]
            self.panels = np.empty((-(-self.n // width), d, width), rows.dtype)
            _native.pack_points(rows, self.panels, threads)

    def blocks(self, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Some rows of X at a time, with their distances to all fitted rows."""
        step = max(BUSY_ROWS, TILE // max(self.n, X.shape[1]))
        for start in range(0, X.shape[0], step):
            rows = slice(start, min(start + step, X.shape[0]))
            yield rows, self.of(_dense(X[rows]))

    def of(self, X: np.ndarray) -> np.ndarray:
        """Distances of a few dense rows."""
        if is_sparse(self.points):
            step = max(1, TILE // X.shape[1])
            parts = [self.points[start : start + step] for start in range(0, self.n, step)]
            shared = (self.metric, self.params, self.threads)
            return np.hstack([CrossDistances(_dense(part), *shared).of(X) for part in parts])
        if self.panels is None:
            both = DistanceSource(np.vstack([self.points, X]), self.metric, self.params)
            n = len(self.points)
            return both.tile(slice(n, None), slice(0, n))
        rows, empty = rows_of(X, self.metric, "X")
        D = np.empty((len(X), self.n))
        rows = scaled(rows, self.unit)
        _native.distance_rows(self.panels, rows, self.metric == "euclidean", D, self.threads)
        if self.metric in ("cosine", "correlation"):
            D /= 2
            assert self.empty is not None
            assert empty is not None
            D[empty[:, None] != self.empty] = 1.0
        return in_units(D, self.unit, self.metric)


def _dense(X: Any) -> np.ndarray:
    dense = X.toarray() if is_sparse(X) else X
    return np.ascontiguousarray(dense, np.float64)
