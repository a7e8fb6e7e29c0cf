"""Out-of-sample placement by a law: each new row minimizes its own potential in a fixed map.

    u(z) = sum_j u_j(|z - y_j|; delta_j, radii)

With the weights as they are, z - sum_j w_j (1 - delta_j / d_j) (z - y_j) / sum_j w_j lowers the
stress of the row. A law that counts near points only has many minima, and where neighbors were torn
apart, the place between them is near neither. So u is computed at the places of the nearest fitted
points and at their mean, and the descents begin at the lowest of these. The result with the lowest
u counts.

With a step as its law, u has creases: circles around points that are too near, where their push
ends. A minimum often lies in a crease, and steps against the slope go to and fro across it. The
mean of the last slopes points along the crease; steps along this mean, which become shorter by a
constant factor, reach the minimum to within some thousandths of the width.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from lowland._engines.local_stress.objective import AllPairs, Law, PointSums
from lowland._engines.stress.placement import Height, between_nearest, equal_points, settled

FLOAT64_POINTS = 1000  # distances to more points are float32, which is twice as fast
NEAREST, TAKEN = 8, 2  # places where u is computed, and those of them that are starts
# of the width of the map: a row that moves less has converged, and roughly so to compare starts
CLOSE, ROUGH = 1e-5, 1e-4
LONGEST, SHORTEST = 0.05, 1e-3  # first and last step along creases, of the width of the map
SHORTER, KEPT = 0.88, 0.6
AROUND = 0.03  # first distance of the places around a row: shallow minima lie closer together
ROUNDS = 2000  # of them at most: a potential may fall by its last digits for ever


def place_by_law(
    delta: np.ndarray, Y: np.ndarray, law: Law, own: np.ndarray, radii: np.ndarray, threads: int
) -> np.ndarray:
    """Places (m, q) for rows with distances ``delta`` (m, n) and radii ``own`` (m,).

    A row at distance 0 from a fitted point gets that point's place.
    """
    Y = np.ascontiguousarray(Y, np.float64)
    equal = equal_points(delta, delta, Y, 0, threads)
    Z = Y[np.maximum(equal, 0)]
    new = np.flatnonzero(equal < 0)
    if new.size:
        targets = np.ascontiguousarray(delta[new], _dtype(Y))
        height = law_height(targets, Y, law, own[new], radii, threads)
        best, low = lowest_nearby(targets, Y, height)
        # a row far from the map moves on a large circle around it
        size = np.maximum(_width(Y), targets.min(axis=1).astype(np.float64))
        best, low = _along_creases(best, low, height, size)
        Z[new] = _lowest_around(best, low, height, size)
    return Z


def law_height(
    delta: np.ndarray, Y: np.ndarray, law: Law, own: np.ndarray, radii: np.ndarray, threads: int
) -> Height:
    """The potential of rows at given places, and the step that lowers it."""

    def height(Z: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        part = delta if len(rows) == len(delta) else delta[rows]
        sums = sums_at(Z, part, Y, law, own[rows], radii, threads)
        degrees = np.where(sums.degrees > 0, sums.degrees, 1.0)
        return sums.potential, sums.forces / degrees[:, None]

    return height


def sums_at(
    Z: np.ndarray,
    delta: np.ndarray,
    Y: np.ndarray,
    law: Law,
    own: np.ndarray,
    radii: np.ndarray,
    threads: int,
) -> PointSums:
    """Stress, potential, weights and forces of rows at the places Z."""
    pairs = AllPairs(np.ascontiguousarray(delta, _dtype(Y)), threads)
    return pairs.sums_of_new(Z, Y, law, own, radii)


def lowest_nearby(
    delta: np.ndarray, Y: np.ndarray, height: Height
) -> tuple[np.ndarray, np.ndarray]:
    """Roughly the lowest places that descents from near the nearest points lead to, and u there."""
    m, rows = len(delta), np.arange(len(delta))
    near = np.argsort(delta, axis=1, kind="stable")[:, :NEAREST]
    places = np.concatenate([between_nearest(delta, Y)[:, None], Y[near]], axis=1)
    values = np.column_stack([height(places[:, c], rows)[0] for c in range(places.shape[1])])
    close = ROUGH * _width(Y)
    best, lowest = places[:, 0], np.full(m, np.inf)
    for start in np.argsort(values, axis=1, kind="stable")[:, :TAKEN].T:
        found, low = settled(places[rows, start], height, close)
        best = np.where((low < lowest)[:, None], found, best)
        lowest = np.minimum(low, lowest)
    return best, lowest


def _along_creases(
    Z: np.ndarray, lowest: np.ndarray, height: Height, size: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest places that steps of decreasing length visit, each along a mean of slopes."""
    rows = np.arange(len(Z))
    best, lowest = Z.copy(), lowest.copy()
    at, mean, share = Z, np.zeros(Z.shape), LONGEST
    while share > SHORTEST:
        value, step = height(at, rows)
        better = value < lowest
        best[better], lowest = at[better], np.minimum(value, lowest)
        mean = KEPT * mean + (1 - KEPT) * step
        norm = np.sqrt((mean**2).sum(axis=1))
        at = at - np.minimum(1.0, share * size / np.where(norm > 0, norm, 1.0))[:, None] * mean
        share *= SHORTER
    return best, lowest


def _lowest_around(
    Z: np.ndarray, lowest: np.ndarray, height: Height, size: np.ndarray
) -> np.ndarray:
    """Each row goes to the lowest of the places around it, which come closer if it is none."""
    around = _neighborhood(Z.shape[1])
    Z, lowest, rows = Z.copy(), lowest.copy(), np.arange(len(Z))
    length = AROUND * size
    for _ in range(ROUNDS):
        if not rows.size:
            break
        tried = Z[rows][:, None] + length[rows, None, None] * around
        values = np.column_stack([height(tried[:, c], rows)[0] for c in range(len(around))])
        chosen = values.argmin(axis=1)
        there = values[np.arange(len(rows)), chosen]
        better = there < lowest[rows]
        moved = rows[better]
        Z[moved], lowest[moved] = tried[np.flatnonzero(better), chosen[better]], there[better]
        length[rows] = np.where(
            better, np.minimum(2 * length[rows], AROUND * size[rows]), length[rows] / 2
        )
        rows = rows[length[rows] > CLOSE * size[rows]]
    return Z


def _neighborhood(q: int) -> np.ndarray:
    """Offsets to the nodes of a grid around one; in many dimensions those along the axes only."""
    if q > 3:
        return np.vstack([np.eye(q), -np.eye(q)])
    nodes = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=q)))
    return nodes[nodes.any(axis=1)]


def _dtype(Y: np.ndarray) -> Any:
    return np.float64 if len(Y) <= FLOAT64_POINTS else np.float32


def _width(Y: np.ndarray) -> float:
    return float(np.abs(Y - Y.mean(axis=0)).max()) or 1.0
