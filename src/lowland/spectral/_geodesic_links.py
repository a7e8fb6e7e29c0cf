"""Edges within a radius: what Isomap does to graphs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.sparse


def edges_within(graph: scipy.sparse.csr_matrix, radius: float) -> scipy.sparse.csr_matrix:
    """The edges of a graph of distances that are not longer than the radius."""
    near = graph.data <= radius
    starts = np.concatenate([[0], np.cumsum(near)])[graph.indptr]
    return scipy.sparse.csr_matrix((graph.data[near], graph.indices[near], starts), graph.shape)


def links_within(
    blocks: Iterable[tuple[slice, np.ndarray]], radius: float
) -> scipy.sparse.csr_matrix:
    """Edges from new rows to the fitted rows within the radius, at least to the nearest.

    ``blocks`` gives the distances of new rows to all fitted rows, some rows at a time.
    """
    parts = []
    for _, D in blocks:
        near = np.maximum(D.min(axis=1, keepdims=True), radius) >= D
        starts = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
        parts.append(scipy.sparse.csr_matrix((D[near], np.nonzero(near)[1], starts), D.shape))
    return scipy.sparse.vstack(parts, format="csr")
