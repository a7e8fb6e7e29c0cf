"""Out-of-sample placement on a torus: each new row minimizes its own energy.

    e(z) = sum_j delta_j / (p d_j^p)

Along each axis e has a valley half a side from every fitted point, and so a minimum at many a
crossing of valleys. e is computed at the crossings, or on a regular grid where they are too many,
as a product of the distances with the repulsion of every fitted point at every node. A compass
search descends from the lowest minima of the grid and from the nearest fitted points: it tries a
step along each axis, and halves the step where no try is lower. As the valleys lie across the axes,
a point that is lowest along each axis has no descent in any other direction either.
"""

from __future__ import annotations

import itertools

import numpy as np

from lowland import _native
from lowland._engines.linalg.blocks import row_blocks, rows_within
from lowland._engines.linalg.products import times
from lowland.curvilinear._torus import nearest_of, repulsion_at

__all__ = ["lowest_of_equal", "place_on_torus"]

ENTRIES, MOST_NODES = 1 << 21, 4096  # of the matrix of nodes and points, and of a regular grid
FEWEST = 3  # nodes per axis; where they would be too many, the fitted points are the nodes
TAKEN, NEAREST = 12, 2  # minima of the grid and nearest points that are starts
# of a side: a row whose steps are shorter has converged, and roughly so to compare starts
CLOSE, ROUGH = 1e-10, 1e-3
STEPS = 400


def place_on_torus(
    delta: np.ndarray, Y: np.ndarray, sides: np.ndarray, rigidity: float, threads: int
) -> np.ndarray:
    """Places (m, q) for rows at the distances ``delta`` (m, n) > 0 from the fitted points Y."""
    mean = delta.mean(axis=1, keepdims=True)  # e is linear in delta
    delta, Y = np.ascontiguousarray(delta / mean), np.ascontiguousarray(Y, np.float64)
    search = _Search(delta, Y, sides, rigidity, threads)
    starts = [*search.lowest_nodes(), *Y[np.argsort(delta, axis=1, kind="stable")[:, :NEAREST].T]]
    rows = np.arange(len(delta))
    best, lowest = starts[0], np.full(len(delta), np.inf)
    for start in starts:
        found, low = search.descend(start, rows, search.pitch, ROUGH)
        best = np.where((low < lowest)[:, None], found, best)
        lowest = np.minimum(low, lowest)
    return search.descend(best, rows, ROUGH, CLOSE)[0]


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
    if n ** (q + 1) <= ENTRIES:  # the valleys themselves
        return [np.unique(np.mod(y + side / 2, side)) for y, side in zip(Y.T, sides, strict=True)]
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
        self.pitch = ROUGH

    def energy(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """e at the points Z (m, r, q): r places of each of the rows."""
        m, r, q = Z.shape
        at, out, stiffness = Z.reshape(m * r, q), np.empty(m * r), np.empty(m * r)
        delta, forces = np.ascontiguousarray(self.delta[rows]), np.empty((m * r, q))
        constants = self.rigidity, self.nearest
        found = out, forces, stiffness
        _native.torus_energy(at, self.Y, self.sides, delta, *constants, *found, self.threads)
        return out.reshape(m, r)

    def lowest_nodes(self) -> list[np.ndarray]:
        """For each row the nodes of the grid that are lower than the nodes around them."""
        n = len(self.Y)
        axes = grid_axes(self.Y, self.sides)
        if axes is None:
            nodes = self.Y[np.linspace(0, n - 1, min(n, ENTRIES // n)).astype(np.int64)]
            shape = None
        else:
            nodes, shape = np.array(list(itertools.product(*axes))), [len(axis) for axis in axes]
            self.pitch = 0.5 / max(shape)
        repulsion = repulsion_at(nodes, self.Y, self.sides, self.rigidity).T
        order = np.empty((len(self.delta), min(TAKEN, len(nodes))), np.int64)
        for rows in row_blocks(len(order), rows_within(8 * len(nodes), 2**24)):
            values = times(self.delta[rows], np.zeros(n), repulsion, self.threads)
            if shape is not None:
                values = _minima(values.reshape(-1, *shape)).reshape(len(values), -1)
            lowest = np.argsort(values, axis=1, kind="stable")[:, :TAKEN]
            found = np.isfinite(np.take_along_axis(values, lowest, axis=1))
            order[rows] = np.where(found, lowest, lowest[:, :1])
        return list(nodes[order].transpose(1, 0, 2))

    def descend(
        self, Z: np.ndarray, rows: np.ndarray, first: float, last: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """A compass search of every row from its place, with steps from ``first`` to ``last``."""
        q = Z.shape[1]
        moves = np.concatenate([np.eye(q), -np.eye(q)]) * self.sides
        Z = Z.copy()
        lowest = self.energy(Z[:, None], rows)[:, 0]
        step, going = np.full(len(Z), first), np.arange(len(Z))
        for _ in range(STEPS):
            tried = Z[going][:, None] + step[going][:, None, None] * moves
            tried = np.mod(tried, self.sides)
            values = self.energy(tried, rows[going])
            best = values.argmin(axis=1)
            found = values[np.arange(len(going)), best]
            better = found < lowest[going]
            Z[going[better]] = tried[better, best[better]]
            lowest[going[better]] = found[better]
            step[going] *= np.where(better, 1.25, 0.5)
            going = going[step[going] > last]
            if not going.size:
                break
        return Z, lowest


def _minima(values: np.ndarray) -> np.ndarray:
    """Values on a periodic grid, (m, g, g, ...), infinite where a node around is lower."""
    around = values
    for axis in range(1, values.ndim):
        around = np.minimum(around, np.minimum(np.roll(around, 1, axis), np.roll(around, -1, axis)))
    return np.where(values == around, values, np.inf)
