"""New rows in a map of local MDS: each minimizes its own part of the stress.

    s(z) = sum_{j in N(z)} (delta_j - |z - y_j|)^2 - t sum_{j not in N(z)} |z - y_j|

N(z) are the k nearest fitted rows. The quadratic of k neighbors majorizes s, so that the step
slope / k never raises it.
"""

from __future__ import annotations

import numpy as np

from lowland import _native
from lowland._engines.neighbors.search import given_neighbors
from lowland._engines.stress.placement import lowest_places

__all__ = ["place_by_local_stress"]


def place_by_local_stress(
    D: np.ndarray, Y: np.ndarray, k: int, t: float, threads: int
) -> np.ndarray:
    """Places (m, q) of rows with the distances D (m, n) to the fitted rows.

    A row at distance 0 from a fitted row gets its place.
    """
    Y = np.ascontiguousarray(Y, np.float64)
    same = D == 0
    equal = same.any(axis=1)
    Z = Y[same.argmax(axis=1)]
    new = np.flatnonzero(~equal)
    if new.size:
        Z[new] = _lowest(np.ascontiguousarray(D[new], np.float64), Y, k, t, threads)
    return Z


def _lowest(D: np.ndarray, Y: np.ndarray, k: int, t: float, threads: int) -> np.ndarray:
    found = given_neighbors(D, k)
    near, delta = found.indices, found.distances

    def height(Z: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        along = Z[:, None, :] - Y[near[rows]]  # (m, k, q)
        d = np.sqrt(np.einsum("ikd,ikd->ik", along, along))
        gap = delta[rows] - d
        sums, units = np.empty(len(Z)), np.empty(Z.shape)
        _native.unit_sums(np.ascontiguousarray(Z), Y, sums, units, threads)
        value = np.einsum("ik,ik->i", gap, gap) - t * (sums - np.einsum("ik->i", d))
        pull = np.where(d > 0, (gap - t / 2) / np.where(d > 0, d, 1.0), 0.0)
        slope = -np.einsum("ik,ikd->id", pull, along) - (t / 2) * units
        return value, slope / k

    # neighbors in a line do not tell the side of it
    middle = np.einsum("ikd->id", Y[near]) / k
    reach = np.einsum("ik->i", delta) / k
    sides = [sign * reach[:, None] * axis for axis in np.eye(Y.shape[1]) for sign in (1, -1)]
    around = [middle + side for side in sides]
    return lowest_places(D, Y, height, threads, around)
