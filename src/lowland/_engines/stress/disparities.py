"""Stress-1 with disparities: sum w (d - f)^2 / sum w d^2, with f the nearest of a cone.

Kruskal's stress-1, squared. It does not change with the size of the map. At the best f its
derivative with respect to f is 0, so that half its gradient is (F - S V Y) / sum w d^2, where F is
half the gradient of the raw stress with f as targets, S the loss and V Y that of sum w d^2. The
Guttman transform V^+ B Y, at the size at which it equals Y in a solution, is
Y - V^+ slope * sum w d^2 / (1 - S): the loss does not rise, because for fixed f it falls and then f
is chosen anew.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lowland import _native
from lowland._base.threads import limit_blas
from lowland._engines.stress.majorization import Evaluation
from lowland._engines.stress.objective import ListedPairs

# Disparities: the target distances of a map, as the best function of the dissimilarities.
#
#     monotone_fit    any non-decreasing function (Kruskal 1964), by pooling adjacent violators
#     MonotoneCone    the same for fixed dissimilarities, sorted once
#     IntervalCone    a + b delta with b >= 0 and no value below 0
#
# The functions form a cone: with the best fit f of distances d, sum w (d - f)^2 / sum w d^2 is the
# squared sine of the angle between d and the cone.


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


class Cone(Protocol):
    """Functions of the dissimilarities, closed under sums and positive factors."""

    def nearest(self, d: np.ndarray) -> np.ndarray: ...


class Disparities:
    """Squared stress-1 over listed pairs, whose order is that of the cone."""

    floor = 1e-14
    scale = 1.0

    def __init__(self, pairs: ListedPairs, cone: Cone) -> None:
        self.pairs, self.cone = pairs, cone
        self.w = pairs.weights if pairs.weights.size else None
        self.zeros = np.zeros(len(pairs.delta), pairs.delta.dtype)

    def fit(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distances of the map and disparities, pair by pair."""
        d = self.pairs.distances(Y)
        return d, self.cone.nearest(d)

    def size(self, d: np.ndarray) -> float:
        """sum w d^2."""
        return float(d @ d) if self.w is None else float(d @ (self.w * d))

    def __call__(self, Y: np.ndarray) -> Evaluation:
        d, fit = self.fit(Y)
        size = self.size(d)
        if not size > 0:  # all points in one place: nothing is fitted, unless all distances are 0
            return Evaluation(float(self.pairs.delta.any()), np.zeros_like(Y))
        loss = self.size(d - fit) / size
        _, forces = self.pairs.per_point(Y, fit)
        return Evaluation(loss, (forces - loss * self._spread(Y)) / size)

    def _spread(self, Y: np.ndarray) -> np.ndarray:
        """V Y: half the gradient of sum w d^2."""
        if self.pairs.laplacian.uniform:
            return len(Y) * (Y - Y.mean(axis=0))
        return self.pairs.per_point(Y, self.zeros)[1]

    def precondition(self, slope: np.ndarray) -> np.ndarray:
        return self.pairs.precondition(slope)

    def guttman_step(self, Y: np.ndarray, here: Evaluation) -> np.ndarray:
        size = self.size(self.pairs.distances(Y))
        return self.pairs.precondition(here.slope) * (size / max(1 - here.loss, 1e-3))

    def relative_per_point(self, Y: np.ndarray) -> np.ndarray:
        """sqrt( sum_j w (d - f)^2 / sum_j w f^2 ) of each point."""
        return self.pairs.relative_per_point(Y, self.fit(Y)[1])
