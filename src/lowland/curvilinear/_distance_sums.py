"""The sum of all distances of a map and its gradient, by the cheapest of three algorithms.

    A(Y) = sum_{i<j} |y_i - y_j|        dA/dy_i = sum_j (y_i - y_j) / |y_i - y_j|

    sorted     from the order of the points        O(n log n)        one dimension, exact
    all pairs  by a compiled kernel                O(n^2 d)          any dimension, exact
    mesh       a potential on a grid               O(n + g log g)    two or three dimensions

The relative error (2-norm) of the gradient on the mesh is that of pairs within a few nodes:
measured, 0.01 % on disks, rings and balls, 0.1 % (in three dimensions 2 %) on clusters a hundredth
of the map wide, 2 % (9 %) on clusters a thousandth of it wide. A few points far from all others
would make the grid coarse, so that their pairs are summed one by one.
"""

from __future__ import annotations

import numpy as np

from lowland import _native
from lowland._engines.embedding.particle_mesh import DISTANCE, Field, ParticleMesh

MESH_ROWS = {2: 2500, 3: 7000}  # from here on the mesh is faster than all pairs
MARGIN = {2: 64, 3: 12}  # nodes beyond the map where new rows may be
FAR_POINTS = 128  # at most so many are summed one by one
FLOAT64_ROWS = 1000  # pairs of more rows are computed in float32, twice as fast


class DistanceSums:
    """A and its gradient for maps of n points in d dimensions; keeps the grid of the last map."""

    def __init__(self, n: int, d: int, threads: int) -> None:
        self.threads = threads
        self.mesh: ParticleMesh | None = None
        if d in MESH_ROWS and n > MESH_ROWS[d]:
            self.mesh = ParticleMesh(DISTANCE, threads, "fit fewer rows")
        self.dtype = np.float64 if n <= FLOAT64_ROWS else np.float32

    def __call__(self, Y: np.ndarray) -> tuple[float, np.ndarray]:
        if Y.shape[1] == 1:
            return _sorted(Y)
        if self.mesh is not None:
            return self._on_mesh(self.mesh, Y)
        sums, units = _directly(Y, Y, self.dtype, self.threads)
        return float(sums.sum()) / 2, units

    def _on_mesh(self, mesh: ParticleMesh, Y: np.ndarray) -> tuple[float, np.ndarray]:
        far = _far_points(Y)
        near = np.delete(Y, far, axis=0) if far.size else np.ascontiguousarray(Y)
        potential, forces = np.empty(len(near)), np.empty(near.shape)
        # one grid for all maps of about this size, or losses could not be compared
        mesh.field(near, turn=None).at(near, potential, forces, self.threads)
        total, units = float(potential.sum()) / 2, -2 * forces
        if far.size == 0:
            return total, units
        between = _directly(near, Y[far], self.dtype, self.threads)
        outer = _directly(Y[far], Y, self.dtype, self.threads)
        total += float(between[0].sum() + outer[0].sum()) / 2
        every, is_near = np.empty(Y.shape), np.ones(len(Y), bool)
        is_near[far] = False
        every[is_near], every[far] = units + between[1], outer[1]
        return total, every


class SumsToPoints:
    """sum_j |z - y_j| and its gradient at any points z, for the points Y of a fixed map.

    On a grid if there are many points; beyond its margin, and from far points, by all pairs.
    """

    def __init__(self, Y: np.ndarray, threads: int) -> None:
        self.Y, self.threads = Y, threads
        self.field: Field | None = None
        d = Y.shape[1]
        if d in MESH_ROWS and len(Y) > MESH_ROWS[d]:
            far = _far_points(Y)
            self.far, near = Y[far], np.delete(Y, far, axis=0)
            mesh = ParticleMesh(DISTANCE, threads, "fit fewer rows")
            self.field = mesh.field(near, margin=MARGIN[d]).without_charge()

    def __call__(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        Z = np.ascontiguousarray(Z)
        if self.field is None:
            return _directly(Z, self.Y, np.float64, self.threads)
        field = self.field
        place = (Z - field.low) / field.pitch
        inside = ((place >= 3) & (place <= np.array(field.values.shape) - 4)).all(axis=1)
        sums, units = np.empty(len(Z)), np.empty(Z.shape)
        within = Z[inside]
        potential, forces = np.empty(len(within)), np.empty(within.shape)
        field.at(within, potential, forces, self.threads)
        others = _directly(within, self.far, np.float64, self.threads)
        sums[inside], units[inside] = potential + others[0], others[1] - 2 * forces
        beyond = _directly(Z[~inside], self.Y, np.float64, self.threads)
        sums[~inside], units[~inside] = beyond
        return sums, units


def _directly(
    Z: np.ndarray, Y: np.ndarray, dtype: type, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over all pairs of a point of Z and a point of Y."""
    sums, units = np.empty(len(Z)), np.empty(Z.shape)
    z, y = (np.ascontiguousarray(P, dtype) for P in (Z, Y))
    _native.unit_sums(z, y, sums, units, threads)
    return sums, units


def _far_points(Y: np.ndarray) -> np.ndarray:
    """The outermost points, if the map without them is less than half as wide; else none."""
    widths = np.abs(Y - np.median(Y, axis=0)).max(axis=1)
    outer = np.argpartition(widths, -FAR_POINTS)[-FAR_POINTS:]
    rest = widths[outer[0]]  # the least of them
    return np.sort(outer) if 2 * rest < widths[outer].max() else np.empty(0, np.int64)


def _sorted(Y: np.ndarray) -> tuple[float, np.ndarray]:
    """In one dimension the gradient is the number of points below minus the number above."""
    y = Y[:, 0]
    ordered = np.sort(y)
    below, above = np.searchsorted(ordered, y), len(y) - np.searchsorted(ordered, y, "right")
    units = (below - above).astype(np.float64)
    return float(np.einsum("i,i->", units, y)), units[:, None]  # A is homogeneous
