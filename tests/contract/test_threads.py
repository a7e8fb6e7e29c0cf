"""The number of threads changes no byte, on few rows and on as many as a method maps in seconds."""

from __future__ import annotations

import numpy as np
import pytest

from support.states import assert_same_state, fitted_state

WIDE = 60
SIZES = (20_000, 3_000, 500)  # rows, from which the method's own estimate chooses
SECONDS = 1.0


def assert_threads_change_nothing(make, X):
    one, two = make(n_jobs=1), make(n_jobs=2)
    assert one.fit_transform(X).tobytes() == two.fit_transform(X).tobytes()
    assert_same_state(fitted_state(one), fitted_state(two))
    new = X[:1000] * 1.01
    assert one.transform(new).tobytes() == two.transform(new).tobytes()


def test_few_rows(make, X):
    assert_threads_change_nothing(make, np.hstack([X] * 4) + np.arange(24) * X[:, :1])


@pytest.mark.sampled
def test_thousands_of_rows(method, make):
    """Products over rows are split among threads only where there are many."""
    n = next((n for n in SIZES if method.estimate(n, WIDE).seconds <= SECONDS), SIZES[-1])
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(n, WIDE)) @ rng.standard_normal((WIDE, WIDE)) + 10.0
    quick = {"max_iter": 20} if "max_iter" in method.parameters() else {}
    assert_threads_change_nothing(lambda **params: make(**quick, **params), X)
