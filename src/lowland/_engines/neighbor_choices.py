"""Which searches there are, and the refusal of those there are not."""

from __future__ import annotations

from typing import Any

from lowland._core.constraints import Integer, Real
from lowland._core.errors import ParameterError, unknown_name
from lowland._core.validation import is_sparse
from lowland._engines import knn_tree

__all__ = ["METHODS", "METRICS", "PRODUCT_METRICS", "SPARSE_METRICS", "check_choice", "check_k"]

METHODS = ("auto", "exact", "cells", "tree")
METRICS = (
    "chebyshev",
    "correlation",
    "cosine",
    "euclidean",
    "hamming",
    "jaccard",
    "manhattan",
    "minkowski",
    "precomputed",
    "sqeuclidean",
)
PRODUCT_METRICS = ("euclidean", "sqeuclidean", "cosine", "correlation")
SPARSE_METRICS = ("euclidean", "sqeuclidean", "cosine")


def check_choice(X: Any, metric: Any, params: dict[str, Any] | None, method: str) -> None:
    if method not in METHODS:
        raise ParameterError(unknown_name("method", str(method), list(METHODS)))
    if not callable(metric) and metric not in METRICS:
        raise ParameterError(unknown_name("metric", str(metric), list(METRICS)))
    check_params(metric, params)
    if is_sparse(X) and metric not in (*SPARSE_METRICS, "precomputed"):
        raise ParameterError(
            f"metric={metric!r} is not available for sparse data; use one of "
            f"{', '.join(SPARSE_METRICS)}, or X.toarray() if that fits in memory."
        )
    if method == "cells" and (metric not in PRODUCT_METRICS or is_sparse(X)):
        raise ParameterError(
            f"method='cells' works for dense data and {', '.join(PRODUCT_METRICS)}, not for "
            f"metric={metric!r}; use method='auto'."
        )
    if method == "tree" and (metric not in knn_tree.EXPONENTS or is_sparse(X)):
        raise ParameterError(
            f"method='tree' works for dense data and {', '.join(knn_tree.EXPONENTS)}, not for "
            f"metric={metric!r}; use method='auto'."
        )


def check_params(metric: Any, params: dict[str, Any] | None) -> None:
    """Only minkowski has a parameter, p >= 1; a Python function gets whatever it is given."""
    if not params or callable(metric):
        return
    if (
        metric != "minkowski"
        or set(params) != {"p"}
        or not Real(1, closed="left").allows(params["p"])
    ):
        raise ParameterError(
            f"metric_params={params!r} is not allowed for metric={metric!r}; expected None"
            + (" or {'p': a number >= 1}." if metric == "minkowski" else ".")
        )


def check_k(k: int, most: int, n_rows: int) -> None:
    if not Integer().allows(k):
        raise ParameterError(f"n_neighbors={k!r} is not allowed; expected an integer >= 1.")
    if not 1 <= k <= most:
        raise ParameterError(
            f"n_neighbors={k} is not possible with {n_rows} fitted rows (n_samples={n_rows}); "
            + (f"expected 1 to {most}." if most >= 1 else "more rows are needed.")
        )
