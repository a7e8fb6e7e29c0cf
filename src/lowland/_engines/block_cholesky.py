"""Cholesky factors of a sparse matrix whose rows can be put in a line.

Points of a sheet, ordered by their distance along the neighbor graph from one end of it, couple
only with points a little before and after. Cut into blocks as long as that reach, the matrix is
block tridiagonal,

    A = [ D_0  E_0^T         ]          D_t - E_{t-1} D_{t-1}^{-1} E_{t-1}^T = L_t L_t^T
        [ E_0  D_1  E_1^T    ]
        [      E_1  D_2  ... ]

and each step is dense algebra on one block. How large the blocks are, and so the cost, is known
before any number is touched.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph

__all__ = ["BlockCholesky", "Plan", "line_up", "plan_blocks"]

SMALL_BLOCK = 64  # blocks are merged up to this size: calls have a price too


class Plan(NamedTuple):
    """An order of the rows and where its blocks begin; what factors of them cost."""

    order: np.ndarray
    ends: np.ndarray
    flops: float
    n_bytes: float


def line_up(graph: Any) -> np.ndarray:
    """Each row's distance from one end of a connected graph of distances: a place in a line.

    The end is a row farthest from the one farthest from row 0. O(edges log n).
    """
    far = scipy.sparse.csgraph.dijkstra(graph, directed=False, indices=0)
    far[~np.isfinite(far)] = -1.0
    along = scipy.sparse.csgraph.dijkstra(graph, directed=False, indices=int(far.argmax()))
    along[~np.isfinite(along)] = 0.0
    return along


def plan_blocks(A: scipy.sparse.csr_matrix, along: np.ndarray | None = None) -> Plan:
    """Blocks for the rows in the order of ``along``, or in that of Cuthill and McKee if better."""
    orders = [scipy.sparse.csgraph.reverse_cuthill_mckee(A, symmetric_mode=True)]
    if along is not None:
        orders.append(np.argsort(along, kind="stable"))
    return min((_plan(A, np.asarray(order, np.int64)) for order in orders), key=lambda p: p.flops)


def _plan(A: scipy.sparse.csr_matrix, order: np.ndarray) -> Plan:
    n = len(order)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    last, filled = place.copy(), np.diff(A.indptr) > 0
    last[filled] = np.maximum.reduceat(place[A.indices], A.indptr[:-1][filled])
    reach = np.maximum.accumulate(np.maximum(last[order], np.arange(n)))
    ends = [int(reach[0]) + 1]
    while ends[-1] < n:
        ends.append(int(max(reach[ends[-1] - 1] + 1, ends[-1] + 1)))
    merged: list[int] = []
    for end in ends:
        before = merged[-2] if len(merged) > 1 else 0
        if merged and end - before <= SMALL_BLOCK:
            merged[-1] = end
        else:
            merged.append(end)
    bounds = np.array(merged)
    sizes = np.diff(bounds, prepend=0).astype(np.float64)
    following = np.r_[sizes[1:], 0.0]
    flops = (sizes**3 * 2 / 3 + sizes**2 * following + sizes * following**2).sum()
    return Plan(order, bounds, float(flops), float(8 * (sizes**2 + sizes * following).sum()))


class BlockCholesky:
    """A + shift I = L L^T by blocks; ``LinAlgError`` if that is not positive definite."""

    def __init__(self, A: scipy.sparse.csr_matrix, plan: Plan, shift: float) -> None:
        self.plan = plan
        self.bounds = np.r_[0, plan.ends]
        self.inverses: list[np.ndarray] = []  # L_t^{-1}, which multiplies faster than L_t solves
        self.couplings: list[np.ndarray] = []  # E_t L_t^{-T}
        permuted = A[plan.order][:, plan.order]
        carried: np.ndarray | None = None
        for t in range(len(plan.ends)):
            block, coupling = self._blocks(permuted, t, shift)
            if carried is not None:
                block -= carried @ carried.T
            factor, failed = scipy.linalg.lapack.dpotrf(block.T, lower=1, overwrite_a=1)
            if failed:
                raise np.linalg.LinAlgError(f"not positive definite in block {t}")
            inverse, failed = scipy.linalg.lapack.dtrtri(factor, lower=1, overwrite_c=1)
            if failed:
                raise np.linalg.LinAlgError(f"singular in block {t}")
            self.inverses.append(np.tril(inverse))
            carried = scipy.linalg.blas.dtrmm(1.0, inverse, coupling, side=1, lower=1, trans_a=1)
            self.couplings.append(carried)

    def _blocks(
        self, A: scipy.sparse.csr_matrix, t: int, shift: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """D_t + shift I and E_t, dense."""
        begin, end = self.bounds[t], self.bounds[t + 1]
        stop = self.bounds[min(t + 2, len(self.bounds) - 1)]
        part = slice(A.indptr[begin], A.indptr[end])
        rows = np.repeat(np.arange(end - begin), np.diff(A.indptr[begin : end + 1]))
        columns, values = A.indices[part] - begin, A.data[part]
        here = columns >= 0
        dense = np.zeros((end - begin, stop - begin))
        dense[rows[here], columns[here]] = values[here]
        block = np.ascontiguousarray(dense[:, : end - begin])
        block[np.diag_indices(end - begin)] += shift
        return block, np.asfortranarray(dense[:, end - begin :].T)

    def solve(self, V: np.ndarray) -> np.ndarray:
        """(A + shift I)^{-1} V."""
        Y = V[self.plan.order]
        parts = [slice(a, b) for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)]
        for t, here in enumerate(parts):
            if t:
                Y[here] -= self.couplings[t - 1] @ Y[parts[t - 1]]
            Y[here] = self.inverses[t] @ Y[here]
        for t in range(len(parts) - 1, -1, -1):
            here = parts[t]
            if t + 1 < len(parts):
                Y[here] -= self.couplings[t].T @ Y[parts[t + 1]]
            Y[here] = self.inverses[t].T @ Y[here]
        solved = np.empty_like(Y)
        solved[self.plan.order] = Y
        return solved
