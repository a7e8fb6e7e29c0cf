"""Bayesian GPLVM: the process at a place by its definition, and the density of a row there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.oracles.basics import HeldOut


def _scales(task: HeldOut) -> tuple[np.ndarray, float]:
    return np.mean(task.X, axis=0), float(np.sqrt(np.mean(np.var(task.X, axis=0))))


def _covariance(task: HeldOut, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    q, values = X.shape[1], list(np.exp(task.model.log_parameters_))
    bias = values.pop() if task.params["bias"] else 0.0
    K = np.full((len(X), len(Z)), bias)
    if task.params["kernel"] == "linear":
        for k in range(q):
            K += values[k] * np.outer(X[:, k], Z[:, k])
        return K
    squares = sum(((X[:, None, k] - Z[None, :, k]) / values[1 + k]) ** 2 for k in range(q))
    return K + values[0] * np.exp(-squares / 2)


def expected_rows(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    mean, scale = _scales(task)
    return mean + scale * _covariance(task, Z, task.model.inducing_points_) @ task.model.weights_


def row_heights(task: HeldOut) -> list[Callable]:
    """-log N(y; mean(x), var(x) + noise) - log N(x; 0, d^2) of rows, up to constants."""
    mean, scale = _scales(task)
    noise, U = (task.model.noise_ / scale) ** 2, task.model.inducing_points_

    def height(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        K = _covariance(task, X, U)
        own = np.array([_covariance(task, x[None], x[None])[0, 0] for x in X])
        variance = own - np.sum((K @ task.model.precision_) * K, axis=1)
        variance = np.maximum(variance, 0) + noise
        rest = np.sum((y - K @ task.model.weights_) ** 2, axis=1)
        density = 0.5 * len(y) * np.log(variance) + rest / (2 * variance)
        return density + 0.5 * np.sum((X / task.model.prior_deviations_) ** 2, axis=1)

    return [lambda X, y=y: height(X, y) for y in (task.new - mean) / scale]
