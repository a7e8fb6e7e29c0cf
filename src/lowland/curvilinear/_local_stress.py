"""The stress of local MDS as an objective, with its majorizer.

    E(Y) = sum_N (delta - d)^2 - t sum_{not N} d
         = sum_N (delta - t/2 - d)^2 - t sum_all d + sum_N (t delta - t^2 / 4)

over pairs i < j, where N holds the listed pairs of neighbors. The second form needs no list of the
pairs that are not neighbors. -d_ij lies below its tangent plane, so that the quadratic of the
neighbors with the Laplacian V of their graph majorizes E: Y - V^+ slope never has a higher E. If
the graph is connected, E has a lower bound.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lowland._engines.graphs.multigrid import graph_multigrid
from lowland._engines.stress.majorization import Evaluation
from lowland._engines.stress.objective import ListedPairs
from lowland.curvilinear._distance_sums import DistanceSums


def repulsion_strength(delta: np.ndarray, n: int, tau: float) -> float:
    """t = |N| / |N^c| * median_N(delta) * tau; 0 if all pairs are neighbors."""
    n_others = n * (n - 1) // 2 - len(delta)
    return tau * float(np.median(delta)) * len(delta) / n_others if n_others > 0 else 0.0


class LocalStress:
    """E over the edges of a symmetric, connected graph of distances (CSR), for one t at a time.

    Attributes
    ----------
    pairs : ListedPairs
        N, each pair once, with the distances of the data.
    strength : float
        t; set it by :meth:`with_tau`.
    """

    floor = -np.inf  # E may be negative

    def __init__(
        self, graph: scipy.sparse.csr_matrix, d: int, rng: np.random.Generator, threads: int
    ) -> None:
        n = graph.shape[0]
        edges = scipy.sparse.triu(graph, 1, format="coo")
        delta = edges.data.astype(np.float64)
        self.pairs = ListedPairs(n, edges.row, edges.col, delta, None, threads)
        self.sums = DistanceSums(n, d, threads)
        self.strength, self.targets, self.constant = 0.0, delta, 0.0
        self.solve = self.pairs.laplacian.solve
        if self.pairs.laplacian.factor is None and not self.pairs.laplacian.uniform:
            ones = scipy.sparse.csr_matrix(
                (np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape
            )
            self.solve = graph_multigrid(ones, rng, threads)

    def with_tau(self, tau: float) -> LocalStress:
        """The same objective with the t of another tau; the factors of V are kept."""
        delta = self.pairs.delta
        t = repulsion_strength(delta, self.pairs.n, tau)
        other = object.__new__(LocalStress)
        other.__dict__.update(self.__dict__)
        other.strength, other.targets = t, delta - t / 2
        other.constant = float((t * delta - t**2 / 4).sum())
        return other

    def __call__(self, Y: np.ndarray) -> Evaluation:
        stress, slope = self.pairs.per_point(Y, self.targets)
        loss = float(stress.sum()) / 2
        if self.strength > 0:
            total, units = self.sums(Y)
            loss += self.constant - self.strength * total
            slope -= (self.strength / 2) * units
        return Evaluation(loss, slope)

    def precondition(self, slope: np.ndarray) -> np.ndarray:
        return self.solve(slope)

    def guttman_step(self, Y: np.ndarray, here: Evaluation) -> np.ndarray:
        return self.solve(here.slope)
