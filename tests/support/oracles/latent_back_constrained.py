"""Back-constrained GPLVM: g row by row, and the mean of the process by its definition."""

from __future__ import annotations

import numpy as np

from support.oracles.basics import HeldOut
from support.oracles.latent_gplvm import covariance_of


def _standardized(task: HeldOut, rows: np.ndarray) -> np.ndarray:
    return (rows - np.mean(task.X, axis=0)) / np.sqrt(np.mean(np.var(task.X, axis=0)))


def g_of_rows(task: HeldOut) -> np.ndarray:
    q, A, kind = task.Y.shape[1], task.model.coefficients_, task.params["mapping"]
    S, p = _standardized(task, task.new), task.X.shape[1]
    if kind == "linear":
        return np.array(
            [sum(y * a for y, a in zip(row, A.reshape(p, q), strict=True)) for row in S]
        )
    if kind == "network":
        h = task.params["hidden"]
        W, A = A[: p * h].reshape(p, h), A[p * h :]
        b, A = A[:h], A[h:]
        return np.tanh(S @ W + b) @ A[: h * q].reshape(h, q) + A[h * q :]
    rows = _standardized(task, task.X)
    pairs = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    width = task.params["width"] * np.median(pairs[np.triu_indices(len(rows), 1)])
    places = np.zeros((len(S), q))
    for i, row in enumerate(S):
        for center, a in zip(rows, A.reshape(-1, q), strict=True):
            places[i] += a * np.exp(-((row - center) @ (row - center)) / (2 * width**2))
    return places


def process_mean(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    """K* (K + s^2 I)^-1 Y, or the mean given inducing points, with a millionth on the diagonal."""
    Y, X = _standardized(task, task.X), task.Y.astype(float)
    mean, scale = np.mean(task.X, axis=0), np.sqrt(np.mean(np.var(task.X, axis=0)))
    noise, params = (task.model.noise_ / scale) ** 2, task.params
    k = covariance_of(params["kernel"], params["bias"], X.shape[1], task.model.log_parameters_)
    if task.model.inducing_points_ is None:
        K = k(X, X) + noise * np.eye(len(X))
        return mean + scale * k(Z, X) @ np.linalg.solve(K, Y)
    U = task.model.inducing_points_
    Kz, S1 = k(U, U), k(X, U)
    Kz += 1e-6 * np.mean(np.diag(Kz)) * np.eye(len(U))
    L = np.linalg.cholesky(Kz)  # least squares keep the digits that S1^T S1 would lose
    F = np.linalg.solve(L, S1.T).T
    ridge, none = np.sqrt(noise) * np.eye(len(U)), np.zeros((len(U), Y.shape[1]))
    inner = np.linalg.lstsq(np.vstack([F, ridge]), np.vstack([Y, none]), rcond=None)[0]
    return mean + scale * np.linalg.solve(L, k(Z, U).T).T @ inner
