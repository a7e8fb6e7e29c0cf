"""GPLVM: where the rows are before the first step."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.context import FitContext
from lowland._core.memory import require_memory
from lowland._engines.graphs.components import connect
from lowland._engines.graphs.geodesics import shortest_paths
from lowland._engines.graphs.symmetrize import symmetrize
from lowland._engines.linalg import products
from lowland._engines.linalg.principal_axes import leading_axes
from lowland._engines.neighbors.search import neighbor_graph
from lowland._engines.stress.initial_map import given_numbers, landmark_map

NEIGHBORS = 10  # of the graph that "isomap" measures along
LANDMARKS = 1000  # of geodesic distances
FLAT = 1e-6  # an axis that varies less, beside the first, is set to 0


def starting_places(init: Any, Y: np.ndarray, q: int, run: FitContext) -> np.ndarray:
    """Places (n, q), centered, of unit variance along the widest axis."""
    if not isinstance(init, str):
        n = len(Y)
        X = given_numbers(init, (n, q), f"the map is {n} rows x {q} columns")
        greatest = float(np.abs(X).max())
        return _unit(X / greatest if greatest > 0 else X)
    if init == "isomap" and len(Y) > 2:
        return _unit(_geodesic_places(Y, q, run))
    return _unit(_principal_places(Y, q, run))


def _unit(X: np.ndarray) -> np.ndarray:
    X = X - X.mean(axis=0)
    widths = np.sqrt(np.mean(X**2, axis=0))
    widest = float(widths.max())
    if not widest > 0:
        return np.zeros_like(X)
    return np.where(widths > FLAT * widest, X / widest, 0.0)


def _principal_places(Y: np.ndarray, q: int, run: FitContext) -> np.ndarray:
    found = leading_axes(Y, min(q, *Y.shape), run.threads, run.rng, run.monitor)
    X = np.zeros((len(Y), q))
    X[:, : len(found.axes)] = products.times(Y, found.mean, found.axes.T, run.threads)
    return X


def _geodesic_places(Y: np.ndarray, q: int, run: FitContext) -> np.ndarray:
    """Classical scaling of distances along the neighbor graph to landmarks, as Isomap does."""
    n, threads, monitor = len(Y), run.threads, run.monitor
    m = min(n, LANDMARKS)
    require_memory(
        24 * n * m, task=f"GPLVM: the start by Isomap of {n} rows", alternative="init='ppca'"
    )
    found = neighbor_graph(Y, min(NEIGHBORS, n - 1), threads=threads, rng=run.rng, monitor=monitor)
    graph = connect(symmetrize(found), Y, threads=threads, monitor=monitor).graph
    chosen = np.sort(run.rng.choice(n, m, replace=False))
    paths = shortest_paths(graph, chosen, threads=threads, monitor=monitor)
    return landmark_map(paths, chosen, min(q, m), run)
