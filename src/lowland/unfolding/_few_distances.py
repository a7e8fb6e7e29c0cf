"""Places of rows of which few distances are known: Newton's method from several starts.

The stress of a few distances to points near each other is a long flat valley. Steps of majorization
become short there long before the minimum; Newton's method (with Levenberg's damping, where the
stress is not convex) needs a few steps more. There may also be several valleys, on either side of
the points, so that it starts on all sides of them. Only known distances are read, so that a row
costs less than by :func:`lowland._engines.stress.placement.place_by_stress`.
"""

from __future__ import annotations

import itertools

import numpy as np

from lowland._core.threads import limit_blas

STEPS = 60
SMALL = 1e-3  # of the distances: shorter ones weigh no more in the first start
LEAST_DAMPING = 1e-12  # relative to the number of distances
CLOSE = 1e-10  # of the distances: shorter steps end the search
ROUNDING = 1e-9  # relative; of heights that differ by less, the first counts
TINY = 1e-280  # determinants below it are those of no matrix that can be solved


def place_by_few(delta: np.ndarray, Y: np.ndarray, most: int) -> np.ndarray:
    """Places (m, q) of rows with at most ``most`` known distances ``delta`` (m, n) to points Y.

    NaN is an unknown distance. No row depends on the others.
    """
    # as many columns for any rows: sums of other lengths would round otherwise
    columns = np.argsort(np.isnan(delta), axis=1, kind="stable")[:, :most]
    t = np.take_along_axis(delta, columns, axis=1)
    w = np.isfinite(t) * 1.0
    with limit_blas(1):
        return _lowest(np.where(w > 0, t, 0.0), w, Y[columns])


def _lowest(t: np.ndarray, w: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The lowest of the minima below starts between the nearest points and on all sides of them."""
    share = w / w.sum(axis=1, keepdims=True)
    center = np.einsum("mn,mnq->mq", share, points)
    radius = np.sqrt(np.einsum("mn,mn->m", share, t**2))
    near = share / np.maximum(t / radius[:, None], SMALL) ** 2
    near /= near.sum(axis=1, keepdims=True)
    best, lowest = _newton(np.einsum("mn,mnq->mq", near, points), t, w, points)
    for axis, side in itertools.product(range(points.shape[2]), (-1, 1)):
        start = center.copy()
        start[:, axis] += side * radius
        found, height = _newton(start, t, w, points)
        lower = height < lowest * (1 - ROUNDING)
        best = np.where(lower[:, None], found, best)
        lowest = np.where(lower, height, lowest)
    return best


def _newton(
    Z: np.ndarray, t: np.ndarray, w: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places where each row's sum_j w_j (t_j - |z - y_j|)^2 is lowest near Z, and the sums."""
    rows, one = np.arange(len(Z)), np.eye(Z.shape[1])
    height, slope, curve = _derivatives(Z, t, w, points)
    found, lowest = Z.copy(), height.copy()
    damping = least = LEAST_DAMPING * w.sum(axis=1)
    for _ in range(STEPS):
        damped = curve + damping[:, None, None] * one
        going = np.abs(np.linalg.det(damped)) > TINY
        damped[~going] = one
        step = -np.linalg.solve(damped, slope[:, :, None])[:, :, 0]
        there = _derivatives(Z + step, t, w, points)
        better = going & (there[0] < height)
        Z = np.where(better[:, None], Z + step, Z)
        height = np.where(better, there[0], height)
        slope = np.where(better[:, None], there[1], slope)
        curve = np.where(better[:, None, None], there[2], curve)
        damping = np.where(better, np.maximum(damping / 10, least), np.maximum(10 * damping, 1e-6))
        found[rows], lowest[rows] = Z, height
        going &= np.abs(step).max(axis=1) > CLOSE * t.max(axis=1)
        if not going.any():
            break
        if not going.all():  # rows that have arrived are left out
            rows, Z, t, w, points = (part[going] for part in (rows, Z, t, w, points))
            height, slope, curve = height[going], slope[going], curve[going]
            damping, least = damping[going], least[going]
    return found, lowest


def _derivatives(
    Z: np.ndarray, t: np.ndarray, w: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The stress of each row, and half its gradient and Hessian."""
    along = Z[:, None] - points
    d = np.sqrt(np.einsum("mnq,mnq->mn", along, along))
    pull = w * np.where(d > 0, t / np.where(d > 0, d, 1.0), 0.0)
    unit = along / np.where(d > 0, d, 1.0)[:, :, None]
    height = np.einsum("mn,mn->m", w, (t - d) ** 2)
    slope = np.einsum("mn,mnq->mq", w - pull, along)
    curve = np.einsum("mn,mnq,mnr->mqr", pull, unit, unit)
    curve += (w - pull).sum(axis=1)[:, None, None] * np.eye(Z.shape[1])
    return height, slope, curve
