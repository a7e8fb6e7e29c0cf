"""The place of a new row after PHATE: one step of the walk to the landmarks."""

from __future__ import annotations

import math

import numpy as np

from support.oracles.basics import HeldOut, distances_of

THRESHOLD = 1e-4


def one_step_of_the_walk(task: HeldOut) -> np.ndarray:
    """sum_j K(x, x_j) z_j / sum_j K(x, x_j), z_j the place of row j, or of its landmark.

    K(x, y) = 1/2 A(d / e(x)) + 1/2 A(d / e(y)), e the distance to the k-th fitted row other than
    the row itself; A(r) = exp(-r^alpha) or 0 below the threshold, without alpha [r <= 1].
    """
    D, T = distances_of(task)
    n, alpha = len(D), task.params["decay"]
    k = min(task.params["n_neighbors"], n - 1)
    widths = [sorted(D[i][j] for j in range(n) if j != i)[k - 1] for i in range(n)]

    def A(ratio: float) -> float:
        if alpha is None:
            return float(ratio <= 1)
        value = math.exp(-(ratio**alpha)) if ratio < 1e6 else 0.0
        return value if value >= THRESHOLD else 0.0

    places = task.Y.astype(float)
    if task.params["n_landmarks"] < n:
        places = task.model.landmark_map_[task.model.landmarks_]
    k = min(task.params["n_neighbors"], n)
    Z = []
    for t in T:
        own = sorted(t)[k - 1]
        K = [A(t[j] / own) / 2 + A(t[j] / widths[j]) / 2 for j in range(n)]
        Z.append(sum(K[j] * places[j] for j in range(n)) / sum(K))
    return np.array(Z)
