"""The joint graph: the neighbors within each table, and the matches between tables.

With the weights W_d of each table divided by their sum, and those of the matches between two
tables scaled to the sum mu (Wang & Mahadevan 2009),

    W = [[W_1, mu W_12], [mu W_12^T, W_2]]

no table counts for more than another, whatever its size and its unit.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from lowland._base.context import FitContext
from lowland._base.errors import DataError, DataTypeError, ParameterError
from lowland._base.validation import as_array
from lowland._engines.graphs.components import connected_components, join
from lowland._engines.graphs.weights import local_graph, symmetrize
from lowland._engines.neighbors.duplicates import EqualRows, equal_in_graph
from lowland._engines.neighbors.search import neighbor_graph

# What is known beforehand: which rows of the tables are one object, and where some rows lie.


class Matches(NamedTuple):
    """Pairs of rows of different tables, in stacked row numbers, with weights above 0.

    ``rows`` belong to the earlier table. A pair occurs once.
    """

    rows: np.ndarray
    columns: np.ndarray
    weights: np.ndarray

    def among(self, kept: np.ndarray, n: int) -> tuple[Matches, Matches]:
        """The matches of kept rows of n with each other, in all row numbers and in theirs."""
        place = np.full(n, -1)
        place[kept] = np.arange(kept.size)
        inside = (place[self.rows] >= 0) & (place[self.columns] >= 0)
        found = Matches(*(part[inside] for part in self))
        return found, found._replace(rows=place[found.rows], columns=place[found.columns])


def set_of(rows: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The table of each stacked row number."""
    return np.searchsorted(starts, rows, side="right") - 1


def check_correspondence(given: Any, starts: np.ndarray, owner: str) -> np.ndarray:
    """Row numbers (m, n_sets) in int64, -1 where a table does not have the object."""
    C, n_sets = as_array(given, "correspondence"), len(starts) - 1
    if C.size == 0:
        raise DataError(f"{owner}: correspondence is empty; give None if none is known.")
    if C.dtype.kind not in "iu":
        raise DataTypeError(
            f"{owner}: correspondence holds {C.dtype}, expected integers: row numbers, or -1."
        )
    if C.ndim != 2 or C.shape[1] != n_sets:
        raise DataError(
            f"{owner}: correspondence has shape {C.shape}, expected (m, {n_sets}): one column for "
            "each table."
        )
    for d, size in enumerate(np.diff(starts)):
        wrong = (C[:, d] < -1) | (C[:, d] >= size)
        if wrong.any():
            i = int(wrong.argmax())
            raise DataError(
                f"{owner}: correspondence[{i}, {d}] = {C[i, d]} is not a row of Xs[{d}]; expected "
                f"0 to {size - 1}, or -1 for an object that the table does not have."
            )
    alone = (C >= 0).sum(axis=1) < 2
    if alone.any():
        i = int(alone.argmax())
        raise DataError(f"{owner}: correspondence[{i}] names fewer than two tables; leave it out.")
    return C.astype(np.int64)


def matches_of(C: np.ndarray, starts: np.ndarray) -> Matches:
    """All pairs of the objects, each once, ordered by their row numbers."""
    found = []
    for a, b in itertools.combinations(range(C.shape[1]), 2):
        both = (C[:, a] >= 0) & (C[:, b] >= 0)
        found.append(np.column_stack([C[both, a] + starts[a], C[both, b] + starts[b]]))
    pairs = np.unique(np.concatenate(found), axis=0)
    return Matches(pairs[:, 0], pairs[:, 1], np.ones(len(pairs)))


def check_one_to_one(matches: Matches, starts: np.ndarray, owner: str) -> np.ndarray:
    """The node of every stacked row if matched rows are merged; refuses two rows of one table."""
    n = int(starts[-1])
    edges = scipy.sparse.csr_matrix(
        (np.ones(len(matches.rows), np.int8), (matches.rows, matches.columns)), shape=(n, n)
    )
    _, label = scipy.sparse.csgraph.connected_components(edges, directed=False)
    order = np.lexsort((np.arange(n), label))
    tables = set_of(order, starts)
    twice = (label[order][1:] == label[order][:-1]) & (tables[1:] == tables[:-1])
    if twice.any():
        i = int(twice.argmax())
        d = int(tables[i])
        first, second = order[i : i + 2] - starts[d]
        raise DataError(
            f"{owner}: mu='hard' gives matched rows one place, but correspondence matches the rows "
            f"{first} and {second} of Xs[{d}] with one object; leave one of them out, or give mu "
            "as a number."
        )
    _, first_rows, node = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(len(first_rows), np.int64)
    rank[np.argsort(first_rows)] = np.arange(len(first_rows))
    return rank[node.ravel()]


def check_coordinates(given: Any, starts: np.ndarray, q: int, owner: str) -> np.ndarray:
    """Known places (n, q) of the stacked rows in float64, NaN where they are unknown."""
    n_sets = len(starts) - 1
    if not isinstance(given, list | tuple) or len(given) != n_sets:
        raise DataError(f"{owner}: coordinates must be a list of {n_sets} arrays, or None in them.")
    S = np.full((int(starts[-1]), q), np.nan)
    for d, part in enumerate(given):
        if part is None:
            continue
        array = as_array(part, f"coordinates[{d}]")
        shape = (int(starts[d + 1] - starts[d]), q)
        if array.dtype.kind not in "fiu":
            raise DataTypeError(f"{owner}: coordinates[{d}] holds {array.dtype}, expected numbers.")
        if array.shape != shape:
            raise DataError(
                f"{owner}: coordinates[{d}] has shape {array.shape}, expected {shape}, with "
                f"n_components={q} columns."
            )
        unknown = np.isnan(array)
        broken = np.isinf(array).any(axis=1) | (unknown.any(axis=1) & ~unknown.all(axis=1))
        if broken.any():
            raise DataError(
                f"{owner}: coordinates[{d}], row {int(broken.argmax())} is infinite or known in "
                "part; give all of its numbers, or NaN in all."
            )
        S[starts[d] : starts[d + 1]] = array
    if np.isnan(S).all():
        raise DataError(f"{owner}: coordinates holds no known place; give None.")
    return S


class Connected(NamedTuple):
    """Graphs of distances, the stacked numbers of the rows in them, and the components before."""

    graphs: list[scipy.sparse.csr_matrix]
    kept: np.ndarray
    n_components: int


class JointGraph(NamedTuple):
    """Weights of the nodes; the node, the local scale and the equals of every kept row."""

    W: scipy.sparse.csr_matrix
    node: np.ndarray
    scales: np.ndarray
    equal: EqualRows | None


def neighbor_graphs(
    Xs: list[Any], k: int, metric: str, owner: str, run: FitContext
) -> list[scipy.sparse.csr_matrix]:
    """Distances of the k nearest rows within each table, in both directions."""
    for d, X in enumerate(Xs):
        if k >= X.shape[0]:
            raise ParameterError(
                f"{owner}: n_neighbors={k} is not possible with the {X.shape[0]} rows of Xs[{d}]; "
                f"ask for at most {X.shape[0] - 1}."
            )
    return [
        symmetrize(
            neighbor_graph(
                X, k, metric=metric, threads=run.threads, rng=run.rng, monitor=run.monitor
            )
        )
        for X in Xs
    ]


def connect_tables(
    graphs: list[scipy.sparse.csr_matrix],
    Xs: list[Any],
    matches: Matches,
    anchors: np.ndarray,
    policy: str,
    metric: str,
    run: FitContext,
) -> Connected:
    """One connected joint graph by the policy that all methods call ``on_disconnected``.

    ``anchors`` are rows whose places are known: components that hold one need no other link.
    Bridges run within tables, as no distance between tables is known. They are added in every table
    that several components share, so that no table is preferred.
    """
    starts = np.cumsum([0, *(X.shape[0] for X in Xs)])
    n_components, labels = _components(graphs, matches, anchors, starts)
    every = np.arange(starts[-1])
    if n_components == 1:
        return Connected(graphs, every, 1)
    parts = [labels[starts[d] : starts[d + 1]] for d in range(len(Xs))]
    if policy == "raise":
        counts = [f"Xs[{d}] has rows in {len(np.unique(part))}" for d, part in enumerate(parts)]
        raise DataError(
            f"the joint graph falls into {n_components} components ({', '.join(counts)} of them); "
            'give more correspondences, take a larger n_neighbors, or on_disconnected="bridge" to '
            'join rows of one table by their shortest edges, or "largest" to keep only the largest '
            "component."
        )
    if policy == "largest":
        largest = np.bincount(labels).argmax()
        chosen = [np.flatnonzero(part == largest) for part in parts]
        for d, rows in enumerate(chosen):
            if rows.size == 0:
                raise DataError(
                    f"the largest component of the joint graph holds no row of Xs[{d}]; give "
                    "correspondences of that table, or on_disconnected='bridge'."
                )
        kept_graphs = [g[rows][:, rows] for g, rows in zip(graphs, chosen, strict=True)]
        kept = np.flatnonzero(labels == largest)
        return Connected(kept_graphs, kept, n_components)
    joined = []
    for graph, X, part in zip(graphs, Xs, parts, strict=True):
        groups = np.unique(part, return_inverse=True)[1].ravel()
        if groups.max() > 0:
            graph = join(graph, X, groups, metric, None, run.threads, run.monitor)[0]
        joined.append(graph)
    left, labels = _components(joined, matches, anchors, starts)
    if left > 1:
        found = [set(labels[a:b]) for a, b in itertools.pairwise(starts)]
        lost = [f"Xs[{d}]" for d, own in enumerate(found) if not own & found[0]]
        raise DataError(
            f"no correspondence joins {' and '.join(lost)} with Xs[0], directly or by way of "
            "another table, so that they have no map in common; give such correspondences, or fit "
            "these tables alone."
        )
    return Connected(joined, every, n_components)


def joint_graph(
    connected: Connected, matches: Matches, node: np.ndarray, starts: np.ndarray, mu: float
) -> JointGraph:
    """The weights of the joint graph of the kept rows.

    ``node`` states which rows are merged, and is each row's own number if none are. A match between
    merged rows becomes a loop: it counts in the degree and not in the Laplacian.
    """
    kept = connected.kept
    found, (rows, columns, _) = matches.among(kept, int(starts[-1]))
    weights = _scaled(found, starts, mu)
    parts = [local_graph(graph) for graph in connected.graphs]
    within = scipy.sparse.block_diag([W / W.sum() for W, _ in parts], format="coo")
    _, nodes = np.unique(node[kept], return_inverse=True)
    nodes = nodes.ravel()
    i = nodes[np.concatenate([within.row, rows, columns])]
    j = nodes[np.concatenate([within.col, columns, rows])]
    values = np.concatenate([within.data, weights, weights])
    size = int(nodes.max()) + 1
    W = scipy.sparse.coo_matrix((values, (i, j)), shape=(size, size)).tocsr()
    W.sort_indices()
    scales = np.concatenate([scale for _, scale in parts])
    return JointGraph(W, nodes, scales, _equal_nodes(connected.graphs, nodes, size))


def _scaled(matches: Matches, starts: np.ndarray, mu: float) -> np.ndarray:
    """Weights of the matches between any two tables that add up to mu."""
    n_sets = len(starts) - 1
    pair = set_of(matches.rows, starts) * n_sets + set_of(matches.columns, starts)
    sums = np.bincount(pair, matches.weights, minlength=n_sets * n_sets)
    return mu * (matches.weights / sums[pair])


def _equal_nodes(
    graphs: list[scipy.sparse.csr_matrix], nodes: np.ndarray, size: int
) -> EqualRows | None:
    """Nodes that edges of length 0 join."""
    whole = scipy.sparse.block_diag(graphs, format="csr")
    rows = np.repeat(np.arange(whole.shape[0]), np.diff(whole.indptr))
    ends = nodes[np.column_stack([rows, whole.indices])[whole.data == 0]]
    if not len(ends):
        return None
    both = np.unique(ends, axis=0)
    starts = np.searchsorted(both[:, 0], np.arange(size + 1))
    edges = scipy.sparse.csr_matrix((np.zeros(len(both)), both[:, 1], starts), shape=(size, size))
    return equal_in_graph(edges)


def _components(
    graphs: list[scipy.sparse.csr_matrix], matches: Matches, anchors: np.ndarray, starts: np.ndarray
) -> tuple[int, np.ndarray]:
    n = int(starts[-1])
    whole = scipy.sparse.block_diag(graphs, format="csr")
    rows = np.repeat(np.arange(n), np.diff(whole.indptr))
    i = np.concatenate([rows, matches.rows, anchors[:-1]])
    j = np.concatenate([whole.indices, matches.columns, anchors[1:]])
    edges = scipy.sparse.coo_matrix((np.ones(i.size, np.int8), (i, j)), shape=(n, n))
    return connected_components(edges.tocsr())
