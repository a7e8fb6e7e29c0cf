"""Connected components, and the policies for a graph that has several of them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from lowland._core.errors import DataError, ParameterError, unknown_name
from lowland._core.monitor import Monitor
from lowland._engines.graphs.bridges import Edges, shortest_bridges
from lowland._engines.graphs.checking import row_numbers


class ConnectedGraph(NamedTuple):
    """A connected graph, and how it was obtained.

    ``n_components`` is the number of components of the input, ``kept`` holds the row numbers of
    the input that ``graph`` contains, ascending, and ``added`` the edges that joined components.
    """

    graph: scipy.sparse.csr_matrix
    n_components: int
    kept: np.ndarray
    added: Edges


def connected_components(graph: Any) -> tuple[int, np.ndarray]:
    """The number of components, and the component of each row, numbered by their first rows.

    The direction of edges is ignored. O(rows + edges).
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
    """A connected graph by the policy that all methods call ``on_disconnected``.

    Parameters
    ----------
    graph : CSR matrix
        Distances between neighbors.
    X : array or CSR matrix of shape (n, d), or (n, n) distances for ``metric="precomputed"``
        The data that the lengths of bridges are computed from; used only by "bridge".
    policy : "bridge", "largest" or "raise"
        "bridge" joins the components by the edges of a minimum spanning tree, in both directions.
        "largest" keeps the rows of the largest component (of several, the first). "raise" raises
        a ``DataError``.
    metric, metric_params
        The distance between rows, see :mod:`lowland._engines.distances.metrics`.
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
    joined, added = join(graph, X, labels, metric, metric_params, threads, monitor)
    return ConnectedGraph(joined, n_components, np.arange(n), added)


def join(
    graph: scipy.sparse.csr_matrix,
    X: Any,
    labels: np.ndarray,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    threads: int = 1,
    monitor: Monitor | None = None,
) -> tuple[scipy.sparse.csr_matrix, Edges]:
    """The graph with the shortest edges between the groups of rows that ``labels`` number."""
    found = shortest_bridges(X, labels, metric, metric_params, threads, monitor)
    added = found._replace(distances=found.distances.astype(graph.dtype))
    return _with_edges(graph, added), added


def _disconnected(labels: np.ndarray) -> str:
    sizes = np.sort(np.bincount(labels))[::-1]
    shown = ", ".join(str(size) for size in sizes[:10]) + (", ..." if sizes.size > 10 else "")
    return (
        f"the neighbor graph falls into {sizes.size} components, of {shown} rows; take a larger "
        'n_neighbors, or on_disconnected="bridge" to join them by their shortest edges, or '
        'on_disconnected="largest" to keep only the largest.'
    )


def _with_edges(graph: scipy.sparse.csr_matrix, added: Edges) -> scipy.sparse.csr_matrix:
    """The graph with new edges in both directions; stored zeros stay stored."""
    rows = np.concatenate([row_numbers(graph), added.rows, added.columns])
    columns = np.concatenate([graph.indices, added.columns, added.rows])
    data = np.concatenate([graph.data, added.distances, added.distances])
    # no edge occurs twice, so that the conversion adds up no entries
    joined = scipy.sparse.coo_matrix((data, (rows, columns)), shape=graph.shape).tocsr()
    joined.sort_indices()
    return joined
