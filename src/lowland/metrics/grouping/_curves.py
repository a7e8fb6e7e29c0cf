"""Gaps along curves: where points lie on a line, wide gaps between neighbors occur by chance."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland._engines.neighbors.search import neighbor_graph

FAR = 24  # neighbors; the dimension is measured between a third of them and all
FEWEST = 12  # points of a side
CURVE = 1.5  # dimensions below this are those of a curve
WIDER = 2.0  # than the widest spacing inside of a side


def may_be_spacing(A: np.ndarray, B: np.ndarray, threads: int) -> bool:
    """Whether the gap between two sets of points on a curve is no wider than chance makes it.

    The widest of n spacings on a line is about ln n times the mean one, more than the reach of a
    few neighbors, so that no neighbor edge crosses it. It is hardly ever twice as wide as the next
    one. A gap along a curve is therefore compared with the widest spacing inside of the two sides,
    the longest edge of their minimum spanning trees. In more dimensions there is a way around.
    """
    widest = 0.0
    for side in (A, B):
        if len(side) < FEWEST:
            return False
        k = min(FAR, len(side) // 4)
        graph = neighbor_graph(side, k, threads=threads)
        near, far = (graph.distances[:, m - 1].astype(np.float64) for m in (k // 3, k))
        growing = (near > 0) & (far > near)
        if not growing.any():
            return False
        dimension = np.median(np.log(k / (k // 3)) / np.log(far[growing] / near[growing]))
        if dimension >= CURVE:
            return False
        widest = max(widest, _longest_edge(graph.to_csr()))
    return _between(A, B) < WIDER * widest


def _longest_edge(graph: scipy.sparse.csr_matrix) -> float:
    """Of the minimum spanning tree; infinite if the graph falls apart, as it has wider spacings."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    tree = minimum_spanning_tree(graph)
    whole = tree.nnz == graph.shape[0] - 1
    return float(tree.data.max(initial=0.0)) if whole else np.inf


def _between(A: np.ndarray, B: np.ndarray) -> float:
    """The smallest distance of two points, one of each set."""
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
    one, other = np.unravel_index(int(np.argmin(squares)), squares.shape)
    return float(np.linalg.norm(A[one] - B[other]))
