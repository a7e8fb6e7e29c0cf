"""What every graph is brought to before it is used.

A graph is a square CSR matrix of distances or weights. Every stored entry is an edge, also a zero:
two equal rows are neighbors at distance 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lowland._core.errors import DataError


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
