"""What the oracles share: distances, neighbors and connected graphs, one pair at a time."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np


class HeldOut(NamedTuple):
    """What an oracle may use: parameters, given data, and the fitted map.

    ``model`` is there for numbers and random choices that the definition takes as given, such as
    the indices of the landmarks.
    """

    model: Any
    params: dict[str, Any]
    X: np.ndarray
    y: np.ndarray | None
    Y: np.ndarray  # the map of X
    new: np.ndarray


def distance(a: np.ndarray, b: np.ndarray, metric: Any, params: dict[str, Any] | None) -> float:
    if callable(metric):
        return float(metric(a, b))
    gaps = [abs(float(s) - float(t)) for s, t in zip(a, b, strict=True)]
    if metric == "manhattan":
        return sum(gaps)
    if metric == "chebyshev":
        return max(gaps)
    if metric == "minkowski":
        p = (params or {}).get("p", 2)
        return sum(g**p for g in gaps) ** (1 / p)
    if metric == "cosine":
        lengths = np.sqrt(sum(s * s for s in a)) * np.sqrt(sum(t * t for t in b))
        return 1 - sum(s * t for s, t in zip(a, b, strict=True)) / lengths
    squared = sum(g * g for g in gaps)
    assert metric in ("euclidean", "sqeuclidean"), f"no naive {metric}: write it here"
    return squared if metric == "sqeuclidean" else float(np.sqrt(squared))


_KNOWN: dict[Any, tuple[np.ndarray, np.ndarray]] = {}  # loops over all pairs are slow


def distances_of(task: HeldOut, *, graph: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Distances among the fitted rows (n, n), and of the new rows to them (m, n).

    The edges of a ``graph`` are never squared distances.
    """
    metric, params = task.params["metric"], task.params["metric_params"]
    if isinstance(metric, str) and metric == "precomputed":
        return np.asarray(task.X, float), np.asarray(task.new, float)
    if graph and metric == "sqeuclidean":
        metric = "euclidean"
    key = (task.X.tobytes(), task.new.tobytes(), metric, str(params))
    if key not in _KNOWN:
        among = [[distance(a, b, metric, params) for b in task.X] for a in task.X]
        to = [[distance(a, b, metric, params) for b in task.X] for a in task.new]
        _KNOWN[key] = np.array(among) * (1 - np.eye(len(among))), np.array(to)
    return _KNOWN[key]


def first_nearest(distances: np.ndarray, k: int) -> list[int]:
    """Indices of the k smallest; of equal ones the first."""
    return sorted(range(len(distances)), key=lambda j: (distances[j], j))[:k]


def connected_edges(
    D: np.ndarray, on_disconnected: str, k: int | None = None, radius: float | None = None
) -> tuple[np.ndarray, list[int]]:
    """Lengths of the edges (infinity: no edge) of a connected graph, and its rows.

    Rows are connected if either is among the k nearest of the other, or if they are within the
    radius. Components are joined by the shortest edges between them, or all but the largest one
    are left out.
    """
    n = len(D)
    E = np.full((n, n), np.inf)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        near = [j for j in others if radius is not None and D[i, j] <= radius]
        if radius is None:
            near = sorted(others, key=lambda j: (D[i, j], j))[:k]
        for j in near:
            E[i, j] = E[j, i] = D[i, j]
    label = list(range(n))
    for i, j in itertools.combinations(range(n), 2):
        if np.isfinite(E[i, j]):
            label = _joined(label, i, j)
    if on_disconnected == "largest":
        most = max(sorted(set(label)), key=label.count)
        kept = [i for i in range(n) if label[i] == most]
        return E[np.ix_(kept, kept)], kept
    for i, j in sorted(itertools.combinations(range(n), 2), key=lambda e: D[e]):
        if label[i] != label[j]:
            E[i, j] = E[j, i] = D[i, j]
            label = _joined(label, i, j)
    return E, list(range(n))


def _joined(label: list[int], i: int, j: int) -> list[int]:
    return [label[i] if name == label[j] else name for name in label]


def shortest_paths(E: np.ndarray) -> np.ndarray:
    """Floyd's algorithm."""
    G = E.copy()
    np.fill_diagonal(G, 0.0)
    for k in range(len(G)):
        G = np.minimum(G, G[:, k : k + 1] + G[k : k + 1])
    return G


def like_the_map(task: HeldOut, fitted: np.ndarray, new: np.ndarray) -> np.ndarray:
    """``new``, with the sign of each axis turned so that ``fitted`` is the map of the fit."""
    signs = np.array([1.0 if a @ b >= 0 else -1.0 for a, b in zip(fitted.T, task.Y.T, strict=True)])
    size = np.abs(fitted).max()
    np.testing.assert_allclose(fitted * signs, task.Y, atol=1e-6 * size, err_msg="the map of X")
    return new * signs
