"""Probabilistic PCA: the conditional expectation of a Gaussian, one row at a time."""

from __future__ import annotations

import numpy as np

from support.oracles.basics import HeldOut


def expected_places(task: HeldOut) -> np.ndarray:
    """E[U diag(w) z | x_o] along the axes, from the covariance of the known columns.

    Without gaps the model itself is that of the eigenvalues of the covariance with divisor n.
    """
    model = task.model
    U, mean = model.components_.T, model.mean_
    variances, noise = model.explained_variance_, model.noise_variance_
    if not np.isnan(task.X).any():
        q = U.shape[1]
        values, axes = np.linalg.eigh(np.cov(task.X.T, bias=True))
        values, axes = values[::-1], axes[:, ::-1]
        mean, variances = task.X.mean(axis=0), values[:q]
        noise = values[q:].mean() if q < len(values) else 0.0
        U = axes[:, :q] * np.sign(np.sum(axes[:, :q] * U, axis=0))
    places = []
    for x in task.new:
        o = ~np.isnan(x)
        signal = (U * (variances - noise)) @ U[o].T  # covariance of signal and known columns
        S = signal[o] + noise * np.eye(o.sum())
        places.append(U.T @ signal @ np.linalg.solve(S, x[o] - mean[o]))
    return np.array(places)


def expected_rows(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    rows = [task.model.mean_ + task.model.components_.T @ z for z in Z]
    return np.array(rows)
