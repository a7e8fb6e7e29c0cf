"""Out-of-sample rows in a map by pairs: each one is placed alone in the fixed map.

A new row settles at a minimum of

    J(z) = sum over its near pairs of A(s_j) + rho * sum over all fitted rows of 1 / (1 + s_j),

with s_j = 1 + |z - y_j|^2. A is the loss of near pairs in the third phase. The last sum is what far
pairs would add on average, if they were drawn again and again: rho is their number divided by the
number of rows that they are drawn from. So nothing is random, and no new row has an influence on
another one.

The repulsion of a large map is computed once, as a field on a grid: 1 / (1 + s) is half of t-SNE's
similarity of points divided by sqrt(2).
"""

from __future__ import annotations

import numpy as np

from lowland import _native
from lowland._core.context import FitContext
from lowland._engines.embedding.placement import map_field

__all__ = ["place_pairs"]

STEPS = 200
CLOSE = 1e-5  # a row has converged when it moves by less


def place_pairs(
    Y: np.ndarray, near: np.ndarray, far_weight: float, local: float, run: FitContext
) -> np.ndarray:
    """Places (m, d), in float64, of rows with these near rows (m, k) in the map Y."""

    def field() -> object:
        return map_field(np.asarray(Y, np.float64) / np.sqrt(2), 1.0, run.threads)

    _, grid = run.prepared("field", (Y,), None, field)
    Z = np.empty((len(near), Y.shape[1]))
    _native.settle_pairs(
        np.ascontiguousarray(near, np.int32),
        np.ascontiguousarray(Y, np.float64),
        local,
        far_weight,
        np.zeros(Y.shape[1]) if grid is None else grid.low,
        1.0 if grid is None else grid.pitch,
        None if grid is None else grid.values,
        STEPS,
        CLOSE,
        Z,
        run.threads,
    )
    return Z
