"""What the edges of a graph of distances weigh, and rows that no edge tells apart."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland._engines.graphs.graph import connected_components

__all__ = ["equal_rows_together", "heat_weights", "typical_square"]

LEAST_WEIGHT = 1e-9  # of an edge, however long: it is there to hold the graph together


def heat_weights(distances: np.ndarray, bandwidth: float) -> np.ndarray:
    """exp(-d^2 / t) in float64, and a little for edges that are far too long for it."""
    d = distances.astype(np.float64) / np.sqrt(bandwidth)
    with np.errstate(over="ignore"):
        return np.maximum(np.exp(-d * d), LEAST_WEIGHT)


def typical_square(distances: np.ndarray) -> float:
    """The median squared distance among those that are not 0; 1 where all are."""
    real = distances[distances > 0].astype(np.float64)
    return float(np.median(real) ** 2) if real.size else 1.0


def equal_rows_together(Y: np.ndarray, graph: scipy.sparse.csr_matrix) -> np.ndarray:
    """Rows joined by edges of length 0 get one place, their mean.

    Equal rows have different neighbors where ties are cut off, and so slightly different places; a
    new row equal to all of them could have only one.
    """
    none = graph.data == 0
    if not none.any():
        return Y
    starts = np.concatenate([[0], np.cumsum(none)])[graph.indptr]
    equal = scipy.sparse.csr_matrix((graph.data[none], graph.indices[none], starts), graph.shape)
    _, group = connected_components(equal)
    members = np.bincount(group)
    places = [np.bincount(group, weights=column) / members for column in Y.T]
    return np.column_stack(places)[group]
