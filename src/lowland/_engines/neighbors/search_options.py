"""Names of the search algorithms, and checks of the parameters of a search."""

from __future__ import annotations

from typing import Any

from lowland._core.constraints import Integer
from lowland._core.errors import ParameterError, check_name
from lowland._core.validation import is_sparse
from lowland._core.wording import shown
from lowland._engines.distances.metrics import (
    canonical,
    check_metric,
    from_products,
    metrics_with,
    tree_exponent,
)

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
