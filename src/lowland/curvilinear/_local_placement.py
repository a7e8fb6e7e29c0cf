"""New rows in a map of local MDS: each minimizes its own part of the stress.

    s(z) = sum_{j in N(z)} (delta_j - |z - y_j|)^2 - t sum_{j not in N(z)} |z - y_j|

N(z) are the k nearest fitted rows. The quadratic of k neighbors majorizes s, so that the step
slope / k never raises it.
"""

from __future__ import annotations

import itertools

import numpy as np

from lowland._engines.neighbors.search import given_neighbors
from lowland._engines.stress.placement import lowest_places
from lowland.curvilinear._distance_sums import SumsToPoints


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
    sums_to_points = SumsToPoints(Y, threads)

    def height(Z: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        along = Z[:, None, :] - Y[near[rows]]  # (m, k, q)
        d = np.sqrt(np.einsum("ikd,ikd->ik", along, along))
        gap = delta[rows] - d
        sums, units = sums_to_points(Z)
        value = np.einsum("ik,ik->i", gap, gap) - t * (sums - np.einsum("ik->i", d))
        pull = np.where(d > 0, (gap - t / 2) / np.where(d > 0, d, 1.0), 0.0)
        slope = -np.einsum("ik,ikd->id", pull, along) - (t / 2) * units
        return value, slope / k

    # neighbors in a line do not tell the side of it
    middle = np.einsum("ikd->id", Y[near]) / k
    reach = np.einsum("ik->i", delta) / k
    around = [middle + reach[:, None] * direction for direction in _directions(Y.shape[1])]
    return lowest_places(D, Y, height, threads, around)


def _directions(q: int) -> list[np.ndarray]:
    """Unit vectors along the axes and, up to three, the diagonals between them."""
    if q > 3:
        return [sign * axis for axis in np.eye(q) for sign in (1, -1)]
    steps = [np.array(step) for step in itertools.product((-1.0, 0.0, 1.0), repeat=q) if any(step)]
    return [step / np.sqrt((step**2).sum()) for step in steps]
