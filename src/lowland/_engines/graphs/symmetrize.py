"""The undirected graph of a directed one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lowland._engines.graphs.checking import checked_graph


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
