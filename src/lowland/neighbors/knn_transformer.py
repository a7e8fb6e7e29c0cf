"""The graph of nearest neighbors as a step of a pipeline, as scikit-learn and scanpy take it."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base import constraints, validation
from lowland._base.context import FitContext, generator
from lowland._base.errors import DataError
from lowland._base.estimator import Estimator
from lowland._base.models.checks import count
from lowland._base.monitor import Monitor
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas, resolve_n_jobs
from lowland._engines.distances.distance_rows import check_distances
from lowland._engines.distances.metrics import METRICS
from lowland._engines.neighbors import search
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import METHODS, check_k, check_search, query_fitted

# Functions that search for nearest neighbors.


def knn_graph(
    X: Any,
    n_neighbors: int,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    method: str = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> NeighborGraph:
    """The nearest other rows of every row.

    Exact below 200 000 rows: candidates are ranked again by distances in double precision, and
    completed where they might be incomplete. For more rows approximate, with the measured recall in
    ``recall_``. A row is never its own neighbor, also not among equal rows. Ties are ordered by row
    number. The result does not depend on ``n_jobs``.

    Parameters
    ----------
    X : array, data frame or CSR matrix of shape (n, d)
        The rows; for ``metric="precomputed"`` an n x n matrix of distances, or a sparse graph of
        distances, in which only stored entries are neighbors.
    n_neighbors : int
        From 1 to n - 1.
    metric : str or callable, default="euclidean"
        "euclidean" ("l2"), "sqeuclidean", "cosine", "correlation", "manhattan" ("cityblock",
        "l1"), "chebyshev", "minkowski" (``metric_params={"p": 3}``), "canberra", "braycurtis"
        (values >= 0), "hamming", "jaccard" (0/1 data), "gower" (the mean difference in units of
        the range that each column has in X), "precomputed", or a Python function of two rows, which
        is slow: it is called n^2 times. It gets read-only rows and must return a finite number
        >= 0; it should be symmetric, and is called with the row first, its neighbor second.
        For sparse data the Euclidean ones and cosine.
    method : {"auto", "exact", "cells", "tree"}, default="auto"
        "tree" for few columns, "exact" for all pairs, "cells" for very many rows.
    random_state : int, Generator or None, default=0
        Only "cells" draws random numbers.

    Returns
    -------
    NeighborGraph
        With ``indices`` and ``distances`` of shape (n, n_neighbors), nearest first.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> graph = knn_graph(iris().X, 3)
    >>> graph.indices[0]
    array([17,  4, 39], dtype=int32)
    """
    constraints.check_argument("verbose", verbose, constraints.Boolean())
    threads = resolve_n_jobs(n_jobs)
    checked = validation.check_matrix(X, owner="knn_graph", accept_sparse=True, threads=threads)
    if validation.needs_ranges(checked, metric):
        checked = validation.in_ranges(checked, validation.column_ranges(checked))
    known: dict[str, Any] = {"metric": metric, "metric_params": metric_params}
    known |= {"method": method, "threads": threads}
    with limit_blas(1), Monitor("knn_graph", verbose=bool(verbose)) as monitor:
        rng = generator(random_state)
        return search.neighbor_graph(checked, n_neighbors, rng=rng, monitor=monitor, **known)


def knn_query(
    X: Any,
    queries: Any,
    n_neighbors: int,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    method: str = "auto",
    n_jobs: int | None = None,
    verbose: bool = False,
) -> NeighborGraph:
    """The rows of X nearest to each query; parameters as in :func:`knn_graph`.

    With ``method="cells"`` each query is compared with the rows of its nearest cells, and
    ``recall_`` of the result is the share of true neighbors found, measured on a sample of the
    rows. Cutting n rows into cells takes as long as about 6 sqrt(n) exact queries. Therefore
    ``method="auto"`` uses cells only from 200 000 rows on, and only for more queries than that.
    Otherwise the answers are exact, and ``recall_`` is None. ``method="exact"`` is always exact.

    With ``metric="precomputed"``, ``X`` is the matrix that the graph was made from and ``queries``
    holds the distances of each query to the n rows (m x n).

    Examples
    --------
    >>> knn_query([[0.0], [1.0], [5.0]], [[0.9]], 2).indices
    array([[1, 0]], dtype=int32)
    """
    constraints.check_argument("verbose", verbose, constraints.Boolean())
    threads = resolve_n_jobs(n_jobs)
    rows = validation.check_matrix(X, owner="knn_query", accept_sparse=True, threads=threads)
    options: dict[str, Any] = {"accept_sparse": True, "threads": threads, "part": True}
    asked = validation.check_matrix(queries, owner="knn_query", argument="queries", **options)
    if validation.needs_ranges(rows, metric) and validation.needs_ranges(asked, metric):
        validation.check_columns(asked, rows.shape[1], owner="knn_query")
        ranges = validation.column_ranges(rows)
        rows, asked = validation.in_ranges(rows, ranges), validation.in_ranges(asked, ranges)
    known: dict[str, Any] = {"metric": metric, "metric_params": metric_params}
    known |= {"method": search.query_method(rows, asked, metric, method), "threads": threads}
    with limit_blas(1), Monitor("knn_query", verbose=bool(verbose)) as monitor:
        return search.neighbor_query(rows, asked, n_neighbors, monitor=monitor, **known)


class KNNTransformer(Estimator):
    """G[i, j] = d(x_i, x_j) where x_j is one of the nearest rows of x_i, else not stored.

    It takes the place of ``sklearn.neighbors.KNeighborsTransformer`` in a pipeline, before an
    estimator with ``metric="precomputed"``, and in ``scanpy.pp.neighbors(transformer=...)``.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbors of each row. As in scikit-learn, a row counts as its own neighbor:
        ``mode="distance"`` stores ``n_neighbors + 1`` entries, ``mode="connectivity"`` stores
        ``n_neighbors``.
    mode : {"distance", "connectivity"}, default="distance"
        What is stored: distances, or ones.
    algorithm : {"auto", "exact", "cells", "tree"}, default="auto"
        How rows are searched, as ``method`` of :func:`knn_graph`. "auto" is exact below 200 000
        fitted rows, "exact" always is. ``transform`` compares new rows with the fitted rows of
        their nearest cells where ``fit_transform`` does; the first call cuts the rows into cells,
        enough of which are searched to find 98.5 % of the neighbors of a sample of fitted rows.

    Attributes
    ----------
    fitted_rows_ : ndarray or sparse matrix of shape (n_samples_fit, n_features), or None
        Rows that new rows are compared with. None if X held distances.
    n_samples_fit_ : int
        Number of fitted rows.
    recall_ : float or None
        Measured share of true neighbors that ``fit_transform`` found. None if it was exact, or
        if only ``fit`` was called, which does not search.

    Notes
    -----
    ``fit_transform`` puts each row itself first, with the distance 0, also among equal rows. For
    ``transform``, all rows are new rows, and of equal fitted rows those with the lowest numbers
    are taken. Both give the same graph for the same rows, unless more than ``n_neighbors`` rows
    are equal. Neighbors are ordered by distance, and ties by row number. The result does not
    depend on ``n_jobs``. float32 rows give float32 distances.

    Cost: as :func:`knn_graph`; memory O(n k) in addition to the rows.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.neighbors import KNNTransformer
    >>> graph = KNNTransformer(n_neighbors=3).fit_transform(iris().X)
    >>> graph[0].indices
    array([ 0, 17,  4, 39], dtype=int32)
    >>> graph[0].data.round(2)
    array([0.  , 0.1 , 0.14, 0.14])
    """

    n_neighbors: Any = param(constraints.Integer(1), default=5, kw_only=False)
    mode: str = param(constraints.OneOf("distance", "connectivity"), default="distance")
    algorithm: str = param(constraints.OneOf(*METHODS), default="auto")
    metric: Any = param(constraints.OneOf(*METRICS) | constraints.Function(), default="euclidean")
    metric_params: dict[str, Any] | None = param(
        constraints.Null() | constraints.Mapping(), default=None
    )

    fitted_rows_: Any = fitted("n_samples_fit", "n_features", optional=True, sparse=True)
    n_samples_fit_: int = fitted(type=int, meaning=count(1))
    recall_: float | None = fitted(optional=True)

    accepts_sparse = True

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The graph of the rows of X, a CSR matrix; each row itself is its first entry."""
        checked, _ = self._fit_checked(X, y)
        with self._running() as run:
            graph = self._joined(checked, run)
        return self._in_container(graph, X)

    def _fit(self, X: Any, y: Any, run: FitContext) -> None:
        check_search(X, self.metric, self.metric_params, self.algorithm)
        if self._has_distances:
            check_distances(X, "X", square=True)
        check_k(self._stored - 1 or 1, max(X.shape[0] - 1, 1), X.shape[0])
        self.fitted_rows_ = None if self._has_distances else X.copy()
        self.n_samples_fit_ = X.shape[0]
        self.recall_ = None

    def _transform(self, X: Any, run: FitContext) -> Any:
        """The graph from new rows to the fitted rows."""
        if self._has_distances:
            found = search.given_neighbors(X, self._stored, monitor=run.monitor)
        else:
            rows, cells = self.fitted_rows_, search.joins_by_cells(self.fitted_rows_, self.metric)
            found = query_fitted(rows, X, self._stored, run=run, approximate=cells, **self._search)
        return self._csr(found.indices, found.distances)

    def _joined(self, X: Any, run: FitContext) -> Any:
        """The graph of the fitted rows."""
        n, dtype = X.shape[0], X.dtype
        itself, zero = np.arange(n, dtype=np.int32)[:, None], np.zeros((n, 1), dtype)
        if self._stored == 1:  # one entry in each row, which is the row itself
            return self._csr(itself, zero)
        known = {"threads": run.threads, "rng": run.rng, "monitor": run.monitor}
        found = search.neighbor_graph(X, self._stored - 1, **self._search, **known)
        self.recall_ = found.recall_
        itself = itself.astype(found.indices.dtype, copy=False)
        indices, distances = np.hstack([itself, found.indices]), np.hstack([zero, found.distances])
        return self._csr(indices, distances)

    def _csr(self, indices: np.ndarray, distances: np.ndarray) -> Any:
        import scipy.sparse

        rows, stored = indices.shape
        values = distances if self.mode == "distance" else np.ones_like(distances)
        starts = np.arange(0, rows * stored + 1, stored)
        shape = (rows, self.n_samples_fit_)
        return scipy.sparse.csr_matrix((values.ravel(), indices.ravel(), starts), shape=shape)

    @property
    def _search(self) -> dict[str, Any]:
        """How neighbors are searched."""
        metric, params = self.metric, self.metric_params
        return {"metric": metric, "metric_params": params, "method": self.algorithm}

    @property
    def _stored(self) -> int:
        """Entries in each row of the graph."""
        return int(self.n_neighbors) + (self.mode == "distance")

    @property
    def _has_distances(self) -> bool:
        """Whether X holds distances instead of rows."""
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of the graph, one for each fitted row."""
        self._require_fitted()
        return np.array([f"knntransformer{i}" for i in range(self.n_samples_fit_)], dtype=object)

    def _in_container(self, Y: Any, X: Any) -> Any:
        if self._output() in ("pandas", "polars"):
            raise DataError(
                f"{self._output().capitalize()} output does not support sparse data. "
                "KNNTransformer gives a sparse graph; set_output(transform='default')."
            )
        return Y

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: the rows that new rows are compared with."""
        flaw = self._rows_flaw(self.n_samples_fit_, self._has_distances)
        return flaw or super().inconsistency()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._has_distances
        return tags
