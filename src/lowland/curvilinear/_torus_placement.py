"""Out-of-sample placement on a torus: each new row minimizes its own energy.

    e(z) = sum_j delta_j / (p d_j^p)

Along each axis e has a valley half a side from every fitted point, and is convex from one fitted
point to the next elsewhere. So there is a minimum at many a crossing of valleys, and between many
points. e is computed at these places, or on a regular grid where they are too many, as a product of
the distances with the repulsion of every fitted point at every node. A compass search descends from
the lowest minima of the grid and from the nearest fitted points: it tries a step along each axis,
and halves the step where no try is lower. After every few steps only the lowest quarter of the
starts goes on. As the valleys lie across the axes, a point that is lowest along each axis has no
descent in any other direction either.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from lowland import _native
from lowland._engines.linalg.blocks import row_blocks, rows_within
from lowland._engines.linalg.products import times
from lowland.curvilinear._torus import nearest_of, repulsion_at

ENTRIES, MOST_NODES = 1 << 21, 4096  # of the matrix of nodes and points, and of a regular grid
FEWEST = 3  # nodes per axis; where they would be too many, the fitted points are the nodes
TAKEN, MANY_TAKEN, NEAREST = 14, 62, 2  # minima of the grid and nearest points that are starts
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
    near = Y[np.argsort(delta, axis=1, kind="stable")[:, :NEAREST]]
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
