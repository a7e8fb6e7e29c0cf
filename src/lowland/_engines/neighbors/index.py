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
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Integer
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError, check_name, shown
from lowland._base.monitor import Monitor
from lowland._base.units import largest
from lowland._base.validation import is_sparse
from lowland._engines.distances.distance_rows import (
    in_type,
    metric_unit,
    metric_units,
    rows_of,
    true_distances,
)
from lowland._engines.distances.metrics import (
    TREE_COLUMNS,
    canonical,
    check_metric,
    from_products,
    metrics_with,
    settle_empty,
    tree_exponent,
)
from lowland._engines.linalg.magnitude import scaled
from lowland._engines.neighbors import block_search, tree_search
from lowland._engines.neighbors.cell_index import CellIndex
from lowland._engines.neighbors.exact_search import BOX_COLUMNS, ExactIndex
from lowland._engines.neighbors.graph import NeighborGraph

# Names of the search algorithms, and checks of the parameters of a search.


METHODS = ("auto", "exact", "cells", "tree")


def check_search(X: Any, metric: Any, params: dict[str, Any] | None, method: str) -> None:
    """Refuse an algorithm that does not exist, or that does not work for the metric."""
    check_name("method", method, METHODS)
    check_metric(X, metric, params)
    metric = canonical(metric)
    if method == "cells" and (not from_products(metric) or is_sparse(X)):
        raise ParameterError(
            f"method='cells' works for dense data and {', '.join(metrics_with('products'))}, "
            f"not for metric={metric!r}; use method='auto'."
        )
    if method == "tree" and (tree_exponent(metric) is None or is_sparse(X)):
        raise ParameterError(
            f"method='tree' works for dense data and {', '.join(metrics_with('tree'))}, "
            f"not for metric={metric!r}; use method='auto'."
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
        self.metric, self.method = canonical(metric), method
        self._lock = threading.Lock()
        self._ready: dict[_Kind, _Points] = {}
        if self.metric == "precomputed":
            return
        self._sparse = is_sparse(X)
        if self._sparse:
            self._rows, self._empty, self._reach = X, None, largest(X.data)
            return
        self._rows, self._empty = rows_of(X, self.metric, "X")
        self._reach = largest(self._rows)
        self._regime = query_regime(X, self.metric, method)
        if approximate and method == "auto" and from_products(self.metric):
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
        n, dtype = self.X.shape[0], float_of(queries)
        if self._sparse or is_sparse(queries):
            return self._query_sparse(queries, monitor)
        asked, empty_asked = rows_of(queries, self.metric, "queries")
        kind = np.promote_types(self._rows.dtype, asked.dtype)
        asked, recall = asked.astype(kind, copy=False), _Recall(None, 0)

        def search(some: Any, unit: float) -> tuple[np.ndarray, np.ndarray]:
            nonlocal recall
            points, new = self._points(kind, unit, threads, monitor), scaled(asked[some], unit)
            if self._regime == "tree":
                ids, distances = tree_search.tree_search(
                    points.X, new, self.k, self.metric, self.params, False, threads, monitor,
                    points.index,
                )  # fmt: skip
            elif points.index is not None:
                ids, squares = points.index.query(new, self.k, threads, monitor)
                distances = true_distances(squares, self.metric)
                if isinstance(points.index, CellIndex):
                    recall = _Recall(points.index.recall, points.index.sample_rows)
            else:
                ids, distances = block_search.metric_search(
                    points.X, new, self.k, self.metric, self.params, False, monitor
                )
            return ids, in_type(distances, unit, self.metric, dtype)

        ids, distances = _by_units(search, asked, self._reach, self.metric)
        empty = self._empty
        if empty is not None and empty_asked is not None and (empty.any() or empty_asked.any()):
            settle_empty(ids, distances, empty, empty_asked, False)
        name = self.metric if isinstance(self.metric, str) else "callable"
        return NeighborGraph(ids, distances, n, name, *recall)

    def _points(self, dtype: np.dtype, unit: float, threads: int, monitor: Monitor) -> _Points:
        """The rows for queries of a type, in a unit; those of their own type and unit are kept.

        Of others the last ones are kept: an extreme query costs later ones nothing.
        """
        wanted = self._kind(dtype, unit)
        with self._lock:
            if wanted not in self._ready:
                own = self._kind(self._rows.dtype, metric_unit(self._reach, self.metric))
                self._ready = {kind: known for kind, known in self._ready.items() if kind == own}
                self._ready[wanted] = self._prepared(wanted, threads, monitor)
            return self._ready[wanted]

    def _kind(self, dtype: np.dtype, unit: float) -> _Kind:
        """What the rows become for queries of a type, in a unit."""
        if unit != 1.0:
            return _Kind(np.dtype(np.float64), unit)
        # Kernels compare float64 queries with float32 rows, too.
        return _Kind(self._rows.dtype if from_products(self.metric) else dtype, unit)

    def _prepared(self, wanted: _Kind, threads: int, monitor: Monitor) -> _Points:
        rows = scaled(self._rows.astype(wanted.dtype, copy=False), wanted.unit)
        index: Any = None
        if self._regime == "tree":
            index = tree_search.tree_of(rows)
        elif self._regime == "cells":
            index = CellIndex(rows, self.k, threads, monitor)
        elif from_products(self.metric):
            index = ExactIndex(rows, threads)
        return _Points(rows, index)

    def _query_sparse(self, queries: Any, monitor: Monitor) -> NeighborGraph:
        import scipy.sparse

        rows, asked = scipy.sparse.csr_matrix(self.X), scipy.sparse.csr_matrix(queries)

        def search(some: Any, unit: float) -> tuple[np.ndarray, np.ndarray]:
            points, new = scaled(rows, unit), scaled(asked[some], unit)
            ids, distances = block_search.sparse_search(
                points, new, self.k, self.metric, False, monitor
            )
            return ids, in_type(distances, unit, self.metric, float_of(queries))

        ids, distances = _by_units(search, asked, largest(rows.data), self.metric)
        return NeighborGraph(ids, distances, self.X.shape[0], self.metric)


class _Kind(NamedTuple):
    """The type of rows, and the unit that they are in."""

    dtype: np.dtype
    unit: float


class _Points(NamedTuple):
    """Rows as queries are compared with them, and what was computed from them."""

    X: np.ndarray
    index: Any


class _Recall(NamedTuple):
    share: float | None
    sample_rows: int


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
    tree = p <= TREE_COLUMNS and n > LEAST_ROWS and tree_exponent(metric) is not None
    if from_products(metric):
        tree = tree and p <= PRUNED_COLUMNS and n >= PRUNED_ROWS
    return "tree" if tree else "exact"


def float_of(X: Any) -> Any:
    """The type of the distances of rows X."""
    return np.float32 if X.dtype == np.float32 else np.float64


def _by_units(
    search: Callable[[Any, float], tuple[np.ndarray, np.ndarray]],
    asked: Any,
    reach: float,
    metric: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """``search`` for the queries of one unit at a time: an extreme query does not change others.

    ``reach`` is the largest value in the rows that are searched.
    """
    if is_sparse(asked):
        greatest = abs(asked).max(axis=1).toarray().ravel()
    else:
        greatest = np.maximum(asked.max(axis=1, initial=0.0), -asked.min(axis=1, initial=0.0))
    units = metric_units(np.maximum(greatest, reach), metric)
    kinds = np.unique(units)
    if len(kinds) <= 1:
        return search(slice(None), float(kinds[0]) if len(kinds) else 1.0)
    groups = [np.flatnonzero(units == unit) for unit in kinds]
    parts = [search(some, float(unit)) for some, unit in zip(groups, kinds, strict=True)]
    back = np.argsort(np.concatenate(groups))
    ids, distances = (np.concatenate(part)[back] for part in zip(*parts, strict=True))
    return ids, distances
