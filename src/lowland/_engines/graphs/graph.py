"""Graphs, decided once: symmetry, components and what to do about several, Laplacians.

A graph is a square CSR matrix of distances or weights. Whatever is stored is an edge, a zero too:
two equal rows are neighbors at distance 0. A row is never its own neighbor.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from lowland._core.errors import DataError, ParameterError, unknown_name
from lowland._core.monitor import Monitor
from lowland._engines.graphs.bridges import Edges, shortest_bridges
from lowland._engines.neighbors.radius import radius_graph

__all__ = [
    "ConnectedGraph",
    "checked_graph",
    "connect",
    "connected_components",
    "laplacian",
    "radius_graph",
    "symmetrize",
]


class ConnectedGraph(NamedTuple):
    """A graph in one piece, and what was done to get it.

    ``n_components`` were found; ``kept`` numbers the rows of the input that ``graph`` is about,
    ascending; ``added`` are the edges that joined the components.
    """

    graph: scipy.sparse.csr_matrix
    n_components: int
    kept: np.ndarray
    added: Edges


def checked_graph(graph: Any, what: str = "graph") -> scipy.sparse.csr_matrix:
    """A square CSR matrix of finite numbers >= 0, sorted, each edge once (the shortest), no loops.

    ``graph`` is a NeighborGraph or a sparse matrix and is not written to. O(edges).
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
    return _without_loops_and_repeats(A)


def _without_loops_and_repeats(A: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """A, whose indices are sorted, with each edge once, the shortest, and no diagonal."""
    rows, columns, data = _row_numbers(A), A.indices, A.data
    repeated = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
    if repeated.any():
        order = np.lexsort((data, columns, rows))  # rows and columns stay as they are
        data = data[order]
    wanted = rows != columns
    wanted[1:] &= ~repeated
    if wanted.all():
        return A
    starts = np.concatenate([[0], np.cumsum(wanted)])[A.indptr]
    return scipy.sparse.csr_matrix((data[wanted], columns[wanted], starts), shape=A.shape)


def _row_numbers(A: scipy.sparse.csr_matrix) -> np.ndarray:
    return np.repeat(np.arange(A.shape[0], dtype=A.indices.dtype), np.diff(A.indptr))


def symmetrize(
    graph: Any, how: Literal["union", "mutual", "directed"] = "union"
) -> scipy.sparse.csr_matrix:
    """The graph of distances in which i and j are neighbors if either (or each) has the other.

        union     w_ij = min(d_ij, d_ji) over those of the two that exist
        mutual    the same, only where both exist
        directed  w_ij = d_ij

    Union and mutual are symmetric to the last bit. O(edges). scipy's own ``minimum`` and
    ``maximum`` would lose edges of length 0, so they are given integers: the bits of a number
    >= 0 order like the number, and can be shifted away from 0 and reversed.
    """
    if how not in ("union", "mutual", "directed"):
        raise ParameterError(unknown_name("symmetrization", how, ["union", "mutual", "directed"]))
    A = checked_graph(graph)
    if how == "directed":
        return A
    integer = np.int32 if A.dtype == np.float32 else np.int64
    bits = A.data.view(integer)
    ceiling = np.array(np.inf, A.dtype).view(integer)[()]
    keys = A.copy()
    keys.data = ceiling - bits if how == "union" else bits + integer(1)
    keys = keys.maximum(keys.T.tocsr()) if how == "union" else keys.minimum(keys.T.tocsr())
    keys.sort_indices()
    bits = ceiling - keys.data if how == "union" else keys.data - integer(1)
    data = bits.astype(integer, copy=False).view(A.dtype)
    return scipy.sparse.csr_matrix((data, keys.indices, keys.indptr), shape=A.shape)


def connected_components(graph: Any) -> tuple[int, np.ndarray]:
    """The number of components, and each row's component; they are numbered as they first appear.

    The direction of edges does not matter. O(rows + edges).
    """
    pattern = scipy.sparse.csr_matrix(
        (np.ones(graph.indices.size, np.int8), graph.indices, graph.indptr), shape=graph.shape
    )
    n_components, labels = scipy.sparse.csgraph.connected_components(pattern, directed=False)
    _, first = np.unique(labels, return_index=True)
    rank = np.empty(n_components, np.int64)
    rank[np.argsort(first)] = np.arange(n_components)
    return int(n_components), rank[labels]


def connect(
    graph: scipy.sparse.csr_matrix,
    X: Any,
    policy: Literal["bridge", "largest", "raise"] = "bridge",
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    threads: int = 1,
    monitor: Monitor | None = None,
) -> ConnectedGraph:
    """The graph made one piece: the policy ``on_disconnected`` of all methods.

    Parameters
    ----------
    graph : CSR matrix
        Distances between neighbors.
    X : array or CSR matrix of shape (n, d), or (n, n) distances for ``metric="precomputed"``
        Where the lengths of bridges come from; used only by "bridge".
    policy : "bridge", "largest" or "raise"
        "bridge" joins the components by a minimum spanning tree: the fewest edges, the shortest
        there are, both directions of each added. "largest" keeps the rows of the largest
        component (of several, the first). "raise" refuses with ``DataError``.
    metric, metric_params
        What scipy's ``cdist`` takes, or "precomputed".
    """
    if policy not in ("bridge", "largest", "raise"):
        raise ParameterError(unknown_name("policy", policy, ["bridge", "largest", "raise"]))
    n = graph.shape[0]
    n_components, labels = connected_components(graph)
    none = Edges(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, graph.dtype))
    if n_components <= 1:
        return ConnectedGraph(graph, n_components, np.arange(n), none)
    if policy == "raise":
        raise DataError(_disconnected(labels))
    if policy == "largest":
        kept = np.flatnonzero(labels == np.bincount(labels).argmax())
        return ConnectedGraph(graph[kept][:, kept], n_components, kept, none)
    found = shortest_bridges(X, labels, metric, metric_params, threads, monitor)
    added = found._replace(distances=found.distances.astype(graph.dtype))
    return ConnectedGraph(_with_edges(graph, added), n_components, np.arange(n), added)


def _disconnected(labels: np.ndarray) -> str:
    sizes = np.sort(np.bincount(labels))[::-1]
    shown = ", ".join(str(size) for size in sizes[:10]) + (", ..." if sizes.size > 10 else "")
    return (
        f"the neighbor graph falls into {sizes.size} components, of {shown} rows; take a larger "
        'n_neighbors, or on_disconnected="bridge" to join them by their shortest edges, or '
        'on_disconnected="largest" to keep only the largest.'
    )


def _with_edges(graph: scipy.sparse.csr_matrix, added: Edges) -> scipy.sparse.csr_matrix:
    """The graph and edges it does not have yet, in both directions; stored zeros stay stored."""
    rows = np.concatenate([_row_numbers(graph), added.rows, added.columns])
    columns = np.concatenate([graph.indices, added.columns, added.rows])
    data = np.concatenate([graph.data, added.distances, added.distances])
    # two edges never share a place: the conversion sums nothing and drops nothing
    joined = scipy.sparse.coo_matrix((data, (rows, columns)), shape=graph.shape).tocsr()
    joined.sort_indices()
    return joined


def laplacian(
    W: Any, kind: Literal["unnormalized", "random_walk", "symmetric"] = "unnormalized"
) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """The Laplacian of a graph of weights w_ij >= 0 (not distances), and the degrees.

        unnormalized  L = D - W               d_i = sum_j w_ij
        random_walk   L = I - D^-1 W
        symmetric     L = I - D^-1/2 W D^-1/2   (exactly symmetric if W is)

    Rows without weight get zeros only, so that eigenvalue 0 counts the components in each kind.
    O(edges). Reference: von Luxburg (2007), A tutorial on spectral clustering, Statistics and
    Computing 17. doi:10.1007/s11222-007-9033-z
    """
    if kind not in ("unnormalized", "random_walk", "symmetric"):
        known = ["unnormalized", "random_walk", "symmetric"]
        raise ParameterError(unknown_name("Laplacian", kind, known))
    W = checked_graph(W, "W")
    n = W.shape[0]
    rows = _row_numbers(W)
    weights = W.data.astype(np.float64)
    degree = np.bincount(rows, weights, minlength=n).astype(np.float64)  # ints if empty
    present = np.where(degree > 0, degree, 1.0)
    if kind == "unnormalized":
        diagonal, scaled = degree, weights
    else:
        diagonal = (degree > 0).astype(np.float64)
        root = np.sqrt(present)
        scale = present[rows] if kind == "random_walk" else root[rows] * root[W.indices]
        scaled = weights / scale
    off = scipy.sparse.csr_matrix((-scaled, W.indices, W.indptr), shape=W.shape)
    L = (scipy.sparse.diags_array(diagonal, format="csr") + off).astype(W.dtype)
    return scipy.sparse.csr_matrix(L), degree.astype(W.dtype)
