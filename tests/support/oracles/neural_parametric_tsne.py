"""Parametric t-SNE: new rows go through the layers, unit by unit."""

from __future__ import annotations

import math

import numpy as np

from support.oracles.basics import HeldOut

__all__ = ["through_the_network"]

ACTIVATIONS = {
    "tanh": math.tanh,
    "relu": lambda h: max(h, 0.0),
    "elu": lambda h: h if h > 0 else math.exp(h) - 1,
    "sigmoid": lambda h: 1 / (1 + math.exp(-h)),
}


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
    places = []
    for x in task.new:
        h = [float(v) for v in (x - mean) / deviations]
        weights = iter(task.model.weights_.tolist())
        for layer, n_out in enumerate(sizes[1:]):
            W = [[next(weights) for _ in range(n_out)] for _ in h]
            sums = [next(weights) for _ in range(n_out)]
            for value, row in zip(h, W, strict=True):
                sums = [s + value * w for s, w in zip(sums, row, strict=True)]
            last = layer == len(sizes) - 2
            h = sums if last else [ACTIVATIONS[task.params["activation"]](s) for s in sums]
        places.append(h)
    return np.array(places)
