"""Out-of-sample rows in a neighbor embedding: each one is placed alone in the fixed map.

A new row with affinities p_j to its fitted neighbors is placed where the divergence is least while
the fitted rows stay fixed:

    J(z) = sum_j p_j v log(1 + |z - y_j|^2 / v) + phi(z) / m,      phi(z) = sum_j K(z - y_j),

with m = Z / n, the potential of an average point, for t-SNE and symmetric SNE: J is then the
contribution of the row to the divergence of a map that contains it. For SNE, whose rows are
normalized one by one, the last term is log phi(z).

Each step minimizes a quadratic majorizer of the attraction (the logarithm lies below its tangent)
plus the linearized repulsion, and is halved until J falls. There is no learning rate, and new rows
do not influence each other.

The field of a large map is computed once, on a grid, and can be kept (:func:`map_field`); all steps
of a row are then taken in one kernel. Small maps are summed over all pairs in each step.

Cost O(m k) and one evaluation of the field per step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._engines.embedding.particle_mesh import Field, ParticleMesh, grid_nodes, similarity

STEPS = 100
CLOSE = 1e-4  # a row has converged when it moves by less
MARGIN = 40  # grid nodes around the map that a new row may use
GRID_POINTS = 5000  # smaller maps: all pairs; larger maps: the field on a grid, computed once
GRID_LIMIT = 2**24  # nodes (of 24 bytes) of a grid


class FrozenMap(NamedTuple):
    """The fitted map, its degrees of freedom, and Z / n (None: rows are normalized one by one)."""

    Y: np.ndarray
    dof: float
    mean_potential: float | None


class MapField(NamedTuple):
    """The places of a map in float32, and their field on a grid; None: small, without a grid."""

    Y: np.ndarray
    grid: Field | None

    @property
    def nbytes(self) -> int:
        """Memory of both."""
        return int(self.Y.nbytes) + (0 if self.grid is None else int(self.grid.values.nbytes))


class Height(NamedTuple):
    """J of each row, half its gradient, and the curvature of the attraction."""

    value: np.ndarray
    slope: np.ndarray
    stiffness: np.ndarray


def map_field(Y: np.ndarray, dof: float, threads: int) -> MapField:
    """What new rows need to know of a map; O(n + g log g) for g grid nodes."""
    Y = np.ascontiguousarray(Y, np.float32)
    kernel = similarity(dof)
    large = len(Y) >= GRID_POINTS and Y.shape[1] <= 3
    if not large or grid_nodes(Y, kernel, MARGIN) > GRID_LIMIT:
        return MapField(Y, None)
    return MapField(Y, ParticleMesh(kernel, threads).field(Y, margin=MARGIN).without_charge())


def place_rows(
    frozen: FrozenMap,
    ids: np.ndarray,
    weights: np.ndarray,
    threads: int,
    field: MapField | None = None,
) -> np.ndarray:
    """Places for rows with these fitted neighbors (m, k) and affinities to them (m, k).

    ``field`` is the :func:`map_field` of the map, if it is known already.
    """
    Y, grid = map_field(frozen.Y, frozen.dof, threads) if field is None else field
    if grid is None:
        return _by_pairs(frozen, Y, ids, weights, threads)
    inverse_dof = 0.0 if math.isinf(frozen.dof) else 1 / frozen.dof
    mean = 0.0 if frozen.mean_potential is None else frozen.mean_potential
    return settled_on_grid(Y, grid, ids, weights, inverse_dof, mean, threads)


def settled_on_grid(
    Y: np.ndarray,
    grid: Field,
    ids: np.ndarray,
    weights: np.ndarray,
    inverse_dof: float,
    mean_potential: float,
    threads: int,
    a: float = 0.0,
    b: float = 0.0,
) -> np.ndarray:
    """Places of rows in a map (float32) whose field is known; with a and b by the law of UMAP."""
    Z = np.empty((len(ids), Y.shape[1]), np.float32)
    _native.settle_rows(
        np.ascontiguousarray(ids, np.int32),
        np.ascontiguousarray(weights),
        Y,
        inverse_dof,
        mean_potential,
        grid.low,
        grid.pitch,
        grid.values,
        STEPS,
        CLOSE,
        Z,
        threads,
        a,
        b,
    )
    return Z


# --- small maps, over all pairs --------------------------------------------------------------


def _by_pairs(
    frozen: FrozenMap, Y: np.ndarray, ids: np.ndarray, weights: np.ndarray, threads: int
) -> np.ndarray:
    m, k = ids.shape
    edges = (
        np.arange(m + 1, dtype=np.int64) * k,
        np.ascontiguousarray(np.maximum(ids, 0), np.int32).ravel(),
        np.ascontiguousarray(weights, np.float32).ravel(),
    )

    def height(Z: np.ndarray, rows: np.ndarray) -> Height:
        return _height(Z, rows, Y, edges, frozen, threads)

    Z = np.einsum("ik,ikd->id", weights, Y[np.maximum(ids, 0)].astype(np.float64))
    Z = np.ascontiguousarray(Z, np.float32)
    return settled(Z, height)


def settled(Z: np.ndarray, height: Callable[[np.ndarray, np.ndarray], Height]) -> np.ndarray:
    """Descend with every row to its own minimum; converged rows are left out of further steps."""
    rows = np.arange(len(Z))
    here = height(Z, rows)
    share = np.ones(len(Z))
    for _ in range(STEPS):
        move = -here.slope / np.maximum(here.stiffness, 1e-12)[:, None]
        tried = (Z[rows] + share[:, None] * move).astype(np.float32)
        there = height(tried, rows)
        better = there.value < here.value
        Z[rows[better]] = tried[better]
        here = Height(
            *(
                np.where(_beside(better, old), new, old)
                for old, new in zip(here, there, strict=True)
            )
        )
        distance = share * np.sqrt((move**2).sum(axis=1))
        share = np.where(better, np.minimum(1.0, 2 * share), share / 2)
        going = distance > CLOSE
        if not going.any():
            break
        rows, share = rows[going], share[going]
        here = Height(*(part[going] for part in here))
    return Z


def _beside(mask: np.ndarray, array: np.ndarray) -> np.ndarray:
    return mask.reshape(-1, *[1] * (array.ndim - 1))


def _height(
    Z: np.ndarray,
    rows: np.ndarray,
    Y: np.ndarray,
    edges: tuple[np.ndarray, np.ndarray, np.ndarray],
    frozen: FrozenMap,
    threads: int,
) -> Height:
    m = len(rows)
    k = int(edges[0][1]) if len(edges[0]) > 1 else 0
    starts = np.arange(m + 1, dtype=np.int64) * k
    columns, weights = (np.ascontiguousarray(e.reshape(-1, k)[rows]).ravel() for e in edges[1:])
    pull, push = np.empty_like(Z), np.empty_like(Z)
    sums, potential = np.empty((m, 2)), np.empty(m)
    inverse_dof = 0.0 if math.isinf(frozen.dof) else 1 / frozen.dof
    _native.attract(starts, columns, weights, Z, Y, inverse_dof, pull, sums, threads)
    gaussian = math.isinf(frozen.dof)
    dof = 1.0 if gaussian else frozen.dof
    _native.repel_from(Z, Y, gaussian, dof, potential, push, threads)
    if frozen.mean_potential is None:
        potential = np.maximum(potential, np.finfo(np.float32).tiny)
        value, per_unit = np.log(potential), 1 / potential
    else:
        value = potential / frozen.mean_potential
        per_unit = np.full(m, 1 / frozen.mean_potential)
    return Height(sums[:, 0] + value, pull - push * per_unit[:, None], sums[:, 1])
