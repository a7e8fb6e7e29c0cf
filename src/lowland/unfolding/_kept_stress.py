"""The stress of some pairs of a matrix of geodesic distances, and its majorizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._engines.graphs.components import connect
from lowland._engines.graphs.multigrid import graph_multigrid
from lowland._engines.linalg.blocks import row_blocks
from lowland._engines.linalg.products import mirror
from lowland._engines.stress.objective import FACTORED_ROWS, AllPairs, ListedPairs

LISTED = 0.2  # share of the pairs up to which a list of them is faster than the matrix
# up to so many pairs of a row, a multigrid cycle is cheap and saves steps; with more pairs the
# degrees alone are nearly as good
FEW_PARTNERS = 100


def nearest_pairs(D: np.ndarray, k: int) -> np.ndarray:
    """Whether each distance is among the k smallest of its row; of ties with the last one, all."""
    if k >= D.shape[1]:
        return np.ones(D.shape, bool)
    return np.asarray(np.partition(D, k - 1, axis=1)[:, k - 1 : k] >= D)


def connected_neighbors(D: np.ndarray, k: int, run: FitContext) -> scipy.sparse.csr_matrix:
    """The k nearest others of each row, and the shortest pairs that join them if they fall apart.

    D are distances among all rows; the result is a symmetric pattern.
    """
    near = nearest_pairs(D, k + 1)  # the first is the row itself
    near |= near.T
    np.fill_diagonal(near, False)
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(near, axis=1))])
    ends = np.nonzero(near)[1].astype(np.int32)
    graph = scipy.sparse.csr_matrix((np.ones(ends.size), ends, starts), shape=D.shape)
    shared: dict[str, Any] = {"threads": run.threads, "monitor": run.monitor}
    return connect(graph, D, "bridge", metric="precomputed", **shared).graph


def kept_stress(
    D: np.ndarray, keep: np.ndarray, unit: float, run: FitContext
) -> tuple[AllPairs | ListedPairs, int]:
    """sum over the pairs i < j with ``keep[i, j]`` of (D_ij / unit - d_ij)^2, and their number."""
    n = len(D)
    blocks = list(row_blocks(n, 512))
    counts = [np.count_nonzero(np.triu(keep[rows, rows.start :], 1), axis=1) for rows in blocks]
    per_row = np.concatenate(counts)
    total = int(per_row.sum())
    if total > LISTED * n * (n - 1) / 2:
        delta = np.empty_like(D)
        for rows in blocks:
            part = np.where(keep[rows, rows.start :], D[rows, rows.start :] / unit, np.nan)
            delta[rows, rows.start :] = part
        mirror(delta)
        np.fill_diagonal(delta, 0.0)
        return AllPairs(delta, None, 0, run.threads), total
    first = np.repeat(np.arange(n, dtype=np.int32), per_row)
    second = np.concatenate([_columns_above(keep, rows) for rows in blocks])
    objective = ListedPairs(n, first, second, D[first, second] / unit, None, run.threads)
    if n > FACTORED_ROWS and 2 * total <= FEW_PARTNERS * n:
        starts = np.concatenate([[0], np.cumsum(per_row)])
        once = scipy.sparse.csr_matrix((np.ones(total), second, starts), shape=(n, n))
        pairs = scipy.sparse.csr_matrix(once + once.T)
        objective.laplacian = _Multigrid(graph_multigrid(pairs, run.rng, run.threads))
    return objective, total


def _columns_above(keep: np.ndarray, rows: slice) -> np.ndarray:
    """The columns j > i with keep[i, j], row by row."""
    above = np.triu(keep[rows, rows.start :], 1)
    return (np.flatnonzero(above) % above.shape[1] + rows.start).astype(np.int32)


class _Multigrid:
    """An approximate V^+ whose inverse lies above V, as the Guttman transform needs it."""

    def __init__(self, solve: Any) -> None:
        self.solve = solve
