"""One model used by several threads at once, and fits at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.data import pick
from fuzz.rules import same_bytes
from lowland._base import registry
from lowland.errors import LowlandError

THREADS = 6


def thread_case(rng: np.random.Generator) -> None:
    cls = pick(rng, [*registry.all_methods(), *registry.all_selectors()])
    n, p = int(rng.integers(20, 120)), int(rng.integers(3, 12))
    X, y = np.abs(rng.standard_normal((n, p))), rng.permutation(np.arange(n) % 3)
    small = {"max_iter": 20, "n_neighbors": 8, "perplexity": 5.0, "cv": 2, "random_state": 0}
    params = {key: value for key, value in small.items() if key in cls.parameters()}
    params["n_jobs"] = pick(rng, [1, 2, None])
    if rng.random() < 0.5:
        _concurrent_fits(cls, params, X, y)
    else:
        _one_model(rng, cls(**params).fit(X, y if cls.needs_target else None), X)


def _concurrent_fits(cls: Any, params: dict[str, Any], X: np.ndarray, y: np.ndarray) -> None:
    """Fits of several tables at the same time give what they give one after the other."""
    tables = [X * (1 + i) for i in range(THREADS // 2)]

    def fit(i: int) -> Any:
        table = tables[i % len(tables)]
        return cls(**params).fit_transform(table, y if cls.needs_target else None)

    expected = [_outcome(fit, i) for i in range(len(tables))]
    found = _together(lambda i: _outcome(fit, i), THREADS)
    for i, result in enumerate(found):
        _same(expected[i % len(tables)], result, f"{cls.__name__}: concurrent fits")


def _one_model(rng: np.random.Generator, model: Any, X: np.ndarray) -> None:
    """Threads that use one model do not see each other."""
    blocks = [X[rng.integers(0, len(X), 5)] + 0.1 * rng.random((5, X.shape[1])) for _ in range(3)]
    names = ["transform", "predict", "predict_proba", "inverse_transform"]
    for name in [name for name in names if hasattr(model, name)]:
        method = getattr(model, name)
        given = [model.transform(rows) for rows in blocks] if name[0] == "i" else blocks

        def use(i: int, method: Callable = method, given: list = given) -> Any:
            return method(given[i % 3])

        expected = [_outcome(use, i) for i in range(3)]
        for i, result in enumerate(_together(lambda i, use=use: _outcome(use, i), THREADS)):
            _same(expected[i % 3], result, f"{type(model).__name__}.{name} in threads")


def _outcome(call: Callable[[int], Any], i: int) -> Any:
    """The result, or the exception."""
    try:
        return np.asarray(call(i))
    except Exception as error:
        return error


def _same(expected: Any, found: Any, rule: str) -> None:
    if isinstance(found, Exception) and not (
        isinstance(found, LowlandError) and isinstance(expected, LowlandError)
    ):
        raise found
    if not isinstance(expected, Exception):
        same_bytes(expected, found, rule)


def _together(call: Callable[[int], Any], count: int) -> list[Any]:
    """Results of calls that start at the same moment in threads of their own."""
    barrier, results = threading.Barrier(count), [None] * count

    def run(i: int) -> None:
        barrier.wait()
        results[i] = call(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
