"""The piecewise-linear surface of an elastic grid: rows are projected on it, places lie on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._core.threads import limit_blas
from lowland._engines.grids.lattice import Lattice
from lowland._engines.grids.nearest_units import nearest_units
from lowland._engines.linalg.skyline import SkylineCholesky, plan_skyline
from lowland.topographic._elastic_energy import differences

__all__ = ["Projected", "extended", "extrapolated", "places_at", "points_at", "project", "step_lengths"]

NEAR = 4  # rows are projected on the simplices at so many nearest nodes
ROUNDING = 1e-13


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
    """Nodes of the wide lattice: those outside continue the grid with the least bending.

    On a rectangular grid this is linear extrapolation, in which no rib beyond the border is bent.
    """
    if wide.sides == lattice.sides:
        return nodes.copy()
    offset = (np.array(wide.sides) - lattice.sides) // 2
    inside = np.ravel_multi_index(tuple((lattice.positions() + offset).T), wide.sides)
    outside = np.setdiff1d(np.arange(wide.n_units), inside)
    ribs = differences(wide.ribs(), (1.0, -2.0, 1.0), wide.n_units)
    free = ribs[:, outside]
    known = -(free.T @ (ribs[:, inside] @ nodes))
    A = (free.T @ free).tocsr() + scipy.sparse.identity(len(outside), format="csr") * ROUNDING
    with limit_blas(1):
        factors = SkylineCholesky(A, plan_skyline(A), 0.0)
        found = factors.solve(known)
        found += factors.solve(known - A @ found)
    surface = np.empty((wide.n_units, nodes.shape[1]))
    surface[inside], surface[outside] = nodes, found
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
    found, squares = np.empty(n, np.int64), np.empty(n)
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
        places[:, axis] %= periods[axis]
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
