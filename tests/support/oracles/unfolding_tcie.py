"""The one-point stress of TCIE: consistent distances along the graph, and those to neighbors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.oracles.basics import (
    HeldOut,
    connected_edges,
    distances_of,
    first_nearest,
    shortest_paths,
)

Height = Callable[[np.ndarray], np.ndarray]
ROUNDING = 1e-9


def consistent(criterion: str, E: np.ndarray, boundary: np.ndarray, links: dict[int, float]):
    """Distances from a row with ``links`` to all rows of a graph with edges E, and which count."""
    G = shortest_paths(E)
    g = np.min([length + G[j] for j, length in links.items()], axis=0)
    if criterion == "all" or not len(boundary):
        return g, np.ones(len(g), bool)
    if criterion == "path":  # no path may leave a boundary row
        inside = E.copy()
        inside[boundary] = np.inf
        paths = shortest_paths(inside)
        without = np.min([length + paths[j] for j, length in links.items()], axis=0)
        return g, without <= g * (1 + ROUNDING)
    return g, g < (g[boundary].min() + G[boundary].min(axis=0)) * (1 - ROUNDING)


def point_stress(task: HeldOut) -> list[Height | np.ndarray]:
    """For each new row sum_j (g_j - |z - y_j|)^2 over the landmarks j that count.

    Those count whose distance g_j along the graph is consistent, and the k nearest ones.
    """
    D, T = distances_of(task, graph=True)
    k, criterion = task.params["n_neighbors"], task.params["criterion"]
    E, kept = connected_edges(D, task.params["on_disconnected"], k)
    marks, boundary = task.model.landmarks_, task.model.boundary_
    Y = task.Y[kept].astype(float)
    found: list[Height | np.ndarray] = []
    for t in T[:, kept]:
        if (t == 0).any():
            found.append(task.Y[kept][int(np.argmin(t))])
            continue
        g, counts = consistent(criterion, E, boundary, {j: t[j] for j in first_nearest(t, k)})
        near = sorted(g[marks])[min(k, len(marks)) - 1]
        known = [j for j in marks if counts[j] or g[j] <= near]

        def height(Z: np.ndarray, g: np.ndarray = g, known: list = known) -> np.ndarray:
            d = np.sqrt(((Z[:, None] - Y[None, known]) ** 2).sum(axis=2))
            return ((g[known] - d) ** 2).sum(axis=1)

        found.append(height)
    return found
