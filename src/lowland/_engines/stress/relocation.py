"""Points that a descent cannot move: each is tried at other places while all others stay.

A point on the wrong side of the map is held there, because on its way across the stress rises.
The places of a grid over the map are tried for all points at once: with E the distances between
the m places and the n points, the stress of point i at place c is, up to a constant,
sum_j E_cj^2 - 2 sum_j delta_ij E_cj, one product of delta with an n x m matrix. It costs as much as
some ten steps of the descent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._engines.linalg import products
from lowland._engines.stress.objective import AllPairs

SIDES = {1: 64, 2: 12, 3: 5}  # places along each axis, by the number of axes
LEAST_GAIN = 1e-9  # of the whole stress


def can_relocate(objective: Any, n_components: int) -> bool:
    """Whether the objective is the raw stress of all pairs, of maps with one to three axes."""
    return n_components in SIDES and isinstance(objective, AllPairs) and objective.uniform


def relocated(objective: AllPairs, Y: np.ndarray) -> np.ndarray | None:
    """Y with the points that have a lower stress at a place of the grid put there; None if none.

    The loss of the result is lower than that of Y. Only where :func:`can_relocate`.
    """
    places = _grid(Y, SIDES[Y.shape[1]])
    E = np.sqrt(((Y[:, None, :] - places) ** 2).sum(axis=2))  # n x m
    crossed = products.times(objective.delta, np.zeros(len(Y)), E, objective.threads)
    # without the distance of the point to itself; the terms delta^2 are the same everywhere
    tried = (E**2).sum(axis=0) - E**2 - 2 * crossed.astype(np.float64)
    here, _ = objective.per_point(Y)
    known = np.einsum("ij,ij->i", objective.delta, objective.delta, dtype=np.float64)
    best = tried.argmin(axis=1)
    gains = here - known - tried[np.arange(len(Y)), best]
    loss = objective(Y).loss
    order = np.argsort(-gains, kind="stable")
    for moved in (order[gains[order] > LEAST_GAIN * loss], order[:1]):
        # all that gain; if they gain only apart from each other, the one that gains most
        Z = Y.copy()
        Z[moved] = places[best[moved]]
        if moved.size and objective(Z).loss < loss * (1 - LEAST_GAIN):
            return Z
    return None


def _grid(Y: np.ndarray, side: int) -> np.ndarray:
    """The middles of the cells of a grid over the box of the points."""
    low, high = Y.min(axis=0), Y.max(axis=0)
    shares = (np.arange(side) + 0.5) / side
    axes = [a + (b - a) * shares for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, Y.shape[1])
