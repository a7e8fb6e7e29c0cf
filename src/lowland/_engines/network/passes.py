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

from lowland._core.threads import limit_blas
from lowland._engines.network.layers import Network

__all__ = ["Pass", "Slopes", "apply", "backward", "forward", "jacobian"]


class Pass(NamedTuple):
    """The rows that went in, and the values (n, size) of each layer for them."""

    X: np.ndarray
    values: list[np.ndarray]

    @property
    def output(self) -> np.ndarray:
        """Values of the last layer."""
        return self.values[-1]


class Slopes(NamedTuple):
    """dE/dweights, in the order of the weights, and dE/dX (n, n_in)."""

    weights: np.ndarray
    X: np.ndarray


def forward(network: Network, weights: np.ndarray, X: np.ndarray, threads: int) -> Pass:
    """Values of all layers; X and weights have the same type, float32 or float64."""
    values, h = [], X
    with limit_blas(1):
        for W, b, activation in network.layers(weights):
            h = _activate(h @ W + b, activation)
            values.append(h)
    return Pass(X, values)


def backward(
    network: Network, weights: np.ndarray, passed: Pass, slope: np.ndarray, threads: int
) -> Slopes:
    """dE/dweights and dE/dX from ``slope`` = dE/doutput (n, n_out)."""
    gradient = np.zeros_like(weights)
    layers, into = network.layers(weights), network.layers(gradient)
    with limit_blas(1):
        for index in reversed(range(network.n_layers)):
            h = passed.values[index]
            g = slope * _slope_of(h, layers[index].activation)
            below = passed.values[index - 1] if index else passed.X
            into[index].W[...] += below.T @ g
            into[index].b[...] += g.sum(axis=0)
            slope = g @ layers[index].W.T
    return Slopes(gradient, slope)


def apply(network: Network, weights: np.ndarray, X: np.ndarray, threads: int) -> np.ndarray:
    """The output alone, in the type of X; the weights are converted to it."""
    return forward(network, weights.astype(X.dtype, copy=False), X, threads).output


def jacobian(network: Network, weights: np.ndarray, X: np.ndarray, threads: int) -> np.ndarray:
    """d output_j / d x_k of each row, (n, n_out, n_in), by one backward pass per output."""
    weights = weights.astype(X.dtype, copy=False)
    passed = forward(network, weights, X, threads)
    n_out = network.sizes[-1]
    slopes = np.empty((len(X), n_out, network.sizes[0]), dtype=X.dtype)
    for j in range(n_out):
        unit = np.zeros((len(X), n_out), dtype=X.dtype)
        unit[:, j] = 1
        slopes[:, j] = backward(network, weights, passed, unit, threads).X
    return slopes


def _activate(h: np.ndarray, activation: str) -> np.ndarray:
    if activation == "tanh":
        return np.tanh(h)
    if activation == "relu":
        return np.maximum(h, 0)
    if activation == "elu":
        return np.where(h > 0, h, np.expm1(np.minimum(h, 0)))
    if activation == "sigmoid":
        return 0.5 + 0.5 * np.tanh(0.5 * h)
    return h


def _slope_of(h: np.ndarray, activation: str) -> np.ndarray | float:
    if activation == "tanh":
        return 1 - h * h
    if activation == "relu":
        return (h > 0).astype(h.dtype)
    if activation == "elu":
        return np.where(h > 0, 1, h + 1).astype(h.dtype)
    if activation == "sigmoid":
        return h * (1 - h)
    return 1.0
