"""The problem of maximum variance unfolding, and its solution by a factor of low rank.

    max sum_i m_i |y_i - mean|^2   such that   (1 - slack) d_ij <= |y_i - y_j| <= d_ij

over the kept pairs, m_i rows being equal to row i. In K = Y Y^T this is a convex problem; Y has a
few more columns than the map, in which a local maximum is in practice the global one (Burer &
Monteiro 2003). The augmented Lagrangian is lowered by quasi-Newton steps in the metric of the graph
Laplacian with weights 1 / d^2, in rounds; after each round the multipliers learn from what is
violated, and the stiffness grows.

Multipliers w are the tensions of the edges. For every w with L_w >= H, L_w their Laplacian and
H = diag(m) - m m^T / sum(m), and every K that is allowed,

    tr(H K) <= tr(L_w K) <= sum max(w, (1 - slack)^2 w) d^2,

which bounds what any map can reach (Sun, Boyd, Xiao & Diaconis 2006). Tensions that are almost
right are made so by adding tau / d^2, with the smallest tau that is enough.

References: Burer & Monteiro (2003), A nonlinear programming algorithm for solving semidefinite
programs via low-rank factorization, Mathematical Programming 95, doi:10.1007/s10107-002-0352-8;
Sun, Boyd, Xiao & Diaconis (2006), The fastest mixing Markov process on a graph and a connection to
a maximum variance unfolding problem, SIAM Review 48, doi:10.1137/S0036144504443821.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from lowland._base.context import FitContext
from lowland._base.threads import limit_blas
from lowland._engines.graphs.laplacian import graph_multigrid
from lowland._engines.linalg.eigen import largest_eigenpairs
from lowland._engines.linalg.products import matrix_times, row_blocks, rows_within
from lowland._engines.stress.majorization import Evaluation, majorize

# Lateration: a new row is placed by its distances to its nearest rows of the map.
#
# The equations |z - y_j|^2 = d_j^2, minus their mean over the neighbors j, are linear in z:
#
#     2 (y_j - m).(z - m) = b_j - mean(b),   b_j = |y_j - m|^2 - d_j^2,   m the mean of the y_j.
#
# Their least squares solution is exact if a place with these distances exists. Directions in
# which the neighbors hardly spread are left out: there, z - m would be a magnified error of the
# distances.


FLAT = 0.2  # of the widest spread of the neighbors; from 0.05 to 0.3 new rows are placed as well


def place_by_lateration(Y: np.ndarray, near: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Places (m, r) of rows with distances d (m, k) to the points ``near`` (m, k) of Y (n, r).

    A neighbor with the number -1 is missing; each row has at least one.
    """
    Z = np.empty((len(near), Y.shape[1]))
    for rows in row_blocks(len(Z), rows_within(32 * near.shape[1] * Y.shape[1])):
        known = (near[rows] >= 0).astype(np.float64)
        count = known.sum(axis=1, keepdims=True)
        points = Y[np.maximum(near[rows], 0)]
        mean = np.einsum("ij,ijd->id", known / count, points)
        spread = (points - mean[:, None]) * known[:, :, None]
        b = known * (np.einsum("ijd,ijd->ij", spread, spread) - d[rows] ** 2)
        b -= known * b.sum(axis=1, keepdims=True) / count
        with limit_blas(1):
            Z[rows] = mean + 0.5 * np.einsum("idj,ij->id", np.linalg.pinv(spread, rcond=FLAT), b)
    return Z


STEPS = 200  # of a round
STIFFNESS, GROWTH = 4000.0, 1.1  # at first, relative to the mean tension; and per round
STRONGEST = 2000.0  # push of a pair, relative to the mean tension: a pair that needs more yields
STALLED = 10  # rounds without a step, after which none will follow
SHORT = 0.03  # of the root mean square: shorter distances are kept to a share of this
CLOSE = 0.1  # of the slack: a larger violation is not yet converged
LEAST_SLACK = 1e-4  # below it, this is what CLOSE is a share of
BOUNDED_ROWS = 1500  # up to this size a dense eigenproblem costs less than the map


class KeptPairs:
    """Pairs i < j with the bounds of their distances, whose root mean square is about 1.

    Attributes
    ----------
    lengths : ndarray of shape (n_pairs,)
        Distances d > 0.
    masses : ndarray of shape (n,)
        How many rows each row stands for.
    """

    def __init__(
        self, graph: scipy.sparse.csr_matrix, masses: np.ndarray, slack: float, threads: int
    ) -> None:
        self.n, self.threads, self.masses = graph.shape[0], threads, masses.astype(np.float64)
        upper = scipy.sparse.triu(graph, 1, format="coo")
        order = np.lexsort((upper.col, upper.row))
        self.first, self.second = upper.row[order], upper.col[order]
        self.lengths = upper.data[order].astype(np.float64)
        m = len(self.lengths)
        scale = float(np.sqrt(np.mean(self.lengths**2))) if m else 1.0
        self.scales = np.maximum(self.lengths, SHORT * scale)
        self.most = self.lengths / self.scales
        self.least = (1 - slack) * self.most
        ends = np.column_stack([self.first, self.second]).ravel()
        signs = np.tile([1.0, -1.0], m)
        incidence = scipy.sparse.csr_matrix((signs, ends, 2 * np.arange(m + 1)), shape=(m, self.n))
        self.differences = matrix_times(incidence, threads)
        self.sum_at_ends = matrix_times(scipy.sparse.csr_matrix(incidence.T), threads)

    def weighted(self, w: np.ndarray) -> scipy.sparse.csr_matrix:
        """The symmetric matrix (n, n) with one number for each pair."""
        both = (
            np.concatenate([w, w]),
            (
                np.concatenate([self.first, self.second]),
                np.concatenate([self.second, self.first]),
            ),
        )
        return scipy.sparse.coo_matrix(both, shape=(self.n, self.n)).tocsr()

    def centered(self, Y: np.ndarray) -> np.ndarray:
        return Y - np.einsum("i,ij->j", self.masses / self.masses.sum(), Y)

    def relative_lengths(self, Y: np.ndarray) -> np.ndarray:
        """|y_i - y_j| / scale of all pairs."""
        D = self.differences(Y)
        return np.sqrt(np.einsum("ij,ij->i", D, D)) / self.scales

    def violations(self, Y: np.ndarray) -> np.ndarray:
        """By how much each distance is out of its bounds, relative to the distance."""
        length = self.relative_lengths(Y)
        return np.maximum(np.maximum(length - self.most, self.least - length), 0.0)

    def variance(self, Y: np.ndarray) -> float:
        Z = self.centered(Y)
        return float(np.einsum("i,ij,ij->", self.masses, Z, Z))


class Lagrangian:
    """The augmented Lagrangian, minus the variance plus pulls at kept pairs; see ``majorize``.

    A pull is p = l + s (length - most) where that is positive, l + s (length - least) where that
    is negative, and else 0, for the multiplier l and the stiffness s; it costs (p^2 - l^2) / 2 s.
    A pair pushes its ends apart no stronger than ``strongest``: distances that are not those of
    points in any space could never all be kept.
    """

    floor = -np.inf

    def __init__(
        self,
        pairs: KeptPairs,
        multipliers: np.ndarray,
        stiffness: float,
        strongest: float,
        solve: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        self.pairs, self.multipliers, self.stiffness = pairs, multipliers, stiffness
        self.strongest, self.precondition = strongest, solve

    def stiffer(self, learned: np.ndarray) -> Lagrangian:
        """The same with other multipliers, and a larger stiffness."""
        stiffness = self.stiffness * GROWTH
        return Lagrangian(self.pairs, learned, stiffness, self.strongest, self.precondition)

    def pulls(self, length: np.ndarray) -> np.ndarray:
        above = self.multipliers + self.stiffness * (length - self.pairs.most)
        below = self.multipliers + self.stiffness * (length - self.pairs.least)
        return np.maximum(above, 0.0) + np.clip(below, -self.strongest, 0.0)

    def cost_of(self, pull: np.ndarray, length: np.ndarray) -> float:
        """The sum of the costs of pulls; beyond the strongest push it grows linearly."""
        cost = float(pull @ pull - self.multipliers @ self.multipliers) / (2 * self.stiffness)
        yields = pull <= -self.strongest
        below = self.multipliers + self.stiffness * (length - self.pairs.least)
        return cost - self.strongest * float((below - pull)[yields].sum()) / self.stiffness

    def __call__(self, Y: np.ndarray) -> Evaluation:
        pairs = self.pairs
        D = pairs.differences(Y)
        length = np.sqrt(np.einsum("ij,ij->i", D, D)) / pairs.scales
        pull = self.pulls(length)
        D *= (pull / (2 * np.maximum(length, 1e-12) * pairs.scales**2))[:, None]
        pulled = pairs.masses[:, None] * pairs.centered(Y)
        cost = self.cost_of(pull, length)
        variance = float(np.einsum("ij,ij->", pulled, Y))
        return Evaluation(cost - variance, pairs.sum_at_ends(D) - pulled)

    def guttman_step(self, Y: np.ndarray, here: Evaluation) -> np.ndarray:
        """The step of a majorizing quadratic: that of the Laplacian with the largest stiffness."""
        tension = float(self.multipliers.max(initial=0.0))
        return self.precondition(here.slope) * (2 / (self.stiffness + tension))


class Unfolded(NamedTuple):
    """The factor Y, the tensions w of the pairs, and the variance after each round.

    ``residual`` is 0 where the tensions balance: |L_w Y - H Y|, relative to the sums of the pulls.
    """

    Y: np.ndarray
    tensions: np.ndarray
    variances: np.ndarray
    residual: float
    n_iter: int
    converged: bool


def maximize_variance(
    pairs: KeptPairs,
    start: np.ndarray,
    slack: float,
    *,
    max_iter: int,
    tol: float,
    run: FitContext,
    shown: Callable[[np.ndarray], np.ndarray],
    told: Callable[[float], float],
) -> Unfolded:
    """Rounds of descent until no pair is violated and the variance changes by less than tol."""
    with limit_blas(1):  # sums over all points must not depend on the number of threads
        solve = graph_multigrid(pairs.weighted(pairs.scales**-2), run.rng, run.threads)
        Y, steps = pairs.centered(start), 0
        tension = pairs.variance(Y) / max(1, len(pairs.lengths)) or 1.0
        lagrangian = Lagrangian(
            pairs,
            np.full(len(pairs.lengths), 2 * tension),
            STIFFNESS * tension,
            STRONGEST * tension,
            solve,
        )
        history, converged, stalled = [pairs.variance(Y)], False, 0
        while steps < max_iter and not converged and stalled < STALLED:
            found = majorize(
                lagrangian,
                Y,
                max_iter=min(max_iter, steps + STEPS),
                tol=1e-3 * tol,
                monitor=run.monitor,
                shown=shown,
                told=told,
                steps_before=steps,
                total=max_iter,
            )
            Y, steps = pairs.centered(found.Y), steps + max(1, found.n_iter)
            history.append(pairs.variance(Y))
            if run.monitor.stopped:
                break
            learned = lagrangian.pulls(pairs.relative_lengths(Y))
            held = learned > -lagrangian.strongest
            violated = float(pairs.violations(Y)[held].max(initial=0.0))
            settled = abs(history[-1] - history[-2]) <= tol * history[-1]
            converged = settled and violated <= CLOSE * max(slack, LEAST_SLACK)
            stalled = stalled + 1 if found.n_iter == 0 else 0
            lagrangian = lagrangian.stiffer(learned)
        length = np.maximum(pairs.relative_lengths(Y), 1e-12)
        tensions = lagrangian.multipliers / (2 * length * pairs.scales**2)
        residual = _imbalance(pairs, Y, tensions)
    return Unfolded(Y, tensions, np.array(history), residual, steps, converged)


def _imbalance(pairs: KeptPairs, Y: np.ndarray, tensions: np.ndarray) -> float:
    """|L_w Y - H Y| relative to the sums of the absolute pulls at each row: 0 at a maximum."""
    D = pairs.differences(Y) * tensions[:, None]
    forces = pairs.sum_at_ends(D) - pairs.masses[:, None] * pairs.centered(Y)
    ends = np.concatenate([pairs.first, pairs.second])
    pulls = np.tile(np.sqrt(np.einsum("ij,ij->i", D, D)), 2)
    whole = np.linalg.norm(np.bincount(ends, pulls, minlength=pairs.n))
    return float(np.linalg.norm(forces) / (whole or 1.0))


def duality_gap(
    pairs: KeptPairs, Y: np.ndarray, tensions: np.ndarray, slack: float, run: FitContext
) -> float | None:
    """How much larger the variance of any allowed map can be, relative to that of Y.

    None beyond 1500 rows. O(n^3).
    """
    if pairs.n > BOUNDED_ROWS or pairs.n < 2:
        return None if pairs.n > 1 else 0.0
    m = pairs.masses
    H = np.diag(m) - np.outer(m, m) / m.sum()
    plain = _laplacian_of(pairs, pairs.scales**-2)
    with limit_blas(1):
        # the constant vector is in the null space of H, of L_w and of the plain Laplacian P
        C = np.linalg.cholesky(plain + np.trace(plain) / pairs.n)
        lack = scipy.linalg.solve_triangular(C, H - _laplacian_of(pairs, tensions), lower=True)
        lack = scipy.linalg.solve_triangular(C, lack.T, lower=True)
    largest = largest_eigenpairs((lack + lack.T) / 2, 1, rng=run.rng, monitor=run.monitor).values[0]
    w = tensions + max(float(largest), 0.0) * pairs.scales**-2
    bound = float(np.sum(np.maximum(w, (1 - slack) ** 2 * w) * pairs.lengths**2))
    return max(0.0, bound / (pairs.variance(Y) or 1.0) - 1)


def _laplacian_of(pairs: KeptPairs, w: np.ndarray) -> np.ndarray:
    W = pairs.weighted(w).toarray()
    return np.diag(W.sum(axis=1)) - W
