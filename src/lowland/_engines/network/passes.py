"""Forward and backward passes of a network, and what follows from them.

    forward    h_l = s_l(h_{l-1} W_l + b_l), every layer kept
    backward   d_L = dE/dh_L given;  g_l = d_l * s_l'(h_l);  dE/dW_l = h_{l-1}^T g_l;
               dE/db_l = sum of the rows of g_l;  d_{l-1} = g_l W_l^T

All slopes s' are known from the value h alone: tanh 1 - h^2, sigmoid h (1 - h), relu [h > 0],
elu 1 or h + 1. A row's values depend neither on the other rows nor on the number of threads, and
sums over rows have one order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._engines.network.layers import Network


class Pass(NamedTuple):
    """The rows that went in, and the values (n, size) of each layer for them.

    ``kept`` are the same values, one layer after the other, as the kernel wrote them.
    """

    X: np.ndarray
    values: list[np.ndarray]
    kept: np.ndarray

    @property
    def output(self) -> np.ndarray:
        """Values of the last layer."""
        return self.values[-1]

    def first(self, n_layers: int) -> Pass:
        """The same pass through the first layers only."""
        values = self.values[:n_layers]
        return Pass(self.X, values, self.kept[: sum(h.size for h in values)])


class Slopes(NamedTuple):
    """dE/dweights, in the order of the weights, and dE/dX (n, n_in), or no rows of it."""

    weights: np.ndarray
    X: np.ndarray


def forward(network: Network, weights: np.ndarray, X: np.ndarray, threads: int) -> Pass:
    """Values of all layers; X and weights have the same type, float32 or float64."""
    return _forward(network, weights, X, 1, threads)


def _forward(
    network: Network, weights: np.ndarray, X: np.ndarray, first: int, threads: int
) -> Pass:
    """Keeps the layers from number ``first``, 1 ... L, on."""
    X, n = np.ascontiguousarray(X), len(X)
    widths = network.sizes[first:]
    kept = np.empty(n * sum(widths), dtype=X.dtype)
    _native.network_forward(*network.described(), weights, X, first, kept, threads)
    ends = np.cumsum([n * width for width in widths])
    parts = np.split(kept, ends[:-1])
    values = [part.reshape(n, width) for part, width in zip(parts, widths, strict=True)]
    return Pass(X, values, kept)


def backward(
    network: Network,
    weights: np.ndarray,
    passed: Pass,
    slope: np.ndarray,
    threads: int,
    *,
    with_x: bool = True,
) -> Slopes:
    """dE/dweights and, unless it is not wanted, dE/dX from ``slope`` = dE/doutput (n, n_out)."""
    gradient, slope_x = np.empty_like(weights), np.empty_like(passed.X if with_x else passed.X[:0])
    slope = np.ascontiguousarray(slope, dtype=weights.dtype)
    _native.network_backward(
        *network.described(),
        weights,
        passed.X,
        passed.kept,
        slope,
        gradient,
        slope_x,
        threads,
    )
    return Slopes(gradient, slope_x)


def apply(network: Network, weights: np.ndarray, X: np.ndarray, threads: int) -> np.ndarray:
    """The output alone, in the type of X; the weights are converted to it."""
    weights = np.ascontiguousarray(weights, dtype=X.dtype)
    return _forward(network, weights, X, network.n_layers, threads).output


def slope_at(h: np.ndarray, activation: str) -> np.ndarray | float:
    """s'(x) as a function of the value h = s(x)."""
    if activation == "tanh":
        return 1 - h * h
    if activation == "relu":
        return (h > 0).astype(h.dtype)
    if activation == "elu":
        return np.where(h > 0, 1, h + 1).astype(h.dtype)
    if activation == "sigmoid":
        return h * (1 - h)
    return 1.0


def jacobian(network: Network, weights: np.ndarray, X: np.ndarray, threads: int) -> np.ndarray:
    """d output_j / d x_k of each row, (n, n_out, n_in), by one backward pass per output."""
    weights = np.ascontiguousarray(weights, dtype=X.dtype)
    passed = forward(network, weights, X, threads)
    n_out = network.sizes[-1]
    slopes = np.empty((len(X), n_out, network.sizes[0]), dtype=X.dtype)
    for j in range(n_out):
        unit = np.zeros((len(X), n_out), dtype=X.dtype)
        unit[:, j] = 1
        slopes[:, j] = backward(network, weights, passed, unit, threads).X
    return slopes
