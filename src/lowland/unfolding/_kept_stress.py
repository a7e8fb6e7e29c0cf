"""The stress of some pairs of a matrix of geodesic distances, and its majorizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._engines.graphs.components import connect, connected_components
from lowland._engines.graphs.multigrid import graph_multigrid
from lowland._engines.linalg.blocks import row_blocks
from lowland._engines.stress.objective import FACTORED_ROWS, AllPairs, ListedPairs

__all__ = ["connected_pairs", "kept_stress", "nearest_pairs", "pairs_of"]

LISTED = 0.2  # share of the pairs up to which a list of them is faster than the matrix


def nearest_pairs(D: np.ndarray, k: int) -> np.ndarray:
    """Whether each distance is among the k smallest of its row; of ties with the last one, all."""
    if k >= D.shape[1]:
        return np.ones(D.shape, bool)
    return np.asarray(np.partition(D, k - 1, axis=1)[:, k - 1 : k] >= D)


def pairs_of(keep: np.ndarray) -> scipy.sparse.csr_matrix:
    """The pairs that are kept in either direction, as a symmetric matrix without diagonal."""
    n = len(keep)
    rows, columns = [], []
    for part in row_blocks(n, 512):
        either = keep[part] | keep[:, part].T
        at = np.arange(len(either))
        either[at, at + part.start] = False
        i, j = np.nonzero(either)
        rows.append(np.bincount(i, minlength=len(either)))
        columns.append(j.astype(np.int32))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(rows))])
    ends = np.concatenate(columns)
    return scipy.sparse.csr_matrix((np.ones(ends.size, np.int8), ends, starts), shape=(n, n))


def connected_pairs(pairs: scipy.sparse.csr_matrix, D: np.ndarray, run: FitContext) -> Any:
    """The pairs, and the shortest ones that join them if they fall apart."""
    if connected_components(pairs)[0] <= 1:
        return pairs
    shared: dict[str, Any] = {"threads": run.threads, "monitor": run.monitor}
    return connect(pairs, D, "bridge", metric="precomputed", **shared).graph


def kept_stress(
    D: np.ndarray, pairs: scipy.sparse.csr_matrix, unit: float, run: FitContext
) -> AllPairs | ListedPairs:
    """sum over the pairs of (delta - d)^2, delta = D / unit; D is symmetric."""
    n = len(D)
    if pairs.nnz > LISTED * n * (n - 1):
        delta = np.full_like(D, np.nan)
        for row, ends in enumerate(np.split(pairs.indices, pairs.indptr[1:-1])):
            delta[row, ends] = D[row, ends] / unit
        np.fill_diagonal(delta, 0.0)
        return AllPairs(delta, None, 0, run.threads)
    first = np.repeat(np.arange(n), np.diff(pairs.indptr))
    once = first < pairs.indices
    first, second = first[once], pairs.indices[once]
    objective = ListedPairs(n, first, second, D[first, second] / unit, None, run.threads)
    if n > FACTORED_ROWS:
        objective.laplacian = _Multigrid(graph_multigrid(pairs, run.rng, run.threads))
    return objective


class _Multigrid:
    """An approximate V^+ whose inverse lies above V, as the Guttman transform needs it."""

    def __init__(self, solve: Any) -> None:
        self.solve = solve
