"""Bayesian Gaussian process latent variable model (Titsias & Lawrence 2010)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from lowland._base.constraints import Integer, OneOf
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate
from lowland._base.validation import as_dense
from lowland._engines.gaussian_processes import sparse
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.exact import Posterior
from lowland._engines.linalg.principal_axes import principal_axes_cost
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.network.layers import row_space_cost
from lowland.methods.latent import _base as processes

LEARNED_ROWS, LEARNED_VALUES = 2000, 2_000_000  # inference="auto" trains on so many at most
FEWEST_LEARNED = 500
MOST_INDUCING = 500  # the cost grows with its square
RELEVANT = 0.01  # share of the largest relevance
LONGEST = 100.0  # length scale at the start, relative to that of the first axis


# Training of the Bayesian model: q(x_i) = N(u_i, diag(s_i)), inducing points and the process.
#
#     F = bound of log p(Y) given expectations of the covariance - sum_i KL(q(x_i) | N(0, I)),
#     KL = 1/2 sum_k (u_ik^2 + s_ik - log s_ik - 1)
#
# All unknowns are one vector, variances as logarithms, and L-BFGS maximizes F.


# Expectations of a covariance over places that are normal distributions, with slopes.
#
#     S0 = sum_i E k(x_i, x_i),  S1_im = E k(x_i, z_m),  S2_ml = sum_i E k(x_i, z_m) k(x_i, z_l)
#
# for independent x_ik of mean u_ik and variance s_ik (Titsias & Lawrence 2010). With a_k = 1 /
# l_k^2,
#
#     rbf     S1_im = v prod_k (1 + a_k s_ik)^-1/2 exp(-a_k (u_ik - z_mk)^2 / (2 (1 + a_k s_ik)))
#             S2_ml = v^2 sum_i prod_k (1 + 2 a_k s_ik)^-1/2
#                     exp(-a_k (z_mk - z_lk)^2 / 4 - a_k (u_ik - c_k)^2 / (1 + 2 a_k s_ik)),
#                     c = (z_m + z_l) / 2
#     linear  S1 = U V^T,  S2 = V (U^T U + diag(sum_i s_i)) V^T,  v_mk = w_k z_mk
#
# A bias b adds b to each E k, and b (E k(x_i, z_m) + E k(x_i, z_l)) + b^2 to each term of S2. The
# exponent of rbf is linear in 1, c and c^2, so that all pairs of inducing points need one matrix
# product and one exponential each. O(n m^2 q).


BLOCK_BYTES = 2**21  # of the values of pairs: what stays in a near cache


class PsiSlopes(NamedTuple):
    """Slopes by log parameters, means U (n, q), variances S (n, q) and inducing points Z."""

    theta: np.ndarray
    U: np.ndarray
    S: np.ndarray
    Z: np.ndarray


def expected_statistics(
    covariance: Covariance, theta: np.ndarray, U: np.ndarray, S: np.ndarray, Z: np.ndarray
) -> sparse.Statistics:
    """S0, S1 and S2 of a covariance "rbf" or "linear"."""
    v, lengths, weights, b = covariance.parameters(theta)
    n = len(U)
    if covariance.linear:
        V = Z * weights
        S0 = float(np.sum((U**2 + S) @ weights))
        S1, S2 = U @ V.T, V @ _second_moment(U, S) @ V.T
    else:
        S0, S1 = n * v, _Singles(v, 1 / lengths**2, Z).values(U, S)
        S2 = _Pairs(v, 1 / lengths**2, Z).sums(U, S)
    sums = S1.sum(axis=0)
    return sparse.Statistics(S0 + n * b, S1 + b, S2 + b * np.add.outer(sums, sums) + n * b**2)


def expected_statistics_slopes(
    covariance: Covariance,
    theta: np.ndarray,
    U: np.ndarray,
    S: np.ndarray,
    Z: np.ndarray,
    by: sparse.Statistics,
) -> PsiSlopes:
    """Of g S0 + sum(G1 * S1) + sum(G2 * S2), where ``by`` holds g, G1 and a symmetric G2."""
    v, lengths, weights, b = covariance.parameters(theta)
    n, g, (G1, G2) = len(U), by.S0, by[1:]
    rows = G2.sum(axis=1)
    single = G1 + 2 * b * rows  # the slope by E k without the bias
    if covariance.linear:
        V, M = Z * weights, _second_moment(U, S)
        S1, N = U @ V.T, V.T @ G2 @ V
        by_V = 2 * G2 @ V @ M + single.T @ U
        by_U = 2 * U @ N + single @ V + 2 * g * U * weights
        by_S = np.broadcast_to(np.diag(N) + g * weights, S.shape)
        by_w = np.sum(by_V * V, axis=0) + g * weights * np.sum(U**2 + S, axis=0)
        by_Z, by_theta = by_V * weights, [by_w]
    else:
        ones, pairs = _Singles(v, 1 / lengths**2, Z), _Pairs(v, 1 / lengths**2, Z)
        S1 = ones.values(U, S)
        first, second = ones.slopes(U, S, S1 * single), pairs.slopes(U, S, G2)
        by_U, by_S, by_Z = (a + c for a, c in zip(first[2:], second[2:], strict=True))
        by_a = first.a + second.a
        by_theta = [np.array([g * n * v + first.v + second.v]), -2 * by_a / lengths**2]
    if covariance.bias:
        by_b = g * n + G1.sum() + 2 * float(S1.sum(axis=0) @ rows) + 2 * n * b * rows.sum()
        by_theta.append(np.array([b * by_b]))
    return PsiSlopes(np.concatenate(by_theta), by_U, by_S, by_Z)


def _second_moment(U: np.ndarray, S: np.ndarray) -> np.ndarray:
    return U.T @ U + np.diag(S.sum(axis=0))


class _Slopes(NamedTuple):
    """By log v, a = 1 / l^2, U, S and Z."""

    v: float
    a: np.ndarray
    U: np.ndarray
    S: np.ndarray
    Z: np.ndarray


class _Singles(NamedTuple):
    """E k(x_i, z_m) of rbf."""

    v: float
    a: np.ndarray
    Z: np.ndarray

    def values(self, U: np.ndarray, S: np.ndarray) -> np.ndarray:
        d = 1 + self.a * S
        E = np.zeros((len(U), len(self.Z)))
        for u, z, c in zip(U.T, self.Z.T, (self.a / d).T, strict=True):
            E -= c[:, None] * np.subtract.outer(u, z) ** 2
        E *= 0.5
        E -= 0.5 * np.log(d).sum(axis=1)[:, None]
        return self.v * np.exp(E)

    def slopes(self, U: np.ndarray, S: np.ndarray, W: np.ndarray) -> _Slopes:
        """Of sum(G * E), W = G * E."""
        d = 1 + self.a * S
        c, total = self.a / d, W.sum(axis=1)[:, None]
        WZ = W @ self.Z
        gaps = U * total - WZ
        squares = U**2 * total - 2 * U * WZ + W @ self.Z**2
        by_a = -0.5 * (S / d * total + squares / d**2).sum(axis=0)
        by_S = 0.5 * c * (c * squares - total)
        return _Slopes(float(W.sum()), by_a, -c * gaps, by_S, W.T @ (c * U) - self.Z * (W.T @ c))


class _Pairs(NamedTuple):
    """sum_i E k(x_i, z_m) k(x_i, z_l) of rbf, by blocks of rows and pairs m <= l."""

    v: float
    a: np.ndarray
    Z: np.ndarray

    def sums(self, U: np.ndarray, S: np.ndarray) -> np.ndarray:
        m = len(self.Z)
        first, second = np.triu_indices(m)
        C, falls = self._centers(first, second)
        total = np.zeros(len(first))
        for rows in self._blocks(len(U), len(first)):
            total += self._values(U[rows], S[rows], C, falls).sum(axis=0)
        S2 = np.empty((m, m))
        S2[first, second] = S2[second, first] = total
        return S2

    def slopes(self, U: np.ndarray, S: np.ndarray, G: np.ndarray) -> _Slopes:
        m = len(self.Z)
        first, second = np.triu_indices(m)
        C, falls = self._centers(first, second)
        twice = np.where(first == second, 1.0, 2.0) * G[first, second]
        powers = np.column_stack([np.ones(len(C)), C, C**2])
        q = self.Z.shape[1]
        by_a, by_U, by_S = np.zeros(q), np.empty_like(U), np.empty_like(S)
        sums, by_C = np.zeros(len(C)), np.zeros_like(C)
        shift = self.Z.mean(axis=0)
        for rows in self._blocks(len(U), len(first)):
            u, s = U[rows] - shift, S[rows]
            d = 1 + 2 * self.a * s
            c = self.a / d
            W = self._values(U[rows], s, C, falls)
            W *= twice
            R = W @ powers
            total, R1, R2 = R[:, :1], R[:, 1 : 1 + q], R[:, 1 + q :]
            gaps, squares = u * total - R1, u**2 * total - 2 * u * R1 + R2
            by_U[rows] = -2 * c * gaps
            by_S[rows] = c * (2 * c * squares - total)
            by_a -= (s / d * total + squares / d**2).sum(axis=0)
            T = W.T @ np.column_stack([np.ones(len(u)), c * u, c])
            sums += T[:, 0]
            by_C += T[:, 1 : 1 + q] - C * T[:, 1 + q :]
        apart = self.Z[first] - self.Z[second]
        by_a -= 0.25 * sums @ apart**2
        pull = 0.5 * self.a * apart * sums[:, None]
        by_Z = np.zeros_like(self.Z)
        np.add.at(by_Z, first, by_C - pull)
        np.add.at(by_Z, second, by_C + pull)
        return _Slopes(2 * float(sums.sum()), by_a, by_U, by_S, by_Z)

    def _centers(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centers of the pairs, minus the mean of Z, and what the exponents lose by the gaps."""
        Z = self.Z - self.Z.mean(axis=0)
        apart = Z[first] - Z[second]
        return 0.5 * (Z[first] + Z[second]), 0.25 * apart**2 @ self.a

    def _values(self, U: np.ndarray, S: np.ndarray, C: np.ndarray, falls: np.ndarray) -> np.ndarray:
        U, d = U - self.Z.mean(axis=0), 1 + 2 * self.a * S
        c = self.a / d
        E = np.column_stack([2 * c * U, -c]) @ np.column_stack([C, C**2]).T
        E -= (c * U**2).sum(axis=1)[:, None]
        np.minimum(E, 0.0, out=E)  # rounding of large squares
        E += 2 * np.log(self.v) - 0.5 * np.log(d).sum(axis=1)[:, None]
        E -= falls
        return np.exp(E, out=E)

    def _blocks(self, n: int, n_pairs: int) -> Iterator[slice]:
        return row_blocks(n, rows_within(8 * n_pairs, BLOCK_BYTES))


FIRST_VARIANCE = 0.1  # s at the start; u has unit variance
VARIANCES = (1e-6, 4.0)  # bounds of s
NOISES = (1e-5, 10.0)  # of the noise, for columns of mean variance 1
LEAST, MOST = (1e-3, 1e-2, 1e-6, 1e-6), (1e2, 1e3, 1e2, 1e2)  # of the covariance
FIRST_BIAS = 0.1


class Places(NamedTuple):
    """Means and log variances of q (n, q), the process, log noise, and inducing points (m, q)."""

    U: np.ndarray
    logs: np.ndarray
    theta: np.ndarray
    log_noise: float
    Z: np.ndarray

    def packed(self) -> np.ndarray:
        """All of them as one vector."""
        ends = [self.theta, [self.log_noise], self.Z.ravel()]
        return np.concatenate([self.U.ravel(), self.logs.ravel(), *ends])


class Problem(NamedTuple):
    """Rows Y (n, r) whose products are those of a table of ``n_columns``, and m inducing points."""

    covariance: Covariance
    Y: np.ndarray
    n_columns: int
    n_inducing: int

    def unpacked(self, vector: np.ndarray) -> Places:
        """The inverse of :meth:`Places.packed`."""
        n, q, k = len(self.Y), self.covariance.q, self.covariance.n_parameters
        U, logs, theta, noise, Z = np.split(vector, np.cumsum([n * q, n * q, k, 1]))
        return Places(U.reshape(n, q), logs.reshape(n, q), theta, float(noise[0]), Z.reshape(-1, q))

    def bound(self, at: Places) -> tuple[float, Places]:
        """F, and its slopes."""
        S, process = np.exp(at.logs), (self.covariance, at.theta)
        statistics = expected_statistics(*process, at.U, S, at.Z)
        unfactor = sparse.inverse_factor(*process, at.Z)
        F = sparse.collapsed_bound(unfactor, statistics, self.Y, at.log_noise, self.n_columns)
        own = sparse.inducing_slopes(*process, at.Z, F.Kz)
        by = expected_statistics_slopes(
            *process, at.U, S, at.Z, sparse.Statistics(F.S0, F.S1, F.S2)
        )
        divergence = 0.5 * float(np.sum(at.U**2 + S - at.logs - 1))
        return F.value - divergence, Places(
            by.U - at.U, by.S * S - 0.5 * (S - 1), by.theta + own.theta, F.noise, by.Z + own.X
        )

    def loss(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """-F per value of the table, and its slope."""
        return processes.loss_per_value(self, vector)

    def bounds(self, first: Places) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest values of all unknowns."""
        free, points = np.full(first.U.shape, np.inf), np.full(first.Z.shape, np.inf)
        low, high = (np.full(free.shape, np.log(end)) for end in VARIANCES)
        noises, vector = np.log(NOISES), self.covariance.vector
        least = Places(-free, low, vector(*LEAST), noises[0], -points)
        return least.packed(), Places(free, high, vector(*MOST), noises[1], points).packed()

    def start(self, X: np.ndarray, lengths: np.ndarray, noise: float, run: FitContext) -> Places:
        """Means X of unit variance, a process with these lengths and s^2, and random places."""
        chosen = np.sort(run.rng.choice(len(X), self.n_inducing, replace=False))
        theta = self.covariance.vector(1.0, lengths, 1 / lengths**2, FIRST_BIAS)
        logs = np.full(X.shape, np.log(FIRST_VARIANCE))
        return Places(X, logs, theta, float(np.log(noise)), X[chosen])

    def standard(self, at: Places) -> Places:
        """The same with the most relevant axis first."""
        order = np.argsort(-self.covariance.relevance(at.theta), kind="stable")
        theta = self.covariance.permuted(at.theta, order)
        return Places(at.U[:, order], at.logs[:, order], theta, at.log_noise, at.Z[:, order])

    def stretched(self, at: Places, factors: np.ndarray) -> Places:
        """The same model with axes multiplied by these factors."""
        U, logs, theta, log_noise, Z = at
        theta = self.covariance.stretched(theta, factors)
        return Places(U * factors, logs + 2 * np.log(factors), theta, log_noise, Z * factors)

    def posterior(self, at: Places) -> Posterior:
        """Of the process, given the rows at uncertain places."""
        process = (self.covariance, at.theta)
        statistics = expected_statistics(*process, at.U, np.exp(at.logs), at.Z)
        unfactor = sparse.inverse_factor(*process, at.Z)
        sums = sparse.statistics_sums(unfactor, statistics, self.Y, self.n_columns)
        return sparse.posterior_from(*process, at.Z, sums, at.log_noise)


class BayesianGPLVM(processes.GaussianProcessReducer):
    """max E_q log p(Y | X) - KL(q | N(0, I)), q(x_i) = N(u_i, S_i): it finds the dimension.

    The columns are Gaussian processes of the map, as in GPLVM, but each place is a distribution,
    and the map shows the most probable one. An axis that the rows do not need costs likelihood and
    is switched off: its relevance becomes 0. So ask for more axes than expected and read
    ``relevance_``; with two, it is a map that overfits less than that of GPLVM. Use it for some
    thousand rows, for the number of dimensions, and for an inverse with uncertainty. Not for
    distances. Cost: O(n m^2 q + n m p) per step for m inducing points, from up to 2 000 rows.

    Parameters
    ----------
    kernel : {"rbf", "linear"}, default="rbf"
        Covariance of the process: smooth or linear. Each axis has its own length scale.
    inference : {"auto", "sparse"}, default="auto"
        Which rows are trained on: "sparse" takes all, "auto" at most 2 000.
    n_inducing : int, default=50
        Number of inducing points. A linear process has at most as many as it has axes, and one
        more for the bias.
    max_iter : int, default=500
        Maximum number of steps of L-BFGS.
    tol : float, default=0.0000001
        Training ends when a step raises the bound per value by less.

    Attributes
    ----------
    means_ : ndarray of shape (n_trained, n_components)
        Means u of the distributions of the places of the rows that were trained on.
    variances_ : ndarray of shape (n_trained, n_components)
        Variances of these distributions; those of the prior along an axis that is switched off.
    prior_deviations_ : ndarray of shape (n_components,)
        Standard deviation of the prior of the places, in length scales, in the order of the axes.

    Notes
    -----
    The bound is that of the paper, with expectations of the covariance in closed form. S_i is
    diagonal. All unknowns start at principal components of unit variance, with variances of 0.1 and
    length scales in proportion to the share of each component; the paper starts there, too. L-BFGS
    takes the place of conjugate gradients. Axes are in units of their length scales, sorted by
    their relevance.

    A row is placed where its density times the prior of its place is highest, given the posterior
    of the process, fitted rows and new rows alike. The paper optimizes a distribution q(x) for new
    rows. Its mean is nearly the same place for most rows; those that have two good places may go to
    the other one (7 of 1 000 on oil flow). The search descends from several fitted places, and may
    miss the best place of a row that is unlike all others. A callback gets the means of the trained
    rows. Beyond 2 000 rows, or 2 million values but 500 rows, random rows are trained on.

    The bound has several maxima. Of rows on a gently bent sheet in 12 columns, six axes became the
    two true ones in all trials; of strongly folded sheets up to four remained. In the map of oil
    flow (1 000 rows) 2 rows have a nearest neighbor of another class, of 2 000 held-out rows 17;
    in two principal components 162 of 1 000.

    References
    ----------
    Titsias & Lawrence (2010), Bayesian Gaussian process latent variable model, AISTATS, 844-851.
    Damianou, Titsias & Lawrence (2016), Variational inference for latent variables and uncertain
    inputs in Gaussian processes, JMLR 17, 1-62.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> plane = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 9))
    >>> rows = plane + 0.1 * rng.standard_normal((80, 9))
    >>> BayesianGPLVM(5, kernel="linear", random_state=0).fit(rows).n_relevant_
    2
    """

    kernel: Literal["rbf", "linear"] = param(OneOf("rbf", "linear"), default="rbf")
    inference: Literal["auto", "sparse"] = param(OneOf("auto", "sparse"), default="auto")
    n_inducing: int = param(Integer(1, MOST_INDUCING), default=50)
    max_iter: int = param(Integer(0), default=500)

    means_: np.ndarray = fitted("n_trained", "n_components")
    variances_: np.ndarray = fitted("n_trained", "n_components")
    prior_deviations_: np.ndarray = fitted("n_components", meaning=above(0))

    card = Card(
        keeps="rows that differ apart, on a smooth sheet of as few dimensions as the rows need",
        use="for the number of dimensions, and a smooth map of some thousand rows with an "
        "uncertain inverse",
        avoid="for distances, or for tables of many thousand rows",
        cost="O(n m^2 q + n m p) time per step for m = 50 inducing points and up to 2 000 rows, "
        "O(n (m + p)) memory",
    )
    reference = "Titsias & Lawrence (2010)"
    aliases = ("bgplvm",)

    @property
    def n_relevant_(self) -> int:
        """Number of axes whose relevance is at least a hundredth of the largest."""
        self._require_fitted()
        return int(np.sum(self.relevance_ >= RELEVANT))

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 500 steps, and the search for all places."""
        r, m = _n_learned(n, p), min(n, 50)
        seen = min(r, p)
        step = Estimate(
            2.5e-3 + r * m * (2.5e-10 * seen + 8e-9 * m), 8 * r * (8 * m + 3 * p) + 2**24
        )
        start = principal_axes_cost(r, seen, 2) + row_space_cost(r, p)
        placing = Estimate(6e-4 * n, 16 * n * p)
        return Estimate(0.02, 0) + start + 500 * step + placing

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, p = X.shape
        q = self._check_components(n, p)
        learned = n if self.inference == "sparse" else _n_learned(n, p)
        m = self._count_inducing(learned)
        require_memory(
            8 * (learned * (10 * m + 3 * p + 60 * q) + n * q + 8 * m * m * (1 + q)) + 2**24,
            task=f"BayesianGPLVM for {n} rows, {p} columns and {q} axes",
            alternative="inference='auto', or fewer axes",
        )
        X = as_dense(X, type(self).__name__)
        _, space, Y = self._learned(X, learned, run)
        problem = Problem(self._covariance(), Y, p, m)
        scores, noise = processes.principal_start(Y, q, run)
        first = problem.start(*_of_unit_variance(scores), noise, run)
        found = self._trained(problem, first, lambda now: now.U.astype(X.dtype), run)
        factors = problem.covariance.factors(found.theta)
        places = problem.stretched(found, factors)
        with limit_blas(1):
            posterior = problem.posterior(found)
        weights = space.restored(posterior.weights)
        self.inducing_points_, self.prior_deviations_ = places.Z, factors
        self._keep(
            posterior._replace(theta=places.theta, inputs=places.Z, weights=weights), factors**2
        )
        self.means_, self.variances_ = places.U, np.exp(places.logs)
        self.embedding_ = self._transform(X, run)
        return self.embedding_.copy()

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        X = as_dense(X, type(self).__name__)
        process = processes.Process(self._posterior(), self.prior_deviations_)
        Y = self._standardized(X)
        return processes.placed_rows(process, self.means_, Y, run.threads).X.astype(X.dtype)


def _of_unit_variance(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Components of unit variance, and length scales by their shares."""
    spread = X.std(axis=0)
    widest = float(spread.max())
    flat = spread <= widest / LONGEST
    lengths = np.where(flat, LONGEST, widest / np.where(flat, 1.0, spread))
    return np.where(flat, 0.0, X / np.where(flat, 1.0, spread)), lengths


def _n_learned(n: int, p: int) -> int:
    """Rows that "auto" trains on."""
    return min(n, LEARNED_ROWS, max(FEWEST_LEARNED, LEARNED_VALUES // p))
