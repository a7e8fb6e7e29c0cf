"""Disparities: the target distances of a map, as the best function of the dissimilarities.

    monotone_fit    any non-decreasing function (Kruskal 1964), by pooling adjacent violators
    MonotoneCone    the same for fixed dissimilarities, sorted once
    IntervalCone    a + b delta with b >= 0 and no value below 0

The functions form a cone: with the best fit f of distances d, sum w (d - f)^2 / sum w d^2 is the
squared sine of the angle between d and the cone.
"""

from __future__ import annotations

import numpy as np

from lowland import _native
from lowland._core.threads import limit_blas

TIES = ("primary", "secondary", "index")


def stable_order(values: np.ndarray, threads: int) -> np.ndarray:
    """The order of a vector, ties by position."""
    order = np.empty((1, len(values)), np.int32)
    _native.sort_rows(np.ascontiguousarray(values, np.float64)[None, :], False, order, threads)
    return order[0]


def mid_ranks(ordered: np.ndarray) -> np.ndarray:
    """Ranks, from 1, of values in ascending order; equal ones share the mean of theirs."""
    rises = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    bounds = np.concatenate([[0], rises, [len(ordered)]])
    return np.repeat((bounds[:-1] + 1 + bounds[1:]) / 2, np.diff(bounds))


def monotone_fit(delta: np.ndarray, d: np.ndarray, ties: str, threads: int = 1) -> np.ndarray:
    """The non-decreasing function of delta nearest to d in least squares, at every pair."""
    order = stable_order(delta, threads)
    fit = np.empty(len(d))
    fit[order] = MonotoneCone(delta[order], ties, threads=threads).nearest(d[order])
    return fit


class MonotoneCone:
    """Non-decreasing functions of dissimilarities that are given in ascending order.

    ``ties`` says what happens where dissimilarities are equal: "primary" lets the function differ
    there, "secondary" keeps it equal, "index" lets it rise in the order given.
    """

    def __init__(
        self, ordered: np.ndarray, ties: str, weights: np.ndarray | None = None, threads: int = 1
    ) -> None:
        self.ties, self.threads = ties, threads
        self.weights = np.empty(0) if weights is None else weights.astype(np.float64)
        rises = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
        bounds = np.concatenate([[0], rises, [len(ordered)]]).astype(np.int32)
        self.members = np.diff(bounds)
        order_is_fixed = ties == "index" or (ties == "primary" and len(rises) + 1 == len(ordered))
        self.bounds = np.empty(0, np.int32) if order_is_fixed else bounds

    def nearest(self, d: np.ndarray) -> np.ndarray:
        """The function nearest to d in (weighted) least squares."""
        d = np.ascontiguousarray(d, np.float64)
        if self.ties != "secondary":
            fit = np.empty(len(d))
            _native.pool_adjacent(d, self.weights, self.bounds, fit, self.threads)
            return fit
        starts = self.bounds[:-1]
        sizes = self.members.astype(np.float64)
        sums = d
        if self.weights.size:
            sizes, sums = np.add.reduceat(self.weights, starts), d * self.weights
        fit = np.empty(len(starts))
        means = np.add.reduceat(sums, starts) / sizes
        _native.pool_adjacent(means, sizes, np.empty(0, np.int32), fit, self.threads)
        return np.repeat(fit, self.members)


class IntervalCone:
    """a + b delta with b >= 0 and no value below 0: all a 1 + b (delta - min) with a, b >= 0."""

    def __init__(self, delta: np.ndarray, weights: np.ndarray | None = None) -> None:
        self.delta = delta
        self.low = float(delta.min())
        self.w = np.ones(len(delta)) if weights is None else weights / weights.mean()
        self.span = delta - self.low
        with limit_blas(1):  # the sums must not depend on the number of threads
            self.total, self.ones_span = float(self.w.sum()), float(self.w @ self.span)
            self.span2 = float(self.w @ self.span**2)

    def coefficients(self, d: np.ndarray) -> tuple[float, float]:
        """(a, b) of the nearest a + b delta."""
        one, along = float(self.w @ d), float((self.w * self.span) @ d)
        determinant = self.total * self.span2 - self.ones_span**2
        candidates = [(one / self.total, 0.0)]
        if self.span2 > 0:
            candidates.append((0.0, along / self.span2))
        if determinant > 1e-12 * self.total * self.span2:
            base = (one * self.span2 - along * self.ones_span) / determinant
            slope = (along * self.total - one * self.ones_span) / determinant
            if base >= 0 and slope >= 0:
                candidates = [(base, slope)]
        base, slope = max(candidates, key=lambda c: c[0] * one + c[1] * along)
        return base - slope * self.low, slope

    def nearest(self, d: np.ndarray) -> np.ndarray:
        a, b = self.coefficients(d)
        return np.maximum(a + b * self.delta, 0.0)
