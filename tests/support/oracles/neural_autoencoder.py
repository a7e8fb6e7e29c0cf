"""Autoencoder: the layers of encoder and decoder, unit by unit."""

from __future__ import annotations

import itertools
import math

import numpy as np

from support.oracles.basics import HeldOut

__all__ = ["code", "decoded"]

FUNCTIONS = {
    "tanh": math.tanh,
    "relu": lambda v: max(v, 0.0),
    "elu": lambda v: v if v > 0 else math.exp(v) - 1,
    "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    "linear": lambda v: v,
}


def _layers(weights: np.ndarray, sizes: list[int], h: np.ndarray, function: str) -> list[float]:
    """One row through all layers; the last one is linear."""
    at = 0
    for layer, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
        s = FUNCTIONS["linear" if layer == len(sizes) - 2 else function]
        offsets = weights[at + n_in * n_out :]
        h = [
            s(sum(h[i] * weights[at + i * n_out + j] for i in range(n_in)) + offsets[j])
            for j in range(n_out)
        ]
        at += (n_in + 1) * n_out
    return h


def _scales(task: HeldOut) -> tuple[np.ndarray, np.ndarray]:
    """Mean and divisor of each column, from the given rows."""
    n, mean = len(task.X), task.X.sum(axis=0) / len(task.X)
    deviation = np.sqrt(((task.X - mean) ** 2).sum(axis=0) / (n - 1))
    if not task.params["standardize"]:
        return mean, np.full_like(deviation, np.sqrt(np.mean(deviation**2)))
    scale = np.maximum(deviation, np.abs(task.X - mean).max(axis=0) / 5)
    return mean, np.where(scale > 0, scale, 1.0)


def code(task: HeldOut) -> np.ndarray:
    mean, scale = _scales(task)
    sizes = [int(size) for size in task.model.layer_sizes_]
    weights, function = task.model.encoder_weights_, task.params["activation"]
    return np.array([_layers(weights, sizes, (x - mean) / scale, function) for x in task.new])


def decoded(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    mean, scale = _scales(task)
    sizes = [int(size) for size in task.model.layer_sizes_][::-1]
    weights, function = task.model.decoder_weights_, task.params["activation"]
    return np.array([mean + scale * _layers(weights, sizes, z, function) for z in Z])
