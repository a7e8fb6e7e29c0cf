"""Where new rows belong in a map of local MDS (Chen & Buja 2009)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from support.oracles.basics import HeldOut, distances_of


def neighbor_pairs(D: np.ndarray, k: int) -> set[tuple[int, int]]:
    """Pairs i < j of which one is among the k nearest of the other, joined to one component."""
    n = len(D)
    pairs = set()
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: (D[i, j], j))
        pairs |= {(min(i, j), max(i, j)) for j in others[:k]}
    while True:
        part = list(range(n))  # the least row that each row is connected with
        for _ in range(n):
            for i, j in pairs:
                part[i] = part[j] = min(part[i], part[j])
        apart = [p for p in itertools.combinations(range(n), 2) if part[p[0]] != part[p[1]]]
        if not apart:
            return pairs
        pairs.add(min(apart, key=lambda p: D[p]))


def strength(D: np.ndarray, pairs: set[tuple[int, int]], tau: float) -> float:
    """t = |N| / |N^c| * median_N(delta) * tau."""
    n_others = len(D) * (len(D) - 1) // 2 - len(pairs)
    return len(pairs) / n_others * float(np.median([D[p] for p in pairs])) * tau


def point_local_stress(task: HeldOut) -> list[Callable[[np.ndarray], np.ndarray]]:
    """s(z) = sum_{k nearest} (delta_j - |z - y_j|)^2 - t sum_{others} |z - y_j| of each new row."""
    D, T = distances_of(task)
    k, Y = task.params["n_neighbors"], task.Y.astype(float)
    k = task.model.n_neighbors_ if k == "auto" else k
    tau = task.model.tau_ if task.params["tau"] == "auto" else task.params["tau"]
    t = strength(D, neighbor_pairs(D, k), tau)

    def height(f: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        near = np.argsort(f, kind="stable")[:k]
        far = np.setdiff1d(np.arange(len(f)), near)

        def value(Z: np.ndarray) -> np.ndarray:
            d = np.sqrt(((Z[:, None] - Y[None]) ** 2).sum(axis=2))
            return ((f[near] - d[:, near]) ** 2).sum(axis=1) - t * d[:, far].sum(axis=1)

        return value

    return [height(f) for f in T]
