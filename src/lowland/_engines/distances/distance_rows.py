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
from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland._base.validation import is_sparse
from lowland._engines.distances import metrics
from lowland._engines.distances.filter_space import packed
from lowland._engines.linalg.products import row_blocks

# Lengths and directions of sparse rows.


def row_squares(X: Any) -> np.ndarray:
    """Squared length of each row."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel()


def unit_rows(X: Any) -> Any:
    """Rows of length 1; rows of zeros stay as they are."""
    import scipy.sparse

    length = np.sqrt(row_squares(X))
    return (scipy.sparse.diags(1.0 / np.where(length > 0, length, 1.0)) @ X).tocsr()


# Checks of distances that the user computed.


def check_distances(D: Any, argument: str, *, square: bool) -> None:
    """Refuse a matrix that is not a matrix of distances."""
    if square and D.shape[0] != D.shape[1]:
        raise DataError(
            f"{argument}: metric='precomputed' needs a square matrix of distances, not {D.shape}."
        )
    values = D.data if is_sparse(D) else D
    least = values.min(initial=0.0)
    if least < 0:
        raise DataError(
            f"{argument}: metric='precomputed' needs distances >= 0, but the least is {least:g}; "
            "similarities must be turned into distances first."
        )
    if not square or is_sparse(D):  # a sparse graph may know a distance in one direction only
        return
    worst = max(float(np.abs(D[rows] - D[:, rows].T).max()) for rows in row_blocks(len(D), 512))
    if worst > 1e-6 * max(float(D.max()), 1e-300):
        raise DataError(
            f"{argument}: metric='precomputed' needs a symmetric matrix, but X and its transpose "
            f"differ by up to {worst:g}; use (X + X.T) / 2 if that is what you mean."
        )


# Rows as the distance kernels take them: directions for cosine.


def rows_of(X: np.ndarray, metric: Any, argument: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows as the search takes them, and which of them have no direction (None: no matter)."""
    metrics.check_values(X, metric, argument)
    if metrics.has_directions(metric):
        return metrics.Directions.of(X, metric)
    return np.ascontiguousarray(X), None


def true_distances(squares: np.ndarray, metric: str) -> np.ndarray:
    """Distances from the squared ones of :func:`rows_of`, which may be overwritten."""
    if metric == "sqeuclidean":
        return squares
    return np.sqrt(squares, out=squares) if metric == "euclidean" else squares / 2


# Distances between chosen rows of a table, by tiles, in any metric, without the whole matrix.


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
        self.metric = metrics.canonical(metric)
        self.params = dict(metric_params or {})
        self.n, self.n_features = self.X.shape
        self.precomputed = isinstance(self.metric, str) and self.metric == "precomputed"
        self.dtype = self.X.dtype if self.X.dtype == np.float32 else np.dtype(np.float64)
        if self.precomputed and (is_sparse(X) or self.n != self.n_features):
            kind = "a sparse matrix" if is_sparse(X) else f"shape {self.X.shape}"
            raise DataError(f'metric="precomputed" needs a square array of distances; got {kind}.')
        suited = self.n_features <= metrics.TREE_COLUMNS and metrics.unit_power(self.metric) == 1
        self.tree_exponent = metrics.tree_exponent(self.metric, self.params) if suited else None

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
            metrics.pair_distances(here, _dense(there[some]), self.metric, self.params)
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
        step = max(1, metrics.pairs_at_once(self.metric, TILE) // max(self.n, self.n_features))
        for part in row_blocks(rows.size, step):
            yield rows[part]


def _dense(part: Any) -> np.ndarray:
    return np.ascontiguousarray(part.toarray() if is_sparse(part) else part, np.float64)


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
    metrics.check_metric(X, metric, metric_params)
    metric = metrics.canonical(metric)
    if metric == "precomputed":
        check_distances(X, "X", square=True)
        return GivenRows(DistanceTiles(X, metric))  # which refuses sparse graphs
    if is_sparse(X):
        return SparseRows(X, metric)
    if metrics.from_products(metric):
        return DenseRows(X, metric, threads, packed_bytes)
    return OtherRows(X, metric, metric_params)


def blocks_of(rows: np.ndarray, n: int, metric: Any = "euclidean") -> Iterator[np.ndarray]:
    """The rows, some at a time: few enough for the caches, enough to reuse each point."""
    if callable(metric):
        for part in row_blocks(len(rows), max(1, metrics.pairs_at_once(metric, CACHED) // n)):
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
        The rows, or their directions.
    empty : ndarray of bool or None
        Rows without direction, at distance 1 from all others (cosine and correlation).
    """

    def __init__(
        self, X: np.ndarray, metric: str, threads: int, packed_bytes: int | None = None
    ) -> None:
        self.n, self.X, self.metric, self.threads = len(X), X, metric, threads
        self.packed_bytes = packed_bytes
        self.rows, empty = rows_of(X, metric, "X")
        self.empty = empty if empty is not None and empty.any() else None
        self._panels: np.ndarray | None = None

    def subset(self, rows: np.ndarray) -> DenseRows:
        return DenseRows(self.X[rows], self.metric, self.threads)

    def of(self, rows: np.ndarray, since: int = 0) -> np.ndarray:
        fits = self.packed_bytes is None or self.rows.nbytes <= self.packed_bytes
        D = self._to_packed(rows, since) if fits else self._to_parts(rows, since)
        if metrics.has_directions(self.metric):
            D /= 2
            if self.empty is not None:
                D[self.empty[rows, None] != self.empty[None, since:]] = 1.0
        return D

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
            self._fill(packed(part, self.threads), rows, distances)
            D[:, start - since : start - since + len(part)] = distances
        return D

    def _fill(self, panels: np.ndarray, rows: np.ndarray, D: np.ndarray) -> None:
        root = self.metric == "euclidean"
        _native.distance_rows(panels, self.rows[rows], root, D, self.threads)

    @property
    def panels(self) -> np.ndarray:
        """The rows in the kernels' layout, packed once."""
        if self._panels is None:
            require_memory(
                self.rows.nbytes,
                task=f"a packed copy of {self.n} rows",
                alternative="measure a part of the rows",
            )
            self._panels = packed(self.rows, self.threads)
        return self._panels


class SparseRows:
    """Euclidean, squared Euclidean or cosine distances of CSR rows, by products of sparse rows.

    |x - y|^2 = |x|^2 + |y|^2 - 2 x.y loses digits where x and y are close; there the difference is
    squared instead.
    """

    def __init__(self, X: Any, metric: str) -> None:
        self.n, self.given, self.metric = X.shape[0], X, metric
        X = X.astype(np.float64).tocsr()
        self.X = unit_rows(X) if metric == "cosine" else X
        self.squares = row_squares(self.X)
        self.transposed = self.X.T.tocsc()

    def subset(self, rows: np.ndarray) -> SparseRows:
        return SparseRows(self.given[rows], self.metric)

    def of(self, rows: np.ndarray, since: int = 0) -> np.ndarray:
        return np.ascontiguousarray(self._to_all(rows)[:, since:])

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
    """Distances in the metrics that scipy's ``cdist`` has, and Python functions."""

    def __init__(self, X: np.ndarray, metric: Any, params: dict[str, Any] | None) -> None:
        rows_of(X, metric, "X")  # refuses what the metric cannot take
        self.n, self.X, self.metric, self.params = len(X), X, metric, params
        self.source = DistanceTiles(X, metric, params)

    def subset(self, rows: np.ndarray) -> OtherRows:
        return OtherRows(self.X[rows], self.metric, self.params)

    def of(self, rows: np.ndarray, since: int = 0) -> np.ndarray:
        return self.source.tile(rows, slice(since, None))


# Distances of new rows to fitted rows in any metric, by blocks; no row depends on the others.


class CrossDistances:
    """d(x, y_j) for new rows x and the fitted rows y_j, in float64.

    A row that is equal to a fitted row is at distance 0 from it. Sparse rows are made dense, some
    at a time, never the whole table.
    """

    def __init__(
        self, points: Any, metric: Any, metric_params: dict[str, Any] | None, threads: int
    ) -> None:
        metrics.check_metric_params(metrics.canonical(metric), metric_params)
        self.metric, self.threads = metrics.canonical(metric), threads
        self.params, self.n = metric_params or {}, points.shape[0]
        self.panels: np.ndarray | None = None
        self.points = points if is_sparse(points) else _dense(points)
        if metrics.from_products(self.metric) and not is_sparse(points):
            rows, self.empty = rows_of(self.points, self.metric, "X")
            self.panels = packed(rows, threads)

    def blocks(self, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Some rows of X at a time, with their distances to all fitted rows."""
        step = max(BUSY_ROWS, TILE // max(self.n, X.shape[1]))
        if callable(self.metric):
            step = max(1, metrics.pairs_at_once(self.metric, TILE) // self.n)
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
        if metrics.has_directions(self.metric):
            D /= 2
            assert self.empty is not None
            assert empty is not None
            D[empty[:, None] != self.empty] = 1.0
        return D
