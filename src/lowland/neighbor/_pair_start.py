"""The map that the descent of maps by pairs starts from."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.context import FitContext
from lowland._engines.embedding import initial_layout
from lowland._engines.stress import initial_map

START = 0.01  # standard deviation along the widest axis


def start_map(init: Any, X: Any, d: int, run: FitContext, *, distances: bool) -> np.ndarray:
    """Principal components, noise or a given map, (n, d); of distances classical scaling."""
    n = X.shape[0]
    if not isinstance(init, str):
        return initial_layout.given_layout(init, n, d)
    if init == "random":
        return initial_layout.random_layout(n, d, run)
    if distances:
        Y = np.zeros((n, d))
        scaled = initial_map.classical_start(X.astype(np.float64), min(d, n - 1), run)
        Y[:, : scaled.shape[1]] = scaled
        Y = initial_map.separated(Y, run.rng)
        Y -= Y.mean(axis=0)
    else:
        Y = initial_layout.principal_layout(X, d, run)
    return Y * (START / Y.std(axis=0).max())
