"""Sums of small matrices over patches, which are sets of rows close to each other.

The matrix of each local method is M = sum_i S_i B_i S_i^T: B_i is the quadratic form of patch i in
the coordinates of its members, and S_i selects the members among all rows.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._core.card import Estimate
from lowland._engines.graphs.bridges import Edges


def sum_of_patches(
    members: np.ndarray, factors: np.ndarray, *, complement: bool = False, n: int, threads: int
) -> scipy.sparse.csr_matrix:
    """M = sum_i S_i F_i F_i^T S_i^T, or with I - F_i F_i^T if ``complement``.

    ``members`` (m, s) numbers the rows of each patch, ``factors`` is (m, s, w). The n x n result is
    symmetric to the last bit, sorted, and the same for any number of threads. O(m s^2 w).
    """
    members = np.ascontiguousarray(members, dtype=np.int32)
    m, size = members.shape
    places = scipy.sparse.csr_matrix(
        (np.arange(m * size), members.ravel(), np.arange(m + 1) * size), shape=(m, n)
    ).tocsc()  # by row: the positions where it occurs, ascending
    starts, entries = places.indptr.astype(np.int64), places.data.astype(np.int64)
    counts = np.empty(n, np.int64)
    _native.patch_counts(members, starts, entries, counts, threads)
    out_starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    columns, values = np.empty(out_starts[-1], np.int32), np.empty(out_starts[-1])
    identity, sign = (1.0, -1.0) if complement else (0.0, 1.0)
    factors = np.ascontiguousarray(factors, dtype=np.float64)
    _native.patch_sums(
        members, starts, entries, factors, identity, sign, out_starts, columns, values, threads
    )
    if out_starts[-1] < np.iinfo(np.int32).max:
        out_starts = out_starts.astype(np.int32)
    return scipy.sparse.csr_matrix((values, columns, out_starts), shape=(n, n))


def patch_sum_cost(n: int, k: int) -> Estimate:
    """Of :func:`sum_of_patches` of n patches of k rows, and the matrix it returns."""
    return Estimate(2e-8 * n * k * k, 16 * n * k * min(n, k * 3))


def across_bridges(neighbors: np.ndarray, bridges: Edges) -> np.ndarray:
    """The lists of neighbors (n, k), where the ends of each bridge get neighbors on both sides.

    With a single edge one side could be rotated against the other. So a row with b bridges replaces
    its farther neighbors, a share k/(b + 1) of all for each bridge, by the row at the other end and
    that row's own nearest neighbors. Every list keeps its length.
    """
    k = neighbors.shape[1]
    there: dict[int, list[int]] = {}
    for i, j in zip(bridges.rows.tolist(), bridges.columns.tolist(), strict=True):
        there.setdefault(i, []).append(j)
        there.setdefault(j, []).append(i)
    lists = neighbors.copy()
    for row, ends in there.items():
        share = max(1, k // (len(ends) + 1))
        wanted = [np.r_[end, neighbors[end, : share - 1]] for end in ends[: max(1, k // share)]]
        others = np.unique(np.concatenate(wanted))
        others = others[(others != row) & ~np.isin(others, neighbors[row, : k - len(others)])][:k]
        own = neighbors[row][~np.isin(neighbors[row], others)][: k - len(others)]
        lists[row] = np.concatenate([own, others])
    return lists
