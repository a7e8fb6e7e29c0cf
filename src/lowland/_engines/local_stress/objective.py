"""Local stress as an objective over all pairs of points.

One pass over the pairs gives the published stress, the potential that a descent lowers, its slope,
and the sums of weights, from which the Guttman transform follows: with the weights as they are,
Y - slope / (2 degrees) does not raise the stress, because 2 diag(V) lies above V.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.monitor import Monitor
from lowland._engines.stress.majorization import majorize

# How a pair counts in a local stress: by its distance in the map, in the data, or in both.
#
# Radial laws (Demartines & Herault 1997; Venna & Kaski 2006), with the radii s of both points:
#
#     E   = sum over i < j of w (delta - d)^2,    w = (1 - l) F(d, s) + l F(delta, s)
#     F   = 1 up to s ("step"), exp(-u / s) ("exp"), or a smooth fall from 1 at s / 2 to 0 at 3 s
# / 2           ("sigmoid"); averaged over the radii of the two points
#
# E itself is lowest where no point is near another: with F(d) small, errors do not count. The
# rules of the papers therefore treat F as a constant: point i pulls point j by w (delta - d).
# Those forces are the slope of another function, the *potential* of the law,
#
#     U   = sum over i < j of 2 int_delta^d (u - delta) [(1 - l) F(u, s) + l F(delta, s)] du  >= 0
#
# which is what a descent lowers. For F = 1, E and U are raw stress; for l = 1 they are equal.
#
# The symmetric law (Lespinats et al. 2007) is lowered as it stands, with |.| rounded off near 0:
#
#     E   = sum over i < j of |delta - d| F(min(delta, d)),   F(u) = 1 - Phi((u - center) / width)


RADIAL = ("step", "exp", "sigmoid")
KINDS = (*RADIAL, "symmetric")


class Law(NamedTuple):
    """A law by name, and its numbers; those of another kind of law are ignored."""

    kind: str
    tradeoff: float = 0.0
    center: float = 0.0
    width: float = 1.0
    rounding: float = 0.0

    def numbers(self) -> tuple[int, float, float, float, float]:
        """The law as the kernels take it."""
        kind = KINDS.index(self.kind)
        return kind, self.tradeoff, self.center, self.width, self.rounding


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
        self, Z: np.ndarray, Y: np.ndarray, law: Law, radii_z: np.ndarray, radii_y: np.ndarray
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


# Annealing: the descents of a sequence of objectives, each from where the last one ended.
#
# Radii shrink geometrically from the whole map to neighborhoods, in stages of a few steps, and the
# last objective is followed until it changes no more. So the map is arranged as a whole first, then
# in parts, and tears appear where the data have to be torn.


STAGES, STEPS = 20, 15  # more stages, or more steps of each, end at nearly the same loss
SHARE = 0.75  # of all steps: for the stages before the last


class Annealed(NamedTuple):
    """The final map, the losses at the start and after each step, and the last objective."""

    Y: np.ndarray
    losses: np.ndarray
    n_iter: int
    objective: Any


def anneal(
    objective_at: Callable[[float, np.ndarray], Any],
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    monitor: Monitor,
    shown: Callable[[np.ndarray], np.ndarray] = lambda Y: Y,
    told: Callable[[float], float] = lambda loss: loss,
) -> Annealed:
    """Lower ``objective_at(t, Y)`` for t from 0 to 1; it may choose its pairs by the map Y.

    Twenty stages share three quarters of the steps, at most 15 each; the last one has the rest.
    """
    steps = min(STEPS, max(1, int(SHARE * max_iter) // STAGES))
    n_stages = min(STAGES, int(SHARE * max_iter) // steps)
    Y, losses = start, np.empty(0)
    objective: Any = None
    for stage in range(n_stages + 1):
        last = stage == n_stages
        before = max(0, len(losses) - 1)
        objective = objective_at(stage / n_stages if n_stages else 1.0, Y)
        found = majorize(
            objective,
            Y,
            max_iter=max_iter if last else min(max_iter, before + steps),
            tol=tol,
            monitor=monitor,
            shown=shown,
            told=told,
            steps_before=before,
            total=max_iter,
        )
        losses = np.concatenate([losses, found.losses[min(1, len(losses)) :]])
        Y = found.Y
        if monitor.stopped:
            break
    return Annealed(Y, losses, len(losses) - 1, objective)


def geometric(first: Any, last: Any, t: float) -> Any:
    """From ``first`` at t = 0 to ``last`` at t = 1, by equal factors."""
    return first ** (1 - t) * last**t


def farthest(Y: np.ndarray) -> float:
    """About the largest distance of a map: from the point farthest from the mean to another."""
    mean = Y.mean(axis=0)
    end = Y[np.argmax(((Y - mean) ** 2).sum(axis=1))]
    return float(np.sqrt(((Y - end) ** 2).sum(axis=1).max()))
