"""The signs of the axes of a map whose rows are read leaf by leaf."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.monitor import Monitor
from lowland._core.rows.leaves import Block
from lowland._core.rows.table import Rows
from lowland._core.threads import resolve_n_jobs
from lowland._engines.linalg import products
from lowland._engines.stress.classical_scaling import Scaling


def map_signs(rows: Rows, found: Scaling, *, n_jobs: int | None, monitor: Monitor) -> np.ndarray:
    """1 or -1 for each axis, so that the largest coordinate of the map is positive: one pass."""
    assert found.axes is not None
    assert found.mean is not None
    total: Farthest = rows.total(Projected(found.axes, found.mean, n_jobs), farther, monitor, "map")
    return np.where(total.coordinates < 0, -1.0, 1.0)


class Farthest(NamedTuple):
    """The coordinate that is largest in absolute value, on each axis; the first of equal ones."""

    coordinates: np.ndarray


class Projected:
    """The farthest coordinates of one block."""

    def __init__(self, axes: np.ndarray, mean: np.ndarray, n_jobs: int | None) -> None:
        self.axes, self.mean, self.n_jobs = axes, mean, n_jobs

    def __call__(self, block: Block) -> Farthest:
        Y = products.times(block.X, self.mean, self.axes.T, resolve_n_jobs(self.n_jobs))
        first = np.abs(Y).argmax(axis=0)
        return Farthest(Y[first, np.arange(Y.shape[1])].astype(np.float64))


def farther(a: Farthest, b: Farthest) -> Farthest:
    """The farthest coordinates of both sets of rows."""
    ahead = np.abs(b.coordinates) > np.abs(a.coordinates)
    return Farthest(np.where(ahead, b.coordinates, a.coordinates))
