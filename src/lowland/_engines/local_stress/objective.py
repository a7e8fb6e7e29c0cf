"""Local stress as an objective over all pairs of points.

One pass over the pairs gives the published stress, the potential that a descent lowers, its slope,
and the sums of weights, from which the Guttman transform follows: with the weights as they are,
Y - slope / (2 degrees) does not raise the stress, because 2 diag(V) lies above V.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._engines.local_stress.laws import Law


class PointSums(NamedTuple):
    """Sums over the pairs of each point; the forces are half the gradient of the potential."""

    stress: np.ndarray
    potential: np.ndarray
    degrees: np.ndarray
    forces: np.ndarray


class AllPairs(NamedTuple):
    """All pairs of a matrix of distances, computed in the float type of the matrix."""

    delta: np.ndarray
    threads: int

    @property
    def n(self) -> int:
        return len(self.delta)

    def sums(self, Y: np.ndarray, law: Law, radii: np.ndarray) -> PointSums:
        return self.sums_of_new(Y, Y, law, radii, radii)

    def sums_of_new(
        self,
        Z: np.ndarray,
        Y: np.ndarray,
        law: Law,
        radii_z: np.ndarray,
        radii_y: np.ndarray,
    ) -> PointSums:
        """Sums over the fitted points Y of each point of Z; ``delta`` is (m, n) here."""
        dtype = self.delta.dtype
        out = _empty_sums(Z.shape)
        _native.local_stress_rows(
            np.ascontiguousarray(Z, dtype),
            np.ascontiguousarray(Y, dtype),
            self.delta,
            np.ascontiguousarray(radii_z, dtype),
            np.ascontiguousarray(radii_y, dtype),
            *law.numbers(),
            *out,
            self.threads,
        )
        return out


def _empty_sums(shape: tuple[int, ...]) -> PointSums:
    n = shape[0]
    return PointSums(np.empty(n), np.empty(n), np.empty(n), np.empty(shape))


class LocalEvaluation(NamedTuple):
    """The potential at a map, half its gradient, the published stress, and the sums of weights."""

    loss: float
    slope: np.ndarray
    stress: float
    degrees: np.ndarray


class LocalStress:
    """The potential of a law with given radii, over pairs; see ``majorization.Objective``."""

    def __init__(self, pairs: AllPairs, law: Law, radii: np.ndarray, floor: float = 0.0) -> None:
        self.pairs, self.law, self.radii, self.floor = pairs, law, radii, floor
        self.degrees: np.ndarray | None = None  # where the descent began

    def __call__(self, Y: np.ndarray) -> LocalEvaluation:
        found = self.pairs.sums(Y, self.law, self.radii)
        # a point that no pair counts for has no force either
        degrees = np.where(found.degrees > 0, found.degrees, 1.0)
        if self.degrees is None:
            self.degrees = degrees
        loss, stress = float(found.potential.sum()) / 2, float(found.stress.sum()) / 2
        return LocalEvaluation(loss, found.forces, stress, degrees)

    def precondition(self, slope: np.ndarray) -> np.ndarray:
        assert self.degrees is not None
        return slope / (2 * self.degrees[:, None])

    def guttman_step(self, Y: np.ndarray, here: LocalEvaluation) -> np.ndarray:
        return here.slope / (2 * here.degrees[:, None])
