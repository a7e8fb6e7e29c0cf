"""Maximum variance unfolding (Weinberger & Saul 2004)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from lowland._base.constraints import Function, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import ConvergenceWarning, ParameterError
from lowland._base.models.checks import Interval, above
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate
from lowland._engines.graphs.geodesics import shortest_paths, shortest_paths_cost, without_copies
from lowland._engines.graphs.laplacian import graph_multigrid
from lowland._engines.linalg.eigen import fix_signs, largest_eigenpairs, thin_svd
from lowland._engines.linalg.products import matrix_times, row_blocks, rows_within
from lowland._engines.neighbors.duplicates import EqualRows, equal_in_graph
from lowland._engines.neighbors.search import neighbor_graph_cost
from lowland._engines.stress.initial_map import landmark_map, separated
from lowland._engines.stress.majorization import Evaluation, majorize
from lowland.methods._bases.distances import random_landmarks
from lowland.methods._bases.graphs import GraphEmbedding

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


# The problem of maximum variance unfolding, and its solution by a factor of low rank.
#
#     max sum_i m_i |y_i - mean|^2   such that   (1 - slack) d_ij <= |y_i - y_j| <= d_ij
#
# over the kept pairs, m_i rows being equal to row i. In K = Y Y^T this is a convex problem; Y has
# a few more columns than the map, in which a local maximum is in practice the global one (Burer &
# Monteiro 2003). The augmented Lagrangian is lowered by quasi-Newton steps in the metric of the
# graph Laplacian with weights 1 / d^2, in rounds; after each round the multipliers learn from what
# is violated, and the stiffness grows.
#
# Multipliers w are the tensions of the edges. For every w with L_w >= H, L_w their Laplacian and
# H = diag(m) - m m^T / sum(m), and every K that is allowed,
#
#     tr(H K) <= tr(L_w K) <= sum max(w, (1 - slack)^2 w) d^2,
#
# which bounds what any map can reach (Sun, Boyd, Xiao & Diaconis 2006). Tensions that are almost
# right are made so by adding tau / d^2, with the smallest tau that is enough.
#
# References: Burer & Monteiro (2003), A nonlinear programming algorithm for solving semidefinite
# programs via low-rank factorization, Mathematical Programming 95, doi:10.1007/s10107-002-0352-8;
# Sun, Boyd, Xiao & Diaconis (2006), The fastest mixing Markov process on a graph and a connection
# to a maximum variance unfolding problem, SIAM Review 48, doi:10.1137/S0036144504443821.


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
        i, j = self.first, self.second
        ends = np.concatenate([i, j]), np.concatenate([j, i])
        return scipy.sparse.coo_matrix((np.concatenate([w, w]), ends), (self.n, self.n)).tocsr()

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
        other = copy.copy(self)
        other.multipliers, other.stiffness = learned, self.stiffness * GROWTH
        return other

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


ALL_ROWS = 10_000  # "auto" unfolds up to so many rows
NEAR_COPY = 1e-3  # of the median edge: nearer rows share a place
PATHS = 500  # rows that the distances of the start are measured from
MANY_STEPS = 1000  # with fewer steps allowed, no warning: they may not be enough
WRONG = 0.1  # a larger error of a kept distance can be seen in the map
FARTHEST = 1e9  # mean edges: farther points are those of no real map


class MVU(GraphEmbedding):
    """max tr K such that K_ii - 2 K_ij + K_jj = d_ij^2 for neighbors: the rows pulled apart.

    Maximum variance unfolding keeps the distances of neighbors and makes all others as large as
    possible, as if the rows were beads joined by rods: K = Y Y^T is the matrix of inner products.
    A bent sheet becomes flat, with its true lengths; holes become wider. Use it for poses,
    rotations and other smooth factors, closed curves too. Not for clusters, which are only pushed
    apart. The fit reports how well it converged: see ``violation_max_``, ``kkt_residual_`` and
    ``duality_gap_``.
    Cost: O(n k r) per step with r axes, some thousands of steps.

    Parameters
    ----------
    n_neighbors : int, default=6
        Number of neighbors whose distances are kept. Two rows are neighbors if either is one of
        the other. Many neighbors make the graph too rigid to be unfolded.
    slack : float, default=0.01
        A kept distance may become shorter by this share; it never becomes longer. 0 keeps the
        distances exactly, which leaves little to unfold if they are noisy. 1 is an upper bound
        only.
    rank : int or None, default=None
        Number r of axes of the factor Y that is optimized, at least ``n_components``. None takes
        a few more than the number of kept distances per row, which make local maxima unlikely.
    landmarks : int, "auto" or None, default="auto"
        Number of random rows that are unfolded. The other rows are placed like new rows. None takes
        all rows. "auto" takes all up to 10 000 rows, and 10 000 of more.
    max_iter : int, default=10000
        Maximum number of steps. 0 keeps the start, which is that of Isomap.
    tol : float, default=1e-5
        The fit stops when 200 steps change the variance by less than this share.

    Attributes
    ----------
    variance_ : float
        tr K: the sum of squared distances from the mean, in all axes.
    eigenvalues_ : ndarray of shape (rank,)
        Eigenvalues of K, largest first, the parts of ``variance_``: the sum of squares of each
        coordinate of Y, of which the map shows the first.
    rank_ : int
        Number of axes that K uses, with more than a millionth of the largest eigenvalue.
    violation_max_ : float
        Largest relative error of a kept distance beyond its slack. A distance below 3 % of the root
        mean square of all is compared with these 3 %.
    violation_mean_ : float
        Mean of these errors.
    kkt_residual_ : float
        How far the pulls at the rows are from balance, relative to the pulls: 0 at a maximum.
    duality_gap_ : float or None
        Bound: no map that keeps the distances has more than ``1 + duality_gap_`` times the
        variance. None beyond 1500 rows, for which it would cost more than the map.
    variance_history_ : ndarray of shape (n_rounds,)
        Variance at the start and after each round of steps. The start violates the distances.
    excluded_ : ndarray of shape (n_excluded,)
        Rows that were placed like new ones: those that are not landmarks, and those outside of the
        largest component with ``on_disconnected="largest"``.
    factor_ : ndarray of shape (n_kept, rank)
        Y in units of ``edge_unit_``, with the axes in the order of their variance.
    edge_unit_ : float
        Root mean square of the kept distances.

    Notes
    -----
    K = Y Y^T with a few axes more than the map is found by an augmented Lagrangian; the papers
    solve a semidefinite program, which is limited to some hundred rows. The papers keep distances
    exactly, or penalize errors; here they have bounds. The strict version of the paper also keeps
    the distances of rows that share a neighbor, which is not offered. Rows that are equal, or
    nearer than a thousandth of the median edge, have one place, and count as many.

    A new row is placed by its distances to its nearest rows in all axes of Y, of which the map
    shows the first.

    References
    ----------
    Weinberger & Saul (2006), Unsupervised learning of image manifolds by semidefinite programming,
    International Journal of Computer Vision 70, doi:10.1007/s11263-005-4939-z; Weinberger, Sha &
    Saul (2004), Learning a kernel matrix for nonlinear dimensionality reduction, ICML.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> MVU(random_state=0).fit_transform(swiss_roll(300, random_state=0).X).shape
    (300, 2)
    """

    n_neighbors: Any = param(Integer(1), default=6)
    slack: float = param(Real(0, 1, closed="both"), default=0.01)
    rank: int | None = param(Null() | Integer(1), default=None)
    landmarks: Any = param(Null() | OneOf("auto") | Integer(2), default="auto")
    max_iter: int = param(Integer(0), default=10_000)
    tol: float = param(Real(0, closed="left"), default=1e-5)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    variance_: float = fitted()
    eigenvalues_: np.ndarray = fitted("rank")
    rank_: int = fitted(type=int)
    violation_max_: float = fitted()
    violation_mean_: float = fitted()
    kkt_residual_: float = fitted()
    duality_gap_: float | None = fitted(optional=True)
    variance_history_: np.ndarray = fitted("n_rounds")
    n_iter_: int = fitted(type=int)
    factor_: np.ndarray = fitted("n_kept", "rank", meaning=Interval(-FARTHEST, FARTHEST))
    edge_unit_: float = fitted(meaning=above(0))

    card = Card(
        keeps="distances of neighbors, exactly or within a slack; all others as large as possible",
        use="to lay a bent sheet or a closed curve flat with its true lengths: poses, rotations",
        avoid="for clusters, which are pushed apart, and for noise that makes the graph rigid",
        cost="O(n k r) per step, thousands of steps; O(n (k + r)) memory",
    )
    reference = "Weinberger & Saul (2004)"
    aliases = ("maximum_variance_unfolding",)
    reading = GraphEmbedding.reading._replace(
        distances="Distances of neighbors are those of the data. Longer distances are as large as "
        "these allow: about the lengths of paths along the surface.",
        gaps="A hole in the data becomes a wider hole. Groups that are joined by few edges are "
        "pushed apart as far as these edges are long.",
        sizes="The size of a group is its size along the surface.",
        scale="The axes have the unit of the distances in the data.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        m = min(n, ALL_ROWS)
        start = neighbor_graph_cost(m, p, 6) + shortest_paths_cost(min(m, PATHS), m, 6)
        steps = Estimate(5000 * (5e-4 + 4e-7 * m), 2500 * m)
        place = Estimate(1e-4 * (n - m) + 2e-10 * p * m * (n - m), 1e8 if n > m else 0)
        return (start + steps + place).holding(16 * n * p)

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        chosen = self._choose_landmarks(X, run)
        if chosen.size == X.shape[0]:
            return super()._fit(X, y, run)
        connected = self._connected_graph(self._part_of(X, chosen), run)
        self._keep_rows(X, chosen[connected.kept])
        return self._with_excluded(self._embed(connected.graph, run), X, run)

    def _choose_landmarks(self, X: Any, run: FitContext) -> np.ndarray:
        n, m = X.shape[0], self.landmarks
        if self._is_graph(X):
            if m not in (None, "auto", n):
                raise ParameterError(
                    f"MVU: landmarks={m} needs rows or all distances; set landmarks=None to use "
                    "all rows."
                )
            return np.arange(n)
        return random_landmarks(m, n, (ALL_ROWS, ALL_ROWS), "MVU", run)

    def _embed(self, graph: scipy.sparse.csr_matrix, run: FitContext) -> np.ndarray:
        n = graph.shape[0]
        q = self._check_axes(n, n)
        # a rod of no length has no direction in which it could pull
        median = float(np.median(graph.data)) if graph.nnz else 0.0
        lengths = np.where(graph.data < NEAR_COPY * median, 0.0, graph.data)
        graph = scipy.sparse.csr_matrix((lengths, graph.indices, graph.indptr), shape=(n, n))
        equal = equal_in_graph(graph) or EqualRows(np.arange(n), np.arange(n))
        graph = without_copies(graph, equal).astype(np.float64)
        self.edge_unit_ = float(np.sqrt(np.mean(np.square(graph.data)))) if graph.nnz else 1.0
        graph = graph / self.edge_unit_
        pairs = KeptPairs(graph, np.bincount(equal.group), float(self.slack), run.threads)
        found = self._unfold(pairs, graph, equal, q, run)
        self.factor_ = _principal(found.Y, pairs)[equal.group]
        self._keep(found, pairs, run)
        return _leading(self.factor_, q) * self.edge_unit_

    def _unfold(
        self, pairs: KeptPairs, graph: Any, equal: EqualRows, q: int, run: FitContext
    ) -> Unfolded:
        """The factor of all different rows, from the start of Isomap.

        Rounds of descent go on until no pair is violated and the variance changes by less than
        ``tol``.
        """
        if pairs.n == 1:
            return Unfolded(np.zeros((1, 1)), np.empty(0), np.zeros(1), 0.0, 0, True)
        unit, m, max_iter, tol = self.edge_unit_, pairs.n, int(self.max_iter), float(self.tol)
        chosen = np.sort(run.rng.choice(m, min(m, PATHS), replace=False))
        paths = shortest_paths(graph, chosen, threads=run.threads, monitor=run.monitor)
        with limit_blas(1):
            start = landmark_map(paths, chosen, self._rank(pairs, q), run)
        if max_iter > 0:
            start = separated(start, run.rng)
        with limit_blas(1):  # sums over all points must not depend on the number of threads
            solve = graph_multigrid(pairs.weighted(pairs.scales**-2), run.rng, run.threads)
            Y, steps = pairs.centered(start), 0
            tension = pairs.variance(Y) / max(1, len(pairs.lengths)) or 1.0
            multipliers = np.full(len(pairs.lengths), 2 * tension)
            limits = STIFFNESS * tension, STRONGEST * tension
            lagrangian = Lagrangian(pairs, multipliers, *limits, solve)
            history, converged, stalled = [pairs.variance(Y)], False, 0
            while steps < max_iter and not converged and stalled < STALLED:
                found = majorize(
                    lagrangian,
                    Y,
                    max_iter=min(max_iter, steps + STEPS),
                    tol=1e-3 * tol,
                    monitor=run.monitor,
                    shown=lambda Y: _leading(_principal(Y, pairs), q)[equal.group] * unit,
                    told=lambda loss: loss * unit**2,
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
                converged = settled and violated <= CLOSE * max(self.slack, LEAST_SLACK)
                stalled = stalled + 1 if found.n_iter == 0 else 0
                lagrangian = lagrangian.stiffer(learned)
            length = np.maximum(pairs.relative_lengths(Y), 1e-12)
            tensions = lagrangian.multipliers / (2 * length * pairs.scales**2)
            # |L_w Y - H Y| relative to the sums of the absolute pulls at each row: 0 at a maximum
            D = pairs.differences(Y) * tensions[:, None]
            forces = pairs.sum_at_ends(D) - pairs.masses[:, None] * pairs.centered(Y)
            pulls = np.tile(np.sqrt(np.einsum("ij,ij->i", D, D)), 2)
            ends = np.concatenate([pairs.first, pairs.second])
            whole = np.linalg.norm(np.bincount(ends, pulls, minlength=pairs.n))
            residual = float(np.linalg.norm(forces) / (whole or 1.0))
        return Unfolded(Y, tensions, np.array(history), residual, steps, converged)

    def _rank(self, pairs: KeptPairs, q: int) -> int:
        most = max(1, pairs.n - 1)
        if self.rank is None:
            return min(most, max(q + 3, len(pairs.lengths) // pairs.n + 3))
        if self.rank < q:
            raise ParameterError(
                f"MVU: rank={self.rank} is less than n_components={q}; give at least {q}, or None."
            )
        return min(most, int(self.rank))

    def _keep(self, found: Unfolded, pairs: KeptPairs, run: FitContext) -> None:
        """Set the fitted attributes, in the units of the data."""
        square = self.edge_unit_ * self.edge_unit_
        parts = np.einsum("ij,ij->j", self.factor_, self.factor_)
        self.eigenvalues_ = parts * square
        self.variance_ = float(parts.sum()) * square
        self.rank_ = int(np.sum(parts > 1e-6 * parts.max(initial=0.0)))
        violations = pairs.violations(found.Y)
        self.violation_max_ = float(violations.max(initial=0.0))
        self.violation_mean_ = float(violations.mean()) if violations.size else 0.0
        self.kkt_residual_, self.n_iter_ = found.residual, found.n_iter
        self.duality_gap_ = duality_gap(pairs, found.Y, found.tensions, float(self.slack), run)
        self.variance_history_ = found.variances * square
        stopped = run.monitor.stopped or self.max_iter < MANY_STEPS
        if self.violation_max_ > WRONG and not (found.converged or stopped):
            warnings.warn(
                f"MVU has not converged in {self.n_iter_} steps: a kept distance is wrong by "
                f"{self.violation_max_:.2g} of its length beyond the slack. Increase max_iter, or "
                "allow more slack.",
                ConvergenceWarning,
                stacklevel=9,
            )

    # --- new rows -----------------------------------------------------------------------------

    def _place(self, links: Any, run: FitContext) -> np.ndarray:
        q = self.embedding_.shape[1]
        known = links.indices >= 0
        lengths = np.where(known, links.distances, 0.0)
        Z = place_by_lateration(self.factor_, links.indices, lengths / self.edge_unit_)
        return _leading(Z, q) * self.edge_unit_


def _principal(Y: np.ndarray, pairs: KeptPairs) -> np.ndarray:
    """Y turned to its principal axes, every row counted as often as it occurs."""
    Z = pairs.centered(Y)
    axes = thin_svd(np.sqrt(pairs.masses)[:, None] * Z).right
    with limit_blas(1):
        return fix_signs(Z @ axes.T)


def _leading(Y: np.ndarray, q: int) -> np.ndarray:
    """The first q columns; zeros where there are fewer."""
    out = np.zeros((len(Y), q))
    out[:, : Y.shape[1]] = Y[:, :q]
    return out
