"""Fitted rows that new rows are compared with: what a query needs is computed once.

For Euclidean, cosine and correlation distances of dense rows the index is the rows in filter space,
packed (exact), or in cells (approximate, with measured recall); for few columns and other metrics
it may be a KD tree. Sparse rows and all other metrics are compared block by block.

Methods keep the index of their fitted rows between calls (:func:`query_fitted`). From
``INDEX_ROWS`` rows on it is one of cells, whose answers are approximate: a query then costs about
the same for a hundred thousand rows and for a million.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Integer
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError, check_name, shown
from lowland._base.monitor import Monitor
from lowland._base.validation import is_sparse, largest
from lowland._engines.distances import metrics
from lowland._engines.distances.distance_rows import rows_of, true_distances
from lowland._engines.distances.filter_space import filter_scale
from lowland._engines.neighbors import block_search, tree_search
from lowland._engines.neighbors.cell_index import CellIndex
from lowland._engines.neighbors.exact_search import BOX_COLUMNS, ExactIndex
from lowland._engines.neighbors.graph import NeighborGraph

# Names of the search algorithms, and checks of the parameters of a search.


METHODS = ("auto", "exact", "cells", "tree")


def check_search(X: Any, metric: Any, params: dict[str, Any] | None, method: str) -> None:
    """Refuse an algorithm that does not exist, or that does not work for the metric."""
    check_name("method", method, METHODS)
    metrics.check_metric(X, metric, params)
    metric = metrics.canonical(metric)
    fact = {"cells": "products", "tree": "tree"}.get(method)
    if fact and (is_sparse(X) or metric not in metrics.metrics_with(fact)):
        raise ParameterError(
            f"method={method!r} works for dense data and "
            f"{', '.join(metrics.metrics_with(fact))}, not for metric={metric!r}; "
            "use method='auto'."
        )


def check_k(k: int, most: int, n_rows: int) -> None:
    """Refuse a number of neighbors that the rows cannot have."""
    if not Integer().allows(k):
        raise ParameterError(f"n_neighbors={shown(k)} is not allowed; expected an integer >= 1.")
    if not 1 <= k <= most:
        raise ParameterError(
            f"n_neighbors={k} is not possible with {n_rows} fitted rows (n_samples={n_rows}); "
            + (f"expected 1 to {most}." if most >= 1 else "more rows are needed.")
        )


FARTHEST = 1e15  # value of a query whose squares an index can add in float32
INDEX_ROWS = 50_000  # from here on, cells of fitted rows are faster than all of them
LEAST_ROWS = 1000  # fewer rows are not worth cells, nor a tree
PRUNED_ROWS = 500_000  # up to here, with few columns, a join prunes better than a tree searches
PRUNED_COLUMNS = BOX_COLUMNS  # up to here a join prunes, so that it stays the faster way


class NeighborIndex:
    """The rows of X, for the k nearest of any number of queries.

    Parameters
    ----------
    X : array or sparse matrix (n, p)
        Checked rows. They are not copied and must not change.
    k : int
    metric, metric_params, method
        As in :func:`neighbor_query`.
    approximate : bool
        Whether ``method="auto"`` takes cells for many rows.
    """

    def __init__(
        self,
        X: Any,
        k: int,
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        method: str = "auto",
        approximate: bool = False,
    ) -> None:
        check_search(X, metric, metric_params, method)
        check_k(k, X.shape[0], X.shape[0])
        self.X, self.k, self.params = X, k, metric_params
        self.metric, self.method = metrics.canonical(metric), method
        self._lock = threading.Lock()
        self._ready: dict[np.dtype, _Points] = {}
        if self.metric == "precomputed":
            return
        self._sparse = is_sparse(X)
        if self._sparse:
            return
        self._rows, self._empty = rows_of(X, self.metric, "X")
        self._scale = filter_scale(self._rows) if metrics.from_products(self.metric) else 1.0
        self._regime = query_regime(X, self.metric, method)
        if approximate and method == "auto" and metrics.from_products(self.metric):
            self._regime = "cells" if len(X) >= INDEX_ROWS else self._regime
        if self._regime == "cells" and len(X) < LEAST_ROWS:
            self._regime = "exact"

    @property
    def nbytes(self) -> int:
        """Memory that is kept beside X."""
        ready = list(self._ready.values())
        arrays = {id(rows): rows for rows in (self._rows, *(points.X for points in ready))}
        beside = sum(int(rows.nbytes) for rows in arrays.values() if rows is not self.X)
        return beside + sum(int(getattr(points.index, "nbytes", 0)) for points in ready)

    def query(self, queries: Any, threads: int, monitor: Monitor) -> NeighborGraph:
        """The k rows nearest to each query; no query has an influence on another one."""
        check_search(queries, self.metric, self.params, self.method)
        if queries.shape[1] != self.X.shape[1]:
            raise DataError(
                f"queries have {queries.shape[1]} columns, but the fitted rows have "
                f"{self.X.shape[1]}."
            )
        n = self.X.shape[0]
        if self._sparse or is_sparse(queries):
            found = block_search.sparse_search(self.X, queries, self.k, self.metric, monitor)
            return as_graph(*found, queries, n, self.metric)
        asked, empty_asked = rows_of(queries, self.metric, "queries")
        kind = np.promote_types(self._rows.dtype, asked.dtype)
        asked, recall = asked.astype(kind, copy=False), EXACT
        # Kernels compare float64 queries with float32 rows, too.
        kind = self._rows.dtype if metrics.from_products(self.metric) else kind
        points = self._points(kind, threads, monitor)
        if self._regime == "tree":
            ids, distances = tree_search.tree_search(
                points.index, asked, self.k, self.metric, self.params, threads, monitor
            )
        elif points.index is not None:
            ids, squares = self._by_index(points, asked, threads, monitor)
            distances = true_distances(squares, self.metric)
            if isinstance(points.index, CellIndex):
                recall = Recall(points.index.recall, points.index.sample_rows)
        else:
            ids, distances = block_search.metric_search(
                points.X, asked, self.k, self.metric, self.params, monitor
            )
        empty = self._empty
        if empty is not None and empty_asked is not None and (empty.any() or empty_asked.any()):
            metrics.settle_empty(ids, distances, empty, empty_asked, False)
        return as_graph(ids, distances, queries, n, self.metric, recall)

    def _by_index(
        self, points: _Points, asked: np.ndarray, threads: int, monitor: Monitor
    ) -> tuple[np.ndarray, np.ndarray]:
        """Neighbors and squared distances by an index, and by blocks where float32 is too small."""
        asked = asked if self._scale == 1.0 else asked * self._scale
        if largest(asked) <= FARTHEST:
            ids, squares = points.index.query(asked, self.k, threads, monitor)
        else:
            near = np.abs(asked).max(axis=1) <= FARTHEST
            ids, squares = points.index.query(asked[near], self.k, threads, monitor)
            far_ids, far_squares = block_search.metric_search(
                points.X, asked[~near], self.k, "sqeuclidean", None, monitor
            )
            order = np.argsort(np.append(np.flatnonzero(near), np.flatnonzero(~near)))
            ids = np.concatenate([ids, far_ids])[order]
            squares = np.concatenate([squares, far_squares])[order]
        return ids, squares / self._scale / self._scale

    def _points(self, dtype: np.dtype, threads: int, monitor: Monitor) -> _Points:
        """The rows for queries of a type; they are computed once for each type."""
        with self._lock:
            if dtype not in self._ready:
                self._ready[dtype] = self._prepared(dtype, threads, monitor)
            return self._ready[dtype]

    def _prepared(self, dtype: np.dtype, threads: int, monitor: Monitor) -> _Points:
        rows = self._rows.astype(dtype, copy=False)
        if self._scale != 1.0 and self._regime != "tree":
            rows = rows * self._scale
        index: Any = None
        if self._regime == "tree":
            index = tree_search.tree_of(rows)
        elif self._regime == "cells":
            index = CellIndex(rows, self.k, threads, monitor)
        elif metrics.from_products(self.metric):
            index = ExactIndex(rows, threads)
        return _Points(rows, index)


class _Points(NamedTuple):
    """Rows as queries are compared with them, and what was computed from them."""

    X: np.ndarray
    index: Any


class Recall(NamedTuple):
    """The share of the true neighbors that were found, and of how many rows it is known."""

    share: float | None
    sample_rows: int


EXACT = Recall(None, 0)


def query_fitted(
    X: Any,
    queries: Any,
    k: int,
    *,
    metric: Any,
    metric_params: dict[str, Any] | None,
    run: FitContext,
    approximate: bool = True,
    method: str = "auto",
) -> NeighborGraph:
    """The k fitted rows X nearest to each new row; the index of X is kept for later calls.

    As :func:`neighbor_query`, but of ``INDEX_ROWS`` and more rows some neighbors may be missed,
    unless ``approximate`` is False or ``method`` is another than "auto" or "cells".
    """

    def build() -> NeighborIndex:
        options = {"metric": metric, "metric_params": metric_params, "method": method}
        return NeighborIndex(X, k, **options, approximate=approximate)

    params = [(name, np.asarray(value).tobytes()) for name, value in (metric_params or {}).items()]
    index = run.prepared("neighbors", (X,), (k, metric, params, approximate, method), build)
    found = index.query(queries, run.threads, run.monitor)
    if run.kept is not None:
        run.kept.trim()  # the first query made the index large
    return found


def query_regime(X: np.ndarray, metric: Any, method: str) -> str:
    """The algorithm for exact answers with ``method="auto"``."""
    if method != "auto":
        return method
    n, p = X.shape
    tree = (
        p <= metrics.TREE_COLUMNS and n > LEAST_ROWS and metrics.tree_exponent(metric) is not None
    )
    if metrics.from_products(metric):
        tree = tree and p <= PRUNED_COLUMNS and n >= PRUNED_ROWS
    return "tree" if tree else "exact"


def as_graph(
    ids: np.ndarray,
    distances: np.ndarray,
    asked: Any,
    n_points: int,
    metric: Any,
    recall: Recall = EXACT,
) -> NeighborGraph:
    """What a search found for the rows ``asked``, in their float type."""
    name = metric if isinstance(metric, str) else "callable"
    dtype = np.float32 if asked.dtype == np.float32 else np.float64
    return NeighborGraph(ids, distances.astype(dtype, copy=False), n_points, name, *recall)
