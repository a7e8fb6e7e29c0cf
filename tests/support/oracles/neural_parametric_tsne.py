"""Parametric t-SNE: new rows go through the layers."""

from __future__ import annotations

import math

import numpy as np

from support.oracles.basics import HeldOut
from support.oracles.neural_network import network


def through_the_network(task: HeldOut) -> np.ndarray:
    """h_j = s(sum_i h_i W_ij + b_j) for each layer; the last one is linear."""
    X, p = task.X, task.X.shape[1]
    lengths = [math.dist(x, np.median(X, axis=0)) for x in X]
    X = X[[length <= 10 * np.median(lengths) for length in lengths]]
    mean, deviations = X.mean(axis=0), X.std(axis=0, ddof=1)
    if not task.params["standardize"]:
        deviations = np.full(p, math.sqrt(np.mean(deviations**2)))
    hidden = task.params["hidden"]
    hidden = [256, 128] if hidden == "auto" else np.atleast_1d(hidden).tolist()
    sizes = [p, *hidden, task.Y.shape[1]]
    values = (task.new - mean) / deviations
    return network(values, task.model.weights_, sizes, task.params["activation"])
