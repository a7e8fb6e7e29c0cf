"""One fitted model serves several Python threads; fits in several threads give the same bytes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Semaphore

import numpy as np
import pytest

from lowland._base import registry
from support.methods import dimensions, every_selector
from support.states import assert_same_state, fitted_state

THREADS = 8
ROUNDS = 3


def at_once(tasks: list[Callable[[], object]]) -> list[object]:
    """The results of all tasks, which start together, each in its own thread."""
    start = Barrier(len(tasks))

    def run(task: Callable[[], object]) -> object:
        start.wait(timeout=60)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result() for future in [pool.submit(run, task) for task in tasks]]


def answers(model: object, rows: np.ndarray) -> list[bytes]:
    """What every method for new rows says, as bytes."""
    Y = model.transform(rows)
    found = [Y]
    if hasattr(model, "inverse_transform"):
        found.append(model.inverse_transform(Y))
    for name in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            found.append(np.asarray(getattr(model, name)(rows)))
    return [np.ascontiguousarray(part).tobytes() for part in found]


def assert_serves_threads(model: object, X: np.ndarray) -> None:
    parts = [X[i::THREADS] * 1.01 for i in range(THREADS)]
    alone = [answers(model, part) for part in parts]
    for _ in range(ROUNDS):
        tasks = [lambda part=part: answers(model, part) for part in parts]
        assert at_once(tasks) == alone
    assert not model.cancel()  # nothing is left running


@pytest.mark.sampled
def test_one_model_serves_eight_threads(fitted, X):
    assert_serves_threads(fitted.estimator, X)


@every_selector
def test_one_selector_serves_eight_threads(selector, X):
    quick = {"cv": 2} if "cv" in selector.parameters() else {}
    model = selector(n_features=2, random_state=0, **quick).fit(np.exp(X / 30), np.arange(90) % 3)
    assert_serves_threads(model, np.exp(X / 30))


@pytest.mark.sampled
def test_fits_in_several_threads_give_the_same_bytes(method, make):
    """Also if they ask for different numbers of threads."""
    rng = np.random.default_rng(3)
    X = rng.gamma(2.0, size=(240, 30)) @ rng.standard_normal((30, 30))
    quick = {"max_iter": 30} if "max_iter" in method.parameters() else {}
    alone = make(**quick, n_jobs=1)
    alone.fit(X)
    models = [make(**quick, n_jobs=n_jobs) for n_jobs in (1, 2, 3, None)]
    at_once([lambda model=model: model.fit(X) for model in models])
    for model in models:
        assert_same_state(fitted_state(alone), fitted_state(model))


@pytest.mark.slow
def test_different_methods_at_once_give_the_bytes_that_each_gives_alone():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((150, 12)) @ rng.standard_normal((12, 12)), np.arange(150) % 3

    def fit(method: type) -> object:
        quick = {"max_iter": 30} if "max_iter" in method.parameters() else {}
        return method(n_components=dimensions(method), random_state=0, **quick).fit(X, y)

    methods = registry.all_methods()
    alone = [fitted_state(fit(method)) for method in methods]
    together = at_once([lambda method=method: fit(method) for method in methods])
    for expected, model in zip(alone, together, strict=True):
        assert_same_state(expected, fitted_state(model))


def test_warning_filters_are_left_alone():
    """They belong to the whole process, so a run in a thread must not change them."""
    from lowland import MDS, TSNE

    X = np.random.default_rng(5).standard_normal((300, 40))
    filters = list(warnings.filters)
    at_once([lambda m=m: m.fit(X) for m in (TSNE(max_iter=20), MDS(max_iter=5), TSNE(max_iter=20))])
    assert list(warnings.filters) == filters


def test_cancel_reaches_all_running_calls_of_a_model():
    """Two fits of one model wait in their callback until the model has been cancelled."""
    from lowland import TSNE

    inside, cancelled, steps = Semaphore(0), Event(), []

    def wait_for_cancel(step: int, Y: np.ndarray, loss: float | None) -> None:
        steps.append(step)
        if step == 1:
            inside.release()
            assert cancelled.wait(timeout=30)

    X = np.random.default_rng(6).standard_normal((60, 5))
    model = TSNE(max_iter=1000, tol=0.0, perplexity=5.0, random_state=0, callback=wait_for_cancel)
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(model.fit, X) for _ in range(2)]
        assert inside.acquire(timeout=30)
        assert inside.acquire(timeout=30)
        assert model.cancel()
        cancelled.set()
        for run in runs:
            run.result(timeout=30)
    assert max(steps) <= 2
    assert not model.cancel()
