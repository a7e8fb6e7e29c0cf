"""Weights of the edges of a graph of distances.

    heat     w_ij = exp(-d_ij^2 / t)      t the bandwidth, sqrt(t) the width
    binary   w_ij = 1

The default width is the median length of the edges that are not 0. Half of the edges then weigh
more than 1/e, whatever the unit of the data, and a few very long edges do not change it. Widths are
lengths, not squares, so that extreme distances do not overflow.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse

from lowland._core.errors import ParameterError, unknown_name

__all__ = ["WeightedGraph", "heat_weights", "median_length", "root_mean_square", "weighted_graph"]

LEAST_WEIGHT = 1e-9  # an edge that is much too long still holds the graph together

TINY = float(np.sqrt(np.finfo(np.float64).tiny))  # its square is above 0


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


def median_length(distances: np.ndarray) -> float:
    """The median of the distances that are not 0; 1 if all are 0."""
    real = distances[distances > 0].astype(np.float64)
    return float(np.median(real)) if real.size else 1.0


def root_mean_square(distances: np.ndarray) -> float:
    """sqrt(mean d^2), without overflow; 1 if all distances are 0."""
    unit = float(distances.max(initial=0.0)) or 1.0
    return unit * float(np.sqrt(np.mean((distances / unit) ** 2, dtype=np.float64))) or 1.0
