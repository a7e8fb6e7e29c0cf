"""One-point objectives of curvilinear methods: a pair counts by its distance in the map or data."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr

from support.oracles.basics import (
    HeldOut,
    connected_edges,
    distances_of,
    first_nearest,
    shortest_paths,
)

Height = Callable[[np.ndarray], np.ndarray]


def falling(kind: str, u: np.ndarray, s: Any) -> np.ndarray:
    """F(u, s): a step, an exponential, or a smooth step from s / 2 to 3 s / 2."""
    if kind == "step":
        return np.where(u <= s, 1.0, 0.0)
    if kind == "exp":
        return np.exp(-u / s)
    t = np.clip(u / s - 0.5, 0, 1)
    return 1 - 3 * t**2 + 2 * t**3


# of Gauss's rule: as many as make it exact for (u - t) F, or for "exp" to the last digits
NODES = {"step": 1, "exp": 20, "sigmoid": 3}


def potential(kind: str, d: np.ndarray, t: np.ndarray, s: Any) -> np.ndarray:
    """2 int_t^d (u - t) F(u, s) du, by Gauss's rule between the bends of F."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES[kind])
    low, high = np.minimum(d, t), np.maximum(d, t)
    edges = [low, *[np.clip(bend * s, low, high) for bend in (0.5, 1, 1.5)], high]
    total = np.zeros(d.shape)
    for a, b in itertools.pairwise(edges):
        for node, weight in zip(nodes, weights, strict=True):
            u = (a + b) / 2 + (b - a) / 2 * node
            total += (b - a) * weight * (u - t) * falling(kind, u, s)
    return np.sign(d - t) * total


def point_potential(task: HeldOut) -> list[Height | np.ndarray]:
    """For each new row sum_j of the potentials of its pairs with the landmarks.

    A row at distance 0 from a landmark has its place. Its own radius is the distance to its k-th
    landmark, and at least the smallest radius of the fit.
    """
    marks = task.model.landmarks_
    D, T = geodesics(task) if "on_disconnected" in task.params else distances_of(task)
    D, T = D[np.ix_(marks, marks)], T[:, marks]
    k, kept = task.params["n_neighbors"], task.params.get("tradeoff", 0.0)
    own = np.array([sorted(row)[min(k, len(row) - 1)] for row in D])
    per_row = "tradeoff" in task.params
    radii = np.maximum(own, 1e-3 * own.mean()) if per_row else np.full(len(own), own.mean())
    kind, Y = task.params.get("weighting", "step"), task.Y[marks].astype(float)
    found: list[Height | np.ndarray] = []
    for t in T:
        if (t == 0).any():
            found.append(task.Y[marks][int(np.argmin(t))])
            continue
        s = max(sorted(t)[min(k, len(t)) - 1], radii.min())

        def height(Z: np.ndarray, t: np.ndarray = t, s: float = s) -> np.ndarray:
            d = np.sqrt(((Z[:, None] - Y[None]) ** 2).sum(axis=2))
            total = np.zeros(d.shape)
            for radius in (s, radii):
                total += (1 - kept) * potential(kind, d, t, radius) / 2
                total += kept * falling(kind, t, radius) * (d - t) ** 2 / 2
            return total.sum(axis=1)

        found.append(height)
    return found


def geodesics(task: HeldOut) -> tuple[np.ndarray, np.ndarray]:
    """Along the graph of the fitted rows, and from new rows through their nearest rows."""
    D, T = distances_of(task, graph=True)
    k = task.params["n_neighbors"]
    E, rows = connected_edges(D, task.params["on_disconnected"], k=k)
    G = shortest_paths(E)
    among, to = np.full(D.shape, np.nan), np.full(T.shape, np.nan)
    among[np.ix_(rows, rows)] = G
    for i, t in enumerate(T[:, rows]):
        near = first_nearest(t, k)
        to[i, rows] = np.min([t[j] + G[j] for j in near], axis=0)
    return among, to


def symmetric_stress(task: HeldOut) -> list[Height | np.ndarray]:
    """For each new row sum_j |t_j - d_j| F(min(t_j, d_j)), with |.| rounded off near 0.

    If no fitted row is as near as the center of F, the nearest one is the center.
    """
    D, T = distances_of(task)
    pairs = D[np.triu_indices(len(D), 1)]
    reach, mean, deviation = task.params["reach"], pairs.mean(), pairs.std()
    center, width = mean - 2 * (1 - reach) * deviation, 2 * reach * deviation
    soft = 0.1 * deviation
    Y = task.Y.astype(float)

    def heights(t: np.ndarray) -> Height:
        def height(Z: np.ndarray) -> np.ndarray:
            d = np.sqrt(((Z[:, None] - Y[None]) ** 2).sum(axis=2))
            F = ndtr(-(np.minimum(d, t) - max(center, t.min())) / width)
            return ((np.hypot(d - t, soft) - soft) * F).sum(axis=1)

        return height

    return [task.Y[int(np.argmin(t))] if (t == 0).any() else heights(t) for t in T]


def cca_back(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    """The x that minimizes sum_j F(t_j) (t_j - |x - x_j|)^2, for distances t_j in the map.

    x moves by sum_j F (1 - t_j / |x - x_j|) (x_j - x) / sum_j F, from the mean of the rows of the
    three nearest points, weighted by inverse distances.
    """
    marks = task.model.landmarks_
    X, Y = np.asarray(task.X, float)[marks], task.Y[marks].astype(float)
    D = distances_of(task)[0][np.ix_(marks, marks)]
    k, kind = task.params["n_neighbors"], task.params["weighting"]
    r = np.mean([sorted(row)[min(k, len(row) - 1)] for row in D])
    back = []
    for z in Z:
        t = np.sqrt(((Y - z) ** 2).sum(axis=1))
        s = max(sorted(t)[min(k, len(t)) - 1], r)
        near = first_nearest(t, 3)
        weight = 1 / t[near]
        x = (weight[:, None] * X[near]).sum(axis=0) / weight.sum()
        for _ in range(20_000):
            d = np.sqrt(((X - x) ** 2).sum(axis=1))
            F = falling(kind, t, s) + falling(kind, t, r)
            step = (F * (1 - t / d)) @ (X - x) / F.sum()
            x = x + step
            if np.abs(step).max() < 1e-13 * np.abs(X).max():
                break
        back.append(x)
    return np.array(back)
