"""The registered methods and selectors, and their instances for small data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from lowland._base import registry
from support.cases import each

every_method = each("method", registry.all_methods(), ids=registry.names())
every_selector = each("selector", registry.all_selectors(), ids=registry.selector_names())


def _quickest() -> set[type]:
    """The quickest method of every base class: what its siblings inherit is tested by it."""
    siblings: dict[type, list[type]] = {}
    for cls in registry.all_methods():
        siblings.setdefault(cls.__mro__[1], []).append(cls)
    return {
        min(group, key=lambda cls: cls.estimate(1000, 20).seconds) for group in siblings.values()
    }


QUICKEST = _quickest()


def sampled(methods: Iterable[type]) -> list[Any]:
    """Parameters of a test: one method of every base class; the others are slow tests."""
    return [
        pytest.param(
            cls,
            id=registry.snake_case(cls.__name__),
            marks=[] if cls in QUICKEST else [pytest.mark.slow],
        )
        for cls in methods
    ]


def dimensions(method: type) -> int:
    """Dimensions of a map in the tests: 2, but 1 where more than two columns have no more."""
    return 1 if method.components_limit == "curve" else 2


def few_steps(method: type) -> dict[str, Any]:
    """Steps for methods that take thousands until they are converged, or try several starts."""
    if method.__name__ == "PrincipalCurve":
        return {"max_iter": 6}
    if method.__name__ == "Autoencoder":
        return {"max_iter": 20}
    if method.__name__ in ("GPLVM", "BackConstrainedGPLVM", "BayesianGPLVM"):
        return {"max_iter": 20}
    if method.__name__ == "NonlinearPCA":
        return {"max_iter": 30, "n_init": 2}
    if method.__name__ == "ParametricTSNE":
        return {"max_iter": 60, "n_epochs": 10}
    return {"max_iter": 60} if method.family() == "unfolding" else {}


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
