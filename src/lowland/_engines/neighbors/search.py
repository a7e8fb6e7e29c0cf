"""The search for nearest neighbors: it excludes the row itself and orders ties by row number.

The algorithm is chosen by cost. For Euclidean, cosine and correlation distances of dense rows an
exact join of all pairs in native tiles, up to a few hundred thousand rows (with few columns most
tiles are pruned); beyond, approximate cells with measured recall, or a KD tree for few columns.
Other metrics use a KD tree for few columns, and else blocks of distances, as do sparse rows and
given distances.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lowland._base.errors import DataError
from lowland._base.monitor import Monitor
from lowland._base.traits import Estimate
from lowland._base.validation import is_sparse
from lowland._engines.distances.distance_rows import (
    check_distances,
    rows_of,
    true_distances,
)
from lowland._engines.distances.filter_space import FILTER_COLUMNS, FULL_COLUMNS, filter_scale
from lowland._engines.distances.metrics import canonical, from_products, settle_empty, tree_exponent
from lowland._engines.neighbors import block_search, tree_search
from lowland._engines.neighbors.block_search import NeighborLists
from lowland._engines.neighbors.cell_search import cells_join
from lowland._engines.neighbors.duplicates import equal_rows, expand
from lowland._engines.neighbors.exact_search import exact_join
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.index import (
    EXACT,
    PRUNED_COLUMNS,
    PRUNED_ROWS,
    NeighborIndex,
    Recall,
    as_graph,
    check_k,
    check_search,
    query_regime,
)

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
    metric = canonical(metric)
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
    scale = filter_scale(rows) if from_products(metric) and method != "tree" else 1.0
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
        tree = tree_search.tree_of(rows)
        ids, distances = tree_search.tree_search(
            tree, None, inner_k, metric, metric_params, threads, monitor
        )
    elif from_products(metric):
        exact = exact_join(rows, inner_k, threads, monitor)
        ids, distances = exact.ids, true_distances(exact.squares / scale / scale, metric)
    else:
        ids, distances = block_search.metric_search(
            rows, None, inner_k, metric, metric_params, monitor
        )
    if equal is not None:
        ids, distances = expand(equal, ids, distances, k)
    if empty is not None and empty.any():
        settle_empty(ids, distances, empty, empty, True)
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
    return _regime(X, 1, canonical(metric), "auto") == "cells"


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
    if method == "auto" and from_products(metric) and len(X) < _tree_rows(k, X.shape[1]):
        chosen = "exact"
    few = X.shape[1] <= PRUNED_COLUMNS and tree_exponent(metric) is not None
    if method != "auto" or chosen == "tree" or few or not from_products(metric):
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
