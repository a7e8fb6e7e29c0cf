"""Back-constrained GPLVM: g row by row, and the mean of the process by its definition."""

from __future__ import annotations

import numpy as np

from support.oracles.basics import HeldOut

__all__ = ["g_of_rows", "process_mean"]


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


def _covariance(task: HeldOut, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """k(x, z) pair by pair, from the logarithms of its parameters."""
    kind, q, values = task.params["kernel"], X.shape[1], list(np.exp(task.model.log_parameters_))
    v, lengths = (values.pop(0), [values.pop(0) for _ in range(q)]) if kind != "linear" else (0, 1)
    weights = [values.pop(0) for _ in range(q)] if "linear" in kind else 0
    bias = values.pop(0) if task.params["bias"] else 0
    assert not values
    K = np.empty((len(X), len(Z)))
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            r = np.sqrt(np.sum(((x - z) / lengths) ** 2))
            shape = {
                "matern32": (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
                "matern52": (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r),
            }.get(kind, np.exp(-(r**2) / 2))
            K[i, j] = v * shape + np.sum(weights * x * z) + bias
    return K


def process_mean(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    """K* (K + s^2 I)^-1 Y, or the mean given inducing points, with a millionth on the diagonal."""
    Y, X = _standardized(task, task.X), task.Y.astype(float)
    mean, scale = np.mean(task.X, axis=0), np.sqrt(np.mean(np.var(task.X, axis=0)))
    noise = (task.model.noise_ / scale) ** 2
    if task.model.inducing_points_ is None:
        K = _covariance(task, X, X) + noise * np.eye(len(X))
        return mean + scale * _covariance(task, Z, X) @ np.linalg.solve(K, Y)
    U = task.model.inducing_points_
    Kz, S1 = _covariance(task, U, U), _covariance(task, X, U)
    Kz += 1e-6 * np.mean(np.diag(Kz)) * np.eye(len(U))
    L = np.linalg.cholesky(Kz)  # least squares keep the digits that S1^T S1 would lose
    F = np.linalg.solve(L, S1.T).T
    ridge, none = np.sqrt(noise) * np.eye(len(U)), np.zeros((len(U), Y.shape[1]))
    inner = np.linalg.lstsq(np.vstack([F, ridge]), np.vstack([Y, none]), rcond=None)[0]
    return mean + scale * np.linalg.solve(L, _covariance(task, Z, U).T).T @ inner
