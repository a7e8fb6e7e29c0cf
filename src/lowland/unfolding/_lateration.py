"""Lateration: a new row is placed by its distances to its nearest rows of the map.

The equations |z - y_j|^2 = d_j^2, minus their mean over the neighbors j, are linear in z:

    2 (y_j - m).(z - m) = b_j - mean(b),   b_j = |y_j - m|^2 - d_j^2,   m the mean of the y_j.

Their least squares solution is exact if a place with these distances exists. Directions in which
the neighbors hardly spread are left out: there, z - m would be a magnified error of the distances.
"""

from __future__ import annotations

import numpy as np

from lowland._core.threads import limit_blas
from lowland._engines.linalg.blocks import row_blocks, rows_within

FLAT = 0.2  # of the widest spread of the neighbors; from 0.05 to 0.3 new rows are placed as well


def place_by_lateration(Y: np.ndarray, near: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Places (m, r) of rows with distances d (m, k) to the points ``near`` (m, k) of Y (n, r).

    A neighbor with the number -1 is missing; each row has at least one.
    """
    Z = np.empty((len(near), Y.shape[1]))
    for rows in row_blocks(len(Z), rows_within(32 * near.shape[1] * Y.shape[1])):
        known = (near[rows] >= 0).astype(np.float64)
        count = known.sum(axis=1, keepdims=True)
        points = Y[np.maximum(near[rows], 0)]
        mean = np.einsum("ij,ijd->id", known / count, points)
        spread = (points - mean[:, None]) * known[:, :, None]
        b = known * (np.einsum("ijd,ijd->ij", spread, spread) - d[rows] ** 2)
        b -= known * b.sum(axis=1, keepdims=True) / count
        with limit_blas(1):
            Z[rows] = mean + 0.5 * np.einsum("idj,ij->id", np.linalg.pinv(spread, rcond=FLAT), b)
    return Z
