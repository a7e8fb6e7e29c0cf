"""Local stress as an objective over all pairs of points.

One pass over the pairs gives the published stress, the potential that a descent lowers, its slope,
and the sums of weights, from which the Guttman transform follows: with the weights as they are,
Y - slope / (2 degrees) does not raise the stress, because 2 diag(V) lies above V.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.monitor import Monitor
from lowland._engines.stress.majorization import majorize
from lowland._engines.stress.placement import Height, between_nearest, equal_points, settled

# How a pair counts in a local stress: by its distance in the map, in the data, or in both.
#
# Radial laws (Demartines & Herault 1997; Venna & Kaski 2006), with the radii s of both points:
#
#     E   = sum over i < j of w (delta - d)^2,    w = (1 - l) F(d, s) + l F(delta, s)
#     F   = 1 up to s ("step"), exp(-u / s) ("exp"), or a smooth fall from 1 at s / 2 to 0 at
#           3 s / 2 ("sigmoid"); averaged over the radii of the two points
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


# Out-of-sample placement by a law: each new row minimizes its own potential in a fixed map.
#
#     u(z) = sum_j u_j(|z - y_j|; delta_j, radii)
#
# With the weights as they are, z - sum_j w_j (1 - delta_j / d_j) (z - y_j) / sum_j w_j lowers the
# stress of the row. A law that counts near points only has many minima, and where neighbors were
# torn apart, the place between them is near neither. So u is computed at the places of the nearest
# fitted points and at their mean, and the descents begin at the lowest of these. The result with
# the lowest u counts.
#
# With a step as its law, u has creases: circles around points that are too near, where their push
# ends. A minimum often lies in a crease, and steps against the slope go to and fro across it. The
# mean of the last slopes points along the crease; steps along this mean, which become shorter by a
# constant factor, reach the minimum to within some thousandths of the width.


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
