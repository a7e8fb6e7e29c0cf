"""The local error of manifold sculpting, naively: distances to neighbors, and angles at them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.oracles.basics import HeldOut


def neighbors_of(X: np.ndarray, k: int) -> list[list[int]]:
    """The rows that are among the k nearest of a row, or that have it among theirs."""
    n = len(X)
    joined = np.zeros((n, n), bool)
    for i in range(n):
        d = np.linalg.norm(X - X[i], axis=1)
        d[i] = np.inf
        joined[i, np.argsort(d, kind="stable")[: min(k, n - 1)]] = True
    joined |= joined.T
    return [np.flatnonzero(row).tolist() for row in joined]


def angle(a: np.ndarray, corner: np.ndarray, b: np.ndarray) -> float:
    """The angle at the corner; 0, the sharpest, if a point lies in the corner."""
    u, v = a - corner, b - corner
    if not (u.any() and v.any()):
        return 0.0
    return float(np.arccos(np.clip(u @ v / np.linalg.norm(u) / np.linalg.norm(v), -1, 1)))


def widest(x: np.ndarray, j: int, X: np.ndarray, lists: list[list[int]], but: int = -1) -> int:
    """The neighbor of row j at the widest angle from x; -1 if there is none."""
    others = [m for m in lists[j] if m != but]
    return max(others, key=lambda m: angle(x, X[j], X[m])) if others else -1


def point_error(task: HeldOut) -> list[Callable[[np.ndarray], np.ndarray]]:
    """For each new row its error at places Z."""
    X, Y, k = task.X, task.Y.astype(float), task.params["n_neighbors"]
    lists = neighbors_of(X, k)
    lengths = [np.linalg.norm(X[i] - X[j]) for i, row in enumerate(lists) for j in row]
    width = 2 * np.mean(lengths)

    def height(Z: np.ndarray, near: list[int], x: np.ndarray) -> np.ndarray:
        total = np.zeros(len(Z))
        for j in near:
            m = widest(x, j, X, lists)
            total += ((np.linalg.norm(Z - Y[j], axis=1) - np.linalg.norm(x - X[j])) / width) ** 2
            turned = np.array([angle(z, Y[j], Y[m]) for z in Z]) - angle(x, X[j], X[m])
            total += (np.minimum(turned, 0) / np.pi) ** 2
        return total

    found = []
    for x in task.new:
        near = np.argsort(np.linalg.norm(X - x, axis=1), kind="stable")[:k].tolist()
        found.append(lambda Z, near=near, x=x: height(Z, near, x))
    return found
