"""Whole rows of distances, from chosen rows to all others, in float64: any metric, by blocks.

    source = distance_rows(X, "cosine", None, threads)
    for block in source.blocks(rows):
        D = source.of(block)          # (len(block), n), a fresh array

Dense Euclidean, squared Euclidean, cosine and correlation distances come from a native kernel that
squares differences, so that equal rows are at distance 0 exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from lowland import _native
from lowland._core.memory import require_memory
from lowland._core.units import largest
from lowland._core.validation import is_sparse
from lowland._engines.distances.distance_tiles import TILE, DistanceTiles
from lowland._engines.distances.filter_space import panel_width
from lowland._engines.distances.metric_rows import in_units, metric_unit, rows_of
from lowland._engines.distances.metrics import (
    canonical,
    check_metric,
    from_products,
    has_directions,
    pairs_at_once,
)
from lowland._engines.distances.precomputed import check_distances
from lowland._engines.distances.sparse_rows import row_squares, unit_rows
from lowland._engines.linalg.blocks import row_blocks
from lowland._engines.linalg.magnitude import scaled

CACHED = 1 << 19  # distances that fit into the cache: 4 MB
BUSY_ROWS = 48
PART_BYTES = 16_000_000  # of a copy that is packed in parts
PANEL = 24  # points of a float32 panel, or two of float64: where kernels begin without a copy


class DistanceRows(Protocol):
    """d(x_i, x_j) of chosen rows i and all rows j."""

    n: int

    def of(self, rows: np.ndarray, since: int = 0) -> np.ndarray:
        """Distances of the rows to all from row ``since`` on, a fresh (len(rows), n - since)."""

    def subset(self, rows: np.ndarray) -> DistanceRows:
        """The same for the chosen rows among themselves."""


def distance_rows(
    X: Any,
    metric: Any,
    metric_params: dict[str, Any] | None,
    threads: int,
    packed_bytes: int | None = None,
) -> DistanceRows:
    """The source of distances for checked data: by kind of data and metric.

    ``packed_bytes`` bounds the memory for a packed copy of dense rows. A larger copy is made in
    parts, again for every block of rows. None: one copy of any size.
    """
    check_metric(X, metric, metric_params)
    metric = canonical(metric)
    if metric == "precomputed":
        check_distances(X, "X", square=True)
        return GivenRows(DistanceTiles(X, metric))  # which refuses sparse graphs
    if is_sparse(X):
        return SparseRows(X, metric)
    if from_products(metric):
        return DenseRows(X, metric, threads, packed_bytes)
    return OtherRows(X, metric, metric_params)


def blocks_of(rows: np.ndarray, n: int, metric: Any = "euclidean") -> Iterator[np.ndarray]:
    """The rows, some at a time: few enough for the caches, enough to reuse each point."""
    if callable(metric):
        for part in row_blocks(len(rows), max(1, pairs_at_once(metric, CACHED) // n)):
            yield rows[part]
        return
    step = max(1, CACHED // n, min(BUSY_ROWS, TILE // n))
    step -= step % PANEL if step > PANEL else 0
    for part in row_blocks(len(rows), step):
        yield rows[part]


class DenseRows:
    """Distances of dense rows in a metric of products, by the native kernel.

    Attributes
    ----------
    rows : ndarray
        The rows, or their directions, in a unit in which squares do not overflow.
    empty : ndarray of bool or None
        Rows without direction, at distance 1 from all others (cosine and correlation).
    """

    def __init__(
        self, X: np.ndarray, metric: str, threads: int, packed_bytes: int | None = None
    ) -> None:
        self.n, self.X, self.metric, self.threads = len(X), X, metric, threads
        self.packed_bytes = packed_bytes
        rows, empty = rows_of(X, metric, "X")
        self.unit = metric_unit(largest(rows), metric)
        self.rows = scaled(rows, self.unit)
        self.empty = empty if empty is not None and empty.any() else None
        self._panels: np.ndarray | None = None

    def subset(self, rows: np.ndarray) -> DenseRows:
        return DenseRows(self.X[rows], self.metric, self.threads)

    def of(self, rows: np.ndarray, since: int = 0) -> np.ndarray:
        fits = self.packed_bytes is None or self.rows.nbytes <= self.packed_bytes
        D = self._to_packed(rows, since) if fits else self._to_parts(rows, since)
        if has_directions(self.metric):
            D /= 2
            if self.empty is not None:
                D[self.empty[rows, None] != self.empty[None, since:]] = 1.0
        return in_units(D, self.unit, self.metric)

    def _to_packed(self, rows: np.ndarray, since: int) -> np.ndarray:
        whole = since // self.panels.shape[2]  # panels to leave out
        before = since - whole * self.panels.shape[2]
        D = np.empty((len(rows), self.n - since + before))
        self._fill(self.panels[whole:], rows, D)
        return np.ascontiguousarray(D[:, before:])

    def _to_parts(self, rows: np.ndarray, since: int) -> np.ndarray:
        """The same, with a packed copy of some rows at a time."""
        D = np.empty((len(rows), self.n - since))
        step = max(PANEL, PART_BYTES // max(1, self.rows[0].nbytes))
        for start in range(since, self.n, step):
            part = self.rows[start : start + step]
            distances = np.empty((len(rows), len(part)))
            self._fill(self._pack(part), rows, distances)
            D[:, start - since : start - since + len(part)] = distances
        return D

    def _fill(self, panels: np.ndarray, rows: np.ndarray, D: np.ndarray) -> None:
        root = self.metric == "euclidean"
        _native.distance_rows(panels, self.rows[rows], root, D, self.threads)

    def _pack(self, points: np.ndarray) -> np.ndarray:
        width, d = panel_width(points.dtype), points.shape[1]
        panels = np.empty((-(-len(points) // width), d, width), points.dtype)
        _native.pack_points(points, panels, self.threads)
        return panels

    @property
    def panels(self) -> np.ndarray:
        """The rows in the kernels' layout, packed once."""
        if self._panels is None:
            require_memory(
                self.rows.nbytes,
                task=f"a packed copy of {self.n} rows",
                alternative="measure a part of the rows",
            )
            self._panels = self._pack(self.rows)
        return self._panels


class SparseRows:
    """Euclidean, squared Euclidean or cosine distances of CSR rows, by products of sparse rows.

    |x - y|^2 = |x|^2 + |y|^2 - 2 x.y loses digits where x and y are close; there the difference is
    squared instead.
    """

    def __init__(self, X: Any, metric: str) -> None:
        self.n, self.given, self.metric = X.shape[0], X, metric
        self.unit = metric_unit(largest(X.data), metric)
        X = scaled(X.astype(np.float64).tocsr(), self.unit)
        self.X = unit_rows(X) if metric == "cosine" else X
        self.squares = row_squares(self.X)
        self.transposed = self.X.T.tocsc()

    def subset(self, rows: np.ndarray) -> SparseRows:
        return SparseRows(self.given[rows], self.metric)

    def of(self, rows: np.ndarray, since: int = 0) -> np.ndarray:
        return in_units(np.ascontiguousarray(self._to_all(rows)[:, since:]), self.unit, self.metric)

    def _to_all(self, rows: np.ndarray) -> np.ndarray:
        chosen = self.X[rows]
        D = np.asarray((chosen @ self.transposed).toarray())
        D *= -2
        scale = self.squares[rows, None] + self.squares
        D += scale
        i, j = np.nonzero(scale * 1e-6 >= D)
        for part in row_blocks(len(i), 1 << 15):
            D[i[part], j[part]] = row_squares(chosen[i[part]] - self.X[j[part]])
        if self.metric == "euclidean":
            return np.sqrt(D, out=D)
        if self.metric == "cosine":
            D /= 2
            empty = self.squares == 0
            D[empty[rows, None] != empty] = 1.0
        return D


class GivenRows:
    """Entries of an n x n matrix of distances."""

    def __init__(self, source: DistanceTiles) -> None:
        self.n, self.D = source.n, source.X

    def subset(self, rows: np.ndarray) -> GivenRows:
        return GivenRows(DistanceTiles(self.D[np.ix_(rows, rows)], "precomputed"))

    def of(self, rows: np.ndarray, since: int = 0) -> np.ndarray:
        return self.D[rows, since:].astype(np.float64, order="C")


class OtherRows:
    """Distances in the metrics that scipy's ``cdist`` knows, and Python functions."""

    def __init__(self, X: np.ndarray, metric: Any, params: dict[str, Any] | None) -> None:
        rows_of(X, metric, "X")  # refuses what the metric cannot take
        self.n, self.X, self.metric, self.params = len(X), X, metric, params
        self.unit = metric_unit(largest(X), metric)
        self.source = DistanceTiles(scaled(X, self.unit), metric, params)

    def subset(self, rows: np.ndarray) -> OtherRows:
        return OtherRows(self.X[rows], self.metric, self.params)

    def of(self, rows: np.ndarray, since: int = 0) -> np.ndarray:
        return in_units(self.source.tile(rows, slice(since, None)), self.unit, self.metric)
