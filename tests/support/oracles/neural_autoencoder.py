"""Autoencoder: the layers of encoder and decoder."""

from __future__ import annotations

import numpy as np

from support.oracles.basics import HeldOut
from support.oracles.neural_network import network


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
    return network((task.new - mean) / scale, weights, sizes, function)


def decoded(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    mean, scale = _scales(task)
    sizes = [int(size) for size in task.model.layer_sizes_][::-1]
    weights, function = task.model.decoder_weights_, task.params["activation"]
    return mean + scale * network(Z, weights, sizes, function)
