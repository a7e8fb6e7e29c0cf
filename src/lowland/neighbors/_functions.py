"""Functions that search for nearest neighbors."""

from __future__ import annotations

from typing import Any

from lowland._core.columns import check_columns
from lowland._core.constraints import Boolean
from lowland._core.errors import ParameterError
from lowland._core.monitor import Monitor
from lowland._core.random import generator
from lowland._core.ranges import column_ranges, in_ranges, needs_ranges
from lowland._core.threads import limit_blas, resolve_n_jobs
from lowland._core.validation import check_matrix
from lowland._core.wording import shown
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph, neighbor_query, query_method


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
    threads = resolve_n_jobs(n_jobs)
    checked = check_matrix(X, owner="knn_graph", accept_sparse=True, threads=threads)
    if needs_ranges(checked, metric):
        checked = in_ranges(checked, column_ranges(checked))
    monitor = Monitor("knn_graph", verbose=_flag(verbose))
    with limit_blas(1), monitor:
        return neighbor_graph(
            checked,
            n_neighbors,
            metric=metric,
            metric_params=metric_params,
            method=method,
            threads=threads,
            rng=generator(random_state),
            monitor=monitor,
        )


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
    rows. To cut n rows into cells takes as long as about 6 sqrt(n) exact queries. Therefore
    ``method="auto"`` takes cells where :func:`knn_graph` does, from 200 000 rows on, if there are
    so many queries; else the answers are exact, and ``recall_`` is None. ``method="exact"`` is
    always exact.

    With ``metric="precomputed"``, ``X`` is the matrix that the graph was made from and ``queries``
    holds the distances of each query to the n rows (m x n).

    Examples
    --------
    >>> knn_query([[0.0], [1.0], [5.0]], [[0.9]], 2).indices
    array([[1, 0]], dtype=int32)
    """
    threads = resolve_n_jobs(n_jobs)
    rows = check_matrix(X, owner="knn_query", accept_sparse=True, threads=threads)
    asked = check_matrix(
        queries, owner="knn_query", argument="queries", accept_sparse=True, threads=threads
    )
    if needs_ranges(rows, metric) and needs_ranges(asked, metric):
        check_columns(asked, rows.shape[1], owner="knn_query")
        ranges = column_ranges(rows)
        rows, asked = in_ranges(rows, ranges), in_ranges(asked, ranges)
    monitor = Monitor("knn_query", verbose=_flag(verbose))
    with limit_blas(1), monitor:
        return neighbor_query(
            rows,
            asked,
            n_neighbors,
            metric=metric,
            metric_params=metric_params,
            method=query_method(rows, asked, metric, method),
            threads=threads,
            monitor=monitor,
        )


def _flag(verbose: Any) -> bool:
    if not Boolean().allows(verbose):
        raise ParameterError(f"verbose={shown(verbose)} is not allowed; expected True or False.")
    return bool(verbose)
