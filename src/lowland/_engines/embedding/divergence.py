"""The objective of neighbor embeddings: the Kullback-Leibler divergence of the map from the data.

With p_ij the affinities of the data (symmetric, summing to 1) and K_ij the similarities in the
map,

    t-SNE, symmetric SNE   q_ij = K_ij / Z,  Z = sum of all K
                           C = sum_ij p_ij log(p_ij / q_ij)
    SNE                    q_{j|i} = K_ij / Z_i,  Z_i = sum_j K_ij
                           C = sum_ij p_{j|i} log(p_{j|i} / q_{j|i})

and in both cases, with K = (1 + r^2/v)^-v and G = K / (1 + r^2/v),

    1/4 dC/dy_i = a_i - f_i / total,
    a_i = sum_j p_ij (y_i - y_j) / (1 + r^2/v),

    t-SNE, symmetric SNE   f_i = sum_j G_ij (y_i - y_j),                         total = Z
    SNE (C divided by n)   f_i = sum_j G_ij (y_i - y_j) (1/Z_i + 1/Z_j),         total = 2n

References: Hinton & Roweis (2002), Stochastic neighbor embedding, NIPS 15; van der Maaten & Hinton
(2008), Visualizing data using t-SNE, JMLR 9. Degrees of freedom: Kobak et al. (2020), Heavy-tailed
kernels reveal a finer cluster structure in t-SNE visualisations, doi:10.1007/978-3-030-46150-8_8.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._engines.embedding.affinity import JointAffinities
from lowland._engines.embedding.map_order import EdgeOrder
from lowland._engines.embedding.repulsion import Repulsion, weighted_repulsion
from lowland._engines.linalg.products import row_blocks


class Forces(NamedTuple):
    """1/4 of the gradient is attraction - repulsion / total; ``loss`` is None unless requested."""

    attraction: np.ndarray
    repulsion: np.ndarray
    total: float
    loss: float | None


class Divergence:
    """C and its gradient at a map. The arrays it returns are overwritten by the next call.

    Parameters
    ----------
    P : JointAffinities
        The p_ij.
    dof : float
        Degrees of freedom v; infinity is the Gaussian.
    repulsion : Repulsion
        How the sums over all pairs are computed.
    entropy : float
        sum p log p, of the joint p, or of the conditional ones with ``by_rows``.
    by_rows : bool
        SNE's row-wise q instead of one Z for all.
    threads : int
        The result does not depend on it.
    """

    def __init__(
        self,
        P: JointAffinities,
        dof: float,
        repulsion: Repulsion,
        entropy: float,
        threads: int,
        *,
        by_rows: bool = False,
    ) -> None:
        self.P, self.dof, self.repulsion, self.threads = P, dof, repulsion, threads
        self.entropy, self.by_rows = entropy, by_rows
        self._sums = np.empty((P.n, 2))
        self._potential = np.empty(P.n)
        self._buffers: tuple[np.ndarray, np.ndarray] | None = None
        self._order = EdgeOrder(threads)

    def __call__(self, Y: np.ndarray, with_loss: bool = False) -> Forces:
        """Forces at the map Y (float32 or float64, as the affinities)."""
        if self._buffers is None or self._buffers[0].shape != Y.shape:
            self._buffers = np.empty_like(Y), np.empty_like(Y)
        attraction, repulsion = self._buffers
        inverse_dof = 0.0 if math.isinf(self.dof) else 1 / self.dof
        P, sums = self.P, self._sums if with_loss else None
        _native.attract(
            P.indptr, P.indices, P.weights, Y, Y, inverse_dof, attraction, sums, self.threads
        )
        self.repulsion(Y, self._potential, repulsion)
        # Z underflows to 0 in a map whose points are all too far apart.
        potential = np.maximum(self._potential, np.finfo(Y.dtype).tiny, out=self._potential)
        n = len(Y)
        if not self.by_rows:
            total = float(potential.sum())
            if not with_loss:
                return Forces(attraction, repulsion, total, None)
            loss = self.entropy + float(self._sums[:, 0].sum()) + math.log(total)
            return Forces(attraction, repulsion, total, loss)
        weights = (1 / potential).astype(Y.dtype)
        weighted_repulsion(Y, self.dof, weights, repulsion, self.threads)
        loss = self.entropy + n * float(self._sums[:, 0].sum()) + float(np.log(potential).sum())
        return Forces(attraction, repulsion, 2.0 * n, loss if with_loss else None)

    def loss(self, Y: np.ndarray) -> float:
        """C at the map Y."""
        loss = self(Y, with_loss=True).loss
        assert loss is not None
        return loss

    def mean_potential(self, Y: np.ndarray) -> float:
        """Z / n, the mean over the points of the sum of their similarities."""
        forces = np.empty_like(Y)
        self.repulsion(Y, self._potential, forces)
        return max(float(self._potential.mean()), float(np.finfo(Y.dtype).tiny))

    def arrange(self, Y: np.ndarray) -> np.ndarray:
        """Reorder the points so that neighbors in the map are near in memory.

        Point i is then the former point ``order[i]``; the order is returned.
        """
        P = self.P
        order, *edges = self._order.follow(Y, P.indptr, P.indices, P.weights)
        self.P = JointAffinities(*edges)
        return order


def entropy_of(p: np.ndarray) -> float:
    """sum p log p, with 0 log 0 = 0; in float64."""
    total = 0.0
    for block in row_blocks(p.size, 2**20):
        part = p.ravel()[block].astype(np.float64)
        part = part[part > 0]
        total += float((part * np.log(part)).sum())
    return total
