"""A network written out: what the oracles of neural methods share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

FUNCTIONS: dict[str, Callable] = {
    "tanh": np.tanh,
    "relu": lambda a: np.maximum(a, 0),
    "elu": lambda a: np.where(a > 0, a, np.exp(np.minimum(a, 0)) - 1),
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "linear": lambda a: a,
}


def network(values: np.ndarray, weights: np.ndarray, sizes: Sequence[int], name: str) -> np.ndarray:
    """Layer after layer: W by rows, then b; the last one is linear."""
    for number, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
        W, weights = weights[: n_in * n_out].reshape(n_in, n_out), weights[n_in * n_out :]
        b, weights = weights[:n_out], weights[n_out:]
        values = values @ W + b
        if number < len(sizes) - 2:
            values = FUNCTIONS[name](values)
    assert not len(weights)
    return values
