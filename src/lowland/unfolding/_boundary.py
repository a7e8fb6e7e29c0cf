"""Rows on the boundary of a sampled surface, found from the neighbor graph alone.

The neighbors of a row inside of a surface lie all around it; those of a row on the boundary lie on
one side. With the unit vectors u_j from a row to its k nearest rows along the graph,

    r^2 = |mean_j u_j|^2 = mean_jl cos(angle between j and l)

is about 1/k inside. On the boundary of a q-dimensional surface the u_j fill half of a sphere, and r
is about E|u_1| = Gamma(q/2) / (sqrt(pi) Gamma((q+1)/2)): 1, 2/pi and 1/2 for q = 1, 2, 3. The
cosines follow from lengths of paths, so that no coordinates are needed.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._core.context import FitContext

PER_AXIS = 8  # neighbors for each axis and one more
LARGEST_SHARE = 4  # a neighborhood is at most this part of the rows: larger ones are never round


def half_sphere(q: int) -> float:
    """E|u_1| of a random unit vector in q dimensions: r of a row on a flat boundary."""
    return math.exp(math.lgamma(q / 2) - math.lgamma((q + 1) / 2)) / math.sqrt(math.pi)


def one_sidedness(graph: scipy.sparse.csr_matrix, k: int, run: FitContext) -> np.ndarray:
    """r of every row, from its k nearest rows along a graph whose edges are all longer than 0."""
    squares = np.empty(graph.shape[0])
    _native.mean_cosines(
        graph.indptr.astype(np.int64),
        graph.indices.astype(np.int32),
        graph.data.astype(np.float64),
        k,
        squares,
        run.threads,
    )
    return np.sqrt(np.maximum(squares, 0.0))


def boundary_rows(
    graph: scipy.sparse.csr_matrix, q: int, k: int | None, threshold: float, run: FitContext
) -> np.ndarray:
    """Whether r exceeds the ``threshold`` share of its value on a boundary, for every row.

    ``k`` None takes 8 (q + 1) neighbors, and at most a quarter of the rows.
    """
    n = graph.shape[0]
    if k is None:
        k = max(q + 1, min(PER_AXIS * (q + 1), n // LARGEST_SHARE))
    if n <= q + 1:
        return np.zeros(n, bool)  # so few rows have no inside
    with run.monitor.phase("boundary"):
        return one_sidedness(graph, min(k, n - 1), run) > threshold * half_sphere(q)
