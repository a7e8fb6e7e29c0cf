"""The registered methods and selectors, and their instances for small data."""

from __future__ import annotations

from typing import Any

from lowland._core import registry
from support.cases import each

__all__ = ["dimensions", "every_method", "every_selector", "small"]

every_method = each("method", registry.all_methods(), ids=registry.names())
every_selector = each("selector", registry.all_selectors(), ids=registry.selector_names())


def dimensions(method: type) -> int:
    """Dimensions of a map in the tests: 2, but 1 where more than two columns have no more."""
    return 1 if method.components_limit == "curve" else 2


def small(method: type, neighbors: int = 6, perplexity: float = 5.0) -> dict[str, Any]:
    """Parameters that suit some twenty rows, where the method has them."""
    suited: dict[str, Any] = {}
    if "perplexity" in method.parameters():
        suited["perplexity"] = perplexity
    if method.__name__ == "ParametricTSNE":  # far from converged maps will do
        suited["n_epochs"] = 10
    if isinstance(method().get_params().get("n_neighbors"), int):
        suited["n_neighbors"] = neighbors
    return suited
