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

from lowland._engines.stress.majorization import Evaluation
from lowland._engines.stress.objective import ListedPairs


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
