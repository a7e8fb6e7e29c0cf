"""The divergence of one new row in a fixed map, for SNE, symmetric SNE and t-SNE."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from support.oracles.basics import HeldOut, distances_of, first_nearest

Height = Callable[[np.ndarray], np.ndarray]


def point_divergence(task: HeldOut) -> list[Height | np.ndarray]:
    """For each new row J(z) = sum_j p_j v log(1 + |z - y_j|^2 / v) + phi(z) / m.

    phi(z) = sum_j K(z - y_j) and m is the mean of phi over the rows of the map. SNE has log phi(z).
    A row at distance 0 from a fitted row has that row's place.
    """
    D, T = distances_of(task)
    if task.params["metric"] == "sqeuclidean":  # affinities square distances, never squares
        D, T = np.sqrt(D), np.sqrt(T)
    Y, n, params = task.Y.astype(float), len(D), task.params
    name = type(task.model).__name__
    dof = params.get("dof", math.inf)
    given = params["perplexity"]
    perplexities = list(given) if isinstance(given, list) else [given]
    k = n - 1 if name != "TSNE" else min(n - 1, math.ceil(3 * max(perplexities)))
    if params["n_neighbors"] is not None:
        k = min(params["n_neighbors"], n - 1)
    mean = sum(sum(_similar(Y[i] - Y[j], dof) for j in range(n) if j != i) for i in range(n)) / n

    def height(Z: np.ndarray, near: list[int], p: np.ndarray) -> np.ndarray:
        squares = ((Z[:, None] - Y[None]) ** 2).sum(axis=2)
        if math.isinf(dof):
            pull, push = squares[:, near] @ p, np.exp(-squares).sum(axis=1)
        else:
            pull = (dof * np.log1p(squares[:, near] / dof)) @ p
            push = ((1 + squares / dof) ** -dof).sum(axis=1)
        return pull + (np.log(push) if name == "SNE" else push / mean)

    found: list[Height | np.ndarray] = []
    for t in T:
        near = first_nearest(t, k)
        if t[near[0]] == 0:
            found.append(Y[near[0]])
            continue
        p = np.mean([affinities(t[near], perplexity) for perplexity in perplexities], axis=0)
        found.append(lambda Z, near=near, p=p: height(Z, near, p))
    return found


def _similar(difference: np.ndarray, dof: float) -> float:
    square = float(sum(difference**2))
    return math.exp(-square) if math.isinf(dof) else (1 + square / dof) ** -dof


def affinities(distances: np.ndarray, perplexity: float) -> np.ndarray:
    """p_j ~ exp(-beta d_j^2) with exp(entropy) = perplexity, beta by bisection."""
    squares = distances**2 - distances.min() ** 2
    low, high = 0.0, 1.0 / np.median(squares[squares > 0])

    def weights(beta: float) -> np.ndarray:
        w = np.exp(-beta * squares)
        return w / w.sum()

    def reached(beta: float) -> float:
        p = weights(beta)
        p = p[p > 0]
        return float(np.exp(-(p * np.log(p)).sum()))

    while reached(high) > perplexity:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) > perplexity else (low, middle)
    return weights((low + high) / 2)
