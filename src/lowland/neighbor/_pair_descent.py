"""Descent of maps by pairs: three phases of steps of Adam (Kingma & Ba 2015) on all pairs.

With s = 1 + |y_i - y_j|^2 the loss is

    sum over near pairs      w s / (10 + s)
  + sum over mid-near pairs  w s / (10^4 + s)
  + sum over far pairs       w / (1 + s)

The weights w change from phase to phase: mid-near pairs lay out the map at first and are let go in
the end. Each point sums the forces on it over lists of its partners in both directions, in one
fixed order, so that the map is the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._core.monitor import Monitor

FIRST_MID = 1000.0  # weight of mid-near pairs at the start
BETAS = (0.9, 0.999)
LOOK = 50  # the loss is computed every so many steps
REDRAW = 10  # far pairs of LocalMAP are drawn again after so many steps


class Weights(NamedTuple):
    """Weights of near, mid-near and far pairs; c of LocalMAP, 0 for PaCMAP."""

    near: float
    mid: float
    far: float
    local: float = 0.0


class PairLists(NamedTuple):
    """Partners of each point in both directions: starts and columns of each kind of pairs."""

    near: tuple[np.ndarray, np.ndarray]
    mid: tuple[np.ndarray, np.ndarray]
    far: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, near: np.ndarray, mid: np.ndarray, far: np.ndarray, threads: int) -> PairLists:
        """The lists of pairs that are given as partners of each row, (n, k)."""
        return cls(*(both_directions(pairs, threads) for pairs in (near, mid, far)))

    def flat(self) -> tuple[np.ndarray, ...]:
        return (*self.near, *self.mid, *self.far)


class PairDescent(NamedTuple):
    """The final map, losses during the descent, the number of steps, and the last weights."""

    Y: np.ndarray
    losses: list[float]
    n_iter: int
    weights: Weights
    lists: PairLists


def both_directions(pairs: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and columns of the lists of partners and of those that have the point as partner."""
    starts = np.empty(len(pairs) + 1, np.int64)
    _native.pair_starts(pairs, starts, threads)
    columns = np.empty(starts[-1], np.int32)
    _native.pair_lists(pairs, starts, columns, threads)
    return starts, columns


def weights_at(step: int, num_iters: Sequence[int], local: float = 0.0) -> Weights:
    """The weights of a step, counted from 0; ``local`` is c of LocalMAP in the third phase."""
    first, second, _ = num_iters
    if step < first:
        t = step / first
        return Weights(2.0, (1 - t) * FIRST_MID + t * 3.0, 1.0)
    if step < first + second:
        return Weights(3.0, 3.0, 1.0)
    return Weights(1.0, 0.0, 1.0, local)


def pair_loss(lists: PairLists, weights: Weights, Y: np.ndarray, threads: int) -> float:
    """The loss at the map Y."""
    losses = np.empty(len(Y))
    _native.pair_forces(*lists.flat(), np.array(weights), Y, np.empty_like(Y), losses, threads)
    return float(losses.sum())


def descend_pairs(
    lists: PairLists,
    Y: np.ndarray,
    num_iters: Sequence[int],
    *,
    learning_rate: float,
    monitor: Monitor,
    threads: int,
    local: float = 0.0,
    redraw: Callable[[int, np.ndarray], np.ndarray] | None = None,
) -> PairDescent:
    """Descend from Y. Losses are those before every ``LOOK``-th step, with its weights.

    ``redraw(number, Y)`` gives other far pairs (n, k) after every ``REDRAW`` steps of the third
    phase.
    """
    total, third = sum(num_iters), num_iters[0] + num_iters[1]
    here, there = Y.copy(), np.empty_like(Y)
    means, squares = np.zeros_like(Y), np.zeros_like(Y)
    weights, losses, done = weights_at(0, num_iters, local), [], 0
    for step in range(total):
        if redraw is not None and step > third and (step - third) % REDRAW == 0:
            far = redraw((step - third) // REDRAW, here)
            lists = lists._replace(far=both_directions(far, threads))
        weights = weights_at(step, num_iters, local)
        if step % LOOK == 0:
            losses.append(pair_loss(lists, weights, here, threads))
        # both corrections of Adam for the zeros that the moments start with
        first, second = (1 - beta ** (step + 1) for beta in BETAS)
        rate = learning_rate * second**0.5 / first
        _native.pair_step(
            *lists.flat(), np.array(weights), rate, here, there, means, squares, threads
        )
        here, there = there, here
        done = step + 1
        if monitor.iteration(done, here, losses[-1], total=total):
            break
    return PairDescent(here, losses, done, weights, lists)
