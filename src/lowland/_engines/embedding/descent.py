"""Gradient descent with momentum and gains, shared by all neighbor embeddings.

    gradient = exaggeration * a - f / total                       (see :mod:`divergence`)
    gain     = gain + 0.2 where the last step still decreases the loss, else 0.8 gain
    velocity = momentum * velocity - learning_rate * gain * gradient
    y        = y + velocity

The learning rate is n / exaggeration (Belkina et al. 2019): a point whose neighbors are fixed then
moves by about its distance from them. No point moves farther than ``LONGEST`` in one step. The loss
is computed every ``LOOK`` steps only.

Reference: Belkina et al. (2019), Automated optimized parameters for t-distributed stochastic
neighbor embedding, Nature Communications 10, doi:10.1038/s41467-019-13055-y.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from lowland import _native
from lowland._base.monitor import Monitor
from lowland._engines.embedding.divergence import Forces

LONGEST = 5.0
LOOK = 50
ARRANGED_ROWS = 5000  # smaller maps fit into the cache in any order
ARRANGED_AT = (0, 50, 150, 300, 500)  # steps before which points are ordered; then every 500


class Stage(NamedTuple):
    """A number of steps with exaggerated attraction, and whether convergence may end it early.

    ``rate`` is a factor on the learning rate.
    """

    n_iter: int
    exaggeration: float
    momentum: float
    may_stop: bool
    rate: float = 1.0


class Descent(NamedTuple):
    """The final map, the losses during the descent, and the number of steps.

    ``rows`` holds the row number of each point of the divergence, which reorders its points.
    """

    Y: np.ndarray
    losses: np.ndarray
    n_iter: int
    rows: np.ndarray


class Objective(Protocol):
    """What a descent needs of an objective, such as a :class:`Divergence`."""

    threads: int

    def __call__(self, Y: np.ndarray, with_loss: bool = False) -> Forces:
        """Forces at the map Y, and its loss."""

    def loss(self, Y: np.ndarray) -> float:
        """The loss at the map Y."""

    def arrange(self, Y: np.ndarray) -> np.ndarray:
        """Reorder the points; the order is returned."""


def descend(
    divergence: Objective,
    Y: np.ndarray,
    stages: Sequence[Stage],
    *,
    learning_rate: float | None,
    tol: float,
    monitor: Monitor,
) -> Descent:
    """Descend from Y; a learning rate of None is n / exaggeration of each stage.

    A stage that may stop does so when the loss changes by less than ``tol`` of itself per step.
    Losses are those of the map before every ``LOOK``-th step and of the last map, without
    exaggeration.
    """
    walk = _Walk(divergence, Y)
    n, total_steps = len(Y), sum(stage.n_iter for stage in stages)
    losses: list[float] = []
    step = 0
    for stage in stages:
        rate = n / stage.exaggeration if learning_rate is None else learning_rate
        rate *= stage.rate
        last = None
        for _ in range(stage.n_iter):
            walk.maybe_arrange(step)
            looks = step % LOOK == 0
            loss = walk.step(stage, rate, with_loss=looks)
            step += 1
            settled = False
            if loss is not None:
                losses.append(loss)
                settled = last is not None and abs(last - loss) <= tol * LOOK * abs(loss)
                last = loss
            stopped = monitor.iteration(step, walk.map, losses[-1], total=total_steps)
            if stopped or (stage.may_stop and settled):
                break
        if monitor.stopped:
            break
    final = divergence.loss(walk.Y)
    return Descent(walk.map(), np.array([*losses, final]), step, walk.rows)


class _Walk:
    """Positions, velocities and gains, in an order that changes during the descent."""

    def __init__(self, divergence: Objective, Y: np.ndarray) -> None:
        self.divergence = divergence
        self.Y = Y.copy()
        self.velocity, self.gains = np.zeros_like(Y), np.ones_like(Y)
        self.rows = np.arange(len(Y))  # the row number of each point

    def step(self, stage: Stage, rate: float, with_loss: bool) -> float | None:
        attraction, repulsion, total, loss = self.divergence(self.Y, with_loss)
        _native.descend(
            attraction,
            repulsion,
            stage.exaggeration,
            total,
            rate,
            stage.momentum,
            LONGEST,
            self.Y,
            self.velocity,
            self.gains,
            self.divergence.threads,
        )
        if with_loss:
            self.Y -= self.Y.mean(axis=0, dtype=np.float64).astype(self.Y.dtype)
        return loss

    def maybe_arrange(self, step: int) -> None:
        due = step in ARRANGED_AT or step % ARRANGED_AT[-1] == 0
        if not due or len(self.Y) < ARRANGED_ROWS:
            return
        order = self.divergence.arrange(self.Y)
        self.Y, self.velocity, self.gains = (
            np.ascontiguousarray(array[order]) for array in (self.Y, self.velocity, self.gains)
        )
        self.rows = self.rows[order]

    def map(self) -> np.ndarray:
        """The points in the order of the rows; a copy."""
        Y = np.empty_like(self.Y)
        Y[self.rows] = self.Y
        return Y
