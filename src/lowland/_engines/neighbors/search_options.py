"""The algorithms of the neighbor search, and the refusal of combinations that do not exist."""

from __future__ import annotations

from typing import Any

from lowland._core.constraints import Integer
from lowland._core.errors import ParameterError, unknown_name
from lowland._core.validation import is_sparse
from lowland._engines.distances.metrics import PRODUCT_METRICS, check_metric
from lowland._engines.neighbors import tree_search

__all__ = ["METHODS", "check_k", "check_search"]

METHODS = ("auto", "exact", "cells", "tree")


def check_search(X: Any, metric: Any, params: dict[str, Any] | None, method: str) -> None:
    """Refuse an algorithm that does not exist, or that does not work with the metric."""
    if method not in METHODS:
        raise ParameterError(unknown_name("method", str(method), list(METHODS)))
    check_metric(X, metric, params)
    if method == "cells" and (metric not in PRODUCT_METRICS or is_sparse(X)):
        raise ParameterError(
            f"method='cells' works for dense data and {', '.join(PRODUCT_METRICS)}, not for "
            f"metric={metric!r}; use method='auto'."
        )
    if method == "tree" and (metric not in tree_search.EXPONENTS or is_sparse(X)):
        raise ParameterError(
            f"method='tree' works for dense data and {', '.join(tree_search.EXPONENTS)}, not for "
            f"metric={metric!r}; use method='auto'."
        )


def check_k(k: int, most: int, n_rows: int) -> None:
    """Refuse a number of neighbors that the rows cannot have."""
    if not Integer().allows(k):
        raise ParameterError(f"n_neighbors={k!r} is not allowed; expected an integer >= 1.")
    if not 1 <= k <= most:
        raise ParameterError(
            f"n_neighbors={k} is not possible with {n_rows} fitted rows (n_samples={n_rows}); "
            + (f"expected 1 to {most}." if most >= 1 else "more rows are needed.")
        )
