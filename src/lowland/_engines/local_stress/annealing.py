"""Annealing: the descents of a sequence of objectives, each from where the last one ended.

Radii shrink geometrically from the whole map to neighborhoods, in stages of a few steps, and the
last objective is followed until it changes no more. So the map is arranged as a whole first, then
in parts, and tears appear where the data have to be torn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._core.monitor import Monitor
from lowland._engines.stress.majorization import majorize

STAGES, STEPS = 20, 15  # more stages, or more steps of each, end at nearly the same loss
SHARE = 0.75  # of all steps: for the stages before the last


class Annealed(NamedTuple):
    """The final map, the losses at the start and after each step, and the last objective."""

    Y: np.ndarray
    losses: np.ndarray
    n_iter: int
    objective: Any


def anneal(
    objective_at: Callable[[float, np.ndarray], Any],
    start: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    monitor: Monitor,
    shown: Callable[[np.ndarray], np.ndarray] = lambda Y: Y,
    told: Callable[[float], float] = lambda loss: loss,
) -> Annealed:
    """Lower ``objective_at(t, Y)`` for t from 0 to 1; it may choose its pairs by the map Y.

    Twenty stages share three quarters of the steps, at most 15 each; the last one has the rest.
    """
    steps = min(STEPS, max(1, int(SHARE * max_iter) // STAGES))
    n_stages = min(STAGES, int(SHARE * max_iter) // steps)
    Y, losses = start, np.empty(0)
    objective: Any = None
    for stage in range(n_stages + 1):
        last = stage == n_stages
        before = max(0, len(losses) - 1)
        objective = objective_at(stage / n_stages if n_stages else 1.0, Y)
        found = majorize(
            objective,
            Y,
            max_iter=max_iter if last else min(max_iter, before + steps),
            tol=tol,
            monitor=monitor,
            shown=shown,
            told=told,
            steps_before=before,
            total=max_iter,
        )
        losses = np.concatenate([losses, found.losses[min(1, len(losses)) :]])
        Y = found.Y
        if monitor.stopped:
            break
    return Annealed(Y, losses, len(losses) - 1, objective)


def geometric(first: Any, last: Any, t: float) -> Any:
    """From ``first`` at t = 0 to ``last`` at t = 1, by equal factors."""
    return first ** (1 - t) * last**t


def farthest(Y: np.ndarray) -> float:
    """About the largest distance of a map: from the point farthest from the mean to another."""
    mean = Y.mean(axis=0)
    end = Y[np.argmax(((Y - mean) ** 2).sum(axis=1))]
    return float(np.sqrt(((Y - end) ** 2).sum(axis=1).max()))
