"""Out-of-sample rows of maximum variance unfolding."""

from __future__ import annotations

import numpy as np

from support.oracles.basics import HeldOut, distances_of, first_nearest


def lateration(task: HeldOut) -> np.ndarray:
    """2 (y_j - m).(z - m) = |y_j - m|^2 - d_j^2 - mean, in least squares, in all axes of Y.

    Directions in which the neighbors spread less than a fifth of the most are left out.
    """
    model, T = task.model, distances_of(task, graph=True)[1]
    T = np.delete(T, model.excluded_, axis=1)
    Y = model.factor_ * model.edge_unit_
    Z = []
    for t in T:
        near = first_nearest(t, task.params["n_neighbors"])
        m = sum(Y[j] for j in near) / len(near)
        sides = np.array([((Y[j] - m) ** 2).sum() - t[j] ** 2 for j in near])
        U, s, V = np.linalg.svd(np.array([Y[j] - m for j in near]), full_matrices=False)
        wide = s > 0.2 * s[0]
        z = m + V[wide].T @ ((U.T @ (sides - sides.mean()))[wide] / (2 * s[wide]))
        Z.append(z[: task.Y.shape[1]])
    return np.array(Z)
