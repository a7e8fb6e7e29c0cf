"""Repulsion on a flat torus: its energy, the descent, and where a torus is cut open.

    d = sum_k min(|dx_k|, side_k - |dx_k|)
    E_p = sum_{i<j} delta_ij / (p d_ij^p),   E_0 = -sum_{i<j} delta_ij ln d_ij

Between two points the energy is convex along each axis, with a peak where they agree on the axis
and a valley where they are half a side apart. At the valley the force changes its sign, so a rule
of fixed steps oscillates; the descent here takes no step that raises the energy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._engines.linalg.blocks import row_blocks, rows_within
from lowland._engines.linalg.products import times
from lowland._engines.neighbors.duplicates import EqualRows

NEAREST = 1e-6  # of the largest distance on the torus: points in one place count as so far apart
STRIP = 1 / 20  # of a side: the width of the strip in which points are counted to find the cut
FIRST_STEP, MOMENTUM, LONGER, SHORTER = 0.5, 0.9, 1.1, 0.5
SHORTEST = 1e-9
LOOK_BACK = 10  # steps over which the decrease is measured
NODES, MOVED = 256, 10  # nodes where a point may move to; one point in so many moves at once


class Repulsion(NamedTuple):
    """The energy, minus its gradient, and sum_j delta / d^(p + 2) of each point.

    ``per_point`` are the energies of each point with all others; their sum is twice the energy.
    """

    energy: float
    per_point: np.ndarray
    forces: np.ndarray
    stiffness: np.ndarray


def nearest_of(sides: np.ndarray) -> float:
    """The distance below which points count as in one place."""
    return NEAREST * float(sides.sum()) / 2


class TorusEnergy:
    """E_p of the points of a map, for distances ``delta`` of mean 1, in one pass over the pairs."""

    def __init__(self, delta: np.ndarray, sides: np.ndarray, rigidity: float, threads: int) -> None:
        self.delta, self.sides, self.threads = delta, sides, threads
        self.rigidity, self.nearest = rigidity, nearest_of(sides)

    def __call__(self, Y: np.ndarray) -> Repulsion:
        at = np.ascontiguousarray(Y, self.delta.dtype)
        energy, forces, stiffness = np.empty(len(Y)), np.empty(Y.shape), np.empty(len(Y))
        constants = self.rigidity, self.nearest
        found = energy, forces, stiffness
        _native.torus_energy(at, at, self.sides, self.delta, *constants, *found, self.threads)
        return Repulsion(float(energy.sum()) / 2, *found)


def descend(
    objective: TorusEnergy,
    Y: np.ndarray,
    max_iter: int,
    tol: float,
    report: Callable[[np.ndarray, float], bool],
) -> np.ndarray:
    """Move all points along c f_i / sum_j (f_ij / d_ij) with momentum, as long as E_p falls.

    A step that would raise the energy is not taken; the velocity is set to 0 and c is halved. It
    ends after ``max_iter`` steps, where E_p falls by less than ``tol`` in ten steps, or when
    ``report``, which gets the map and its energy after each step, says so.
    """
    here, share = objective(Y), FIRST_STEP
    velocity, energies = np.zeros_like(Y), [here.energy]
    while len(energies) <= max_iter and share > SHORTEST:
        stiffness = np.where(here.stiffness > 0, here.stiffness, 1.0)
        tried_velocity = MOMENTUM * velocity + share * here.forces / stiffness[:, None]
        tried = np.mod(Y + tried_velocity, objective.sides)
        there = objective(tried)
        if there.energy < here.energy:
            Y, here, velocity, share = tried, there, tried_velocity, LONGER * share
        else:
            velocity, share = np.zeros_like(Y), SHORTER * share
        energies.append(here.energy)
        if report(Y, here.energy):
            break
        if len(energies) > LOOK_BACK and energies[-1 - LOOK_BACK] - here.energy <= tol:
            break
    return Y


def relocated(
    objective: TorusEnergy, Y: np.ndarray, equal: EqualRows | None, rng: np.random.Generator
) -> np.ndarray | None:
    """Y with some points at other places, where the energy of each with the others is lower.

    A point cannot cross a group that repels it, so a descent leaves some behind. Of a grid, each
    point's lowest node is found; the points that gain most move at once, fewer if the energy of the
    map would rise. None if no move lowers it.
    """
    n, q = Y.shape
    per_axis = int(NODES ** (1 / q) + 1e-9)
    if per_axis < 2:
        return None
    axes = [(np.arange(per_axis) + 0.5) / per_axis * side for side in objective.sides]
    nodes = np.array(list(itertools.product(*axes)))
    repulsion = repulsion_at(nodes, Y, objective.sides, objective.rigidity)
    values = times(objective.delta, np.zeros(n), repulsion.T, objective.threads)
    best, here = values.argmin(axis=1), objective(Y)
    gain = here.per_point - values[np.arange(n), best]
    within = (rng.random((n, q)) - 0.5) / per_axis * objective.sides
    if equal is not None:  # equal rows have equal gains; they move together
        within = within[equal.first[equal.group]]
    moved = min(int((gain > 0).sum()), max(1, n // MOVED))
    while moved > 0:
        least = np.partition(gain, n - moved)[n - moved]
        moves = gain >= max(least, np.finfo(float).tiny)
        tried = np.where(moves[:, None], np.mod(nodes[best] + within, objective.sides), Y)
        if objective(tried).energy < here.energy:
            return tried
        moved //= 3
    return None


def block_distances(Z: np.ndarray, Y: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """d between all points of Z and of Y, (m, n)."""
    d = np.zeros((len(Z), len(Y)))
    for z, y, side in zip(Z.T, Y.T, sides, strict=True):
        along = np.abs(z[:, None] - y)
        d += np.minimum(along, side - along)
    return d


def repulsion_at(
    nodes: np.ndarray, Y: np.ndarray, sides: np.ndarray, rigidity: float
) -> np.ndarray:
    """1 / (p d^p) or -ln d of every node and every point of Y."""
    d = np.maximum(block_distances(nodes, Y, sides), nearest_of(sides))
    return -np.log(d) if rigidity == 0 else d**-rigidity / rigidity


def stress_per_point(delta: np.ndarray, Y: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """sqrt( sum_j (delta - c d)^2 / sum_j delta^2 ), with the best c for all pairs."""
    n = len(Y)
    sums = np.empty((3, n))
    for rows in row_blocks(n, rows_within(8 * n, 2**23)):
        part, d = delta[rows].astype(np.float64), block_distances(Y[rows], Y, sides)
        for total, product in zip(sums, (part * part, part * d, d * d), strict=True):
            total[rows] = product.sum(axis=1)
    own, both, map_own = sums
    scale = both.sum() / map_own.sum() if map_own.sum() > 0 else 0.0
    rest = np.maximum(own - 2 * scale * both + scale**2 * map_own, 0.0)
    return np.sqrt(np.divide(rest, own, out=np.zeros(n), where=own > 0))


def cut_open(Y: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Y moved round the torus so that along each axis its edges lie in the sparsest strip.

    The strip is a twentieth of the side wide; among strips with as few points the one around the
    widest gap is taken, and the cut is in the middle of the gap.
    """
    cut = np.empty_like(Y)
    for k, side in enumerate(sides):
        places = np.unique(np.mod(Y[:, k], side))
        gaps = np.diff(places, append=places[0] + side)
        middles = places + gaps / 2
        every = np.sort(np.mod(Y[:, k], side))
        twice = np.concatenate([every - side, every, every + side])
        low, high = middles - STRIP * side / 2, middles + STRIP * side / 2
        inside = np.searchsorted(twice, high) - np.searchsorted(twice, low)
        best = np.lexsort((-gaps, inside))[0]
        cut[:, k] = np.mod(Y[:, k] - middles[best], side)
    return cut
