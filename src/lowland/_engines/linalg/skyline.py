"""Cholesky factors of a sparse matrix whose rows can be put in a line.

Points of a sheet, ordered by their distance along the neighbor graph from one end of it, couple
only with points slightly before and after: row i with none beyond reach_i. Elimination fills at
most that. Rows are eliminated one panel at a time, with a dense window of the rows they reach:

    [ D  R ]  =  [ L         ] [ L^T  X ]        L L^T = D,  X = L^-1 R,
    [ R^T W]     [ X^T  rest ] [      ..]        the next window is W - X^T X

Two chains start from both ends of the line and meet in the middle, so that two threads can work;
with one thread they run one after the other, and the result is the same. The reaches, and so the
cost, are known before the factorization starts.

Measured (``benchmarks/ablations.py skyline``; CPU time of SuperLU relative to this, factors and
solves): 1.0 to 1.6 on swiss rolls and sheets of 3 000 to 60 000 rows, 2.4 to 3.4 on points of three
dimensions, whose rows couple with many others. SuperLU also has no second thread.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph

PANEL = 128
WORTH_THREADS = 2e9  # operations: with fewer, two threads are slower than one


class Skyline(NamedTuple):
    """An order of the rows, and the last position that each of them or an earlier one couples with.

    ``flops`` and ``n_bytes`` are the cost of factors.
    """

    order: np.ndarray
    reach: np.ndarray
    flops: float
    n_bytes: float


def plan_skyline(A: scipy.sparse.csr_matrix, ordering: np.ndarray | None = None) -> Skyline:
    """The rows in ascending order of ``ordering``, or in that of Cuthill and McKee if cheaper."""
    orders = [scipy.sparse.csgraph.reverse_cuthill_mckee(A, symmetric_mode=True)]
    if ordering is not None:
        orders.append(np.argsort(ordering, kind="stable"))
    plans = [_plan(A, np.asarray(order, np.int64)) for order in orders]
    return min(plans, key=lambda plan: plan.flops)


def _plan(A: scipy.sparse.csr_matrix, order: np.ndarray) -> Skyline:
    n = len(order)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    reach = np.maximum.accumulate(_reach(A.indptr, place[A.indices], place)[order])
    heights = (reach - np.arange(n) + PANEL).astype(np.float64)
    return Skyline(order, reach, float((heights**2).sum()), float(8 * heights.sum()))


def _reach(starts: np.ndarray, columns: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The last place among the columns of each row, or its own."""
    last, filled = own.copy(), np.diff(starts) > 0
    last[filled] = np.maximum.reduceat(columns, starts[:-1][filled])
    return np.maximum(last, own)


class SkylineCholesky:
    """A + shift I = L L^T; ``LinAlgError`` if that is not positive definite."""

    def __init__(
        self, A: scipy.sparse.csr_matrix, plan: Skyline, shift: float, threads: int = 1
    ) -> None:
        n = len(plan.order)
        self.side_by_side = threads > 1 and plan.flops > WORTH_THREADS
        first = (
            n // 2
        )  # the middle: the rows that earlier ones reach; none of those reaches beyond it
        last = int(plan.reach[first - 1]) + 1 if first else 0
        self.middle = plan.order[first:last]
        lined = A[plan.order][:, plan.order]
        parts = [(lined[:last, :last], first), (lined[first:, first:][::-1, ::-1], n - last)]
        left, right = self._each(lambda part: _Chain(part[0].tocsr(), part[1], shift), parts)
        self.chains = (left, right)
        self.places = (plan.order[:last], plan.order[first:][::-1])
        rest = lined[first:last, first:last].toarray()
        rest[np.diag_indices(len(rest))] += shift
        rest -= left.taken
        rest -= right.taken[::-1, ::-1]
        self.inverse = _inverse_of_triangle(np.linalg.cholesky(rest))

    def _each(self, work: Callable[[Any], Any], parts: Any) -> list[Any]:
        """``work`` on both parts, in two threads where that is faster."""
        if not self.side_by_side:
            return [work(part) for part in parts]
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(work, parts))

    def solve(self, V: np.ndarray) -> np.ndarray:
        """(A + shift I)^-1 V."""
        ends = [(chain, V[rows]) for chain, rows in zip(self.chains, self.places, strict=True)]
        self._each(lambda end: end[0].forward(end[1]), ends)
        (_, left), (_, right) = ends
        size = len(self.middle)
        # both chains contain the middle's own part of V
        middle = left[len(left) - size :] + right[len(right) - size :][::-1] - V[self.middle]
        middle = self.inverse.T @ (self.inverse @ middle)
        left[len(left) - size :] = middle
        right[len(right) - size :] = middle[::-1]
        self._each(lambda end: end[0].backward(end[1]), ends)
        solved = np.empty_like(V)
        for (_, found), rows in zip(ends, self.places, strict=True):
            solved[rows] = found
        return solved


class _Panel(NamedTuple):
    start: int
    inverse: np.ndarray  # L^-1, which multiplies faster than L solves
    coupling: np.ndarray  # X


class _Chain:
    """The first m rows of A + shift I eliminated; ``taken`` is subtracted from the other rows."""

    def __init__(self, A: scipy.sparse.csr_matrix, m: int, shift: float) -> None:
        n = A.shape[0]
        ends = np.maximum.accumulate(_reach(A.indptr, A.indices, np.arange(n)))[:m] + 1
        self.panels: list[_Panel] = []
        tallest = int((ends - np.arange(m)).max(initial=1))
        space, spare = np.empty((2, tallest, tallest))  # reused memory is faster
        taken = space[:0, :0]  # from the rows at start and after
        for start in range(0, m, PANEL):
            stop = min(start + PANEL, m)
            size, wide = stop - start, int(ends[stop - 1]) - start
            rows = np.zeros((size, wide))
            rows[: len(taken), : len(taken)] = -taken[:size]
            _add_entries(rows, A, start, stop)
            rows[np.diag_indices(size)] += shift
            inverse = _inverse_of_triangle(np.linalg.cholesky(rows[:, :size]))
            coupling = inverse @ rows[:, size:]
            self.panels.append(_Panel(start, inverse, coupling))
            left, height = taken[size:, size:], wide - size
            taken = np.matmul(coupling.T, coupling, out=spare[:height, :height])
            taken[: len(left), : len(left)] += left
            space, spare = spare, space
        self.taken = np.zeros((n - m, n - m))
        self.taken[: len(taken), : len(taken)] = taken

    def forward(self, V: np.ndarray) -> None:
        """Replace the first rows of V by L^-1 V, and update the rows they couple with."""
        for start, inverse, coupling in self.panels:
            stop = start + len(inverse)
            V[start:stop] = inverse @ V[start:stop]
            V[stop : stop + coupling.shape[1]] -= coupling.T @ V[start:stop]

    def backward(self, V: np.ndarray) -> None:
        """Replace the first rows by L^-T times them, once the others are solved."""
        for start, inverse, coupling in reversed(self.panels):
            stop = start + len(inverse)
            V[start:stop] -= coupling @ V[stop : stop + coupling.shape[1]]
            V[start:stop] = inverse.T @ V[start:stop]


def _add_entries(rows: np.ndarray, A: scipy.sparse.csr_matrix, start: int, stop: int) -> None:
    """A's entries in rows start .. stop and columns from start on, added to ``rows``."""
    part = slice(A.indptr[start], A.indptr[stop])
    row = np.repeat(np.arange(stop - start), np.diff(A.indptr[start : stop + 1]))
    column = A.indices[part] - start
    here = column >= 0
    rows[row[here], column[here]] += A.data[part][here]


def _inverse_of_triangle(L: np.ndarray) -> np.ndarray:
    """L^-1 of a lower triangle, which may be empty."""
    if not len(L):
        return L
    inverse, _ = scipy.linalg.lapack.dtrtri(L.T, lower=0)
    return np.tril(inverse.T)
