"""Gaussian process latent variables: the process by matrices written out, and rows' densities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.oracles.basics import HeldOut


def _radial(kind: str, r: np.ndarray) -> np.ndarray:
    if kind == "rbf":
        return np.exp(-(r**2) / 2)
    if kind == "matern32":
        return (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)
    return (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)


def covariance_of(kernel: str, bias: bool, q: int, theta: np.ndarray) -> Callable:
    """k(A, B), one pair at a time, from the logarithms of its parameters in their order."""
    values = list(np.exp(theta))
    radial = kernel.replace("+linear", "").replace("linear", "")
    v = values.pop(0) if radial else 0.0
    lengths = np.array([values.pop(0) for _ in range(q)]) if radial else np.ones(q)
    weights = np.zeros(q)
    if kernel.endswith("linear"):
        weights = np.array([values.pop(0) for _ in range(q)])
    b = values.pop(0) if bias else 0.0
    assert not values

    def k(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        K = np.full((len(A), len(B)), b)
        for i, a in enumerate(A):
            if radial:
                K[i] += v * _radial(radial, np.sqrt((((a - B) / lengths) ** 2).sum(axis=1)))
            K[i] += (a * weights * B).sum(axis=1)
        return K

    return k


def _process(task: HeldOut) -> tuple[Callable, Callable, float, float]:
    """Mean and variance of standardized rows at places, the noise variance, and the scale."""
    params, model, Y = task.params, task.model, task.X - task.X.mean(axis=0)
    scale = np.sqrt(np.mean(Y.var(axis=0)))
    Y, noise, X = Y / scale, float(model.noise_ / scale) ** 2, task.Y.astype(float)
    k = covariance_of(params["kernel"], params["bias"], X.shape[1], model.log_parameters_)
    if model.inducing_points_ is None:
        Z, P = X, np.linalg.inv(k(X, X) + noise * np.eye(len(X)))
        weights = P @ Y
    else:
        Z = model.inducing_points_
        Kz, Kzn = k(Z, Z), k(Z, X)
        Kz += 1e-6 * np.mean(np.diag(Kz)) * np.eye(len(Z))
        S = np.linalg.inv(Kz + Kzn @ Kzn.T / noise)
        P, weights = np.linalg.inv(Kz) - S, S @ Kzn @ Y / noise

    def mean(A: np.ndarray) -> np.ndarray:
        return k(A, Z) @ weights

    def variance(A: np.ndarray) -> np.ndarray:
        K = k(A, Z)
        own = np.array([k(a[None], a[None])[0, 0] for a in A])
        return np.maximum(own - np.einsum("ij,jk,ik->i", K, P, K), 0)

    return mean, variance, noise, scale


def process_mean(task: HeldOut, places: np.ndarray) -> np.ndarray:
    mean, _, _, scale = _process(task)
    return task.X.mean(axis=0) + scale * mean(places)


def process_variance(task: HeldOut, places: np.ndarray) -> np.ndarray:
    """Of a new row, noise included, in each column."""
    _, variance, noise, scale = _process(task)
    return scale**2 * (variance(places) + noise)


def row_densities(task: HeldOut) -> list[Callable]:
    """Minus the log-density of a row and its place, for each new row."""
    mean, variance, noise, scale = _process(task)
    rows = (task.new - task.X.mean(axis=0)) / scale
    deviations = task.model.prior_deviations_

    def height(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        s2 = variance(Z) + noise
        squares = ((y - mean(Z)) ** 2).sum(axis=1)
        return (
            len(y) / 2 * np.log(s2) + squares / (2 * s2) + ((Z / deviations) ** 2).sum(axis=1) / 2
        )

    return [lambda Z, y=y: height(Z, y) for y in rows]
