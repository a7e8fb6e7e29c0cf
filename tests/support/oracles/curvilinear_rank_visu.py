"""The stress of new rows after RankVisu: ranks in the data against ranks in the map."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.oracles.basics import HeldOut, distances_of

Height = Callable[[np.ndarray], np.ndarray]


def rank_intervals(distances: np.ndarray, length: int) -> list[tuple[int, int, int]]:
    """Of each point its place in the list, and the first and the last rank that it may have.

    Points at one distance share their ranks; ranks above ``length`` are ``length + 1``.
    """
    order = sorted(range(len(distances)), key=lambda j: (distances[j], j))
    found = []
    for j in range(len(distances)):
        place = order.index(j) + 1
        if place > length:
            found.append((place, length + 1, length + 1))
            continue
        ranks = [r for r, other in enumerate(order, 1) if distances[other] == distances[j]]
        found.append((place, ranks[0], min(ranks[-1], length + 1)))
    return found


def rank_gaps(intervals: list[tuple[int, int, int]], d: np.ndarray, k: int, length: int) -> int:
    """The sum of the gaps of one row, whose distances in the map are d."""
    order = sorted(range(len(d)), key=lambda j: (d[j], j))
    total = 0
    for rank, j in enumerate(order, 1):
        place, first, last = intervals[j]
        if place <= k or rank <= k:
            censored = min(rank, length + 1)
            total += max(first - censored, censored - last, 0)
    return total


def point_ranks(task: HeldOut) -> list[Height | np.ndarray]:
    """For each new row its stress at places z, or its place if it equals a fitted row."""
    _, T = distances_of(task)
    Y, n = task.Y.astype(float), len(task.Y)
    k, length = task.params["n_neighbors"], task.params["max_rank"]
    length = {"auto": 10 * k, None: n}.get(length, length)
    length = min(length, n)
    k = min(k, length)

    def height(Z: np.ndarray, intervals: list[tuple[int, int, int]]) -> np.ndarray:
        d = np.sqrt(((Z[:, None] - Y[None]) ** 2).sum(axis=2))
        return np.array([rank_gaps(intervals, row, k, length) for row in d], float)

    found: list[Height | np.ndarray] = []
    for t in T:
        if (t == 0).any():
            found.append(Y[np.flatnonzero(t == 0)[0]])
        else:
            known = rank_intervals(t, length)
            found.append(lambda Z, known=known: height(Z, known))
    return found
