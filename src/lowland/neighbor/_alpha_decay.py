"""The alpha-decay kernel of PHATE: an adaptive bandwidth, and tails that fall like exp(-d^alpha).

    A(x, y) = exp(-(d(x, y) / e(x))^alpha)        e(x): distance of x to its k-th neighbor
    K(x, y) = 1/2 A(x, y) + 1/2 A(y, x)

Values of A below a threshold are 0. A(x, y) is above it within the reach c e(x), with
c = log(1 / threshold)^(1 / alpha), so that each row needs the neighbors within its own reach only.
Without a decay, A is 1 for the k nearest and 0 for all others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._core.memory import require_memory
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph, neighbor_query

THRESHOLD = 1e-4  # smaller values of the kernel are 0
FIRST = 3  # times k neighbors are sought at first
MORE = 4  # times as many for rows whose reach has more
ENTRY_BYTES = 80  # of a neighbor: candidate, distance, value, and the sum of both directions


class Kernel(NamedTuple):
    """K of all rows, symmetric with a diagonal of 1, and the bandwidth e of each row."""

    K: scipy.sparse.csr_matrix
    bandwidths: np.ndarray


class AlphaDecay(NamedTuple):
    """The kernel of k neighbors, its decay alpha (None: unweighted), and the metric."""

    k: int
    decay: float | None
    metric: Any
    metric_params: dict[str, Any] | None

    @property
    def reach(self) -> float:
        """c: the kernel of a row ends at this multiple of its bandwidth."""
        if self.decay is None:
            return 1.0
        with np.errstate(over="ignore"):
            return float(np.float64(-np.log(THRESHOLD)) ** (1 / self.decay))

    def values(self, ratios: np.ndarray) -> np.ndarray:
        """A for distances that are given as multiples of the bandwidth."""
        inside = ratios <= self.reach
        if self.decay is None:
            return inside.astype(np.float64)
        with np.errstate(under="ignore"):
            return np.where(inside, np.exp(-(np.where(inside, ratios, 0.0) ** self.decay)), 0.0)

    # --- fitted rows --------------------------------------------------------------------------

    def of_rows(self, X: Any, near: NeighborGraph, run: FitContext) -> Kernel:
        """The kernel of different rows, which begins with their nearest neighbors."""
        n = X.shape[0]
        bandwidths = near.distances[:, self.k - 1].astype(np.float64)
        if self.decay is None:
            near = NeighborGraph(near.indices[:, : self.k], near.distances[:, : self.k], n)
            return Kernel(_symmetric(near.to_csr(), np.ones(n * self.k)), bandwidths)
        parts = self._within_reach(X, near, bandwidths, run)
        i, j, d = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((j, i))
        i, j, d = i[order], j[order], d[order]
        starts = np.searchsorted(i, np.arange(n + 1))
        A = scipy.sparse.csr_matrix((d, j, starts), shape=(n, n))
        return Kernel(_symmetric(A, self.values(d / bandwidths[i])), bandwidths)

    def nearest(self, X: Any, run: FitContext) -> NeighborGraph:
        """The nearest neighbors that suffice for most rows; all other rows if they are few."""
        return neighbor_graph(
            X,
            min(FIRST * self.k, X.shape[0] - 1),
            metric=self.metric,
            metric_params=self.metric_params,
            threads=run.threads,
            rng=run.rng,
            monitor=run.monitor,
        )

    def _within_reach(
        self, X: Any, near: NeighborGraph, bandwidths: np.ndarray, run: FitContext
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(i, j, d) of all pairs with d <= c e(i), as exactly as the neighbors were found.

        The list of a row is complete if its last entry is beyond the reach. The other rows are
        searched again for more neighbors, until all lists are complete.
        """
        n, rows, m = X.shape[0], np.arange(X.shape[0]), near.n_neighbors
        ids, lengths = near.indices, near.distances.astype(np.float64)
        reach, parts = self.reach * bandwidths, []
        while True:
            inside = (lengths <= reach[rows, None]) & (ids != rows[:, None])
            whole = (lengths[:, -1] > reach[rows]) | (m >= n - 1)
            kept = inside & whole[:, None]
            parts.append((np.repeat(rows, kept.sum(axis=1)), ids[kept], lengths[kept]))
            rows = rows[~whole]
            if not rows.size:
                return parts
            m = min(MORE * m, n - 1)
            require_memory(
                ENTRY_BYTES * m * rows.size,
                task=f"a kernel in which {rows.size} rows have up to {m} neighbors",
                alternative="take a larger decay, fewer n_neighbors, or decay=None",
            )
            found = neighbor_query(
                X,
                X[rows],
                m + 1,  # the row itself is one of them
                metric=self.metric,
                metric_params=self.metric_params,
                method="auto" if near.recall_ is None else "cells",  # as the first search
                threads=run.threads,
                monitor=run.monitor,
            )
            ids, lengths = found.indices, found.distances.astype(np.float64)

    # --- new rows -----------------------------------------------------------------------------

    def of_new_rows(self, D: np.ndarray, bandwidths: np.ndarray) -> scipy.sparse.csr_matrix:
        """K of new rows and the fitted ones, from their distances D (m, n); each row alone."""
        own = np.partition(D, self.k - 1, axis=1)[:, self.k - 1]
        own = np.where(own > 0, own, 1.0)  # such a row equals a fitted row, and gets its place
        reach = self.reach * np.maximum(own[:, None], bandwidths)
        i, j = np.nonzero(reach >= D)
        d = D[i, j]
        values = (self.values(d / own[i]) + self.values(d / bandwidths[j])) / 2
        starts = np.searchsorted(i, np.arange(len(D) + 1))
        return scipy.sparse.csr_matrix((values, j, starts), shape=D.shape)


def _symmetric(A: scipy.sparse.csr_matrix, values: np.ndarray) -> scipy.sparse.csr_matrix:
    """(A + A^T) / 2 + I with these values in the places of A, whose diagonal is empty."""
    A = scipy.sparse.csr_matrix((values, A.indices, A.indptr), shape=A.shape)
    K = ((A + A.T) * 0.5 + scipy.sparse.identity(A.shape[0], format="csr")).tocsr()
    K.sort_indices()
    return K
