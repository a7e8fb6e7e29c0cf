"""New rows in a map of UMAP, and points of the map back in the space of the data.

A new row is placed at a minimum of its own J (see :mod:`._umap_forces`) while the map is fixed:
this is where a fitted row would be. Back, a point of the map becomes the mean of the rows at its
nearest points, weighted by their memberships 1 / (1 + a u^b). The reference implementation goes on
from there to a minimum of the cross entropy in the space of the data. On held-out rows that was not
nearer to the truth, and between clusters, where all memberships are small, its repulsion carries
rows out of the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._core.errors import DataError
from lowland._engines.embedding.particle_mesh import Field, ParticleMesh, grid_nodes
from lowland._engines.embedding.placement import (
    GRID_LIMIT,
    MARGIN,
    Height,
    settled,
    settled_on_grid,
)
from lowland._engines.linalg.blocks import row_blocks, rows_within
from lowland.neighbor._umap_law import UmapLaw

BACK_BYTES = 1 << 26


class UmapField(NamedTuple):
    """The places of a map in float32, and their field on a grid; None: more than 3 dimensions."""

    Y: np.ndarray
    grid: Field | None

    @property
    def nbytes(self) -> int:
        """Memory of both."""
        return int(self.Y.nbytes) + (0 if self.grid is None else int(self.grid.values.nbytes))


def umap_field(Y: np.ndarray, law: UmapLaw, threads: int) -> UmapField:
    """What new rows need to know of a map."""
    with np.errstate(over="ignore"):
        Y = np.ascontiguousarray(Y, np.float32)
    if not np.isfinite(Y).all():
        raise DataError("the map of the model has coordinates beyond float32; fit the model again.")
    kernel = law.radial()
    if Y.shape[1] > 3 or grid_nodes(Y, kernel, MARGIN) > GRID_LIMIT:
        return UmapField(Y, None)
    mesh = ParticleMesh(kernel, threads, "take fewer dimensions")
    return UmapField(Y, mesh.field(Y, margin=MARGIN).without_charge())


def place_in_umap(
    field: UmapField, law: UmapLaw, total: float, ids: np.ndarray, p: np.ndarray, threads: int
) -> np.ndarray:
    """Places for rows with these fitted neighbors (m, k), and p_j of them, which sum to 1."""
    Y, grid = field
    if grid is not None:
        return settled_on_grid(Y, grid, ids, p, 0.0, total, threads, law.a, law.b)
    k = ids.shape[1]
    ids = np.ascontiguousarray(np.maximum(ids, 0), np.int32)
    p = np.ascontiguousarray(p, np.float32)

    def height(Z: np.ndarray, rows: np.ndarray) -> Height:
        starts = np.arange(len(rows) + 1, dtype=np.int64) * k
        near, weights = ids[rows].ravel(), p[rows].ravel()
        pull, push = np.empty_like(Z), np.empty_like(Z)
        sums, potential = np.empty((len(rows), 2)), np.empty(len(rows))
        _native.attract(starts, near, weights, Z, Y, 0.0, pull, sums, threads, law.a, law.b)
        law.repel(Z, Y, push, threads, potential, same=False)
        return Height(sums[:, 0] + potential / total, pull - push / total, sums[:, 1])

    start = np.einsum("ik,ikd->id", p, Y[ids].astype(np.float64))
    return settled(np.ascontiguousarray(start, np.float32), height)


def back_to_rows(X: np.ndarray, ids: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Means of the rows with these numbers (m, k), weighted by memberships (m, k); in float64."""
    m, k = ids.shape
    found = np.empty((m, X.shape[1]))
    shares = phi / phi.sum(axis=1, keepdims=True)
    for rows in row_blocks(m, rows_within(8 * k * X.shape[1], BACK_BYTES)):
        found[rows] = np.einsum("ik,ikp->ip", shares[rows], X[ids[rows]].astype(np.float64))
    return found
