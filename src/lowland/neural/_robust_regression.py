"""Regression of a network on places in a map, with a heavy-tailed loss and noise on the rows.

    E = (c^2 / d) mean_i log(1 + |y_i - F(x_i + s_i u e)|^2 / c^2) + weight_decay * sum W^2

e is standard normal noise, s_i its length for row i and u its share in each column. The logarithm
is that of t-SNE's attraction. A squared error places a row that could belong to two clusters
between them, where it belongs to none; this loss decides. Steps are those of Adam (Kingma & Ba
2015) on mini-batches, in float32, with a rate that falls to 0 along a cosine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland._core.monitor import Monitor
from lowland._engines.linalg.blocks import row_blocks
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.network.layers import Network
from lowland._engines.network.passes import apply, backward, forward

__all__ = ["BLOCK", "Adam", "Noise", "Task", "neighbor_noise", "placed", "regress", "slope_of"]

TAIL = 0.2  # c, in standard deviations of the map
BETAS, EPSILON = (0.9, 0.999), 1e-8
EXPLODED = 100.0  # a typical row is so many standard deviations of the map from its place
LONGEST = 3.0  # of the noise of a row, in medians over the rows
BLOCK = 4096  # rows that are placed at a time


class Noise(NamedTuple):
    """The length s_i of the noise of each row, and the share u of each column, |u| = 1."""

    lengths: np.ndarray
    shares: np.ndarray

    def added_to(
        self, inputs: np.ndarray, rows: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Some of the rows, with noise; a new array."""
        noise = rng.standard_normal((len(rows), inputs.shape[1]), dtype=np.float32)
        noise *= self.shares
        noise *= self.lengths[rows, None]
        noise += inputs[rows]
        return noise


class Task(NamedTuple):
    """Inputs (n, n_in), targets (n, n_out) of unit size, the noise, and how to train."""

    inputs: np.ndarray
    targets: np.ndarray
    noise: Noise
    n_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float


def neighbor_noise(inputs: np.ndarray, graph: NeighborGraph, size: float) -> Noise:
    """Noise as long as ``size`` times the distance to the nearest neighbor that is not equal.

    Columns share in it as they share in the differences of neighbors.
    """
    n = len(inputs)
    nearest = graph.indices[np.arange(n), np.argmax(graph.distances > 0, axis=1)]
    lengths, squares = np.zeros(n), np.zeros(inputs.shape[1])
    for rows in row_blocks(n, BLOCK):
        apart = inputs[rows].astype(np.float64) - inputs[nearest[rows]]
        lengths[rows] = np.sqrt(np.einsum("ij,ij->i", apart, apart))
        known = lengths[rows] > 0
        squares += np.square(apart[known] / lengths[rows][known, None]).sum(axis=0)
    if not squares.any():
        return Noise(np.zeros(n, np.float32), np.zeros(len(squares), np.float32))
    lengths = size * np.minimum(lengths, LONGEST * np.median(lengths[lengths > 0]))
    shares = np.sqrt(squares / squares.sum())
    return Noise(lengths.astype(np.float32), shares.astype(np.float32))


def slope_of(outputs: np.ndarray, targets: np.ndarray) -> tuple[float, np.ndarray]:
    """The sum over rows of c^2 log(1 + |error|^2 / c^2) / d, and its slope at the outputs."""
    error, c2, d = outputs - targets, np.float32(TAIL**2), targets.shape[1]
    squares = np.einsum("ij,ij->i", error, error) / c2
    loss = float(np.log1p(squares, dtype=np.float64).sum()) * TAIL**2 / d
    return loss, error * (np.float32(2 / d) / (1 + squares))[:, None]


class Adam:
    """Weights that steps of Adam change in place."""

    def __init__(self, weights: np.ndarray, decays: np.ndarray) -> None:
        self.weights, self.decays, self.t = weights, decays.astype(np.float32), 0
        self._mean, self._square = np.zeros_like(weights), np.zeros_like(weights)

    def step(self, gradient: np.ndarray, rate: float, weight_decay: float) -> None:
        """One step down a gradient, to which the slope of the penalty is added."""
        self.t += 1
        gradient = gradient + np.float32(2 * weight_decay) * self.decays * self.weights
        self._mean += np.float32(1 - BETAS[0]) * (gradient - self._mean)
        self._square += np.float32(1 - BETAS[1]) * (gradient * gradient - self._square)
        size = np.sqrt(self._square / np.float32(1 - BETAS[1] ** self.t)) + np.float32(EPSILON)
        self.weights -= np.float32(rate / (1 - BETAS[0] ** self.t)) * self._mean / size


def placed(network: Network, weights: np.ndarray, inputs: np.ndarray, threads: int) -> np.ndarray:
    """F of all rows, in blocks: the values of hidden units need more room than rows."""
    result = np.empty((len(inputs), network.sizes[-1]), dtype=inputs.dtype)
    for rows in row_blocks(len(inputs), BLOCK):
        result[rows] = apply(network, weights, inputs[rows], threads)
    return result


def regress(
    network: Network,
    weights: np.ndarray,
    task: Task,
    rng: np.random.Generator,
    monitor: Monitor,
    threads: int,
    *,
    show: Callable[[np.ndarray], np.ndarray],
    owner: str,
) -> np.ndarray:
    """Weights of the epoch with the least loss; ``show(weights)`` is the map for a callback."""
    n, size = len(task.inputs), min(task.batch_size, len(task.inputs))
    adam = Adam(weights.astype(np.float32), network.decays())
    first = slope_of(placed(network, adam.weights, task.inputs, threads), task.targets)[0] / n
    best, best_loss = adam.weights.copy(), first
    n_steps = -(-n // size) * task.n_epochs
    limit = TAIL**2 / network.sizes[-1] * np.log1p((EXPLODED / TAIL) ** 2)
    for epoch in range(1, task.n_epochs + 1):
        order, total = rng.permutation(n), 0.0
        for begin in range(0, n, size):
            rows = order[begin : begin + size]
            seen = task.noise.added_to(task.inputs, rows, rng)
            passed = forward(network, adam.weights, seen, threads)
            loss, slope = slope_of(passed.output, task.targets[rows])
            total += loss
            slope /= np.float32(len(rows))
            gradient = backward(network, adam.weights, passed, slope, threads).weights
            rate = task.learning_rate * 0.5 * (1 + np.cos(np.pi * adam.t / n_steps))
            adam.step(gradient, rate, task.weight_decay)
        loss = total / n
        if not loss <= limit:  # nor may it be NaN
            raise DataError(
                f"{owner}: training diverged in epoch {epoch}: the loss rose from {first:.3g} to "
                f"{loss:.3g} with learning_rate={task.learning_rate:g}; use a smaller one, such as "
                f"{min(0.01, task.learning_rate / 10):g}."
            )
        if loss < best_loss:
            best[:], best_loss = adam.weights, loss
        if monitor.iteration(epoch, lambda: show(adam.weights), loss, total=task.n_epochs):
            break
    return best
