"""Training of the Bayesian model: q(x_i) = N(u_i, diag(s_i)), inducing points and the process.

    F = bound of log p(Y) given expectations of the covariance - sum_i KL(q(x_i) | N(0, I)),
    KL = 1/2 sum_k (u_ik^2 + s_ik - log s_ik - 1)

All unknowns are one vector, variances as logarithms, and L-BFGS maximizes F.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland._core.context import FitContext
from lowland._core.threads import limit_blas
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.posterior import Posterior
from lowland._engines.gaussian_processes.sparse import (
    Statistics,
    collapsed_bound,
    inducing_slopes,
    inverse_factor,
    posterior_from,
    statistics_sums,
)
from lowland._engines.network.quasi_newton import minimize
from lowland.latent._psi_statistics import expected_statistics, expected_statistics_slopes

FIRST_VARIANCE = 0.1  # s at the start; u has unit variance
VARIANCES = (1e-6, 4.0)  # bounds of s
NOISES = (1e-5, 10.0)  # of the noise, for columns of mean variance 1
LEAST, MOST = (1e-3, 1e-2, 1e-6, 1e-6), (1e2, 1e3, 1e2, 1e2)  # of the covariance
FIRST_BIAS = 0.1
FAILED = 1e10  # loss per value where the covariance has no Cholesky factor


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
        unfactor = inverse_factor(*process, at.Z)
        F = collapsed_bound(unfactor, statistics, self.Y, at.log_noise, self.n_columns)
        own = inducing_slopes(*process, at.Z, F.Kz)
        by = expected_statistics_slopes(*process, at.U, S, at.Z, Statistics(F.S0, F.S1, F.S2))
        divergence = 0.5 * float(np.sum(at.U**2 + S - at.logs - 1))
        return F.value - divergence, Places(
            by.U - at.U, by.S * S - 0.5 * (S - 1), by.theta + own.theta, F.noise, by.Z + own.X
        )

    def loss(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """-F per value of the table, and its slope."""
        try:
            value, slopes = self.bound(self.unpacked(vector))
        except np.linalg.LinAlgError:
            return FAILED, np.zeros_like(vector)
        slope = slopes.packed()
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return FAILED, np.zeros_like(vector)
        n_values = len(self.Y) * self.n_columns
        return -value / n_values, -slope / n_values

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest values of all unknowns."""
        n, m, q = len(self.Y), self.n_inducing, self.covariance.q
        free, points = np.full((n, q), np.inf), np.full((m, q), np.inf)
        ends = []
        for sign, end in ((-1, 0), (1, 1)):
            logs = np.full((n, q), np.log(VARIANCES[end]))
            theta = self.covariance.vector(*(LEAST, MOST)[end])
            noise = float(np.log(NOISES[end]))
            ends.append(Places(sign * free, logs, theta, noise, sign * points).packed())
        return ends[0], ends[1]

    def posterior(self, at: Places) -> Posterior:
        """Of the process, given the rows at uncertain places."""
        process = (self.covariance, at.theta)
        statistics = expected_statistics(*process, at.U, np.exp(at.logs), at.Z)
        unfactor = inverse_factor(*process, at.Z)
        sums = statistics_sums(unfactor, statistics, self.Y, self.n_columns)
        return posterior_from(*process, at.Z, sums, at.log_noise)


class Trained(NamedTuple):
    """The best unknowns, axes in the order of relevance, and how the loss fell."""

    places: Places
    posterior: Posterior
    losses: np.ndarray
    n_iter: int

    def stretched(self, factors: np.ndarray) -> tuple[Posterior, Places]:
        """The same model with axes multiplied by these factors."""
        U, logs, theta, log_noise, Z = self.places
        theta = self.posterior.covariance.stretched(theta, factors)
        places = Places(U * factors, logs + 2 * np.log(factors), theta, log_noise, Z * factors)
        return self.posterior._replace(theta=theta, inputs=places.Z), places


def train(
    problem: Problem,
    X: np.ndarray,
    lengths: np.ndarray,
    noise: float,
    run: FitContext,
    *,
    max_iter: int,
    tol: float,
    show: Callable[[Places], np.ndarray],
) -> Trained:
    """Maximize F from means X of unit variance, length scales and s^2; ``show`` makes the map."""
    covariance = problem.covariance
    with limit_blas(1):
        chosen = np.sort(run.rng.choice(len(X), problem.n_inducing, replace=False))
        theta = covariance.vector(1.0, lengths, 1 / lengths**2, FIRST_BIAS)
        logs = np.full(X.shape, np.log(FIRST_VARIANCE))
        first = Places(X, logs, theta, float(np.log(noise)), X[chosen])
        found = minimize(
            problem.loss,
            first.packed(),
            max_iter=max_iter,
            tol=tol,
            monitor=run.monitor,
            show=lambda vector: show(_ordered(problem, vector)),
            bounds=problem.bounds(),
        )
        best = _ordered(problem, found.point)
        return Trained(best, problem.posterior(best), found.losses, found.n_iter)


def _ordered(problem: Problem, vector: np.ndarray) -> Places:
    """The same with the most relevant axis first."""
    covariance, at = problem.covariance, problem.unpacked(vector)
    order = np.argsort(-covariance.relevance(at.theta), kind="stable")
    theta = covariance.permuted(at.theta, order)
    return Places(at.U[:, order], at.logs[:, order], theta, at.log_noise, at.Z[:, order])
