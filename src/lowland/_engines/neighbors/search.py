"""The search for nearest neighbors: it excludes the row itself and orders ties by row number.

The algorithm is chosen by cost. For Euclidean, cosine and correlation distances of dense rows an
exact join of all pairs in native tiles, up to a few hundred thousand rows (with few columns most
tiles are pruned); beyond, approximate cells with measured recall, or a KD tree for few columns.
Other metrics use a KD tree for few columns, and else blocks of distances, as do sparse rows and
given distances.
"""

from __future__ import annotations

import math
import threading
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Integer
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError, check_name, shown
from lowland._base.monitor import Monitor
from lowland._base.traits import Estimate
from lowland._base.validation import is_sparse, largest
from lowland._engines.distances import metrics
from lowland._engines.distances.distance_rows import check_distances, rows_of, true_distances
from lowland._engines.distances.filter_space import FILTER_COLUMNS, FULL_COLUMNS, filter_scale
from lowland._engines.neighbors import block_search
from lowland._engines.neighbors.block_search import NeighborLists
from lowland._engines.neighbors.cell_index import CellIndex
from lowland._engines.neighbors.cell_search import cells_join
from lowland._engines.neighbors.duplicates import equal_rows, expand
from lowland._engines.neighbors.exact_search import BOX_COLUMNS, ExactIndex, exact_join
from lowland._engines.neighbors.graph import NeighborGraph

# Fitted rows that new rows are compared with: what a query needs is computed once.
#
# For Euclidean, cosine and correlation distances of dense rows the index is the rows in filter
# space, packed (exact), or in cells (approximate, with measured recall); for few columns and other
# metrics it may be a KD tree. Sparse rows and all other metrics are compared block by block.
#
# Methods keep the index of their fitted rows between calls (:func:`query_fitted`). From
# ``INDEX_ROWS`` rows on it is one of cells, whose answers are approximate: a query then costs about
# the same for a hundred thousand rows and for a million.


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
        """Memory that is kept in addition to X."""
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
            ids, distances = block_search.tree_search(
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
            index = block_search.tree_of(rows)
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
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
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


CELLS_ROWS = 200_000  # from here on, cells are faster than all pairs
MANY_QUERIES = 6  # times sqrt(n): so many exact queries take as long as cutting n rows into cells


def neighbor_graph(
    X: Any,
    k: int,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    method: str = "auto",
    threads: int = 1,
    rng: np.random.Generator | None = None,
    monitor: Monitor | None = None,
) -> NeighborGraph:
    """The k nearest other rows of every row of checked data."""
    monitor = monitor or Monitor()
    check_search(X, metric, metric_params, method)
    check_k(k, X.shape[0] - 1, X.shape[0])
    metric = metrics.canonical(metric)
    if metric == "precomputed":
        return as_graph(*_given(X, k, True, monitor), X, X.shape[0], metric)
    if is_sparse(X):
        lists = block_search.sparse_search(X, None, k, metric, monitor)
        return as_graph(*lists, X, X.shape[0], metric)
    method = _regime(X, k, metric, method)
    rows, empty = rows_of(X, metric, "X")
    equal = None if callable(metric) else equal_rows(rows, threads, only_if_many=True)
    n_distinct = len(rows) if equal is None else len(equal.first)
    if equal is not None:
        rows = np.ascontiguousarray(rows[equal.first])
    inner_k = min(k, n_distinct - 1)
    # rows of a size that float32 can square
    scale = filter_scale(rows) if metrics.from_products(metric) and method != "tree" else 1.0
    rows, recall = rows if scale == 1.0 else rows * scale, EXACT
    if inner_k == 0:
        ids, distances = np.empty((1, 0), np.int32), np.empty((1, 0))
    elif method == "cells":
        rng = rng or np.random.default_rng(0)
        approximate = cells_join(rows, inner_k, threads, rng, monitor)
        ids, squares = approximate.found
        distances = true_distances(squares / scale / scale, metric)
        recall = Recall(approximate.recall, approximate.sample_rows)
    elif method == "tree":
        tree = block_search.tree_of(rows)
        ids, distances = block_search.tree_search(
            tree, None, inner_k, metric, metric_params, threads, monitor
        )
    elif metrics.from_products(metric):
        exact = exact_join(rows, inner_k, threads, monitor)
        ids, distances = exact.ids, true_distances(exact.squares / scale / scale, metric)
    else:
        ids, distances = block_search.metric_search(
            rows, None, inner_k, metric, metric_params, monitor
        )
    if equal is not None:
        ids, distances = expand(equal, ids, distances, k)
    if empty is not None and empty.any():
        metrics.settle_empty(ids, distances, empty, empty, True)
    return as_graph(ids, distances, X, X.shape[0], metric, recall)


def neighbor_query(
    X: Any,
    queries: Any,
    k: int,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    method: str = "auto",
    threads: int = 1,
    monitor: Monitor | None = None,
) -> NeighborGraph:
    """The k rows of X nearest to each query; no query has an influence on another one.

    Exact, unless ``method="cells"``. With ``metric="precomputed"``, ``queries`` holds the distances
    to the n rows of X (m x n).
    """
    monitor = monitor or Monitor()
    index = NeighborIndex(X, k, metric=metric, metric_params=metric_params, method=method)
    if index.metric != "precomputed":
        return index.query(queries, threads, monitor)
    check_search(queries, metric, metric_params, method)
    if queries.shape[1] != X.shape[0]:
        raise DataError(
            f"queries: metric='precomputed' needs distances to the {X.shape[0]} fitted rows, "
            f"one column each, not shape {queries.shape}."
        )
    return given_neighbors(queries, k, monitor=monitor)


def query_method(X: Any, queries: Any, metric: Any, method: str) -> str:
    """``method`` of :func:`neighbor_query`; "auto" is "cells" for many queries in many rows.

    Only where the rows themselves would be joined by cells. To build them pays if there are enough
    queries, whose number therefore decides whether answers are exact.
    """
    many = MANY_QUERIES * math.isqrt(X.shape[0])
    if method != "auto" or queries.shape[0] < many or is_sparse(queries):
        return method
    return "cells" if joins_by_cells(X, metric) else method


def joins_by_cells(X: Any, metric: Any) -> bool:
    """Whether :func:`neighbor_graph` of the rows is approximate with ``method="auto"``."""
    if is_sparse(X) or X.shape[0] < CELLS_ROWS:
        return False
    return _regime(X, 1, metrics.canonical(metric), "auto") == "cells"


def given_neighbors(D: Any, k: int, *, monitor: Monitor | None = None) -> NeighborGraph:
    """The k nearest fitted rows of new rows, by their distances D to all fitted rows, (m, n).

    Of a sparse matrix only stored entries are distances.
    """
    check_k(k, D.shape[1], D.shape[1])
    found = _given(D, k, False, monitor or Monitor())
    return as_graph(*found, D, D.shape[1], "precomputed")


def stored_graph(D: Any, k: int, *, at_least: int = 1) -> NeighborGraph:
    """Up to k nearest of the entries that a sparse n x n matrix of distances stores in each row.

    Rows that store fewer than ``at_least`` are refused. In rows that store fewer than k, missing
    neighbors have the index -1 and the distance infinity.
    """
    check_distances(D, "X", square=True)
    found = block_search.stored_neighbors(D, k, True, at_least=at_least)
    return as_graph(*found, D, D.shape[0], "precomputed")


def neighbor_graph_cost(n: int, p: int, k: int) -> Estimate:
    """Time on two cores and peak memory of :func:`neighbor_graph` for dense Euclidean data.

    Measured on clusters and on noise, 2 000 to 200 000 rows, 5 to 784 columns: within a factor of
    2 to 3, because pruning depends on the data.
    """
    kept = min(p, FILTER_COLUMNS)  # coordinates that all pairs are compared in
    rows = n * (4e-6 + 2e-7 * k + 2e-9 * p * (k + 8))
    if p <= PRUNED_COLUMNS:
        pairs = 1e-11 * n * n if n < _tree_rows(k, p) else 2e-6 * n * np.log2(n)
    elif n < CELLS_ROWS:
        pairs = (5e-11 + 6e-12 * kept) * n * n
    else:
        pairs = 2.5e-8 * kept * n**1.2
    axes = 5e-11 * n * p * min(p, 3000) if p > FULL_COLUMNS else 0.0
    return Estimate(0.005 + rows + pairs + axes, n * (16.0 * (k + 8) + 20 * k + 8 * kept + 40))


# --- algorithms and metrics ------------------------------------------------------------------


def _regime(X: np.ndarray, k: int, metric: Any, method: str) -> str:
    """The algorithm for ``method="auto"``: that of queries, but cells for many rows."""
    chosen = query_regime(X, metric, method)
    if method == "auto" and metrics.from_products(metric) and len(X) < _tree_rows(k, X.shape[1]):
        chosen = "exact"
    few = X.shape[1] <= PRUNED_COLUMNS and metrics.tree_exponent(metric) is not None
    if method != "auto" or chosen == "tree" or few or not metrics.from_products(metric):
        return chosen
    return "cells" if len(X) >= CELLS_ROWS else "exact"


def _tree_rows(k: int, p: int) -> float:
    """From how many rows on a tree is faster than a pruned join of few columns.

    The time of a tree grows with k, and with the number of columns, that of a join hardly does. At
    1 000 000 rows, two columns, a tree takes 6 s for k = 15 and 46 s for k = 75, a join 12 and 15;
    of six columns, k = 15, a tree takes 109 s and a join 48.
    """
    return PRUNED_ROWS * max(1.0, k / 15) * (1.0 if p <= 3 else 4.0)


def _given(D: Any, k: int, self_join: bool, monitor: Monitor) -> NeighborLists:
    argument = "X" if self_join else "queries"
    check_distances(D, argument, square=self_join)
    if is_sparse(D):
        return block_search.stored_neighbors(D, k, self_join, argument)

    def distances(rows: slice) -> np.ndarray:
        return D[rows].astype(np.float64)

    return block_search.block_search(D.shape[0], D.shape[1], k, distances, self_join, monitor)
