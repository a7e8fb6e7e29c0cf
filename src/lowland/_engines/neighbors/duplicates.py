"""Equal rows: finding them, searching for their neighbors once, and giving them one place.

A search cannot order a thousand equal rows by their scores. Where there are many equal rows, it
runs on the distinct rows, and :func:`expand` writes its result to all rows, ties by row number.
Three functions find the groups of equal rows: from the rows, from a graph of distances, and from
a matrix of distances. :func:`at_common_place` gives the rows of a group one place in a map.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.memory import require_memory
from lowland._base.validation import is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.products import row_blocks

ENTRIES = 1 << 21  # candidates that `expand` handles at a time


class EqualRows(NamedTuple):
    """The first row of every group of equal rows, ascending, and the group of each row."""

    first: np.ndarray
    group: np.ndarray


def equal_rows(X: np.ndarray, threads: int, *, only_if_many: bool = False) -> EqualRows | None:
    """The groups of equal rows of X; None if all rows are different.

    With ``only_if_many`` also None if fewer than one row in fifty is a copy and no row has more
    than six copies: a search orders so few without help. O(n p + n log n).
    """
    n, d = X.shape
    weights = np.random.default_rng(0).standard_normal((d, 1))
    # Equal rows have bit-equal products with the weights, so only rows of one mark can be equal.
    mark = products.times(X, np.zeros(d), weights, threads)[:, 0]
    mark = mark + 0.0  # -0 and +0 are equal
    order = np.argsort(mark, kind="stable")
    same_mark = mark[order[1:]] == mark[order[:-1]]
    repeated = np.flatnonzero(same_mark)
    same = np.zeros(n - 1, bool)
    same[repeated] = (X[order[repeated]] == X[order[repeated + 1]]).all(axis=1)
    few = same.sum() < n // 50 and not _long_run(same) if only_if_many else not same.any()
    if few:
        return None
    label = np.empty(n, np.int64)
    label[order] = np.concatenate([[0], np.cumsum(~same)])
    return _numbered(label)


def equal_in_graph(graph: Any) -> EqualRows | None:
    """The groups of rows that edges of length 0 join; None if there is no such edge.

    ``graph`` is a NeighborGraph or a CSR matrix of distances. O(edges).
    """
    if is_sparse(graph):
        zero = graph.data == 0
        starts = np.concatenate([[0], np.cumsum(zero)])[graph.indptr]
        ends = graph.indices[zero]
    else:
        zero = graph.distances == 0
        starts = np.concatenate([[0], np.cumsum(zero.sum(axis=1))])
        ends = graph.indices[zero]
    if not zero.any():
        return None
    import scipy.sparse.csgraph  # imported here: it takes longer than a small map

    edges = scipy.sparse.csr_matrix((np.ones(ends.size, np.int8), ends, starts), graph.shape)
    return _numbered(scipy.sparse.csgraph.connected_components(edges, directed=False)[1])


def equal_in_distances(D: np.ndarray) -> EqualRows | None:
    """The groups of rows at distance 0 whose distances to all others are equal; None if none.

    D is a symmetric (n, n) matrix of distances, with NaN for unknown ones. O(n^2).
    """
    n = len(D)
    first = np.arange(n)
    for rows in row_blocks(n, 512):
        first[rows] = np.minimum(first[rows], (D[rows] == 0).argmax(axis=1))
    for i in np.flatnonzero(first < np.arange(n)):
        if not np.array_equal(D[i], D[first[i]], equal_nan=True):
            first[i] = i
    return None if (first == np.arange(n)).all() else _numbered(first)


def at_common_place(Y: np.ndarray, equal: EqualRows | None) -> np.ndarray:
    """Y with the mean place of its group for every row; Y itself if all rows are different."""
    if equal is None:
        return Y
    members = np.bincount(equal.group)
    shared = np.empty_like(Y)
    for axis, column in enumerate(Y.T):
        sums = np.bincount(equal.group, weights=column.astype(np.float64))
        shared[:, axis] = (sums / members)[equal.group]
    return shared


def expand(
    equal: EqualRows, ids: np.ndarray, distances: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest other rows of every row, from the nearest groups of every group.

    ``ids`` and ``distances`` hold k groups or all others, nearest first, ties by group number. The
    result is ordered by distance, ties by row number. O(n k).
    """
    n, n_groups = len(equal.group), len(equal.first)
    require_memory(
        12 * n * k,
        task=f"a list of {k} neighbors of {n} rows",
        alternative="ask for fewer neighbors",
    )
    by_group = np.argsort(equal.group, kind="stable").astype(np.int32)
    sizes = np.bincount(equal.group)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    all_ids, all_distances = np.empty((n, k), np.int32), np.empty((n, k))
    step = max(1, ENTRIES // (2 * k + 2))
    for block in row_blocks(n_groups, step):
        some = np.arange(block.start, block.stop)
        nearest = np.column_stack([some, ids[some]])
        gaps = np.column_stack([np.zeros(len(some)), distances[some]])
        near, far = _nearest_members(nearest, gaps, by_group, starts, k + 1)
        members = by_group[starts[some[0]] : starts[some[-1] + 1]]
        for part in row_blocks(len(members), step):
            rows = members[part]
            mine = equal.group[rows] - block.start
            # a row is not its own neighbor: its place is left out, or the last one
            own = near[mine] == rows[:, None]
            skipped = np.where(own.any(axis=1), own.argmax(axis=1), k)
            places = np.arange(k) + (np.arange(k) >= skipped[:, None])
            all_ids[rows] = near[mine[:, None], places]
            all_distances[rows] = far[mine[:, None], places]
    return all_ids, all_distances


def _nearest_members(
    nearest: np.ndarray, gaps: np.ndarray, by_group: np.ndarray, starts: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first ``count`` rows of the groups ``nearest`` by (distance, row number), (m, count)."""
    m, width = nearest.shape
    sizes = np.minimum(starts[nearest + 1] - starts[nearest], count)
    # groups up to the one that fills the list, and all that tie with it
    filling = np.minimum((np.cumsum(sizes, axis=1) < count).sum(axis=1), width - 1)
    sizes[gaps > gaps[np.arange(m), filling][:, None]] = 0
    sizes = sizes.ravel()
    entry = np.repeat(np.arange(sizes.size), sizes)
    offset = np.arange(entry.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = by_group[starts[nearest.ravel()[entry]] + offset]
    reach, owner = gaps.ravel()[entry], entry // width
    unordered = (owner[1:] == owner[:-1]) & (reach[1:] == reach[:-1]) & (rows[1:] < rows[:-1])
    if unordered.any():
        wrong = np.zeros(m, bool)
        wrong[owner[1:][unordered]] = True
        at = np.flatnonzero(wrong[owner])
        order = at[np.lexsort((rows[at], reach[at], owner[at]))]
        rows[at], reach[at] = rows[order], reach[order]
    begins = np.searchsorted(owner, np.arange(m))
    places = begins[:, None] + np.arange(count)
    return rows[places], reach[places]


def _numbered(label: np.ndarray) -> EqualRows:
    """Groups from any labels, numbered by their first rows."""
    _, first, group = np.unique(label, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return EqualRows(first[order], number[group.ravel()])


def _long_run(same: np.ndarray, longest: int = 6) -> bool:
    """Whether more than ``longest`` rows in a row are equal."""
    if len(same) < longest:
        return bool(same.any())
    return bool(np.convolve(same, np.ones(longest), "valid").max() >= longest)
