"""Where a principal curve starts: the place of each row along a line, a circle or a graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._engines.graphs.components import connect
from lowland._engines.graphs.geodesics import shortest_paths
from lowland._engines.graphs.symmetrize import symmetrize
from lowland._engines.neighbors.search import neighbor_graph
from lowland._engines.stress import classical_scaling

ROUGH = 1e-3  # residual of eigenvectors, enough for a start


def along_axis(Z: np.ndarray) -> np.ndarray:
    """The first principal coordinate, as t in 0 .. 1."""
    return _from_0_to_1(Z[:, 0])


def around_circle(Z: np.ndarray) -> np.ndarray:
    """The angle in the plane of the first two coordinates, as t in 0 .. 1."""
    return np.mod(np.arctan2(Z[:, 1], Z[:, 0]) / (2 * np.pi), 1.0)


def along_graph(Z: np.ndarray, n_neighbors: int, closed: bool, run: FitContext) -> np.ndarray:
    """The place of each row between the two ends of its neighbor graph, as t in 0 .. 1.

    With distances along the graph, the ends are a row farthest from the first row, and the row
    farthest from that one. For a closed curve it is the angle in the map of classical scaling of
    these distances, in which a ring is a circle.
    """
    n, k = len(Z), min(n_neighbors, len(Z) - 1)
    found = neighbor_graph(Z, k, threads=run.threads, rng=run.rng, monitor=run.monitor)
    starts = np.arange(0, n * k + 1, k)
    edges = (found.distances.ravel(), found.indices.ravel(), starts)
    directed = scipy.sparse.csr_matrix(edges, shape=(n, n))
    graph = connect(symmetrize(directed), Z, threads=run.threads, monitor=run.monitor).graph
    if closed:
        D = shortest_paths(graph, threads=run.threads, monitor=run.monitor)
        Y = classical_scaling.of_distances(
            (D + D.T) / 2,
            2,
            threads=run.threads,
            rng=run.rng,
            monitor=run.monitor,
            tol=ROUGH,
            rough=True,
        ).Y
        return around_circle(Y)
    first = int(shortest_paths(graph, [0], threads=1)[0].argmax())
    from_first = shortest_paths(graph, [first], threads=1)[0]
    last = int(from_first.argmax())
    return _from_0_to_1(from_first - shortest_paths(graph, [last], threads=1)[0])


def _from_0_to_1(values: np.ndarray) -> np.ndarray:
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))
