"""Gradient descent with momentum and gains, shared by all neighbor embeddings.

    gradient = exaggeration * a - f / total                       (see :class:`Divergence`)
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

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from lowland import _native
from lowland._base.monitor import Monitor
from lowland._engines.embedding.affinity import JointAffinities
from lowland._engines.embedding.repulsion import Repulsion, weighted_repulsion
from lowland._engines.linalg.products import row_blocks

# The objective of neighbor embeddings: the Kullback-Leibler divergence of the map from the data.
#
# With p_ij the affinities of the data (symmetric, summing to 1) and K_ij the similarities in the
# map,
#
#     t-SNE, symmetric SNE   q_ij = K_ij / Z,  Z = sum of all K
#                            C = sum_ij p_ij log(p_ij / q_ij)
#     SNE                    q_{j|i} = K_ij / Z_i,  Z_i = sum_j K_ij
#                            C = sum_ij p_{j|i} log(p_{j|i} / q_{j|i})
#
# and in both cases, with K = (1 + r^2/v)^-v and G = K / (1 + r^2/v),
#
#     1/4 dC/dy_i = a_i - f_i / total,
#     a_i = sum_j p_ij (y_i - y_j) / (1 + r^2/v),
#
#     t-SNE, symmetric SNE   f_i = sum_j G_ij (y_i - y_j),                         total = Z
#     SNE (C divided by n)   f_i = sum_j G_ij (y_i - y_j) (1/Z_i + 1/Z_j),         total = 2n
#
# References: Hinton & Roweis (2002), Stochastic neighbor embedding, NIPS 15; van der Maaten &
# Hinton (2008), Visualizing data using t-SNE, JMLR 9. Degrees of freedom: Kobak et al. (2020),
# Heavy-tailed kernels reveal a finer cluster structure in t-SNE visualisations,
# doi:10.1007/978-3-030-46150-8_8.


class Forces(NamedTuple):
    """1/4 of the gradient is attraction - repulsion / total; ``loss`` is None unless requested."""

    attraction: np.ndarray
    repulsion: np.ndarray
    total: float
    loss: float | None


class Divergence:
    """C and its gradient at a map. The arrays it returns are overwritten by the next call.

    Parameters
    ----------
    P : JointAffinities
        The p_ij.
    dof : float
        Degrees of freedom v; infinity is the Gaussian.
    repulsion : Repulsion
        How the sums over all pairs are computed.
    entropy : float
        sum p log p, of the joint p, or of the conditional ones with ``by_rows``.
    by_rows : bool
        SNE's row-wise q instead of one Z for all.
    threads : int
        The result does not depend on it.
    """

    def __init__(
        self,
        P: JointAffinities,
        dof: float,
        repulsion: Repulsion,
        entropy: float,
        threads: int,
        *,
        by_rows: bool = False,
    ) -> None:
        self.P, self.dof, self.repulsion, self.threads = P, dof, repulsion, threads
        self.entropy, self.by_rows = entropy, by_rows
        self._sums = np.empty((P.n, 2))
        self._potential = np.empty(P.n)
        self._buffers: tuple[np.ndarray, np.ndarray] | None = None
        self._order = EdgeOrder(threads)

    def __call__(self, Y: np.ndarray, with_loss: bool = False) -> Forces:
        """Forces at the map Y (float32 or float64, as the affinities)."""
        if self._buffers is None or self._buffers[0].shape != Y.shape:
            self._buffers = np.empty_like(Y), np.empty_like(Y)
        attraction, repulsion = self._buffers
        inverse_dof = 0.0 if math.isinf(self.dof) else 1 / self.dof
        P, sums = self.P, self._sums if with_loss else None
        _native.attract(
            P.indptr, P.indices, P.weights, Y, Y, inverse_dof, attraction, sums, self.threads
        )
        self.repulsion(Y, self._potential, repulsion)
        # Z underflows to 0 in a map whose points are all too far apart.
        potential = np.maximum(self._potential, np.finfo(Y.dtype).tiny, out=self._potential)
        n = len(Y)
        if not self.by_rows:
            total = float(potential.sum())
            if not with_loss:
                return Forces(attraction, repulsion, total, None)
            loss = self.entropy + float(self._sums[:, 0].sum()) + math.log(total)
            return Forces(attraction, repulsion, total, loss)
        weights = (1 / potential).astype(Y.dtype)
        weighted_repulsion(Y, self.dof, weights, repulsion, self.threads)
        loss = self.entropy + n * float(self._sums[:, 0].sum()) + float(np.log(potential).sum())
        return Forces(attraction, repulsion, 2.0 * n, loss if with_loss else None)

    def loss(self, Y: np.ndarray) -> float:
        """C at the map Y."""
        loss = self(Y, with_loss=True).loss
        assert loss is not None
        return loss

    def mean_potential(self, Y: np.ndarray) -> float:
        """Z / n, the mean over the points of the sum of their similarities."""
        forces = np.empty_like(Y)
        self.repulsion(Y, self._potential, forces)
        return max(float(self._potential.mean()), float(np.finfo(Y.dtype).tiny))

    def arrange(self, Y: np.ndarray) -> np.ndarray:
        """Reorder the points so that neighbors in the map are near in memory.

        Point i is then the former point ``order[i]``; the order is returned.
        """
        P = self.P
        order, *edges = self._order.follow(Y, P.indptr, P.indices, P.weights)
        self.P = JointAffinities(*edges)
        return order


def entropy_of(p: np.ndarray) -> float:
    """sum p log p, with 0 log 0 = 0; in float64."""
    total = 0.0
    for block in row_blocks(p.size, 2**20):
        part = p.ravel()[block].astype(np.float64)
        part = part[part > 0]
        total += float((part * np.log(part)).sum())
    return total


# An order of the points of a map in which neighbors in the map are near in memory.


KEY_BITS = 30


def map_order(Y: np.ndarray) -> np.ndarray:
    """The points in the order of a curve through at most three coordinates.

    Through two coordinates it is Hilbert's curve, which never jumps, and through three Morton's,
    both on a grid over the map. O(n log n).
    """
    axes = min(Y.shape[1], 3)
    bits = KEY_BITS // axes
    low = Y[:, :axes].min(axis=0)
    span = max(float((Y[:, :axes].max(axis=0) - low).max()), float(np.finfo(np.float32).tiny))
    cells = np.minimum((Y[:, :axes] - low) / span * 2**bits, 2**bits - 1).astype(np.uint32)
    keys = _hilbert_keys(cells[:, 0], cells[:, 1], bits) if axes == 2 else _morton_keys(cells, bits)
    return np.argsort(keys, kind="stable").astype(np.int32)


def _morton_keys(cells: np.ndarray, bits: int) -> np.ndarray:
    """The bits of all coordinates interleaved."""
    keys = np.zeros(len(cells), np.uint32)
    axes = cells.shape[1]
    for bit in range(bits):
        for axis in range(axes):
            keys |= ((cells[:, axis] >> np.uint32(bit)) & np.uint32(1)) << np.uint32(
                bit * axes + axis
            )
    return keys


def _hilbert_keys(x: np.ndarray, y: np.ndarray, bits: int) -> np.ndarray:
    """The place of each cell along a Hilbert curve.

    A quarter of the square is found from one bit of both coordinates. The curve within the two
    lower quarters is a mirror image, so their coordinates are exchanged, and in the last quarter
    complemented, too.
    """
    x, y, keys = x.copy(), y.copy(), np.zeros(len(x), np.uint32)
    for bit in reversed(range(bits)):
        right, upper = (x >> np.uint32(bit)) & np.uint32(1), (y >> np.uint32(bit)) & np.uint32(1)
        keys = (keys << np.uint32(2)) | ((np.uint32(3) * right) ^ upper)
        lower = upper - np.uint32(1)  # all bits set where the point is in a lower quarter
        turned = lower & (np.uint32(0) - right)
        exchanged = (x ^ y) & lower
        x ^= exchanged ^ turned
        y ^= exchanged ^ turned
    return keys


class EdgeOrder:
    """Edges of points (starts, columns, weights) in the order of the points in a map.

    The memory of an earlier order is used again: fresh pages take longer than the edges that are
    moved. The edges that the caller gave first are never written to.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._own = False  # whether the edges of the last call are memory of this object
        self._spare: tuple[np.ndarray, np.ndarray] | None = None

    def follow(
        self, Y: np.ndarray, starts: np.ndarray, columns: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The order, and the edges in it; point i is then the former point ``order[i]``."""
        order = map_order(Y)
        place = np.empty_like(order)
        place[order] = np.arange(len(order), dtype=np.int32)
        new_starts = np.concatenate([[0], np.cumsum(np.diff(starts)[order])])
        to = self._spare or (np.empty_like(columns), np.empty_like(weights))
        _native.permute_edges(starts, columns, weights, order, place, new_starts, *to, self.threads)
        self._spare, self._own = (columns, weights) if self._own else None, True
        return order, new_starts, *to


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
