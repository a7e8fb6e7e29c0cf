"""The loss of one new row in a fixed map by pairs, for PaCMAP and LocalMAP."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from support.oracles.basics import HeldOut, distances_of

Height = Callable[[np.ndarray], np.ndarray]


def counts_of(n: int, params: dict) -> tuple[int, int, int]:
    """Near, mid-near and far pairs of a row; of few rows, in the same ratios, about n together."""
    k, mid, far = params["n_neighbors"], params["MN_ratio"], params["FP_ratio"]
    if k is None:
        k = 10 if n <= 10_000 else round(10 + 15 * (math.log10(n) - 4))
    counts = min(k, n - 1), round(k * mid), max(1, round(k * far))
    if sum(counts) >= n:
        share = n / (1 + mid + far)
        counts = max(1, min(k, int(share))), int(share * mid), max(1, int(share * far))
    return counts[0], min(counts[1], n - 1), min(counts[2], n - 1 - counts[0])


def scale_of(others: np.ndarray) -> float:
    """The mean distance to the fourth, fifth and sixth neighbor."""
    return float(np.mean(sorted(others)[3:6]))


def point_loss(task: HeldOut) -> list[Height | np.ndarray]:
    """For each new row sum_j A(s_j) over near rows j + rho * sum_j R(s_j) over all rows.

    s_j = 1 + |z - y_j|^2. Near are the k rows with the least d_j^2 / s(j). R(s) = 1 / (1 + s), and
    rho is n_far / n. For LocalMAP, R is lowered by its tangent at the reach and 0 beyond, and n
    is the number of rows within its reach, which the model has counted. A row at distance 0 from a
    fitted row has that row's place.
    """
    if task.params["apply_pca"] and task.X.shape[1] > 100:
        mean = task.X.mean(axis=0)
        axes = np.linalg.svd(task.X - mean, full_matrices=False)[2][: min(100, len(task.X) - 1)]
        X, new = ((rows - mean) @ axes.T for rows in (task.X, task.new))
        task = task._replace(X=X, new=new)
    D, T = distances_of(task)
    if isinstance(task.params["metric"], str) and task.params["metric"] == "sqeuclidean":
        D, T = np.sqrt(D), np.sqrt(T)
    Y, n = task.Y.astype(float), len(D)
    k, _, n_far = counts_of(n, task.params)
    scales = np.array([scale_of(np.delete(D[j], j)) for j in range(n)])
    reach = task.params.get("low_dist_thres", 0.0)
    rho = task.model.far_weight_ if reach else n_far / n

    def attraction(s: np.ndarray) -> np.ndarray:
        if not reach:
            return s / (10 + s)
        return reach / 2 * (np.sqrt(s) / (10 + s) + np.arctan(np.sqrt(s / 10)) / np.sqrt(10))

    def repulsion(s: np.ndarray) -> np.ndarray:
        if not reach:
            return 1 / (1 + s)
        end = 1 + reach**2
        tangent = 1 / (1 + end) - (s - end) / (1 + end) ** 2
        return np.where(s < end, 1 / (1 + s) - tangent, 0)

    def height(Z: np.ndarray, near: list[int]) -> np.ndarray:
        s = 1 + ((Z[:, None] - Y[None]) ** 2).sum(axis=2)
        return attraction(s[:, near]).sum(axis=1) + rho * repulsion(s).sum(axis=1)

    found: list[Height | np.ndarray] = []
    for t in T:
        candidates = sorted(range(n), key=lambda j, t=t: (t[j], j))[: k + 50]
        near = sorted(candidates, key=lambda j, t=t: t[j] ** 2 / scales[j])[:k]
        if t.min() == 0:
            found.append(Y[int(t.argmin())])
            continue
        found.append(lambda Z, near=near: height(Z, near))
    return found
