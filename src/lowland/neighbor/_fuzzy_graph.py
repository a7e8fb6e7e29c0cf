"""The fuzzy neighbor graph of UMAP (McInnes, Healy & Melville 2018, section 3.1).

    w_{j|i} = exp(-max(0, d_ij - rho_i) / sigma_i),     sum_j w_{j|i} = log2(k)
    mu_ij   = m (w_{j|i} + w_{i|j} - w_{j|i} w_{i|j}) + (1 - m) w_{j|i} w_{i|j}

rho_i is the distance to the nearest other row, sigma_i the width that gives the sum over the
neighbors, and m the ``set_op_mix_ratio``: 1 for the fuzzy union, 0 for the intersection.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._core.memory import require_memory
from lowland._engines.embedding.affinity_matrix import transposed_rows
from lowland._engines.neighbors.graph import NeighborGraph


class LocalMetric(NamedTuple):
    """Of each row: memberships of its neighbors (n, k), rho and sigma (n,)."""

    weights: np.ndarray
    nearest: np.ndarray
    widths: np.ndarray


class FuzzyGraph(NamedTuple):
    """The mu_ij as rows of a symmetric sparse matrix, columns ascending, without diagonal."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray

    @property
    def n(self) -> int:
        return self.indptr.size - 1

    def degrees(self) -> np.ndarray:
        """The sum of each row, in float64; one order of summation."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights, dtype=np.float64)])
        return np.diff(sums[self.indptr])

    def rows(self) -> np.ndarray:
        """The row number of each weight."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.indptr))

    def kept(self, chosen: np.ndarray) -> FuzzyGraph:
        """The graph of the chosen weights only."""
        starts = np.concatenate([[0], np.cumsum(chosen)])[self.indptr]
        return FuzzyGraph(starts.astype(np.int64), self.indices[chosen], self.weights[chosen])

    def to_csr(self) -> Any:
        import scipy.sparse

        shape = (self.n, self.n)
        return scipy.sparse.csr_matrix((self.weights, self.indices, self.indptr), shape=shape)


def memberships(
    near: NeighborGraph, n_neighbors: int, connectivity: float, threads: int
) -> LocalMetric:
    """The w_{j|i} of each row's neighbors; no row has an influence on another one.

    ``n_neighbors`` counts the row itself. Widths are at least 1e-3 of the mean distance of the row.
    Where all distances of a row are 0, all memberships are 1, and the width is 0.
    """
    distances = np.ascontiguousarray(near.distances)
    if distances.dtype not in (np.float32, np.float64):
        distances = distances.astype(np.float64)
    n = len(distances)
    weights, nearest, widths = np.empty_like(distances), np.empty(n), np.empty(n)
    target = math.log2(max(2, n_neighbors))
    _native.fuzzy_weights(distances, target, connectivity, 0.0, weights, nearest, widths, threads)
    return LocalMetric(weights, nearest, widths)


def fuzzy_graph(
    near: NeighborGraph, n_neighbors: int, connectivity: float, mix: float, threads: int
) -> tuple[FuzzyGraph, LocalMetric]:
    """The symmetric graph of the fitted rows, and the memberships that it is made of. O(n k)."""
    local = memberships(near, n_neighbors, connectivity, threads)
    n, k = near.indices.shape
    starts = np.arange(n + 1, dtype=np.int64) * k
    columns = near.indices.astype(np.int32, copy=False).ravel()
    weights = local.weights.astype(np.float32).ravel()
    return symmetric_graph(starts, columns, weights, mix, threads), local


def symmetric_graph(
    starts: np.ndarray, columns: np.ndarray, weights: np.ndarray, mix: float, threads: int
) -> FuzzyGraph:
    """m (w + w^T - w o w^T) + (1 - m) w o w^T, without entries of 0.

    Columns -1 and the diagonal are passed over. The products of both directions come from sums:
    2 v w = (v + w)^2 - (v^2 + w^2), so that one merge of sorted rows serves both.
    """
    require_memory(
        56 * columns.size,
        task=f"the fuzzy graph of {starts.size - 1} rows",
        alternative="take fewer neighbors",
    )
    back = transposed_rows(starts, columns, weights, threads)
    there = transposed_rows(*back, threads)  # transposing twice sorts the columns
    indptr = np.empty_like(starts)
    _native.union_starts(*there[:2], *back[:2], indptr, threads)
    indices = np.empty(indptr[-1], np.int32)
    total, squares = np.empty(indptr[-1], weights.dtype), np.empty(indptr[-1], weights.dtype)
    _native.union_sum(*there, *back, 1.0, indptr, indices, total, threads)
    there, back = (*there[:2], there[2] ** 2), (*back[:2], back[2] ** 2)
    _native.union_sum(*there, *back, 1.0, indptr, indices, squares, threads)
    product = np.maximum(0.5 * (total**2 - squares), 0)
    product[product < 1e-6 * total] = 0  # of one direction only, up to rounding
    union = mix * (total - product) + (1 - mix) * product
    return FuzzyGraph(indptr, indices, union.astype(weights.dtype, copy=False)).kept(union > 0)
