"""New rows in a map of UMAP, and points of the map back in the space of the data.

A new row is placed at a minimum of its own J (see :mod:`._umap_forces`) while the map is fixed:
this is where a fitted row would be. Back, a point z with memberships phi_j = 1 / (1 + a u_j^b) to
its nearest points of the map becomes the row x that minimizes the fuzzy cross entropy

    C(x) = -sum_j phi_j log v_j + (1 - phi_j) log(1 - v_j),
    v_j = exp(-max(0, |x - x_j| - rho_j) / sigma_j),

from the mean of the rows x_j weighted by phi_j.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland import _native
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

__all__ = ["UmapField", "back_to_rows", "place_in_umap", "umap_field"]

STEPS_BACK = 60
BACK_BYTES = 1 << 26
CERTAIN = 1e-6  # memberships stay this far from 0 and 1


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
    Y = np.ascontiguousarray(Y, np.float32)
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
    m, k = ids.shape
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


def back_to_rows(
    X: np.ndarray,
    ids: np.ndarray,
    phi: np.ndarray,
    nearest: np.ndarray,
    widths: np.ndarray,
) -> np.ndarray:
    """Rows for points with these neighbors (m, k) of the map and memberships to them (m, k)."""
    m, k = ids.shape
    found = np.empty((m, X.shape[1]))
    for rows in row_blocks(m, rows_within(24 * k * X.shape[1], BACK_BYTES)):
        near = ids[rows]
        found[rows] = _descended(X[near].astype(np.float64), phi[rows], nearest[near], widths[near])
    return found


def _descended(X: np.ndarray, phi: np.ndarray, rho: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """The minima of C for neighbors X (m, k, p), each point alone; steps that raise C are halved."""
    x = np.einsum("ik,ikp->ip", phi / phi.sum(axis=1, keepdims=True), X)
    value, slope, stiffness = _cross_entropy(x, X, phi, rho, sigma)
    share = np.ones(len(x))
    for _ in range(STEPS_BACK):
        tried = x - (share / stiffness)[:, None] * slope
        there = _cross_entropy(tried, X, phi, rho, sigma)
        better = there[0] < value
        x = np.where(better[:, None], tried, x)
        value, slope, stiffness = (
            np.where(better.reshape(-1, *[1] * (old.ndim - 1)), new, old)
            for old, new in zip((value, slope, stiffness), there, strict=True)
        )
        share = np.where(better, np.minimum(1.0, 2 * share), share / 2)
    return x


def _cross_entropy(
    x: np.ndarray, X: np.ndarray, phi: np.ndarray, rho: np.ndarray, sigma: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C, its gradient, and the curvature of its attraction, by row."""
    gap = x[:, None] - X
    d = np.sqrt(np.einsum("ikp,ikp->ik", gap, gap))
    sigma = np.maximum(sigma, 1e-300)
    over = np.minimum(np.maximum(d - rho, 0) / sigma, -np.log(CERTAIN))
    v = np.minimum(np.exp(-over), 1 - CERTAIN)
    value = (phi * over - (1 - phi) * np.log1p(-v)).sum(axis=1)
    moves = (d > rho) & (over < -np.log(CERTAIN))
    per_length = np.where(moves, 1 / (sigma * np.maximum(d, 1e-300)), 0.0)
    attraction = phi * per_length
    slope = np.einsum("ik,ikp->ip", attraction - (1 - phi) * v / (1 - v) * per_length, gap)
    return value, slope, np.maximum(attraction.sum(axis=1), 1e-300)
