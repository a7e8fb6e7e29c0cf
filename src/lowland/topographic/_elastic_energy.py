"""The energy of an elastic grid, and its minimum by splitting (Gorban & Zinovyev 2005).

    U = 1/n sum_i |x_i - w_c(i)|^2 + l sum_edges |w_a - w_b|^2 + m sum_ribs |w_a - 2 w_b + w_c|^2

The ribs of a rectangular grid are those of the paper, along its axes, and the twist of each cell,
2 |w_a - w_b - w_c + w_d|^2: else a grid that is twisted to a saddle would not be bent.

One step: each row is hosted by its nearest node c(i); then W minimizes U for these hosts,

    (diag(n_j / n) + l E + m R) W = S / n,     S_j = the sum of the rows that node j hosts.

Neither half raises U.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._core.threads import limit_blas
from lowland._engines.grids.lattice import Lattice
from lowland._engines.grids.nearest_units import nearest_units, unit_sums
from lowland._engines.linalg.skyline import SkylineCholesky, plan_skyline

STIFFEST = 1e8  # a coefficient beyond it would drown the rows in rounding
PROXIMITY = 1e-10  # of a node's mean weight: keeps nodes without rows and edges where they are
ROUNDING = 1e-14
TWIST = (np.sqrt(2), -np.sqrt(2), -np.sqrt(2), np.sqrt(2))  # f_uu^2 + 2 f_uv^2 + f_vv^2
HEXAGON = (1 / np.sqrt(3), 2 / 3)  # see `coefficients`


class Coefficients(NamedTuple):
    """The factors l of the edges and m of the ribs in U."""

    edges: float
    ribs: float


def coefficients(lattice: Lattice, stretching: float, bending: float) -> Coefficients:
    """l = stretching s^(2 - q), m = bending s^(4 - q) for s = (number of nodes)^(1/q).

    A closed axis goes forth and back: half of its nodes count. So U tends to |grad f|^2 and
    |f''|^2 integrated over a square of unit sides as the grid becomes finer. A hexagonal grid has a
    third direction and wider steps; its factors give the same energies of f = u and f = u^2.
    """
    q = len(lattice.sides)
    s = (lattice.n_units / 2 ** sum(lattice.closed)) ** (1 / q)
    shares = HEXAGON if lattice.kind == "hexagon" else (1.0, 1.0)
    with np.errstate(over="ignore"):
        l, m = stretching * s ** (2 - q) * shares[0], bending * s ** (4 - q) * shares[1]  # noqa: E741
    return Coefficients(min(l, STIFFEST), min(m, STIFFEST))


def differences(
    chains: np.ndarray, factors: tuple[float, ...], n_nodes: int
) -> scipy.sparse.csr_matrix:
    """One row for each edge or rib: its nodes times the factors."""
    rows = np.repeat(np.arange(len(chains)), len(factors))
    values = np.tile(np.array(factors), len(chains))
    shape = (len(chains), n_nodes)
    return scipy.sparse.csr_matrix((values, (rows, chains.ravel())), shape=shape)


class Hosts(NamedTuple):
    """The node of each row (n,), and of each node the share and the mean sum of its rows."""

    nearest: np.ndarray
    shares: np.ndarray  # n_j / n
    sums: np.ndarray  # S_j / n, of rows less the mean


class Softened(NamedTuple):
    """Nodes less the mean, their hosts, the energies at the start and after each step."""

    nodes: np.ndarray
    hosts: Hosts
    losses: list[float]


class ElasticGrid:
    """The energy of a grid among the rows of X, whose mean and variance are known."""

    def __init__(
        self, X: np.ndarray, mean: np.ndarray, variance: float, lattice: Lattice, threads: int
    ) -> None:
        self.X, self.mean, self.variance, self.threads = X, mean, variance, threads
        self.lattice = lattice
        self.edges = differences(lattice.edges(), (1.0, -1.0), lattice.n_units)
        ribs = differences(lattice.ribs(), (1.0, -2.0, 1.0), lattice.n_units)
        twists = differences(lattice.squares(), TWIST, lattice.n_units)
        self.ribs = scipy.sparse.vstack([ribs, twists]).tocsr()
        self.E = (self.edges.T @ self.edges).tocsr()
        self.R = (self.ribs.T @ self.ribs).tocsr()
        diagonal = scipy.sparse.identity(lattice.n_units, format="csr")
        self.plan = plan_skyline((abs(self.E) + abs(self.R) + diagonal).tocsr())

    def hosts(self, W: np.ndarray) -> Hosts:
        """The first half of a step: the nearest node of each row."""
        n = len(self.X)
        nearest = nearest_units(self.X, W + self.mean, self.threads)[:, 0]
        counts, sums = unit_sums(self.X, nearest, len(W))
        return Hosts(nearest, counts / n, (sums - counts[:, None] * self.mean) / n)

    def relax(self, W: np.ndarray, hosts: Hosts, soft: Coefficients) -> np.ndarray:
        """The second half: W + d, where d solves the equations for what is left of them at W.

        A slight pull to W makes the matrix definite where rows do not; it does not raise U either.
        """
        A = soft.edges * self.E + soft.ribs * self.R + scipy.sparse.diags(hosts.shares)
        A = A.tocsr()
        pull = PROXIMITY / len(W) + ROUNDING * float(A.diagonal().max())
        with limit_blas(1):
            factors = SkylineCholesky(A, self.plan, pull, self.threads)
            return W + factors.solve(hosts.sums - A @ W)

    def energy(self, W: np.ndarray, hosts: Hosts, soft: Coefficients) -> np.ndarray:
        """The three terms of U: approximation, stretching, bending."""
        pulls = np.sum(hosts.shares[:, None] * W**2) - 2 * np.sum(hosts.sums * W)
        stretched, bent = np.sum((self.edges @ W) ** 2), np.sum((self.ribs @ W) ** 2)
        near = max(0.0, self.variance + float(pulls))
        return np.array([near, soft.edges * stretched, soft.ribs * bent])

    def soften(
        self, W: np.ndarray, epochs: list[Coefficients], max_iter: int, tol: float, run: FitContext
    ) -> Softened:
        """Steps with each of the coefficients, stiff ones first."""
        hosts, losses = self.hosts(W), [0.0]
        losses[0] = float(self.energy(W, hosts, epochs[0]).sum())
        places = self.lattice.places()
        for epoch, soft in enumerate(epochs):
            left = max_iter + 1 - len(losses)
            before = float(self.energy(W, hosts, soft).sum())
            for _ in range(-(-left // (len(epochs) - epoch))):
                W, last = self.relax(W, hosts, soft), hosts
                hosts = self.hosts(W)
                after = float(self.energy(W, hosts, soft).sum())
                losses.append(after)
                shown = places[hosts.nearest]
                if run.monitor.iteration(len(losses) - 1, shown, after, total=max_iter):
                    return Softened(W, hosts, losses)
                same = np.array_equal(hosts.nearest, last.nearest)
                if same or before - after <= tol * before:
                    break
                before = after
        return Softened(W, hosts, losses)
