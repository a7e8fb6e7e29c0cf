"""Edges within a radius, and geodesic distances of new rows: what Isomap does to graphs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._engines.graphs.geodesics import shortest_paths
from lowland.spectral._nystrom import in_units_of

__all__ = ["edges_within", "geodesics_of_new_rows", "links_within"]

LONGEST_LINK = 1e140  # relative to the longest edge; sums of larger squares overflow


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


def geodesics_of_new_rows(
    graph: scipy.sparse.csr_matrix,
    links: scipy.sparse.csr_matrix,
    unit: float,
    landmarks: np.ndarray,
    run: FitContext,
) -> np.ndarray:
    """Distances of new rows to the landmarks, in float64 and in units of ``unit``, as the graph.

    ``links`` are edges from the new rows to rows of the graph. The edges have one direction, so
    that no path runs through another new row.
    """
    m, n = links.shape
    starts = np.concatenate([graph.indptr, graph.indptr[-1] + links.indptr[1:]])
    ends = np.concatenate([graph.indices, links.indices])
    new_lengths = in_units_of(unit, links.data, LONGEST_LINK, "Isomap").astype(graph.dtype)
    lengths = np.concatenate([graph.data, new_lengths])
    D = shortest_paths(
        scipy.sparse.csr_matrix((lengths, ends, starts), shape=(n + m, n + m)),
        np.arange(n, n + m),
        threads=run.threads,
        monitor=run.monitor,
        dtype=graph.dtype,
    )
    return D[:, landmarks].astype(np.float64)
