"""Connected components, and the policies for a graph that has several of them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.spatial

from lowland._base.errors import DataError, ParameterError, unknown_name
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._base.validation import is_sparse
from lowland._engines.distances.distance_rows import DistanceTiles
from lowland._engines.distances.metrics import canonical
from lowland._engines.graphs.weights import row_numbers

# The shortest edges that join the components of a graph: a minimum spanning tree of components.
#
# Boruvka's algorithm: every component finds its shortest edge to any other component, and these
# edges are added, until one component is left; at most log2(components) rounds. For every row a
# lower bound of the distance to the nearest row of another component is kept, and that row.
# Components only grow, so the bound remains valid. A row is searched again only if its nearest
# row has joined its own component and its bound is still below the shortest known edge of the
# component. The first search gives bounds only; the rows that the bounds do not exclude are
# decided by exact distances, computed in one way. No n x n memory.
#
# References
# ----------
# Boruvka (1926), O jistem problemu minimalnim; March, Ram & Gray (2010), Fast Euclidean minimum
# spanning tree, KDD, doi:10.1145/1835804.1835882 (bounds kept between the rounds).


CANDIDATES = 8


class Edges(NamedTuple):
    """Edges between ``rows[e] < columns[e]``, the shortest first, ties by row and column."""

    rows: np.ndarray
    columns: np.ndarray
    distances: np.ndarray


class OutsideSearch:
    """For every row, the nearest row in another component, as far as it is known.

    ``other`` is that row and ``bound`` at most its distance. Where ``exact``, both are final: the
    distance itself, and of several nearest rows the first. ``candidates`` holds the possible rows,
    filled up with -1; all are -1 where any row is possible.
    """

    def __init__(self, source: DistanceTiles, threads: int) -> None:
        self.source = source
        self.threads = threads
        self.bound = np.zeros(source.n)
        self.other = np.arange(source.n)
        self.exact = np.zeros(source.n, bool)
        self.candidates = np.full((source.n, CANDIDATES), -1)
        euclidean = isinstance(source.metric, str) and source.metric == "euclidean"
        self.screens = euclidean and not is_sparse(source.X) and not source.params

    def shortest_edges(
        self, labels: np.ndarray, phase: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each component its shortest edge (distance, row inside, row outside)."""
        stale = labels[self.other] == labels
        self.exact &= ~stale
        # the row with the least bound of each component first: its edge excludes most others
        self._search_exactly(self._leaders(~stale, labels), labels, phase)
        rows = np.flatnonzero(stale & (self.bound <= self._best(labels)[labels]))
        if self.source.tree_exponent is not None:
            self._search_trees(rows, labels)
        elif self.screens:
            self._search_products(rows, labels, phase)
        else:
            self._search_exactly(rows, labels, phase)
        stale[rows] = False
        self._search_exactly(self._leaders(~stale, labels), labels, phase)
        left = ~self.exact & ~stale & (self.bound <= self._best(labels)[labels])
        self._search_exactly(np.flatnonzero(left), labels, phase)
        best = self._leaders(self.exact, labels)
        return self.bound[best], best, self.other[best]

    def _leaders(self, among: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Of each component the row with the least bound; of several the first."""
        rows = np.flatnonzero(among)
        order = rows[np.lexsort((self.bound[rows], labels[rows]))]
        return order[np.unique(labels[order], return_index=True)[1]]

    def _best(self, labels: np.ndarray) -> np.ndarray:
        """The shortest exact edge of each component."""
        best = np.full(labels.max() + 1, np.inf)
        np.minimum.at(best, labels[self.exact], self.bound[self.exact])
        return best

    def _search_exactly(self, rows: np.ndarray, labels: np.ndarray, phase: Any) -> None:
        rows = rows[~self.exact[rows]]
        open_to_all = self.candidates[rows, 0] < 0
        for row in rows[~open_to_all]:
            some = self.candidates[row]
            some = some[(some >= 0) & (labels[some] != labels[row])]
            d = self.source.tile([row], some)[0]
            self.other[row], self.bound[row] = some[d.argmin()], d.min()
        for block in self.source.blocks(rows[open_to_all]):
            D = self.source.tile(block, slice(None))
            D[labels[block][:, None] == labels] = np.inf
            self.other[block] = D.argmin(axis=1)
            self.bound[block] = D[np.arange(block.size), self.other[block]]
            phase.advance()
        self.exact[rows] = True
        if not np.isfinite(self.bound[rows]).all():
            raise DataError(
                "a distance between components is infinite or NaN; they cannot be joined."
            )

    def _search_trees(self, rows: np.ndarray, labels: np.ndarray) -> None:
        """One pair of trees per bit: another component's number differs in at least one bit."""
        X, p = self.source.dense(slice(None)), self.source.tree_exponent
        self.bound[rows] = np.inf
        for bit in range(int(labels.max()).bit_length()):
            side = (labels >> bit) & 1
            for here in (0, 1):
                asking, there = rows[side[rows] == here], np.flatnonzero(side != here)
                if asking.size == 0 or there.size == 0:
                    continue
                tree = scipy.spatial.cKDTree(X[there], balanced_tree=False)
                found, place = tree.query(X[asking], p=p, workers=self.threads)
                nearer = found < self.bound[asking]
                self.bound[asking[nearer]] = found[nearer]
                self.other[asking[nearer]] = there[place[nearer]]
        self.bound[rows] *= 1 - 1e-9  # the rounding error of the tree

    def _search_products(self, rows: np.ndarray, labels: np.ndarray, phase: Any) -> None:
        """Bounds from d^2 = |x|^2 + |y|^2 - 2 x.y in float32, minus the possible rounding error."""
        X = self.source.dense(slice(None))
        scale = np.abs(X).max() or 1.0
        X = X / scale  # now squares cannot overflow
        X = (X - X.mean(axis=0)).astype(np.float32)
        squares = np.einsum("ij,ij->i", X, X)
        others = -2 * X.T
        slack = 4 * (X.shape[1] + 8) * np.finfo(np.float32).eps
        with limit_blas(self.threads):
            for block in self.source.blocks(rows):
                D2 = X[block] @ others
                D2 += squares
                D2[labels[block][:, None] == labels] = np.inf
                self.other[block] = D2.argmin(axis=1)
                least = D2[np.arange(block.size), self.other[block]]
                error = slack * (squares[block] + squares.max())
                least_square = np.maximum(least + squares[block] - error, 0.0, dtype=float)
                self.bound[block] = scale * np.sqrt(least_square)
                self._remember(block, (least + 2 * error)[:, None] >= D2)
                phase.advance()

    def _remember(self, block: np.ndarray, near: np.ndarray) -> None:
        """Keep the candidates of rows that have few of them."""
        near[near.sum(axis=1) > CANDIDATES] = False
        row, column = np.nonzero(near)
        self.candidates[block] = -1
        self.candidates[block[row], np.arange(row.size) - np.searchsorted(row, row)] = column


def _join(
    labels: np.ndarray,
    distances: np.ndarray,
    rows: np.ndarray,
    others: np.ndarray,
    found: list[tuple[float, int, int]],
) -> np.ndarray:
    """Add the edges that join different components, the shortest first; the new labels."""
    low, high = np.minimum(rows, others), np.maximum(rows, others)
    parent = np.arange(labels.max() + 1)

    def root(label: int) -> int:
        while parent[label] != label:
            parent[label] = parent[parent[label]]
            label = parent[label]
        return label

    for e in np.lexsort((high, low, distances)):
        a, b = root(int(labels[low[e]])), root(int(labels[high[e]]))
        if a != b:
            parent[max(a, b)] = min(a, b)
            found.append((float(distances[e]), int(low[e]), int(high[e])))
    roots = np.array([root(label) for label in range(parent.size)])
    return np.unique(roots, return_inverse=True)[1][labels]


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
    joined, added = join(graph, X, labels, metric, metric_params, threads, monitor or Monitor())
    return ConnectedGraph(joined, n_components, np.arange(n), added)


def join(
    graph: scipy.sparse.csr_matrix,
    X: Any,
    labels: np.ndarray,
    metric: Any,
    metric_params: dict[str, Any] | None,
    threads: int,
    monitor: Monitor,
) -> tuple[scipy.sparse.csr_matrix, Edges]:
    """The graph, and the edges of a minimum spanning tree of the c groups that ``labels`` number.

    There are c - 1 such edges. Exact for every metric; among edges of one length, smaller row
    numbers win. For euclidean, manhattan and chebyshev distances of few features
    O(n log n log^2 c), else one pass over all distances, O(n^2 d), and parts of a second.
    """
    source = DistanceTiles(X, canonical(metric), metric_params)
    if source.n != labels.size:
        raise DataError(f"the graph has {labels.size} rows, but X has {source.n}.")
    labels, search = labels.copy(), OutsideSearch(source, threads)
    found: list[tuple[float, int, int]] = []
    with monitor.phase("bridges") as phase:
        while labels.max() > 0:
            distance, i, j = search.shortest_edges(labels, phase)
            labels = _join(labels, distance, i, j, found)
    edges = np.array(sorted(found), dtype=[("d", float), ("i", np.int64), ("j", np.int64)])
    added = Edges(edges["i"].copy(), edges["j"].copy(), edges["d"].astype(graph.dtype))
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


def line_up(graph: Any) -> np.ndarray:
    """Each row's distance from one end of a connected graph of distances: its position in a line.

    The end is a row farthest from the one farthest from row 0. O(edges log n).
    """
    far = scipy.sparse.csgraph.dijkstra(graph, directed=False, indices=0)
    far[~np.isfinite(far)] = -1.0
    along = scipy.sparse.csgraph.dijkstra(graph, directed=False, indices=int(far.argmax()))
    along[~np.isfinite(along)] = 0.0
    return along
