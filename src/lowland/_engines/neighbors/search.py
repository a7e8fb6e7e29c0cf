"""Who are my neighbors: the one place that finds them, drops the row itself, and orders ties.

Regimes, chosen by cost: an exact join of all pairs in native tiles up to a few hundred thousand
rows (with few columns most tiles are pruned), cells beyond (approximate, recall measured), a tree
for few columns and very many rows. Other metrics, sparse data and given distances go by blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.monitor import Monitor
from lowland._core.validation import is_sparse
from lowland._engines.distances.directions import settle_empty
from lowland._engines.distances.metric_rows import in_type, rows_of, true_distances
from lowland._engines.distances.metrics import PRODUCT_METRICS
from lowland._engines.distances.precomputed import check_distances
from lowland._engines.linalg.magnitude import largest, scaled, unit_for, units_for
from lowland._engines.neighbors import block_search, tree_search
from lowland._engines.neighbors.cell_search import cells_join
from lowland._engines.neighbors.duplicates import equal_rows, expand
from lowland._engines.neighbors.exact_search import exact_join, exact_query
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search_options import check_k, check_search

__all__ = ["neighbor_graph", "neighbor_query", "stored_graph"]

CELLS_ROWS = 200_000  # from here on, cells are faster than all pairs
PRUNED_ROWS = 500_000  # up to here, with few columns, the join prunes better than a tree searches


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
    if metric == "precomputed":
        return _graph(_precomputed(X, X.shape[0], k, True, monitor), X, X.shape[0], metric)
    if is_sparse(X):
        unit = unit_for(largest(X.data), metric)
        rows = scaled(X, unit)
        found = block_search.sparse_search(rows, rows, k, metric, True, monitor)
        return _graph(found, X, X.shape[0], metric, unit)
    method = _regime(X, metric, method, queries=None)
    rows, empty = rows_of(X, metric, "X")
    unit = unit_for(largest(rows), metric)
    rows = scaled(rows, unit)
    equal = None if callable(metric) else equal_rows(rows, threads, only_if_many=True)
    n_distinct = len(rows) if equal is None else len(equal.first)
    if equal is not None:
        rows = np.ascontiguousarray(rows[equal.first])
    inner_k = min(k, n_distinct - 1)
    recall, sample = None, 0
    if inner_k == 0:
        ids, distances = np.empty((1, 0), np.int32), np.empty((1, 0))
    elif method == "cells":
        rng = rng or np.random.default_rng(0)
        approximate = cells_join(rows, inner_k, threads, rng, monitor)
        ids, distances = approximate.found.ids, true_distances(approximate.found.squares, metric)
        recall, sample = approximate.recall, approximate.sample_rows
    elif method == "tree":
        found = tree_search.tree_search(
            rows, rows, inner_k, metric, metric_params, True, threads, monitor
        )
        ids, distances = found.ids, found.distances
    elif metric in PRODUCT_METRICS:
        exact = exact_join(rows, inner_k, threads, monitor)
        ids, distances = exact.ids, true_distances(exact.squares, metric)
    else:
        found = _any_metric(rows, rows, inner_k, metric, metric_params, True, monitor)
        ids, distances = found.ids, found.distances
    if equal is not None:
        ids, distances = expand(equal, ids, distances, k)
    if empty is not None and empty.any():
        settle_empty(ids, distances, empty, empty, True)
    name = metric if isinstance(metric, str) else "callable"
    distances = in_type(distances, unit, metric, _float_of(X))
    return NeighborGraph(ids, distances, X.shape[0], name, recall, sample)


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
    """The k rows of X nearest to each query; every query is answered as if it came alone.

    With ``metric="precomputed"``, ``queries`` holds its distances to the n rows (m x n).
    """
    monitor = monitor or Monitor()
    check_search(X, metric, metric_params, method)
    check_search(queries, metric, metric_params, method)
    check_k(k, X.shape[0], X.shape[0])
    if metric == "precomputed":
        if queries.shape[1] != X.shape[0]:
            raise DataError(
                f"queries: metric='precomputed' needs distances to the {X.shape[0]} fitted rows, "
                f"one column each, not shape {queries.shape}."
            )
        return _graph(
            _precomputed(queries, X.shape[0], k, False, monitor), queries, X.shape[0], metric
        )
    if queries.shape[1] != X.shape[1]:
        raise DataError(
            f"queries have {queries.shape[1]} columns, but the fitted rows have {X.shape[1]}."
        )
    if is_sparse(X) or is_sparse(queries):
        rows, asked = _both_sparse(X, queries)

        def search_sparse(some: Any, unit: float) -> tuple[np.ndarray, np.ndarray]:
            points, new = scaled(rows, unit), scaled(asked[some], unit)
            found = block_search.sparse_search(points, new, k, metric, False, monitor)
            return found.ids, in_type(found.distances, unit, metric, _float_of(queries))

        found = _by_units(search_sparse, asked, largest(rows.data), metric)
        return NeighborGraph(*found, X.shape[0], metric)
    rows, empty = rows_of(X, metric, "X")
    asked, empty_asked = rows_of(queries, metric, "queries")
    kind = np.promote_types(rows.dtype, asked.dtype)
    rows, asked = rows.astype(kind, copy=False), asked.astype(kind, copy=False)
    regime, dtype = _regime(X, metric, method, queries=queries), _float_of(queries)

    def search(some: Any, unit: float) -> tuple[np.ndarray, np.ndarray]:
        points, new = scaled(rows, unit), scaled(asked[some], unit)
        if regime == "tree":
            found = tree_search.tree_search(
                points, new, k, metric, metric_params, False, threads, monitor
            )
        elif metric in PRODUCT_METRICS:
            exact = exact_query(points, new, k, threads, monitor)
            return exact.ids, in_type(true_distances(exact.squares, metric), unit, metric, dtype)
        else:
            found = _any_metric(points, new, k, metric, metric_params, False, monitor)
        return found.ids, in_type(found.distances, unit, metric, dtype)

    ids, distances = _by_units(search, asked, largest(rows), metric)
    if empty is not None and empty_asked is not None and (empty.any() or empty_asked.any()):
        settle_empty(ids, distances, empty, empty_asked, False)
    name = metric if isinstance(metric, str) else "callable"
    return NeighborGraph(ids, distances, X.shape[0], name)


def _by_units(
    search: Callable[[Any, float], tuple[np.ndarray, np.ndarray]],
    asked: Any,
    reach: float,
    metric: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """``search`` for queries of one unit at a time: an extreme one has no say in that of others.

    ``reach`` is the largest number in the rows that are searched.
    """
    if is_sparse(asked):
        greatest = abs(asked).max(axis=1).toarray().ravel()
    else:
        greatest = np.maximum(asked.max(axis=1, initial=0.0), -asked.min(axis=1, initial=0.0))
    units = units_for(np.maximum(greatest, reach), metric)
    kinds = np.unique(units)
    if len(kinds) <= 1:
        return search(slice(None), float(kinds[0]) if len(kinds) else 1.0)
    groups = [np.flatnonzero(units == unit) for unit in kinds]
    parts = [search(some, float(unit)) for some, unit in zip(groups, kinds, strict=True)]
    back = np.argsort(np.concatenate(groups))
    ids, distances = (np.concatenate(part)[back] for part in zip(*parts, strict=True))
    return ids, distances


def stored_graph(D: Any, k: int) -> NeighborGraph:
    """Up to k nearest of what a sparse n x n matrix of distances stores for each row.

    Rows that store fewer end in the number -1 at distance infinity.
    """
    check_distances(D, "X", square=True)
    found = block_search.stored_neighbors(D, k, True, at_least=1)
    return _graph(found, D, D.shape[0], "precomputed")


# --- regimes and metrics --------------------------------------------------------------------


def _regime(X: np.ndarray, metric: Any, method: str, queries: np.ndarray | None) -> str:
    if method != "auto":
        return method
    few_columns = X.shape[1] <= tree_search.FEW_COLUMNS and metric in tree_search.EXPONENTS
    joins_well = metric in PRODUCT_METRICS and len(X) < PRUNED_ROWS
    if few_columns and len(X) > 1000 and not joins_well:
        return "tree"
    if queries is None and not few_columns and metric in PRODUCT_METRICS and len(X) >= CELLS_ROWS:
        return "cells"
    return "exact"


def _any_metric(
    X: np.ndarray,
    queries: np.ndarray,
    k: int,
    metric: Any,
    metric_params: dict[str, Any] | None,
    self_join: bool,
    monitor: Monitor,
) -> block_search.Nearest:
    from scipy.spatial.distance import cdist

    name = {"manhattan": "cityblock"}.get(metric, metric) if isinstance(metric, str) else metric
    kind = bool if metric == "jaccard" else np.float64
    points, params = X.astype(kind, copy=False), metric_params or {}

    def distances(rows: slice) -> np.ndarray:
        return cdist(queries[rows].astype(kind, copy=False), points, name, **params)

    return block_search.block_search(len(queries), len(X), k, distances, self_join, monitor)


def _precomputed(
    D: Any, n_points: int, k: int, self_join: bool, monitor: Monitor
) -> block_search.Nearest:
    argument = "X" if self_join else "queries"
    check_distances(D, argument, square=self_join)
    if is_sparse(D):
        return block_search.stored_neighbors(D, k, self_join, argument)

    def distances(rows: slice) -> np.ndarray:
        return D[rows].astype(np.float64)

    return block_search.block_search(D.shape[0], n_points, k, distances, self_join, monitor)


def _both_sparse(X: Any, queries: Any) -> tuple[Any, Any]:
    import scipy.sparse

    return scipy.sparse.csr_matrix(X), scipy.sparse.csr_matrix(queries)


def _graph(
    found: block_search.Nearest, given: Any, n_points: int, metric: Any, unit: float = 1.0
) -> NeighborGraph:
    name = metric if isinstance(metric, str) else "callable"
    distances = in_type(found.distances, unit, metric, _float_of(given))
    return NeighborGraph(found.ids, distances, n_points, name)


def _float_of(X: Any) -> Any:
    return np.float32 if X.dtype == np.float32 else np.float64
