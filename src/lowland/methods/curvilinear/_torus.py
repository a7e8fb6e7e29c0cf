"""Repulsion on a flat torus: its energy, the descent, and where a torus is cut open.

    d = sum_k min(|dx_k|, side_k - |dx_k|)
    E_p = sum_{i<j} delta_ij / (p d_ij^p),   E_0 = -sum_{i<j} delta_ij ln d_ij

Between two points the energy is convex along each axis, with a peak where they agree on the axis
and a valley where they are half a side apart. At the valley the force changes its sign, so a rule
of fixed steps oscillates; the descent here takes no step that raises the energy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._engines.linalg.products import row_blocks, rows_within, times
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


# Out-of-sample placement on a torus: each new row minimizes its own energy.
#
#     e(z) = sum_j delta_j / (p d_j^p)
#
# Along each axis e has a valley half a side from every fitted point, and is convex from one
# fitted point to the next elsewhere. So there is a minimum at many a crossing of valleys, and
# between many points. e is computed at these places, or on a regular grid where they are too
# many, as a product of the distances with the repulsion of every fitted point at every node. A
# compass search descends from the lowest minima of the grid and from the nearest fitted points:
# it tries a step along each axis, and halves the step where no try is lower. After every few
# steps only the lowest quarter of the starts goes on. As the valleys lie across the axes, a point
# that is lowest along each axis has no descent in any other direction either.


ENTRIES, MOST_NODES = 1 << 21, 4096  # of the matrix of nodes and points, and of a regular grid
FEWEST = 3  # nodes per axis; where they would be too many, the fitted points are the nodes
TAKEN, MANY_TAKEN, NEAREST_STARTS = (
    14,
    62,
    2,
)  # minima of the grid and nearest points that are starts
MANY_ROWS = 500  # up to so many fitted points, many starts are tried
ROUNDS, KEPT = 5, 4  # steps after which one start in so many is kept
CLOSE = 1e-10  # of a side: a row whose steps are shorter has converged
STEPS = 400
AROUND = 3  # up to so many axes the places around the lowest one are tried, too


def place_on_torus(
    delta: np.ndarray, Y: np.ndarray, sides: np.ndarray, rigidity: float, threads: int
) -> np.ndarray:
    """Places (m, q) for rows at the distances ``delta`` (m, n) > 0 from the fitted points Y."""
    mean = delta.mean(axis=1, keepdims=True)  # e is linear in delta
    delta, Y = np.ascontiguousarray(delta / mean), np.ascontiguousarray(Y, np.float64)
    search = _Search(delta, Y, sides, rigidity, threads)
    near = Y[np.argsort(delta, axis=1, kind="stable")[:, :NEAREST_STARTS]]
    starts = np.concatenate([search.lowest_nodes(), near], axis=1)  # (m, number of starts, q)
    Z = search.lowest(starts)
    if (
        len(Y) <= MANY_ROWS and len(sides) <= AROUND
    ):  # perhaps the minimum behind the next fitted point is lower
        around = np.array(list(itertools.product([-2.0, 0.0, 2.0], repeat=len(sides))))
        starts = np.mod(Z[:, None] + search.pitch * sides * around, sides)
        starts[:, len(around) // 2] = Z
        Z = search.lowest(starts)
    return Z


def lowest_of_equal(
    delta: np.ndarray, Y: np.ndarray, sides: np.ndarray, rigidity: float, threads: int
) -> np.ndarray:
    """For each row the fitted point at distance 0, of several the one with the lowest energy; -1.

    Several points at distance 0 that are not in one place occur in given distances only.
    """
    same = delta == 0
    equal = np.where(same.any(axis=1), same.argmax(axis=1), -1)
    for row in np.flatnonzero(same.sum(axis=1) > 1):
        points = np.flatnonzero(same[row])
        search = _Search(delta[row][None], Y, sides, rigidity, threads)
        equal[row] = points[search.energy(Y[points][None], np.zeros(1, np.int64))[0].argmin()]
    return equal


def grid_axes(Y: np.ndarray, sides: np.ndarray) -> list[np.ndarray] | None:
    """The coordinates of the nodes along each axis; None if even few per axis are too many."""
    n, q = Y.shape
    valleys, between = [], []
    for y, side in zip(Y.T, sides, strict=True):
        peaks = np.unique(y)
        valleys.append(np.unique(np.mod(peaks + side / 2, side)))
        halves = np.diff(peaks, append=peaks[0] + side) / 2
        between.append(np.unique(np.mod(np.concatenate([valleys[-1], peaks + halves]), side)))
    for axes in (between, valleys):
        if n * math.prod(len(axis) for axis in axes) <= ENTRIES:
            return axes
    per_axis = int(min(MOST_NODES, ENTRIES // n) ** (1 / q) + 1e-9)
    if per_axis < FEWEST:
        return None
    return [(np.arange(per_axis) + 0.5) / per_axis * side for side in sides]


class _Search:
    def __init__(
        self, delta: np.ndarray, Y: np.ndarray, sides: np.ndarray, rigidity: float, threads: int
    ) -> None:
        self.delta, self.Y, self.sides = delta, Y, sides
        self.rigidity, self.threads, self.nearest = rigidity, threads, nearest_of(sides)
        self.pitch = 0.01

    def energy(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """e at the points Z (m, r, q): r places of each of the rows."""
        m, r, q = Z.shape
        at, out, stiffness = Z.reshape(m * r, q), np.empty(m * r), np.empty(m * r)
        delta, forces = np.ascontiguousarray(self.delta[rows]), np.empty((m * r, q))
        constants = self.rigidity, self.nearest
        found = out, forces, stiffness
        _native.torus_energy(at, self.Y, self.sides, delta, *constants, *found, self.threads)
        return out.reshape(m, r)

    def lowest(self, starts: np.ndarray) -> np.ndarray:
        """For each row the lowest place that is found from its starts (m, s, q)."""
        m, step = len(starts), np.full(starts.shape[:2], self.pitch)
        while starts.shape[1] > 1:
            s, rows = starts.shape[1], np.repeat(np.arange(m), starts.shape[1])
            found, low, step = self.descend(starts.reshape(m * s, -1), rows, step.ravel(), ROUNDS)
            order = np.argsort(low.reshape(m, s), axis=1, kind="stable")[:, : -(-s // KEPT)]
            starts = np.take_along_axis(found.reshape(m, s, -1), order[:, :, None], axis=1)
            step = np.take_along_axis(step.reshape(m, s), order, axis=1)
        return self.descend(starts[:, 0], np.arange(m), step[:, 0], STEPS)[0]

    def lowest_nodes(self) -> np.ndarray:
        """For each row the nodes of the grid that are lower than those around them, (m, s, q)."""
        n, axes = len(self.Y), grid_axes(self.Y, self.sides)
        if axes is None:
            nodes = self.Y[np.linspace(0, n - 1, min(n, ENTRIES // n)).astype(np.int64)]
            shape = None
        else:
            nodes, shape = np.array(list(itertools.product(*axes))), [len(axis) for axis in axes]
            self.pitch = 0.5 / max(shape)
        repulsion = repulsion_at(nodes, self.Y, self.sides, self.rigidity).T
        taken = min(TAKEN if n > MANY_ROWS else MANY_TAKEN, len(nodes))
        order = np.empty((len(self.delta), taken), np.int64)
        for rows in row_blocks(len(order), rows_within(8 * len(nodes), 2**24)):
            values = times(self.delta[rows], np.zeros(n), repulsion, self.threads)
            if shape is not None:
                values = _minima(values.reshape(-1, *shape)).reshape(len(values), -1)
            lowest = np.argsort(values, axis=1, kind="stable")[:, :taken]
            found = np.isfinite(np.take_along_axis(values, lowest, axis=1))
            order[rows] = np.where(found, lowest, lowest[:, :1])
        return nodes[order]

    def descend(
        self, Z: np.ndarray, rows: np.ndarray, step: np.ndarray, rounds: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A compass search from the places Z of the given rows: places, energies, next steps."""
        q = Z.shape[1]
        moves = np.concatenate([np.eye(q), -np.eye(q)]) * self.sides
        Z, step, going = Z.copy(), step.copy(), np.arange(len(Z))
        lowest = self.energy(Z[:, None], rows)[:, 0]
        for _ in range(rounds):
            tried = Z[going][:, None] + step[going][:, None, None] * moves
            tried = np.mod(tried, self.sides)
            values = self.energy(tried, rows[going])
            best = values.argmin(axis=1)
            found = values[np.arange(len(going)), best]
            better = found < lowest[going]
            Z[going[better]] = tried[better, best[better]]
            lowest[going[better]] = found[better]
            step[going] *= np.where(better, 1.25, 0.5)
            going = going[step[going] > CLOSE]
            if not going.size:
                break
        return Z, lowest, step


def _minima(values: np.ndarray) -> np.ndarray:
    """Values on a periodic grid, (m, g, g, ...), infinite where a node around is lower."""
    around = values
    for axis in range(1, values.ndim):
        around = np.minimum(around, np.minimum(np.roll(around, 1, axis), np.roll(around, -1, axis)))
    return np.where(values == around, values, np.inf)
