"""Out-of-sample rows in a map by pairs: each one is placed alone in the fixed map.

A new row settles at a minimum of

    J(z) = sum over its near pairs of A(s_j) + rho * sum over all fitted rows of R(s_j),

with s_j = 1 + |z - y_j|^2. A is the loss of near pairs in the third phase, and R(s) = 1 / (1 + s)
that of far pairs; if these are drawn within a reach, R is lowered by its tangent there, so that it
ends without a jump, and is 0 beyond. The last sum is what far pairs would add on average, if they
were drawn again and again: rho is their number divided by the number of rows that they are drawn
from. So nothing is random, and no new row has an influence on another one.

The repulsion of a large map is computed once, as a field on a grid.
"""

from __future__ import annotations

import math

import numpy as np

from lowland import _native
from lowland._core.context import FitContext
from lowland._engines.embedding.particle_mesh import (
    ParticleMesh,
    RadialKernel,
    grid_nodes,
    similarity,
)
from lowland._engines.embedding.placement import MapField

STEPS = 200
CLOSE = 1e-5  # a row has converged when it moves by less
MARGIN = 40  # grid nodes around the map that a new row may use
GRID_POINTS = 5000  # smaller maps: all pairs; larger maps: the field on a grid, computed once
GRID_LIMIT = 2**24  # nodes (of 24 bytes) of a grid


def place_pairs(
    Y: np.ndarray, near: np.ndarray, far_weight: float, reach: float, run: FitContext
) -> np.ndarray:
    """Places (m, d), in float64, of rows with these near rows (m, k) in the map Y.

    ``reach`` is that of LocalMAP, within which far pairs are drawn; 0 for PaCMAP.
    """
    _, grid = run.prepared("field", (Y,), reach, lambda: _field(Y, reach, run.threads))
    Z = np.empty((len(near), Y.shape[1]))
    _native.settle_pairs(
        np.ascontiguousarray(near, np.int32),
        np.ascontiguousarray(Y, np.float64),
        reach / 2,
        far_weight,
        reach or math.inf,
        np.zeros(Y.shape[1]) if grid is None else grid.low,
        1.0 if grid is None else grid.pitch,
        None if grid is None else grid.values,
        STEPS,
        CLOSE,
        Z,
        run.threads,
    )
    return Z


def _field(Y: np.ndarray, reach: float, threads: int) -> MapField:
    """2 sum_j R(s_j) of a large map on a grid, in units of sqrt(2): 1 / (1 + s) = 1 / 2 (1 + u^2).

    The grid is None for small maps, and for maps that would need a huge one.
    """
    U = np.ascontiguousarray(np.asarray(Y, np.float64) / math.sqrt(2), np.float32)
    kernel = _repulsion(reach)
    large = len(U) >= GRID_POINTS and U.shape[1] <= 3
    if not large or grid_nodes(U, kernel, MARGIN) > GRID_LIMIT:
        return MapField(U, None)
    return MapField(U, ParticleMesh(kernel, threads).field(U, margin=MARGIN).without_charge())


def _repulsion(reach: float) -> RadialKernel:
    """2 R as a function of u^2."""
    whole = similarity(1.0)
    if reach == 0:
        return whole
    most = reach**2 / 2
    edge = 1 / (1 + most)

    def values(squares: np.ndarray) -> np.ndarray:
        tangent = edge * (2 - edge * (1 + squares))
        return np.where(squares < most, whole.values(squares) - tangent, 0.0)

    return RadialKernel(values, whole.pitch)
