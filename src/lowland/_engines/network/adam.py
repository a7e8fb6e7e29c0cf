"""Adam (Kingma & Ba 2015) on mini-batches: how large tables train a network.

    E = mean of (target - output)^2 over values + weight_decay * sum W^2 + sparsity * mean |code|
        or, with a tail c, c^2 log(1 + e^2 / c^2) in place of the squared error e^2 of a row
    m = .9 m + .1 g,   v = .999 v + .001 g^2,   w = w - rate * m' / (sqrt(v') + 1e-8)

m' and v' are m and v divided by 1 - .9^t and 1 - .999^t. Training is in float32. Rows are taken in
an order that the seed decides. After each epoch the loss on held-out rows is computed, if there are
any; the weights of the best epoch are the result, also if training is stopped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.traits import Estimate
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.network.layers import Network, apply

BETAS, EPSILON = (0.9, 0.999), 1e-8  # those of the paper; training.cpp has them, too
EXPLODED = 10.0  # times the loss at the start
EXPLODED_SQUARE = 1e4  # squared error per value of targets of unit size, with a tail
START_ROWS = 4096  # whose loss stands for all at the start
CORRUPTED_BYTES = 2**24  # of corrupted rows that are made at a time
CALL_PRODUCTS = 1e11  # of one call of the kernel, about a second: a cancellation waits for its end


Corruption = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


class Plan(NamedTuple):
    """How to train.

    ``schedule`` is "cosine" (the rate falls to 0 at the last epoch) or "constant". ``sparsity``
    weighs the mean absolute value of the layer number ``code`` (1 ... L-1). Training stops after
    ``patience`` epochs without a better loss (0: never). ``corrupt(rows, numbers, rng)`` gives what
    the network sees in place of rows, whose numbers it gets, a new array; the target stays. A
    ``tail`` above 0 forgives rows whose error is much larger.
    """

    n_epochs: int
    batch_size: int
    learning_rate: float
    schedule: str = "cosine"
    weight_decay: float = 0.0
    sparsity: float = 0.0
    code: int = 0
    patience: int = 0
    corrupt: Corruption | None = None
    tail: float = 0.0


class Trained(NamedTuple):
    """Weights (float32) of the best epoch; mean squared errors per value before and after epochs.

    ``losses`` are those of the training rows during each epoch, ``held_out`` those of the held-out
    rows after it (empty without any); the first of both is that of the first weights.
    """

    weights: np.ndarray
    losses: np.ndarray
    held_out: np.ndarray
    best_epoch: int


def training_cost(n: int, sizes: Sequence[int], n_epochs: int) -> Estimate:
    """Of ``n_epochs`` on n rows; the rows themselves are not counted."""
    products = sum(a * b for a, b in itertools.pairwise(sizes))
    steps = n_epochs * (n / 128 + 1)
    seconds = 3.4e-11 * products * n * n_epochs + 2e-9 * products * steps + 2e-5 * steps
    return Estimate(seconds, 30.0 * products + 16.0 * 128 * sum(sizes))


def rate_at(plan: Plan, done: np.ndarray) -> np.ndarray:
    """Learning rates when these shares of all steps are done."""
    if plan.schedule == "constant":
        return np.full(len(done), plan.learning_rate)
    return plan.learning_rate * 0.5 * (1 + np.cos(np.pi * done))


def train(
    network: Network,
    weights: np.ndarray,
    inputs: np.ndarray,
    targets: np.ndarray,
    plan: Plan,
    run: FitContext,
    *,
    held_out: tuple[np.ndarray, np.ndarray] | None = None,
    show: Callable[[np.ndarray], np.ndarray] | None = None,
    owner: str = "",
) -> Trained:
    """Train from ``weights``; inputs (n, n_in) and targets (n, n_out) are float32.

    ``show(weights)`` makes the map that a callback gets. ``owner`` is named in error messages.
    """
    weights = weights.astype(np.float32)
    state = _State(np.zeros_like(weights), np.zeros_like(weights))
    sample = slice(0, START_ROWS)
    losses = [mean_loss(network, weights, inputs[sample], targets[sample], run.threads, plan.tail)]
    held, most = losses[:], _most_loss(losses[0], plan, targets.shape[1])
    if held_out is not None:
        held = [mean_loss(network, weights, *held_out, run.threads, plan.tail)]
    best, best_loss, best_epoch = weights.copy(), held[0], 0
    for epoch in range(1, plan.n_epochs + 1):
        loss = _epoch(network, weights, state, inputs, targets, plan, epoch, run)
        losses.append(loss)
        if not loss <= most:  # nor may it be NaN
            raise DataError(
                f"{owner}: training diverged in epoch {epoch}: the loss per value rose from "
                f"{losses[0]:.3g} to {loss:.3g} with learning_rate={plan.learning_rate:g}; "
                f"use a smaller one, such as {min(1e-3, plan.learning_rate / 10):g}."
            )
        if held_out is not None:
            held.append(mean_loss(network, weights, *held_out, run.threads, plan.tail))
        watched_loss = held[-1] if held_out is not None else loss
        if watched_loss < best_loss:
            best[:], best_loss, best_epoch = weights, watched_loss, epoch
        stop = run.monitor.iteration(
            epoch, lambda: show(weights) if show else weights, watched_loss, total=plan.n_epochs
        )
        if stop or (plan.patience and epoch - best_epoch >= plan.patience):
            break
    return Trained(
        best, np.array(losses), np.array(held if held_out is not None else []), best_epoch
    )


def mean_loss(
    network: Network,
    weights: np.ndarray,
    inputs: np.ndarray,
    targets: np.ndarray,
    threads: int,
    tail: float = 0.0,
) -> float:
    """The mean squared error over all values, or what the tail makes of it."""
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # of weights that exploded
        for rows in row_blocks(len(inputs), rows_within(8 * sum(network.sizes))):
            error = apply(network, weights, inputs[rows], threads) - targets[rows]
            squares = np.square(error, dtype=np.float64).sum(axis=1)
            total += float(_forgiven(squares, tail).sum())
    return total / targets.size


def _forgiven(squares: np.ndarray, tail: float) -> np.ndarray:
    return tail**2 * np.log1p(squares / tail**2) if tail > 0 else squares


def _most_loss(first: float, plan: Plan, n_out: int) -> float:
    """Beyond this loss training has exploded."""
    if plan.tail > 0:
        return float(_forgiven(np.array([EXPLODED_SQUARE * n_out]), plan.tail)[0]) / n_out
    return EXPLODED * max(first, 1.0)


class Adam:
    """Weights that steps of Adam change in place, for a gradient that the caller computes."""

    def __init__(self, weights: np.ndarray, decays: np.ndarray) -> None:
        self.weights, self.decays, self.t = weights, decays.astype(weights.dtype), 0
        self._state = _State(np.zeros_like(weights), np.zeros_like(weights))

    def step(self, gradient: np.ndarray, rate: float, weight_decay: float = 0.0) -> None:
        """One step down a gradient, to which the slope of the penalty is added."""
        self.t += 1
        mean, square = self._state
        gradient = gradient + 2 * weight_decay * self.decays * self.weights
        mean += (1 - BETAS[0]) * (gradient - mean)
        square += (1 - BETAS[1]) * (gradient * gradient - square)
        size = np.sqrt(square / (1 - BETAS[1] ** self.t)) + EPSILON
        self.weights -= rate / (1 - BETAS[0] ** self.t) * mean / size


class _State(NamedTuple):
    """Running means of slopes and of their squares."""

    mean: np.ndarray
    square: np.ndarray


def _epoch(
    network: Network,
    weights: np.ndarray,
    state: _State,
    inputs: np.ndarray,
    targets: np.ndarray,
    plan: Plan,
    epoch: int,
    run: FitContext,
) -> float:
    """One pass over all rows, which changes weights and state; the mean loss of its batches."""
    n, size = len(inputs), min(plan.batch_size, len(inputs))
    n_steps = -(-n // size)
    order, total, seen_rows = run.rng.permutation(n), 0.0, 0
    together = max(1, int(CALL_PRODUCTS / (3 * size * network.n_products)))
    if plan.corrupt is not None:
        row_bytes = inputs.itemsize * (inputs.shape[1] + targets.shape[1])
        together = max(1, min(together, CORRUPTED_BYTES // (size * row_bytes)))
    for begin in range(0, n_steps, together):
        steps = np.arange(begin, min(n_steps, begin + together))
        taken = (epoch - 1) * n_steps + begin
        rates = rate_at(plan, ((epoch - 1) * n_steps + steps) / (n_steps * plan.n_epochs))
        rows, seen, wanted = order[begin * size : (begin + len(steps)) * size], inputs, targets
        if plan.corrupt is not None:
            seen, wanted = plan.corrupt(inputs[rows], rows, run.rng), targets[rows]
            rows = np.arange(len(rows))
        errors = np.empty(len(steps))
        _native.network_train(
            *network.described(),
            weights,
            state.mean,
            state.square,
            seen,
            wanted,
            rows,
            min(size, len(rows)),
            rates,
            taken,
            plan.weight_decay,
            plan.sparsity,
            plan.code,
            plan.tail,
            errors,
            run.threads,
        )
        total, seen_rows = total + float(errors.sum()), seen_rows + len(rows)
        if run.monitor.cancelled:
            break
    return total / (seen_rows * targets.shape[1])
