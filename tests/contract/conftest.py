"""Every test here runs over the registry: a new method is under contract without a line here."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from lowland._base import registry
from lowland._base.base import Reducer
from support import witness
from support.methods import dimensions, few_steps, sampled

METHODS = registry.all_methods()
witness.collect()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "method" not in metafunc.fixturenames:
        return
    if metafunc.definition.get_closest_marker("sampled"):
        metafunc.parametrize("method", sampled(METHODS))
    else:
        metafunc.parametrize("method", METHODS, ids=registry.names())


@pytest.fixture(autouse=True)
def labels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """``fit(X)`` of a supervised method gets three classes, so that one suite does for all."""
    method = request.getfixturevalue("method") if "method" in request.fixturenames else None
    if method is None or not method.needs_target:
        return

    def taught(fit: Callable) -> Callable:
        @functools.wraps(fit)
        def with_labels(self: Reducer, X: object, y: object = None) -> object:
            return fit(self, X, np.arange(np.shape(X)[0]) % 3 if y is None else y)

        return with_labels

    for name in ("fit", "fit_transform"):
        monkeypatch.setattr(method, name, taught(getattr(method, name)))


@pytest.fixture
def make(method: type[Reducer]) -> Callable[..., Reducer]:
    """An instance for small data, seeded."""

    def make(**params: object) -> Reducer:
        return method(**{**_usual(method), **params})

    return make


@pytest.fixture
def X() -> np.ndarray:
    """Irregular data: correlated, skewed columns on different scales, no symmetry."""
    return irregular_rows()


@pytest.fixture
def fitted(method: type[Reducer]) -> Fitted:
    """An instance fitted to X, and its map; fitted once for all tests, copied for each."""
    return Fitted(*pickle.loads(_fitted(method)))


class Fitted(NamedTuple):
    estimator: Reducer
    embedding: np.ndarray


def _usual(method: type[Reducer]) -> dict[str, Any]:
    return {"n_components": dimensions(method), "random_state": 0, **few_steps(method)}


@functools.cache
def _fitted(method: type[Reducer]) -> bytes:
    estimator = method(**_usual(method))
    X = irregular_rows()
    y = np.arange(len(X)) % 3 if method.needs_target else None
    return pickle.dumps((estimator, estimator.fit_transform(X, y)))


def irregular_rows() -> np.ndarray:
    rng = np.random.default_rng(42)
    mixed = rng.standard_normal((90, 6)) @ rng.standard_normal((6, 6))
    return mixed * [1, 3, 0.5, 1, 2, 1] + np.exp(mixed[:, :1]) + [10, 0, -5, 0, 1, 100]
