"""Training of a back-constrained model: parameters of g and of the process are one vector.

    L(A, theta, s^2, Z) = log p(Y | X = g(Y; A)), or its bound by inducing points Z

The likelihood stays the same if an axis of the map and its length scale are multiplied by the same
number. Therefore the axes are brought to the units of their length scales afterwards, and sorted by
their relevance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland._core.context import FitContext
from lowland._core.threads import limit_blas
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.exact import log_likelihood
from lowland._engines.gaussian_processes.streamed import streamed_bound
from lowland._engines.network.quasi_newton import minimize
from lowland.latent._back_constraints import Constraint

# The least and the largest values for columns of mean variance 1: of s^2, and of the variance,
# length scales, weights and bias of the covariance. Without them the variance of data without noise
# grows until the uncertainty is rounding.
NOISES = (1e-5, 10.0)
LEAST, MOST = (1e-3, 1e-3, 1e-6, 1e-6), (1e2, 1e3, 1e6, 1e2)
FIRST_BIAS = 0.1
FAILED = 1e10  # loss per value where the covariance has no Cholesky factor


class Parameters(NamedTuple):
    """Of g, of the covariance (logarithms), log s^2, and inducing points, none if exact."""

    g: np.ndarray
    theta: np.ndarray
    log_noise: float
    Z: np.ndarray

    def packed(self) -> np.ndarray:
        """All of them as one vector."""
        return np.concatenate([self.g, self.theta, [self.log_noise], self.Z.ravel()])


class Problem(NamedTuple):
    """Rows Y (n, r) whose products are those of a table of ``n_columns``, and m inducing points."""

    constraint: Constraint
    covariance: Covariance
    Y: np.ndarray
    n_columns: int
    n_inducing: int
    threads: int = 1

    def unpacked(self, vector: np.ndarray) -> Parameters:
        """The inverse of :meth:`Parameters.packed`."""
        k, m, q = self.covariance.n_parameters, self.n_inducing, self.covariance.q
        at = len(vector) - m * q
        g, theta = vector[: at - 1 - k], vector[at - 1 - k : at - 1]
        return Parameters(g, theta, float(vector[at - 1]), vector[at:].reshape(m, q))

    def loss(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """-L per value of the table, and its slope."""
        now = self.unpacked(vector)
        X, process = self.constraint.places(now.g), (self.covariance, now.theta, now.log_noise)
        by_Z = now.Z
        try:
            if self.n_inducing:
                L = streamed_bound(*process, X, now.Z, self.Y, self.threads, self.n_columns)
                by_Z = L.Z
            else:
                L = log_likelihood(*process, X, self.Y, self.n_columns, self.threads)
        except np.linalg.LinAlgError:
            return FAILED, np.zeros_like(vector)
        slope = Parameters(self.constraint.slope(now.g, L.X), L.theta, L.noise, by_Z).packed()
        if not (np.isfinite(L.value) and np.isfinite(slope).all()):
            return FAILED, np.zeros_like(vector)
        n_values = len(self.Y) * self.n_columns
        return -L.value / n_values, -slope / n_values

    def bounds(self, n_g: int) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest values of all parameters."""
        free, vector = np.full(n_g, np.inf), self.covariance.vector
        inducing = np.full(self.n_inducing * self.covariance.q, np.inf)
        least = [-free, vector(*LEAST), [np.log(NOISES[0])], -inducing]
        most = [free, vector(*MOST), [np.log(NOISES[1])], inducing]
        return np.concatenate(least), np.concatenate(most)


class Trained(NamedTuple):
    """A of g as one vector, log parameters, log s^2, inducing points, and how the loss fell."""

    A: np.ndarray
    theta: np.ndarray
    log_noise: float
    Z: np.ndarray
    losses: np.ndarray
    n_iter: int


def train(
    problem: Problem,
    X: np.ndarray,
    noise: float,
    run: FitContext,
    *,
    max_iter: int,
    tol: float,
    show: Callable[[np.ndarray], np.ndarray],
) -> Trained:
    """Maximize L from the g nearest to the places X; ``noise`` is the first s^2.

    ``show(A)`` makes the map that a callback gets.
    """
    constraint, covariance = problem.constraint, problem.covariance
    with limit_blas(1):
        g = constraint.start(X, run)
        chosen = np.sort(run.rng.choice(len(X), problem.n_inducing, replace=False))
        theta = covariance.vector(bias=FIRST_BIAS)
        first = Parameters(g, theta, float(np.log(noise)), constraint.places(g)[chosen])
        found = minimize(
            problem.loss,
            first.packed(),
            max_iter=max_iter,
            tol=tol,
            monitor=run.monitor,
            show=lambda vector: show(_standard(problem, problem.unpacked(vector)).g),
            bounds=problem.bounds(len(g)),
        )
        best = _standard(problem, problem.unpacked(found.point))
    return Trained(*best, found.losses, found.n_iter)


def _standard(problem: Problem, found: Parameters) -> Parameters:
    """The same model in units of its length scales, the most relevant axis first; A in place of B.

    Relevance is that of axes of equal variance.
    """
    covariance = problem.covariance
    spread = problem.constraint.places(found.g).std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    factors = covariance.factors(covariance.stretched(found.theta, 1 / spread))
    order = np.argsort(-factors, kind="stable")
    scale = (spread / factors)[order]
    return Parameters(
        problem.constraint.scaled(found.g, order, scale),
        covariance.stretched(covariance.permuted(found.theta, order), 1 / scale),
        found.log_noise,
        found.Z[:, order] / scale,
    )
