"""The loss of one new row in a fixed map of UMAP, and rows for points of the map."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from support.oracles.basics import HeldOut, distances_of, first_nearest

Height = Callable[[np.ndarray], np.ndarray]


def memberships(distances: np.ndarray, k: int, connectivity: float = 1.0) -> tuple:
    """w_j = exp(-max(0, d_j - rho) / sigma), summing to log2(k); rho and sigma. Bisection."""
    positive = [d for d in distances if d > 0]
    whole, part = int(connectivity), connectivity - int(connectivity)
    padded = [0.0, *positive]
    if whole + 1 < len(padded):
        rho = padded[whole] + part * (padded[whole + 1] - padded[whole])
    else:
        rho = padded[-1]

    def weights(sigma: float) -> np.ndarray:
        return np.array([math.exp(-max(0.0, d - rho) / sigma) for d in distances])

    least = 1e-3 * sum(distances) / (len(distances) + 1)
    low, high = 1e-12, 1e12
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if weights(middle).sum() > math.log2(k) else (middle, high)
    sigma = max(math.sqrt(low * high), least)
    return weights(sigma), rho, sigma


def repulsion_potential(squares: np.ndarray, a: float, b: float) -> np.ndarray:
    """K(u) = int_u^inf 2 b / ((s + v) (1 + a v^b)) dv with s = (b / 4)^2: trapezoidal rule."""
    logs = np.linspace(-30, 40, 70_001)
    v = np.exp(logs)
    R = 2 * b / (((b / 4) ** 2 + v) * (1 + a * v**b)) * v
    parts = np.diff(logs) * (R[1:] + R[:-1]) / 2
    K = np.append(np.cumsum(parts[::-1])[::-1], 0.0)
    return np.interp(np.log(np.maximum(squares, v[0])), logs, K)


def point_loss(task: HeldOut) -> list[Height | np.ndarray]:
    """J(z) = 2 sum_j p_j log(1 + a u_j^b) + m g / 2n sum_j K(u_j) for each new row."""
    _, T = distances_of(task, graph=True)
    Y, n, params = task.Y.astype(float), len(task.Y), task.params
    a, b = task.model.a_, task.model.b_
    k = min(params["n_neighbors"], n)
    rate = params["negative_sample_rate"] * params["repulsion_strength"]

    def height(Z: np.ndarray, near: list[int], p: np.ndarray) -> np.ndarray:
        squares = ((Z[:, None] - Y[None]) ** 2).sum(axis=2)
        pull = 2 * np.log1p(a * squares[:, near] ** b) @ p
        return pull + rate / (2 * n) * repulsion_potential(squares, a, b).sum(axis=1)

    found: list[Height | np.ndarray] = []
    for t in T:
        near = first_nearest(t, k - 1)
        w, _, _ = memberships(t[near], k, params["local_connectivity"])
        p = w / w.sum()
        found.append(lambda Z, near=near, p=p: height(Z, near, p))
    return found


def umap_back(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    """The mean of the rows at the nearest points of the map, weighted by 1 / (1 + a u^b)."""
    k, a, b = min(task.params["n_neighbors"], len(task.Y)), task.model.a_, task.model.b_
    found = []
    for z in Z:
        away = np.sqrt(((z - task.Y.astype(float)) ** 2).sum(axis=1))
        near = first_nearest(away, k)
        phi = [1 / (1 + a * away[j] ** (2 * b)) for j in near]
        total = sum(weight * task.X[j] for weight, j in zip(phi, near, strict=True))
        found.append(total / sum(phi))
    return np.array(found)
