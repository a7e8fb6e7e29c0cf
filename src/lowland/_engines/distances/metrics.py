"""The metrics: which there are, which data they take, and which parameters they have."""

from __future__ import annotations

from typing import Any

from lowland._core.constraints import Real
from lowland._core.errors import ParameterError, unknown_name
from lowland._core.validation import is_sparse

__all__ = ["METRICS", "PRODUCT_METRICS", "SPARSE_METRICS", "check_metric"]

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


def check_metric(X: Any, metric: Any, params: dict[str, Any] | None) -> None:
    """Refuse a metric that does not exist, or that does not take such data or parameters."""
    if not callable(metric) and metric not in METRICS:
        raise ParameterError(unknown_name("metric", str(metric), list(METRICS)))
    _check_params(metric, params)
    if is_sparse(X) and metric not in (*SPARSE_METRICS, "precomputed"):
        raise ParameterError(
            f"metric={metric!r} is not available for sparse data; use one of "
            f"{', '.join(SPARSE_METRICS)}, or X.toarray() if that fits in memory."
        )


def _check_params(metric: Any, params: dict[str, Any] | None) -> None:
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
