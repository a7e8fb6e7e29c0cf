"""Fits of few rows in few steps, for tests that compare several fits of every method."""

from __future__ import annotations

import functools
import pickle
from typing import Any, NamedTuple

import numpy as np

from lowland._base.base import Reducer
from support.methods import dimensions, small

STEPS = {
    "max_iter": 4,
    "n_epochs": 4,
    "num_iters": (2, 2, 2),
    "early_exaggeration_iter": 2,
    "n_init": 1,
}


def _rows(n: int, p: int) -> np.ndarray:
    """Skewed, correlated, of different variances; multiples of 1/64 from -8 to 8."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((p, p)))[0]
    scores = rng.gamma(2.0, size=(n, p)) * (1.0 + np.arange(p)) ** -0.7
    rows = np.round(64 * (scores - 2.0 * (1.0 + np.arange(p)) ** -0.7) @ turn) / 64
    assert np.abs(rows).max() < 8
    return rows


ROWS, NEW = np.split(_rows(40, 5), [36])
CLASSES = np.arange(len(ROWS)) % 5


class QuickFit(NamedTuple):
    model: Reducer
    Y: np.ndarray


def quick(method: type[Reducer]) -> dict[str, Any]:
    """Parameters for few rows and few steps, seeded."""
    steps = {name: value for name, value in STEPS.items() if name in method.parameters()}
    return {"n_components": dimensions(method), "random_state": 0, **small(method), **steps}


def quick_fit(method: type[Reducer], X: np.ndarray = ROWS, **params: Any) -> QuickFit:
    model = method(**{**quick(method), **params})
    return QuickFit(model, model.fit_transform(X, CLASSES if method.needs_target else None))


def known_fit(method: type[Reducer], n_components: int | None = None) -> QuickFit:
    """Of ``ROWS``; fitted once, copied for each caller."""
    return QuickFit(*pickle.loads(_pickled(method, n_components or dimensions(method))))


@functools.cache
def _pickled(method: type[Reducer], n_components: int) -> bytes:
    return pickle.dumps(tuple(quick_fit(method, n_components=n_components)))
