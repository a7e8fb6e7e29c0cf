"""Geodesic distances of new rows: they are linked with rows of the graph, and paths begin there."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._engines.graphs.geodesics import shortest_paths
from lowland._engines.linalg.magnitude import in_units_of

LONGEST_LINK = 1e140  # relative to the longest edge; sums of larger squares overflow


def geodesics_of_new_rows(
    graph: scipy.sparse.csr_matrix,
    links: scipy.sparse.csr_matrix,
    unit: float,
    landmarks: np.ndarray,
    run: FitContext,
    *,
    owner: str,
) -> np.ndarray:
    """Distances of new rows to the landmarks, in float64 and in units of ``unit``, as the graph.

    ``links`` are edges from the new rows to rows of the graph. The edges have one direction, so
    that no path runs through another new row.
    """
    m, n = links.shape
    starts = np.concatenate([graph.indptr, graph.indptr[-1] + links.indptr[1:]])
    ends = np.concatenate([graph.indices, links.indices])
    new_lengths = in_units_of(unit, links.data, LONGEST_LINK, owner).astype(graph.dtype)
    lengths = np.concatenate([graph.data, new_lengths])
    D = shortest_paths(
        scipy.sparse.csr_matrix((lengths, ends, starts), shape=(n + m, n + m)),
        np.arange(n, n + m),
        threads=run.threads,
        monitor=run.monitor,
        dtype=graph.dtype,
    )
    return D[:, landmarks].astype(np.float64)
