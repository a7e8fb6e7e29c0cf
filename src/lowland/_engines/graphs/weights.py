"""Weights of the edges of a graph of distances.

    heat     w_ij = exp(-d_ij^2 / t)              t the bandwidth, sqrt(t) the width
    local    w_ij = exp(-d_ij^2 / (s_i s_j))      s_i half the distance to the k-th neighbor
    binary   w_ij = 1

The default width is the median length of the edges that are not 0. Half of the edges then weigh
more than 1/e, whatever the unit of the data, and a few very long edges do not change it. Widths are
lengths, not squares, so that extreme distances do not overflow.

One width does not suit dense and sparse regions at once: edges of the sparse ones weigh nothing,
and their rows come loose one by one. Local scales follow the density. No local weight is below
exp(-4), the weight of an edge as long as the distance to the k-th neighbor of both its ends, so
that an edge between two pieces of the graph is a weak edge and not none.

Reference for local scales: Zelnik-Manor & Perona (2004), Self-tuning spectral clustering, NIPS 17.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse

from lowland._base.errors import DataError, ParameterError, unknown_name

# What every graph is brought to before it is used.
#
# A graph is a square CSR matrix of distances or weights. Every stored entry is an edge, also a
# zero: two equal rows are neighbors at distance 0.


def checked_graph(
    graph: Any, what: str = "graph", *, keep_loops: bool = False
) -> scipy.sparse.csr_matrix:
    """A square CSR matrix of finite numbers >= 0 with sorted columns.

    Of repeated edges the shortest is kept. Entries on the diagonal are dropped unless
    ``keep_loops``: a row is not its own neighbor. ``graph`` is a NeighborGraph or a sparse matrix
    and is not modified. O(edges).
    """
    A = graph.to_csr() if hasattr(graph, "to_csr") else graph
    if not scipy.sparse.issparse(A) or A.shape[0] != A.shape[1]:
        got = f"shape {A.shape}" if scipy.sparse.issparse(A) else type(A).__name__
        raise DataError(
            f"{what} must be a square sparse matrix or a NeighborGraph of the fitted rows; "
            f"got {got}."
        )
    A = scipy.sparse.csr_matrix(A, copy=True)
    dtype = A.dtype if A.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    # adding 0 turns -0 into 0, whose bits `symmetrize` compares
    A.data = A.data.astype(dtype) + dtype.type(0)
    fine = np.isfinite(A.data) & (A.data >= 0)
    if not fine.all():
        raise DataError(
            f"{what} holds {A.data[~fine][0]:g}; edges must be finite and not negative. Leave out "
            "edges that do not exist instead of storing infinity or NaN."
        )
    A.sort_indices()
    return _without_repeats(A, keep_loops)


def _without_repeats(A: scipy.sparse.csr_matrix, keep_loops: bool) -> scipy.sparse.csr_matrix:
    """A, whose indices are sorted, with each edge once, the shortest."""
    rows, columns, data = row_numbers(A), A.indices, A.data
    repeated = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
    if repeated.any():
        order = np.lexsort((data, columns, rows))  # rows and columns stay as they are
        data = data[order]
    wanted = np.ones(rows.size, bool) if keep_loops else rows != columns
    wanted[1:] &= ~repeated
    if wanted.all():
        return A
    starts = np.concatenate([[0], np.cumsum(wanted)])[A.indptr]
    return scipy.sparse.csr_matrix((data[wanted], columns[wanted], starts), shape=A.shape)


def row_numbers(A: scipy.sparse.csr_matrix) -> np.ndarray:
    """The row of every stored entry of a CSR matrix."""
    return np.repeat(np.arange(A.shape[0], dtype=A.indices.dtype), np.diff(A.indptr))


# The undirected graph of a directed one.


def symmetrize(graph: Any) -> scipy.sparse.csr_matrix:
    """The graph in which i and j are neighbors if either is a neighbor of the other.

        w_ij = min(d_ij, d_ji) over those of the two that exist

    Symmetric to the last bit. O(edges). scipy's ``maximum`` treats a stored 0 as a missing entry,
    so edges of length 0 would be lost. It is therefore given integers: the bits of a float >= 0
    are ordered like the float, and their distance from those of infinity is never 0.
    """
    A = checked_graph(graph)
    integer = np.int32 if A.dtype == np.float32 else np.int64
    ceiling = np.array(np.inf, A.dtype).view(integer)[()]
    keys = A.copy()
    keys.data = ceiling - A.data.view(integer)
    keys = keys.maximum(keys.T.tocsr())
    keys.sort_indices()
    data = (ceiling - keys.data).astype(integer, copy=False).view(A.dtype)
    return scipy.sparse.csr_matrix((data, keys.indices, keys.indptr), shape=A.shape)


LEAST_WEIGHT = 1e-9  # an edge that is much too long still holds the graph together
LOCAL_SHARE = 0.5  # of the distance to the k-th neighbor that is a local scale
LEAST_LOCAL_WEIGHT = float(np.exp(-(LOCAL_SHARE**-2)))

TINY = float(np.sqrt(np.finfo(np.float64).tiny))  # its square is above 0
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


class WeightedGraph(NamedTuple):
    """Weights in the places of the edges, and the width of the heat kernel; None for binary."""

    W: scipy.sparse.csr_matrix
    width: float | None


def weighted_graph(
    graph: scipy.sparse.csr_matrix,
    weights: Literal["heat", "binary"] = "heat",
    width: float | None = None,
    least: float = LEAST_WEIGHT,
) -> WeightedGraph:
    """The weights of a graph of distances, in float64.

    Parameters
    ----------
    graph : CSR matrix
        Lengths of the edges; see :func:`symmetrize` for a graph with both directions.
    weights : "heat" or "binary"
    width : float or None
        sqrt(t) of the heat kernel; None is the median length of the edges that are not 0.
    least : float
        No edge weighs less than this.
    """
    if weights not in ("heat", "binary"):
        raise ParameterError(unknown_name("weights", weights, ["heat", "binary"]))
    if weights == "binary":
        width, values = None, np.ones(graph.data.size)
    else:
        # In the unit of extreme data, a given width may be 0: it is as small as can be.
        width = median_length(graph.data) if width is None else max(float(width), TINY)
        values = heat_weights(graph.data, width, least)
    W = scipy.sparse.csr_matrix((values, graph.indices, graph.indptr), shape=graph.shape)
    return WeightedGraph(W, width)


def heat_weights(distances: Any, width: float, least: float = LEAST_WEIGHT) -> np.ndarray:
    """max(exp(-(d / width)^2), least) in float64."""
    with np.errstate(over="ignore"):
        d = np.asarray(distances, np.float64) / (width or TINY)  # 1 for the distance 0
        return np.maximum(np.exp(-d * d), least)


def local_graph(graph: scipy.sparse.csr_matrix) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """Local weights of a symmetric graph of distances, and the scale of each row."""
    scales = local_scales(graph)
    ends = np.repeat(scales, np.diff(graph.indptr)), scales[graph.indices]
    values = local_weights(graph.data, *ends)
    return scipy.sparse.csr_matrix((values, graph.indices, graph.indptr), shape=graph.shape), scales


def local_weights(distances: Any, scales: Any, other_scales: Any) -> np.ndarray:
    """max(exp(-d^2 / (s_i s_j)), exp(-4)) in float64."""
    d = np.asarray(distances, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.fmax(np.exp(-(d / scales) * (d / other_scales)), LEAST_LOCAL_WEIGHT)


def local_scales(graph: scipy.sparse.csr_matrix) -> np.ndarray:
    """Half the length of the k-th shortest edge of each row, k the smallest number of edges.

    In a symmetric graph of k nearest neighbors that edge leads to the k-th neighbor. Where it is 0,
    among copies of a row, the shortest edge that is not 0 stands for it; a row that has none gets
    the median scale.
    """
    counts = np.diff(graph.indptr)
    lengths = graph.data.astype(np.float64)
    order = np.lexsort((lengths, np.repeat(np.arange(counts.size), counts)))
    lengths = lengths[order]
    found = lengths[graph.indptr[:-1] + counts.min() - 1]
    if not found.all():
        real = np.where(lengths > 0, lengths, np.inf)
        shortest = np.minimum.reduceat(real, graph.indptr[:-1])
        found = np.where(found > 0, found, shortest)
        known = found[np.isfinite(found)]
        found[np.isinf(found)] = np.median(known) if known.size else 1.0
    return half_length(found)


def half_length(lengths: np.ndarray) -> np.ndarray:
    """The scale that belongs to the distance to the last neighbor; never 0."""
    return np.maximum(LOCAL_SHARE * np.asarray(lengths, np.float64), SMALLEST)


def median_length(distances: np.ndarray) -> float:
    """The median of the distances that are not 0; 1 if all are 0."""
    real = distances[distances > 0].astype(np.float64)
    return float(np.median(real)) if real.size else 1.0


def root_mean_square(distances: np.ndarray) -> float:
    """sqrt(mean d^2), without overflow; 1 if all distances are 0."""
    unit = float(distances.max(initial=0.0)) or 1.0
    return unit * float(np.sqrt(np.mean((distances / unit) ** 2, dtype=np.float64))) or 1.0
