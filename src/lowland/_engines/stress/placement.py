"""Out-of-sample placement in a fixed map: each new row minimizes its own stress.

    s(z) = sum_j w_j (delta_j - |z - y_j|)^2

The Guttman transform of one point, z - sum_j w_j (1 - delta_j / |z - y_j|) (z - y_j) / sum_j w_j,
never raises s; longer steps in its direction are tried first. s has several minima, so there are
several starts: between the nearest fitted points, from all of them by triangulation, opposite to
that, and at the fitted points where s is lowest. The result with the lowest s counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lowland import _native
from lowland._base.threads import limit_blas
from lowland._engines.neighbors.block_search import nearest_in_rows
from lowland._engines.stress.classical_scaling import gower_placement
from lowland._engines.stress.objective import inverse_powers

# (places, numbers of their rows) -> stress, and the step of the Guttman transform
Height = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]

STEPS = 2000  # only rows in a flat valley take more than some hundred
# of the width of the map: a row that moves less has converged, and roughly so to compare starts
CLOSE, ROUGH = 1e-9, 1e-4
LONGEST = 16.0
NEAREST = 3
TRIED, TAKEN = 32, 2  # fitted points where s is computed, and those of them that are starts


def place_by_stress(
    delta: np.ndarray, Y: np.ndarray, power: int, equal: np.ndarray, threads: int
) -> np.ndarray:
    """Places (m, q) for rows with targets ``delta`` (m, n); NaN is an unknown distance.

    ``equal[i]`` is the fitted point that row i equals, or -1: such rows get that point's place.
    """
    Y = np.ascontiguousarray(Y, np.float64)
    Z = np.empty((len(delta), Y.shape[1]))
    Z[equal >= 0] = Y[equal[equal >= 0]]
    new = np.flatnonzero(equal < 0)
    if new.size:
        Z[new] = _lowest(np.ascontiguousarray(delta[new]), Y, power, threads)
    return Z


def equal_points(
    D: np.ndarray, delta: np.ndarray, Y: np.ndarray, power: int, threads: int
) -> np.ndarray:
    """The fitted point at distance 0 in D from each row, or -1.

    Of several in different places it is the one with the lowest stress for the targets ``delta``.
    """
    same = D == 0
    equal = np.where(same.any(axis=1), same.argmax(axis=1), -1)
    Y, none = np.ascontiguousarray(Y, np.float64), np.empty((0, 0))
    for row in np.flatnonzero(same.sum(axis=1) > 1):
        points = np.flatnonzero(same[row])
        if (Y[points] == Y[points[0]]).all():
            continue
        stress, forces = np.empty(len(points)), np.empty((len(points), Y.shape[1]))
        targets = np.repeat(delta[row][None, :], len(points), axis=0)
        _native.stress_rows(Y[points], Y, targets, none, power, stress, forces, threads)
        equal[row] = points[stress.argmin()]
    return equal


def _lowest(delta: np.ndarray, Y: np.ndarray, power: int, threads: int) -> np.ndarray:
    if power > 0:  # a target of 0 would have an infinite weight
        least = np.where(delta > 0, delta, np.inf).min(axis=1, keepdims=True)
        delta = np.where(delta == 0, np.where(np.isfinite(least), 1e-3 * least, 1.0), delta)
    degrees = inverse_powers(delta, power).sum(axis=1)

    def height(Z: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        stress, forces = np.empty(len(Z)), np.empty(Z.shape)
        none = np.empty((0, 0))
        part = np.ascontiguousarray(delta[rows])
        _native.stress_rows(np.ascontiguousarray(Z), Y, part, none, power, stress, forces, threads)
        return stress, forces / degrees[rows, None]

    return lowest_places(delta, Y, height, threads)


def lowest_places(
    delta: np.ndarray,
    Y: np.ndarray,
    height: Height,
    threads: int,
    more_starts: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """Places (m, q) where the height of each row is lowest, of the minima below several starts.

    The starts come from the distances ``delta`` (m, n) of the rows to the fitted points Y; others
    (m, q) may be added.
    """
    width = float(np.abs(Y - Y.mean(axis=0)).max()) or 1.0
    starts = [between_nearest(delta, Y), *_lowest_points(Y, height, len(delta)), *more_starts]
    whole = ~np.isnan(delta).any(axis=1)
    if len(Y) > Y.shape[1] and whole.any():
        start = starts[0].copy()
        start[whole] = _triangulated(delta[whole], Y, threads)
        starts += [start, 2 * Y.mean(axis=0) - start]
    best, lowest = starts[0], np.full(len(delta), np.inf)
    for start in starts:
        found, low = settled(start, height, ROUGH * width)
        best = np.where((low < lowest)[:, None], found, best)
        lowest = np.minimum(low, lowest)
    return settled(best, height, CLOSE * width)[0]


def _lowest_points(Y: np.ndarray, height: Height, m: int) -> list[np.ndarray]:
    """For each of m rows the fitted points with the lowest stress, of evenly spread ones."""
    some = Y[np.linspace(0, len(Y) - 1, min(len(Y), TRIED)).astype(np.int64)]
    rows = np.arange(m)
    values = np.column_stack([height(np.repeat(y[None], m, axis=0), rows)[0] for y in some])
    order = np.argsort(values, axis=1, kind="stable")[:, :TAKEN]
    return [some[places] for places in order.T]


def between_nearest(delta: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The mean of the nearest fitted points, weighted by their inverse distances."""
    known = np.where(np.isnan(delta), np.inf, delta)
    near, _ = nearest_in_rows(known, min(NEAREST, delta.shape[1]))
    reach = np.take_along_axis(delta, near, axis=1)
    weight = np.where(np.isnan(reach), 0.0, 1 / np.maximum(reach, 1e-300))
    weight = np.minimum(weight / weight.max(axis=1, keepdims=True), 1.0)
    weight /= weight.sum(axis=1, keepdims=True)
    return np.einsum("ik,ikd->id", weight, Y[near])


def _triangulated(delta: np.ndarray, Y: np.ndarray, threads: int) -> np.ndarray:
    """Least squares on delta_j^2 = |z|^2 - 2 z.y_j + |y_j|^2 around the mean of the map."""
    mean = Y.mean(axis=0)
    centered = Y - mean
    with limit_blas(1):  # the last digits must not depend on the number of threads
        inverse = np.linalg.pinv(centered)  # q x n
    squares = np.einsum("jd,jd->j", centered, centered)
    return gower_placement(delta**2, squares, 0.5 * inverse.T, threads) + mean


def settled(Z: np.ndarray, height: Height, close: float) -> tuple[np.ndarray, np.ndarray]:
    """Descend from every row to its own minimum; rows that have converged are left out."""
    Z, rows = Z.copy(), np.arange(len(Z))
    value, step = height(Z, rows)
    lowest, share = value.copy(), np.ones(len(Z))
    for _ in range(STEPS):
        tried = Z[rows] - share[:, None] * step
        there, next_step = height(tried, rows)
        better = there < value
        Z[rows[better]] = tried[better]
        lowest[rows[better]] = there[better]
        # the plain transform fails by rounding only; longer steps may fail
        going = np.where(better, np.sqrt((step**2).sum(axis=1)) * share > close, share > 1)
        value = np.where(better, there, value)
        step = np.where(better[:, None], next_step, step)
        share = np.where(better, np.minimum(1.5 * share, LONGEST), 1.0)
        if not going.any():
            break
        rows, share, value, step = rows[going], share[going], value[going], step[going]
    return Z, lowest
