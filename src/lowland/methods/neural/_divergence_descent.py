"""Descent of a network's own divergence: dKL/dw = sum_i (dF(x_i)/dw)^T dKL/dy_i  at y = F(x).

All rows enter each step, because each y_i feels the repulsion of all others. The rows pass through
the network in blocks, once for y and once more for the gradient, so that the values of hidden
units are never kept for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import numpy as np

from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.embedding.affinity import joint_affinities
from lowland._engines.embedding.descent import Divergence, Stage, descend, entropy_of
from lowland._engines.embedding.initial_layout import principal_layout
from lowland._engines.embedding.repulsion import choose_repulsion
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.network.adam import Adam
from lowland._engines.network.layers import Network, apply, backward, forward

# The map of t-SNE whose points are free, and the divergence of any other map of the same rows.


# As TSNE has them.
EXAGGERATION, EXAGGERATED_STEPS = 12.0, 250
MOMENTUM, LATE_MOMENTUM = 0.8, 0.9
TOLERANCE = 1e-5
ANGLE = 0.5  # of the tree, where it is the fastest repulsion


class FreeMap:
    """KL(P || Q) of the rows of a neighbor graph, and the map that t-SNE finds for them.

    Attributes
    ----------
    Y : ndarray of shape (n, d), float32
        Positions; those of the start until :meth:`descend` is called. Equal rows share a place.
    """

    def __init__(
        self,
        rows: np.ndarray,
        graph: NeighborGraph,
        perplexity: float | Sequence[float],
        d: int,
        run: FitContext,
        owner: str,
    ) -> None:
        self._equal = equal_in_graph(graph)
        Y = principal_layout(rows, d, run).astype(np.float32)
        self.Y = np.ascontiguousarray(at_common_place(Y, self._equal))
        P = joint_affinities(graph, perplexity, threads=run.threads, dtype=np.float32)
        repulsion = choose_repulsion("auto", P.n, d, 1.0, ANGLE, run.threads, owner=owner)
        self._divergence = Divergence(P, 1.0, repulsion, entropy_of(P.weights), run.threads)
        self._rows = np.arange(P.n)  # the row of each point of the divergence

    def descend(self, max_iter: int, monitor: Monitor) -> None:
        """Move the points as :class:`lowland.TSNE` does."""
        early = min(EXAGGERATED_STEPS, max_iter)
        stages = [
            Stage(early, EXAGGERATION, MOMENTUM, False),
            Stage(max_iter - early, 1.0, LATE_MOMENTUM, True),
        ]
        found = descend(
            self._divergence, self.Y, stages, learning_rate=None, tol=TOLERANCE, monitor=monitor
        )
        self.Y, self._rows = at_common_place(found.Y, self._equal), found.rows

    def divergence(self, Y: np.ndarray) -> float:
        """KL(P || Q) of the map Y."""
        return self._divergence.loss(self._arranged(Y))

    def slope(self, Y: np.ndarray) -> tuple[float, np.ndarray]:
        """KL(P || Q) of the map Y, and dKL/dY by the equation of the module ``divergence``."""
        forces = self._divergence(self._arranged(Y), with_loss=True)
        assert forces.loss is not None
        found = np.empty_like(forces.attraction)
        found[self._rows] = 4 * (forces.attraction - forces.repulsion / np.float32(forces.total))
        return forces.loss, found

    def _arranged(self, Y: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(Y[self._rows], dtype=np.float32)


class OneCount:
    """A monitor that counts the steps of several stages as one sequence."""

    def __init__(self, monitor: Monitor, total: int) -> None:
        self.monitor, self.total, self.done = monitor, total, 0

    @property
    def stopped(self) -> bool:
        """Whether the callback or a cancellation has ended the run."""
        return self.monitor.stopped

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled."""
        return self.monitor.cancelled

    def iteration(
        self,
        i: int,
        embedding: np.ndarray | Callable[[], np.ndarray],
        loss: float | None = None,
        total: int | None = None,
    ) -> bool:
        """See :meth:`Monitor.iteration`; the number of the step is that of the whole fit."""
        if self.monitor.stopped:
            return True
        self.done += 1
        return self.monitor.iteration(self.done, embedding, loss, total=self.total)

    def as_monitor(self) -> Monitor:
        """Itself, as what engines ask for."""
        return cast(Monitor, self)


# Noise on rows, as long as the way to their neighbors, which makes a network smooth.


LONGEST = 3.0  # of the noise of a row, in medians over the rows


class Noise(NamedTuple):
    """The length s_i of the noise of each row, and the share u of each column, |u| = 1."""

    lengths: np.ndarray
    shares: np.ndarray

    def added_to(
        self, rows: np.ndarray, numbers: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """The rows of these numbers with noise; a new array."""
        noise = rng.standard_normal(rows.shape, dtype=np.float32)
        noise *= self.shares
        noise *= self.lengths[numbers, None]
        noise += rows
        return noise


def neighbor_noise(inputs: np.ndarray, graph: NeighborGraph, size: float) -> Noise:
    """Noise as long as ``size`` times the distance to the nearest neighbor that is not equal.

    Columns share in it as they share in the differences of neighbors.
    """
    n = len(inputs)
    nearest = graph.indices[np.arange(n), np.argmax(graph.distances > 0, axis=1)]
    lengths, squares = np.zeros(n), np.zeros(inputs.shape[1])
    for rows in row_blocks(n, rows_within(16 * inputs.shape[1])):
        apart = inputs[rows].astype(np.float64) - inputs[nearest[rows]]
        lengths[rows] = np.sqrt(np.einsum("ij,ij->i", apart, apart))
        known = lengths[rows] > 0
        squares += np.square(apart[known] / lengths[rows][known, None]).sum(axis=0)
    if not squares.any():
        return Noise(np.zeros(n, np.float32), np.zeros(len(squares), np.float32))
    lengths = size * np.minimum(lengths, LONGEST * np.median(lengths[lengths > 0]))
    shares = np.sqrt(squares / squares.sum())
    return Noise(lengths.astype(np.float32), shares.astype(np.float32))


def divergence_slope(
    network: Network,
    weights: np.ndarray,
    inputs: np.ndarray,
    free: FreeMap,
    size: float,
    threads: int,
) -> tuple[float, np.ndarray]:
    """KL(P || Q) of the places ``size`` * F(x), and its gradient with respect to the weights."""
    scale = np.float32(size)
    loss, slope = free.slope(scale * apply(network, weights, inputs, threads))
    gradient = np.zeros_like(weights)
    for rows in row_blocks(len(inputs), rows_within(8 * sum(network.sizes))):
        passed = forward(network, weights, inputs[rows], threads)
        slopes = scale * slope[rows]
        gradient += backward(network, weights, passed, slopes, threads, with_x=False).weights
    return loss, gradient


def refine(
    network: Network,
    weights: np.ndarray,
    inputs: np.ndarray,
    free: FreeMap,
    size: float,
    monitor: Monitor,
    threads: int,
    *,
    n_steps: int,
    learning_rate: float,
    weight_decay: float,
) -> tuple[np.ndarray, list[float]]:
    """Weights of the least divergence on the way, and the divergences before and after each step.

    The steps are those of Adam, with a rate that falls to 0 along a cosine.
    """
    adam = Adam(weights.copy(), network.decays())
    scale = np.float32(size)
    loss, gradient = divergence_slope(network, adam.weights, inputs, free, size, threads)
    best, losses = weights.copy(), [loss]
    for step in range(n_steps):
        if monitor.stopped:
            break
        rate = learning_rate * 0.5 * (1 + np.cos(np.pi * step / n_steps))
        adam.step(gradient, rate, weight_decay)
        loss, gradient = divergence_slope(network, adam.weights, inputs, free, size, threads)
        if loss < min(losses):
            best[:] = adam.weights
        losses.append(loss)
        monitor.iteration(
            step + 1, lambda: scale * apply(network, adam.weights, inputs, threads), loss
        )
    return best, losses
