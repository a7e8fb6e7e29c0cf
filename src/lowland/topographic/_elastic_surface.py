"""The piecewise-linear surface of an elastic grid: rows are projected on it, places lie on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._engines.grids.lattice import Lattice
from lowland._engines.grids.nearest_units import nearest_units

SEAM = 1e-12  # of a closed axis: rounding does not part places that lie on its seam
NEAR = 4  # rows are projected on the simplices at so many nearest nodes


class Projected(NamedTuple):
    """Places (n, q) in steps of the grid from its center, and squared distances (n,)."""

    places: np.ndarray
    squares: np.ndarray


def extended(lattice: Lattice, layers: int) -> Lattice:
    """The lattice with so many more nodes at both ends of its open axes.

    Rows of a hexagonal one come in pairs, because every second one is shifted.
    """
    more = [0 if closed else 2 * layers for closed in lattice.closed]
    if lattice.kind == "hexagon":
        more[1] = 4 * -(-layers // 2)
    sides = tuple(side + m for side, m in zip(lattice.sides, more, strict=True))
    return lattice._replace(sides=sides)


def extrapolated(lattice: Lattice, nodes: np.ndarray, wide: Lattice) -> np.ndarray:
    """Nodes of the wide lattice: those outside continue the lines of the grid, 2 w_b - w_c.

    Layer by layer; where several lines meet, as on a hexagonal grid, their mean is taken.
    """
    offset = (np.array(wide.sides) - lattice.sides) // 2
    inside = np.ravel_multi_index(tuple((lattice.positions() + offset).T), wide.sides)
    surface, known = np.zeros((wide.n_units, nodes.shape[1])), np.zeros(wide.n_units, bool)
    surface[inside], known[inside] = nodes, True
    ribs = wide.ribs()
    ends, middles, starts = np.concatenate([ribs, ribs[:, ::-1]]).T
    while not known.all():
        usable = ~known[ends] & known[middles] & known[starts]
        reached, b, c = ends[usable], middles[usable], starts[usable]
        np.add.at(surface, reached, 2 * surface[b] - surface[c])
        counts = np.bincount(reached, minlength=wide.n_units)
        surface[counts > 1] /= counts[counts > 1, None]
        known |= counts > 0
    return surface


def step_lengths(lattice: Lattice, nodes: np.ndarray) -> np.ndarray:
    """The mean length of the edges along each axis; of all edges of a hexagonal grid."""
    edges, q = lattice.edges(), len(lattice.sides)
    lengths = np.sqrt(np.sum((nodes[edges[:, 0]] - nodes[edges[:, 1]]) ** 2, axis=1))
    if lattice.kind == "hexagon":
        return np.full(q, lengths.mean())
    at = lattice.positions()
    along = at[edges[:, 0]] != at[edges[:, 1]]
    return np.array([lengths[along[:, axis]].mean() for axis in range(q)])


def _center(lattice: Lattice) -> np.ndarray:
    return np.where(lattice.closed, lattice.periods(), lattice.places().max(axis=0)) / 2


def _corner_places(lattice: Lattice, simplices: np.ndarray) -> np.ndarray:
    """Places (s, q + 1, q) of the corners; those beyond the seam of a closed axis lie behind it."""
    corners = lattice.places()[simplices]
    steps = corners - corners[:, :1]
    periods = lattice.periods()
    wrapped = np.where(periods > 0, periods, 1.0)
    steps -= np.where(periods > 0, periods * np.round(steps / wrapped), 0.0)
    return corners[:, :1] + steps


def project(X: np.ndarray, nodes: np.ndarray, lattice: Lattice, threads: int) -> Projected:
    """The nearest points of the simplices at the nearest nodes of each row."""
    n, simplices = len(X), np.ascontiguousarray(lattice.simplices())
    order = np.argsort(simplices.ravel(), kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(simplices.ravel(), minlength=len(nodes))))
    near = nearest_units(X, nodes, threads, min(NEAR, len(nodes)))
    near = np.maximum(near, 0)  # rows whose distances overflow have none; their places are NaN
    found, squares = np.zeros(n, np.int64), np.empty(n)
    weights = np.full((n, simplices.shape[1]), np.nan)
    _native.project_on_surface(
        np.ascontiguousarray(X),
        np.ascontiguousarray(near, np.int64),
        np.ascontiguousarray(nodes, np.float64),
        simplices,
        starts.astype(np.int64),
        order // simplices.shape[1],
        found,
        weights,
        squares,
        threads,
    )
    places = np.einsum("ij,ijk->ik", weights, _corner_places(lattice, simplices)[found])
    periods = lattice.periods()
    for axis in np.flatnonzero(periods):
        along = places[:, axis] % periods[axis]
        places[:, axis] = np.where(along < periods[axis] * (1 - SEAM), along, 0.0)
    return Projected(places - _center(lattice), squares)


def places_at(lattice: Lattice) -> np.ndarray:
    """Places (n_units, q) of the nodes, in steps from the center."""
    return lattice.places() - _center(lattice)


def points_at(places: np.ndarray, nodes: np.ndarray, lattice: Lattice) -> np.ndarray:
    """Points of the surface at places; those beyond its border are moved to the border."""
    center = _center(lattice)
    far = 2 * (center + 1)
    inside = np.where(lattice.closed, places, np.clip(places, -far, far))
    units, weights = lattice.around(inside + center)
    found = np.zeros((len(places), nodes.shape[1]))
    for unit, weight in zip(units.T, weights.T, strict=True):
        found += weight[:, None] * nodes[unit]
    return found
