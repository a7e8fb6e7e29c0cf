"""The objective of UMAP for all rows at once, and its forces.

The reference implementation draws edges and pairs. Its expected step moves row i by

    2 sum_j mu_ij A(u_ij) (y_j - y_i) + (m deg_i / n) sum_j R(u_ij) (y_i - y_j)

with deg_i = sum_j mu_ij and m the ``negative_sample_rate`` (Damrich & Hamprecht 2021). Divided by
2 deg_i, every row has the same scale, and rows of many edges cannot jump:

    force_i = -1/2 d J_i / d y_i,
    J_i = 2 sum_j p_ij log(1 + a u_ij^b) + m g / 2n sum_j K(u_ij),      p_ij = mu_ij / deg_i.

g is the ``repulsion_strength``. A map is final when each row is at a minimum of its J_i while the
others stay where they are, which is also where a new row is placed. The loss is the mean of J_i.

Reference: Damrich & Hamprecht (2021), On UMAP's true loss function, NeurIPS 34.
"""

from __future__ import annotations

import math

import numpy as np

from lowland import _native
from lowland._engines.embedding.divergence import Forces
from lowland._engines.embedding.map_order import EdgeOrder
from lowland._engines.embedding.particle_mesh import ParticleMesh, grid_nodes
from lowland.neighbor._density import DensityTerm
from lowland.neighbor._fuzzy_graph import FuzzyGraph
from lowland.neighbor._umap_law import UmapLaw

# Nanoseconds, measured with two threads: a pair of points in up to three dimensions, how many times
# as long it takes in more, a node of the padded grid by the dimension of the map, a point on it.
PAIR, MANY, NODE, POINT = 0.7, 4.4, {1: 2.0, 2: 2.0, 3: 4.2}, 30.0
EXACT = {True: 1e9, False: 2e6}  # up to here all pairs, where a mesh is possible and where not
MOST_NODES = 2**25
DRAWS = 4  # drawn rows per negative sample of the reference implementation: less noise per step


def row_normalized(graph: FuzzyGraph) -> FuzzyGraph:
    """p_ij = mu_ij / deg_i."""
    degrees = graph.degrees()
    scale = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    weights = graph.weights * np.repeat(scale, np.diff(graph.indptr)).astype(np.float32)
    return graph._replace(weights=weights)


class UmapForces:
    """Forces at a map. The arrays it returns are overwritten by the next call.

    Parameters
    ----------
    P : FuzzyGraph
        The p_ij.
    law : UmapLaw
    rate : float
        m g.
    seed : int
        Of the draws in more than three dimensions.
    threads : int
        The result does not depend on it.
    """

    def __init__(self, P: FuzzyGraph, law: UmapLaw, rate: float, seed: int, threads: int) -> None:
        self.P, self.law, self.rate, self.seed, self.threads = P, law, rate, seed, threads
        self.kernel = law.radial()
        self._mesh = ParticleMesh(self.kernel, threads, "take fewer dimensions or rows")
        self._sums, self._potential = np.empty((P.n, 2)), np.empty(P.n)
        self._buffers: tuple[np.ndarray, np.ndarray] | None = None
        self._turn = 0
        self._order = EdgeOrder(threads)
        self.density: DensityTerm | None = None  # densMAP, from the step density_from on
        self.density_from = 0

    @property
    def total(self) -> float:
        """What the summed repulsion is divided by: 2 n / m g."""
        return 2 * self.P.n / max(self.rate, 1e-30)

    def __call__(self, Y: np.ndarray, with_loss: bool = False) -> Forces:
        """Pull and push at the map Y (float32); the gradient of J_i / 2 is pull - push / total."""
        if self._buffers is None or self._buffers[0].shape != Y.shape:
            self._buffers = np.empty_like(Y), np.empty_like(Y)
        pull, push = self._buffers
        P, sums = self.P, self._sums if with_loss else None
        _native.attract(
            P.indptr, P.indices, P.weights, Y, Y, 0.0, pull, sums, self.threads,
            self.law.a, self.law.b,
        )  # fmt: skip
        if self.density is not None and self._turn >= self.density_from:
            self.density.add_to(pull, Y)
        self._turn += 1
        self.repel(Y, push, self._turn, with_loss)
        loss = None
        if with_loss:
            loss = float(self._sums[:, 0].mean()) + float(self._potential.mean()) / self.total
        return Forces(pull, push, self.total, loss)

    def repel(self, Y: np.ndarray, push: np.ndarray, turn: int, with_potential: bool) -> None:
        """The summed repulsion by the cheapest of three ways."""
        n, d = Y.shape
        potential = self._potential if with_potential else None
        flat = d <= 3
        pairs = PAIR * n * n * (1 if flat else MANY)
        mesh = math.inf
        if flat and pairs > 1e5:
            nodes = grid_nodes(Y, self.kernel)
            mesh = NODE[d] * nodes + POINT * n if nodes <= MOST_NODES else math.inf
        if mesh < pairs:
            self._mesh.field(Y, turn=turn).at(Y, self._potential, push, self.threads)
        elif pairs < EXACT[flat] or n < 2:
            self.law.repel(Y, Y, push, self.threads, potential)
        else:
            draws = max(1, round(DRAWS * max(1.0, self.rate)))
            seed = self.seed + turn
            self.law.repel_drawn(Y, seed, draws, push, self.threads, potential)

    def loss(self, Y: np.ndarray) -> float:
        """The mean of J_i."""
        loss = self(Y, with_loss=True).loss
        assert loss is not None
        return loss

    def arrange(self, Y: np.ndarray) -> np.ndarray:
        """Reorder the points so that neighbors in the map are near in memory; returns the order."""
        order, *edges = self._order.follow(Y, *self.P)
        self.P = FuzzyGraph(*edges)
        if self.density is not None:
            self.density.arrange(order, self.P)
        return order
