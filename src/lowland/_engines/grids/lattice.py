"""A regular grid of units: their places, neighbors and ribs, and interpolation between them.

Units are one step apart. A rectangular grid has one to three axes. A hexagonal one has two: its
rows are sqrt(3)/2 apart, and every second one is shifted by half a step, so that each unit has six
neighbors. Along a closed axis the last unit is a neighbor of the first one.

A place between units lies in a simplex of units (a segment, a triangle, a tetrahedron). It is
found in lattice coordinates, in which the units are the integer points; those of a hexagonal grid
are sheared by a zigzag, u = x - shift(y).
"""

from __future__ import annotations

import itertools
from typing import Any, Literal, NamedTuple

import numpy as np

from lowland._base.context import FitContext
from lowland._base.rows.table import Rows
from lowland._base.validation import is_sparse
from lowland._engines.linalg.moments import Survey, filled_moments, without_gaps
from lowland._engines.linalg.principal_axes import PrincipalAxes, by_covariance, leading_axes

# A curve or a grid in the space of the data, as it is drawn.


class Net(NamedTuple):
    """Points (n_nodes, p), and the pairs of them that are joined."""

    nodes: np.ndarray
    edges: np.ndarray | None  # None: a curve through the nodes in their order
    closed: bool = False  # a curve whose end is its beginning


ROW_HEIGHT = np.sqrt(3) / 2  # of a hexagonal grid
MOST_STRETCHED = 8.0  # the ratio of two sides of a grid is at most this


class Simplices(NamedTuple):
    """Corners (m, q + 1) of the simplex around each place, as units, and their weights."""

    units: np.ndarray
    weights: np.ndarray


class Surroundings(NamedTuple):
    """Units (n_units, k) near each unit, -1 where there are fewer, and the ways (n_units, k, q)."""

    units: np.ndarray
    ways: np.ndarray


class Lattice(NamedTuple):
    """The units of a regular grid; the number of a unit counts along the last axis first."""

    kind: Literal["rectangle", "hexagon"]
    sides: tuple[int, ...]  # how many units along each axis
    closed: tuple[bool, ...]  # whether each axis is a circle

    @property
    def n_units(self) -> int:
        return int(np.prod(self.sides))

    def positions(self) -> np.ndarray:
        """The integer lattice coordinates (n_units, q) of the units."""
        return np.indices(self.sides).reshape(len(self.sides), -1).T

    def places(self) -> np.ndarray:
        """The coordinates (n_units, q) of the units in the map."""
        return self._placed(self.positions().astype(np.float64))

    def periods(self) -> np.ndarray:
        """The length of each closed axis; 0 of an open one."""
        lengths = np.array(self.sides, np.float64)
        if self.kind == "hexagon":
            lengths[1] *= ROW_HEIGHT
        return np.where(self.closed, lengths, 0.0)

    def squared_distances(self) -> np.ndarray:
        """Squared distances (n_units, n_units) of the units in the map, the short way round."""
        places, total = self.places(), np.zeros((self.n_units, self.n_units))
        for along, period in zip(places.T, self.periods(), strict=True):
            gaps = np.abs(along[:, None] - along)
            total += np.minimum(gaps, np.abs(period - gaps)) ** 2 if period else gaps**2
        return total

    def within(self, reach: float) -> Surroundings:
        """The units at most ``reach`` from each unit, itself included, and the way to them.

        On a short closed axis a unit is found once for each way to it.
        """
        q, at = len(self.sides), self.positions()
        own, most = self.places(), reach**2 * (1 + 1e-9)
        span = range(-int(reach / ROW_HEIGHT) - 1, int(reach / ROW_HEIGHT) + 2)
        units, ways = [], []
        for step in itertools.product(span, repeat=q):
            there = at + np.array(step)
            way = self._placed(there.astype(np.float64)) - own
            near = np.einsum("ij,ij->i", way, way) <= most
            if not near.any():
                continue
            known = np.where(near, self._known(there), -1)
            if (known >= 0).any():
                units.append(known)
                ways.append(np.where(known[:, None] >= 0, way, 0.0))
        return Surroundings(np.stack(units, axis=1), np.stack(ways, axis=1))

    def edges(self) -> np.ndarray:
        """Pairs (n_edges, 2) of neighboring units, each once."""
        pairs = [self._chains(step)[:2] for step in self._steps()]
        found = np.concatenate([np.stack(pair, axis=1) for pair in pairs])
        found = np.sort(found[found[:, 0] != found[:, 1]], axis=1)
        return np.unique(found, axis=0)

    def ribs(self) -> np.ndarray:
        """Triples (n_ribs, 3) of units in a straight line, the middle one second."""
        chains = [self._chains(step) for step in self._steps()]
        found = np.concatenate([np.stack(chain, axis=1)[chain[2] >= 0] for chain in chains])
        proper = (found[:, 0] != found[:, 1]) & (found[:, 1] != found[:, 2])
        return found[proper & (found[:, 0] != found[:, 2])]

    def squares(self) -> np.ndarray:
        """Quadruples (n_squares, 4) around each cell of two axes, the second and third opposite.

        A hexagonal grid has none: its ribs in three directions are bent by every twist.
        """
        q, found = len(self.sides), [np.zeros((0, 4), np.int64)]
        pairs = itertools.combinations(range(q), 2) if self.kind == "rectangle" else ()
        for pair in pairs:
            corners = [self.positions() for _ in range(4)]
            for number, axis in enumerate(pair):
                for corner in (corners[1 + number], corners[3]):
                    corner[:, axis] += 1
            units = np.stack([self._known(corner) for corner in corners], axis=1)
            found.append(units[(units >= 0).all(axis=1)])
        return np.concatenate(found)

    def simplices(self) -> np.ndarray:
        """All simplices (n_simplices, q + 1) of neighboring units; they fill the grid."""
        q = len(self.sides)
        cells = [side if closed else side - 1 for side, closed in self._axes()]
        corners = np.indices(cells).reshape(q, -1).T
        orders = [np.array(order) for order in itertools.permutations(range(q))]
        found = [self._corners(corners, np.tile(order, (len(corners), 1))) for order in orders]
        return np.concatenate(found) if len(corners) else np.zeros((0, q + 1), np.int64)

    def around(self, P: np.ndarray) -> Simplices:
        """The simplex around each place of P (m, q); places off the grid move to its border."""
        U = self._lattice_coordinates(np.asarray(P, np.float64))
        for axis, (side, closed) in enumerate(self._axes()):
            if not closed:
                U[:, axis] = np.clip(U[:, axis], 0, side - 1)
        cell = np.floor(U).astype(np.int64)
        for axis, (side, closed) in enumerate(self._axes()):
            if not closed:
                cell[:, axis] = np.clip(cell[:, axis], 0, max(side - 2, 0))
        share, mirrored = U - cell, self._mirrored(cell)
        share[mirrored, 0] = 1 - share[mirrored, 0]
        order = np.argsort(-share, axis=1, kind="stable")
        falling = np.take_along_axis(share, order, axis=1)
        ends = np.zeros((len(U), 1))
        weights = -np.diff(np.hstack([ends + 1, falling, ends]), axis=1)
        return Simplices(self._corners(cell, order), weights)

    # --- lattice coordinates ------------------------------------------------------------------

    def _axes(self) -> list[tuple[int, bool]]:
        return list(zip(self.sides, self.closed, strict=True))

    def _placed(self, U: np.ndarray) -> np.ndarray:
        """Places of lattice coordinates, which it changes."""
        if self.kind == "hexagon":
            U[:, 0] += _shift(U[:, 1])
            U[:, 1] *= ROW_HEIGHT
        return U

    def _lattice_coordinates(self, P: np.ndarray) -> np.ndarray:
        U = P.copy()
        if self.kind == "hexagon":
            U[:, 1] /= ROW_HEIGHT
            if not self.closed[1]:
                U[:, 1] = np.clip(U[:, 1], 0, self.sides[1] - 1)
            U[:, 0] -= _shift(U[:, 1])
        for axis, (side, closed) in enumerate(self._axes()):
            if closed:
                U[:, axis] %= side
        return U

    def _mirrored(self, cell: np.ndarray) -> np.ndarray:
        """Cells of a hexagonal grid whose diagonal goes the other way: below an odd row."""
        return (cell[:, 1] % 2 == 0) if self.kind == "hexagon" else np.zeros(len(cell), bool)

    def _corners(self, cell: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Units from the lowest corner of each cell to the opposite one, one axis at a time."""
        (m, q), mirrored = cell.shape, self._mirrored(cell)
        at = cell.copy()
        at[mirrored, 0] += 1
        found = [self._unit(at)]
        for step in range(q):
            axis = order[:, step]
            at[np.arange(m), axis] += np.where(mirrored & (axis == 0), -1, 1)
            found.append(self._unit(at))
        return np.stack(found, axis=1)

    def _unit(self, at: np.ndarray) -> np.ndarray:
        """The number of the unit at lattice coordinates, which may be one beyond an end."""
        inside = np.empty_like(at)
        for axis, (side, closed) in enumerate(self._axes()):
            along = at[:, axis]
            inside[:, axis] = along % side if closed else np.clip(along, 0, side - 1)
        return np.ravel_multi_index(tuple(inside.T), self.sides)

    def _steps(self) -> list[tuple[int, int]]:
        """(axis, slant): along each axis, and for a hexagonal grid up to the left and right."""
        if self.kind == "hexagon":
            return [(0, 0), (1, -1), (1, 1)]
        return [(axis, 0) for axis in range(len(self.sides))]

    def _chains(self, step: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each unit with the next and the next but one in a direction (-1: beyond the end)."""
        axis, slant = step
        chain = [self.positions()]
        for _ in range(2):
            at = chain[-1].copy()
            if slant:  # an odd row is half a step to the right of its neighbors
                at[:, 0] += (slant - 1) // 2 + at[:, 1] % 2
            at[:, axis] += 1
            chain.append(at)
        first, second, third = (self._known(at) for at in chain)
        there = second >= 0
        return first[there], second[there], third[there]

    def _known(self, at: np.ndarray) -> np.ndarray:
        """As `_unit`, but -1 beyond the end of an open axis."""
        off = np.zeros(len(at), bool)
        for axis, (side, closed) in enumerate(self._axes()):
            if not closed:
                off |= (at[:, axis] < 0) | (at[:, axis] >= side)
        return np.where(off, -1, self._unit(at))


def _shift(row: np.ndarray) -> np.ndarray:
    """How far right a hexagonal row lies: 0 for even ones, 1/2 for odd ones, linear between."""
    return 0.5 * np.abs(row - 2 * np.round(row / 2))


def sides_for(n_units: int, spreads: np.ndarray, kind: str = "rectangle") -> tuple[int, ...]:
    """Sides of a grid of about ``n_units`` units whose lengths are as the spreads of the data."""
    floor = max(float(np.max(spreads)), 1e-300) / MOST_STRETCHED
    ratios = np.maximum(np.asarray(spreads, np.float64), floor)
    if kind == "hexagon":
        ratios[1] /= ROW_HEIGHT
    scale = (n_units / np.prod(ratios / ratios[0])) ** (1 / len(ratios))
    return tuple(max(1, round(float(side))) for side in scale * ratios / ratios[0])


# The plane of the first principal axes, where grids start; missing values are set to the mean.


class PrincipalPlane(NamedTuple):
    """Mean (p,), unit axes in rows (q, p), and the standard deviation (q,) along each axis.

    Axes beyond the rank of the data have the deviation 0.
    """

    mean: np.ndarray
    axes: np.ndarray
    deviations: np.ndarray
    total_variance: float

    def points(self, Z: np.ndarray) -> np.ndarray:
        """Points of the data space for coordinates Z (m, q) in deviations along the axes."""
        return self.mean + np.einsum("ij,jk->ik", Z * self.deviations, self.axes)


def principal_plane(X: Any, n_axes: int, run: FitContext) -> PrincipalPlane:
    """Of dense or sparse rows; sums of float64 whatever their type."""
    X = X if is_sparse(X) else without_gaps(X)
    n, p = X.shape
    return plane_of(leading_axes(X, min(n_axes, n, p), run.threads, run.rng, run.monitor), n_axes)


def plane_of_chunks(
    rows: Rows, found: Survey, n_axes: int, n_jobs: int | None, run: FitContext
) -> PrincipalPlane:
    """Of rows that are read in chunks; a second pass if values are missing."""
    sums = found.moments
    if sums is None:
        sums = filled_moments(rows, found.columns.mean, n_jobs=n_jobs, monitor=run.monitor)
    return plane_of(by_covariance(sums, min(n_axes, *rows.shape), scaled=False), n_axes)


def plane_of(found: PrincipalAxes, n_axes: int) -> PrincipalPlane:
    """The plane of the first axes, and of zeros if there are fewer than asked for."""
    p = len(found.mean)
    missing = n_axes - len(found.variances)
    axes = np.vstack([found.axes, np.zeros((missing, p))])
    deviations = np.sqrt(np.maximum(np.append(found.variances, np.zeros(missing)), 0))
    return PrincipalPlane(found.mean, axes, deviations, found.total_variance)
