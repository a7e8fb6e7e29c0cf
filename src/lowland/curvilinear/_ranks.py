"""Lists of neighbors with their ranks, the stress of ranks in a map, a walk that lowers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._core.threads import limit_blas
from lowland._engines.neighbors.duplicates import EqualRows, at_common_place
from lowland._engines.neighbors.graph import NeighborGraph

MOMENTUM = 0.8
RATE = 1.0  # a pair alone would reach its target in half a step
WEAK = 0.05  # of the pushes at the start
EVEN = 0.3  # weight of what makes the map even, until steps become shorter
FILLED = 0.7  # spacing of the points, relative to that of a full ball: gaps remain
GROWING = 0.8  # share of the steps in which pushes grow to their full weight


class RankLists(NamedTuple):
    """The nearest points of each row, nearest first, and whether each ties with the next one."""

    points: np.ndarray  # (m, length) int32
    ties: np.ndarray  # (m, length) uint8


def rank_lists(graph: NeighborGraph, length: int) -> RankLists:
    """Lists of this length from a graph that has one more neighbor, unless there are no more."""
    distances = graph.distances
    ties = np.zeros((len(distances), length), np.uint8)
    known = min(length, distances.shape[1] - 1)
    ties[:, :known] = distances[:, :known] == distances[:, 1 : known + 1]
    return RankLists(np.ascontiguousarray(graph.indices[:, :length], np.int32), ties)


class RankStress:
    """S_i of each point of a map, and the step that its pairs pull each point to.

    Calls remember the radius around each point in which its neighbors are found; this changes the
    speed, not the result.
    """

    def __init__(self, lists: RankLists, k: int, threads: int) -> None:
        self.lists, self.k, self.threads = lists, k, threads
        self._reach = np.zeros(len(lists.points))

    def __call__(
        self, Y: np.ndarray, push: float = 1.0, even: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """The stress of each point (n,), and steps (n, q).

        Pushes have the weight ``push``, and what makes the map even has the weight ``even``.
        """
        n = len(Y)
        stress, forces, weights = np.empty(n), np.empty(Y.shape), np.empty(n)
        Y = np.ascontiguousarray(Y)
        out = self._reach, stress, forces, weights
        options = push, even, spacing(n, Y.shape[1], self.k)
        _native.rank_forces(Y, *self.lists, self.k, *options, *out, self.threads)
        return stress, forces / np.where(weights > 0, weights, 1.0)[:, None]

    def rescale(self, factor: float) -> None:
        """The map was multiplied by ``factor``."""
        self._reach *= factor**2


class Walk(NamedTuple):
    """The best map that was visited, and the lowest stress until each step."""

    Y: np.ndarray
    lowest: np.ndarray


def walk(
    stress: RankStress,
    start: np.ndarray,
    first: np.ndarray,
    equal: EqualRows | None,
    *,
    max_iter: int,
    report: Callable[[int, np.ndarray, float], bool],
) -> Walk:
    """Follow the pulls of the pairs from ``first``; ``start`` is a visited map, too.

    Pushes are weak at first, so that points pass each other, and steps become shorter at last.
    """
    with limit_blas(1):
        best, least = start, float(stress(start)[0].sum())
        lowest, Y, velocity = [least], first, np.zeros(first.shape)
        pulls = stress(Y, WEAK, EVEN)[1] if least > 0 and max_iter > 0 else velocity
        for step in range(1, max_iter + 1):
            if least == 0:
                break
            done = step / max_iter
            velocity = MOMENTUM * velocity + RATE * min(1.0, (1 - done) / (1 - GROWING)) * pulls
            Y, factor = normalized(at_common_place(Y + velocity, equal))
            velocity *= factor
            stress.rescale(factor)
            even = EVEN * min(1.0, (1 - done) / (1 - GROWING))
            each, pulls = stress(Y, WEAK ** max(0.0, 1 - done / GROWING), even)
            if each.sum() < least:
                best, least = Y, float(each.sum())
            lowest.append(least)
            if report(step, best, least):
                break
        return Walk(best, np.array(lowest))


def normalized(Y: np.ndarray) -> tuple[np.ndarray, float]:
    """Y centered, with a mean squared distance of 1 between its points, and its factor."""
    Y = Y - Y.mean(axis=0)
    size = float(np.einsum("ij,ij->", Y, Y))
    factor = float(np.sqrt((len(Y) - 1) / (2 * size))) if size > 0 else 1.0
    return Y * factor, factor


def spacing(n: int, q: int, k: int) -> float:
    """The distance of the k-th neighbor in a ball of n even points, mean squared distance 1."""
    return float(FILLED * np.sqrt((q + 2) / (2 * q)) * (k / n) ** (1 / q))


def expected_stress(n: int, length: int, k: int) -> float:
    """The mean of S_i over all orders of the n - 1 other points in the map."""
    ranks = np.minimum(np.arange(1, n), length + 1)
    gaps = np.abs(ranks[:k, None] - ranks).sum(axis=1)  # of each of k ranks from all ranks
    both = np.abs(ranks[:k, None] - ranks[:k]).sum()
    return float(2 * gaps.sum() - both) / (n - 1)
