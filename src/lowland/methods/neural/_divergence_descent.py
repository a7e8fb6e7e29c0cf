"""Descent of a network's own divergence: dKL/dw = sum_i (dF(x_i)/dw)^T dKL/dy_i  at y = F(x).

All rows enter each step, because each y_i feels the repulsion of all others. The rows pass through
the network in blocks, once for y and once more for the gradient, so that the values of hidden
units are never kept for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.embedding.affinity import joint_affinities
from lowland._engines.embedding.descent import Stage, descend
from lowland._engines.embedding.divergence import Divergence, entropy_of
from lowland._engines.embedding.initial_layout import principal_layout
from lowland._engines.embedding.repulsion import choose_repulsion
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.network.adam import Adam, Plan
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

    def __getattr__(self, name: str) -> Any:
        """Everything but the count is that of the monitor."""
        return getattr(self.monitor, name)

    def iteration(self, i: int, embedding: Any, loss: Any = None, total: Any = None) -> bool:
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


class OwnDivergence(NamedTuple):
    """KL(P || Q) of the places ``size`` * F(x) that a network F gives to rows."""

    network: Network
    inputs: np.ndarray
    free: FreeMap
    size: float
    threads: int

    def places(self, weights: np.ndarray) -> np.ndarray:
        """The map by these weights."""
        return np.float32(self.size) * apply(self.network, weights, self.inputs, self.threads)

    def slope(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The divergence, and its gradient with respect to the weights."""
        scale, network = np.float32(self.size), self.network
        loss, slope = self.free.slope(self.places(weights))
        gradient = np.zeros_like(weights)
        for rows in row_blocks(len(self.inputs), rows_within(8 * sum(network.sizes))):
            passed = forward(network, weights, self.inputs[rows], self.threads)
            slopes = scale * slope[rows]
            back = backward(network, weights, passed, slopes, self.threads, with_x=False)
            gradient += back.weights
        return loss, gradient

    def refined(
        self, weights: np.ndarray, plan: Plan, monitor: Monitor
    ) -> tuple[np.ndarray, list[float]]:
        """Weights of the least divergence on the way, and the divergences before and after steps.

        The steps are those of Adam, with a rate that falls to 0 along a cosine.
        """
        adam = Adam(weights.copy(), self.network.decays())
        loss, gradient = self.slope(adam.weights)
        best, losses = weights.copy(), [loss]
        for step in range(plan.n_epochs):
            if monitor.stopped:
                break
            rate = plan.learning_rate * 0.5 * (1 + np.cos(np.pi * step / plan.n_epochs))
            adam.step(gradient, rate, plan.weight_decay)
            loss, gradient = self.slope(adam.weights)
            if loss < min(losses):
                best[:] = adam.weights
            losses.append(loss)
            monitor.iteration(step + 1, lambda: self.places(adam.weights), loss)
        return best, losses
