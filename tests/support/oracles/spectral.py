"""Out-of-sample formulas of the methods on neighbor graphs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.oracles.basics import (
    HeldOut,
    connected_edges,
    distances_of,
    first_nearest,
    like_the_map,
    shortest_paths,
)


def _joined(task: HeldOut) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Edges of the connected graph, distances of new rows to its rows, and these rows."""
    D, T = distances_of(task, graph=True)
    params = task.params
    edges, kept = connected_edges(
        D, params["on_disconnected"], params["n_neighbors"], params.get("radius")
    )
    return edges, T[:, kept], kept


# --- Isomap -----------------------------------------------------------------------------------


def isomap(task: HeldOut) -> np.ndarray:
    """y_k = 1/2 sum_l y_lk (mean_m g_lm^2 - g_l^2) / lambda_k over the landmarks l.

    g_l is the shortest way to l through one of the nearest fitted rows.
    """
    edges, T, kept = _joined(task)
    G, marks = shortest_paths(edges), task.model.landmarks_
    Y = task.Y[kept][marks].astype(float)
    means = (G[np.ix_(marks, marks)] ** 2).mean(axis=1)
    Z = []
    for t in T:
        near = first_nearest(t, task.params["n_neighbors"])
        if task.params["radius"] is not None:
            near = [j for j in range(len(t)) if t[j] <= max(task.params["radius"], t.min())]
        g = np.array([min(t[j] + G[j, mark] for j in near) for mark in marks])
        Z.append(0.5 * (means - g**2) @ Y / (Y**2).sum(axis=0))
    return np.array(Z)


# --- Nystroem's formula -----------------------------------------------------------------------


def laplacian_eigenmaps(task: HeldOut) -> np.ndarray:
    """y = (1 - lambda)^-1 sum_j w_j y_j / sum_j w_j; without the factor where it is above 20."""
    edges, T, kept = _joined(task)
    Y, weight = task.Y[kept].astype(float), _edge_weight(task, edges)
    present = np.isfinite(edges)
    W = np.zeros(edges.shape)
    for i, j in np.argwhere(present):
        W[i, j] = weight(edges[i, j], edges[i][present[i]], j, None)
    degrees = W.sum(axis=1)
    np.testing.assert_allclose((Y * degrees[:, None]).T @ Y, np.eye(Y.shape[1]), atol=1e-6)
    values = np.diag(Y.T @ (np.diag(degrees) - W) @ Y)
    factor = np.array([1 / (1 - value) if 1 - value > 0.05 else 1.0 for value in values])
    Z = []
    for row in T:
        near = first_nearest(row, task.params["n_neighbors"])
        w = np.array([weight(row[j], row[near], j, row[near].min()) for j in near])
        Z.append(factor * (w @ Y[near]) / w.sum())
    return np.array(Z)


def _edge_weight(task: HeldOut, edges: np.ndarray) -> Callable[..., float]:
    """The weight of an edge of length d from a row whose edges are ``lengths`` to fitted row j.

    ``nearest`` is subtracted from squares of new rows, whose weights matter up to a factor.
    """
    present = np.isfinite(edges)
    bandwidth, k = task.params["bandwidth"], min(row.sum() for row in present)

    def scale(lengths: np.ndarray) -> float:
        last = sorted(lengths)[k - 1]
        return (last or min(d for d in lengths if d > 0)) / 2

    def binary(d: float, lengths: np.ndarray, j: int, nearest: float | None) -> float:
        return 1.0

    def local(d: float, lengths: np.ndarray, j: int, nearest: float | None) -> float:
        own = scale(lengths) if nearest is None else max(lengths) / 2
        return max(np.exp(-(d**2) / (own * scale(edges[j][present[j]]))), np.exp(-4))

    def heat(d: float, lengths: np.ndarray, j: int, nearest: float | None) -> float:
        if nearest is None:
            return max(np.exp(-(d**2) / t), 1e-9)
        return np.exp((nearest**2 - d**2) / t)

    if task.params["weights"] == "binary":
        return binary
    if bandwidth is None:
        return local
    t = bandwidth
    if bandwidth == "median":
        t = np.median(edges[present & (edges > 0)]) ** 2
    return heat


def _heat(d: np.ndarray, t: float) -> np.ndarray:
    """exp(-d^2 / t) up to a factor, which keeps the values of far rows above 0."""
    return np.exp((d.min() ** 2 - d**2) / t)


def diffusion_maps(task: HeldOut) -> np.ndarray:
    """lambda^t psi(x), psi(x) = lambda^-1 sum_j p(x, x_j) psi_j, p ~ k(x, x_j) / q_j^alpha."""
    params = task.params
    if params["n_neighbors"] is None:
        D, T = distances_of(task, graph=True)
        tenth = [sorted(row)[min(10, len(row) - 1)] for row in D]
        eps = params["bandwidth"] or np.median(tenth) ** 2
        K, near = np.exp(-(D**2) / eps), [list(range(len(D)))] * len(T)
        kept = list(range(len(D)))
    else:
        edges, T, kept = _joined(task)
        present = np.isfinite(edges)
        eps = params["bandwidth"] or np.median(edges[present & (edges > 0)]) ** 2
        K = np.eye(len(edges))
        K[present] = np.maximum(np.exp(-(edges[present] ** 2) / eps), 1e-9)
        near = [first_nearest(row, params["n_neighbors"]) for row in T]
    q = K.sum(axis=1)
    W = K / np.outer(q, q) ** params["alpha"]
    stationary = W.sum(axis=1) / W.sum()
    root = np.sqrt(W.sum(axis=1))  # the symmetric form has the eigenvectors sqrt(degree) psi
    values, vectors = np.linalg.eigh(W / np.outer(root, root))
    q_axes = task.Y.shape[1]
    values, psi = (
        values[::-1][1 : 1 + q_axes],
        (vectors / root[:, None])[:, ::-1][:, 1 : 1 + q_axes],
    )
    psi /= np.sqrt((stationary[:, None] * psi**2).sum(axis=0))
    Z = []
    for row, ids in zip(T, near, strict=True):
        p = _heat(row[ids], eps) / q[ids] ** params["alpha"]
        Z.append(values ** params["time"] * ((p @ psi[ids]) / p.sum()) / values)
    on_map = task._replace(Y=task.Y[kept])
    return like_the_map(on_map, psi * values ** params["time"], np.array(Z))


# --- patches ----------------------------------------------------------------------------------


def _patches(task: HeldOut) -> list[tuple[list[int], np.ndarray, np.ndarray]]:
    """For each new row its neighbors, and their inner products around the new row.

    The last entry are the inner products around the first neighbor, for the tangent plane.
    """
    D, T = distances_of(task, graph=True)
    k = task.params["n_neighbors"]
    _, kept = connected_edges(D, task.params["on_disconnected"], k)
    given = isinstance(task.params["metric"], str) and task.params["metric"] == "precomputed"
    found = []
    for i, t in enumerate(T):
        near = [kept[j] for j in first_nearest(t[kept], k)]
        if not given:
            Z = np.array([np.asarray(task.X[j], float) - task.new[i] for j in near])
            V = np.array([np.asarray(task.X[j], float) - task.X[near[0]] for j in near])
            found.append((near, Z @ Z.T, V @ V.T))
            continue
        among = D[np.ix_(near, near)] ** 2
        square = t[near] ** 2
        first = D[near[0], near] ** 2
        C = (square[:, None] + square[None, :] - among) / 2
        around_first = (first[:, None] + first[None, :] - among) / 2
        found.append((near, _positive(C), _positive(around_first)))
    return found


def _positive(C: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(C)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _weights(C: np.ndarray, reg: float) -> np.ndarray:
    """(C + reg tr(C) I) w = 1, scaled to sum 1."""
    w = np.linalg.solve(C + reg * np.trace(C) * np.eye(len(C)), np.ones(len(C)))
    return w / w.sum()


def locally_linear(task: HeldOut) -> np.ndarray:
    """sum_j w_j y_j with the weights that reproduce the row from its neighbors."""
    Y = task.Y.astype(float)
    return np.array([_weights(C, task.params["reg"]) @ Y[near] for near, C, _ in _patches(task)])


def tangent_plane(task: HeldOut) -> np.ndarray:
    """The affine map from the tangent plane of the neighbors to their places, at the new row."""
    q, Z = task.params["n_components"], []
    for near, around_row, around_first in _patches(task):
        k = len(near)
        H = np.eye(k) - 1 / k
        values, U = np.linalg.eigh(H @ around_first @ H)
        values, U = values[::-1][:q], U[:, ::-1][:, :q]
        # inner products of x_j - mean with x - mean; the row is the origin of ``around_row``
        along = H @ -around_row.mean(axis=1)
        coordinates = U.T @ along / np.sqrt(values)
        theta = np.column_stack([np.ones(k), U * np.sqrt(values)])
        affine = np.linalg.lstsq(theta, task.Y[near].astype(float), rcond=None)[0]
        Z.append(np.concatenate([[1.0], coordinates]) @ affine)
    return np.array(Z)


def locally_linear_back(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    """sum_j w_j x_j with the weights (ridge 0.001) that reproduce the point in the map."""
    D, _ = distances_of(task, graph=True)
    k = task.params["n_neighbors"]
    _, kept = connected_edges(D, task.params["on_disconnected"], k)
    Y, X = task.Y[kept].astype(float), np.asarray(task.X, float)[kept]
    found = []
    for z in Z:
        near = first_nearest(np.array([np.sqrt(sum((y - z) ** 2)) for y in Y]), k)
        V = Y[near] - z
        found.append(_weights(V @ V.T, 1e-3) @ X[near])
    return np.array(found)
