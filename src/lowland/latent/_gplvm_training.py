"""GPLVM: the maximum of log p(Y | X) + log p(X) over places, parameters and inducing points.

The unknowns of the descent are X / STEP, the logarithms of the parameters and of the noise
variance, and Z / STEP.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.monitor import Monitor
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.exact import exact_posterior, log_likelihood
from lowland._engines.gaussian_processes.posterior import Posterior
from lowland._engines.gaussian_processes.sparse import sparse_bound, sparse_posterior
from lowland._engines.network.quasi_newton import minimize

__all__ = ["Trained", "first_parameters", "train"]

STEP = 10.0  # places take longer steps than logarithms: the map unfolds before lengths shrink
FARTHEST = 1e3  # bound of the coordinates
VARIANCE, LENGTH, WEIGHT, BIAS = (1e-3, 1e3), (1e-2, 1e3), (1e-6, 1e2), (1e-6, 1e2)
NOISE = (1e-5, 1e1)  # variance, beside that of the columns
FIRST_LENGTH, FIRST_BIAS, FIRST_NOISE = 10.0, 0.1, 0.5


class Trained(NamedTuple):
    """Places, inducing points, posterior, log-likelihood per value, losses per value."""

    X: np.ndarray
    Z: np.ndarray | None
    posterior: Posterior
    mean_log_likelihood: float
    losses: np.ndarray
    n_iter: int


class _Unknowns(NamedTuple):
    """The parts of the vector that is optimized."""

    n: int
    q: int
    n_parameters: int

    def joined(self, X: np.ndarray, theta: np.ndarray, noise: float, Z: np.ndarray) -> np.ndarray:
        return np.concatenate([X.ravel(), theta, [noise], Z.ravel()])

    def parts(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
        X, theta, noise, Z = np.split(vector, np.cumsum([self.n * self.q, self.n_parameters, 1]))
        return X.reshape(-1, self.q), theta, float(noise[0]), Z.reshape(-1, self.q)


def first_parameters(covariance: Covariance) -> tuple[np.ndarray, float]:
    """Logarithms at the start: a process that is almost linear over the rows, and much noise."""
    weight = 1.0 / covariance.q
    theta = covariance.vector(1.0, FIRST_LENGTH, weight, FIRST_BIAS)
    return theta, float(np.log(FIRST_NOISE))


def train(
    covariance: Covariance,
    X: np.ndarray,
    Z: np.ndarray | None,
    Y: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    monitor: Monitor,
) -> Trained:
    """From places X and inducing points Z, by L-BFGS; Z is None for exact inference."""
    (n, D), q = Y.shape, covariance.q
    theta, log_noise = first_parameters(covariance)
    unknowns = _Unknowns(n, q, len(theta))
    products = _with_fewer_columns(Y)
    none = np.empty((0, q))

    def negative(vector: np.ndarray) -> tuple[float, np.ndarray]:
        x, theta, log_noise, z = unknowns.parts(vector)
        x, z = STEP * x, STEP * z
        if Z is None:
            exact = log_likelihood(covariance, theta, log_noise, x, products, D)
            value, by_x, by_z = exact.value, exact.X, none
            by_theta, by_noise = exact.theta, exact.noise
        else:
            bound = sparse_bound(covariance, theta, log_noise, x, z, products, D)
            value, by_x, by_z = bound.value, bound.X, bound.Z
            by_theta, by_noise = bound.theta, bound.noise
        slope = unknowns.joined(STEP * (by_x - x), by_theta, by_noise, STEP * by_z)
        return -(value + log_prior(x)) / (n * D), -slope / (n * D)

    start = unknowns.joined(X / STEP, theta, log_noise, (none if Z is None else Z) / STEP)
    found = minimize(
        negative,
        start,
        max_iter=max_iter,
        tol=tol,
        monitor=monitor,
        show=lambda vector: STEP * unknowns.parts(vector)[0],
        bounds=_bounds(covariance, unknowns, 0 if Z is None else len(Z)),
    )
    x, theta, log_noise, z = unknowns.parts(found.point)
    x, z = STEP * x, STEP * z
    likelihood = -float(found.losses[-1]) - log_prior(x) / (n * D)
    if Z is None:
        posterior = exact_posterior(covariance, theta, log_noise, x, Y)
        return Trained(x, None, posterior, likelihood, found.losses, found.n_iter)
    posterior = sparse_posterior(covariance, theta, log_noise, x, z, Y)
    return Trained(x, z, posterior, likelihood, found.losses, found.n_iter)


def log_prior(X: np.ndarray) -> float:
    """Of standard normal places, without the constant."""
    return -0.5 * float(np.sum(X**2))


def _with_fewer_columns(Y: np.ndarray) -> np.ndarray:
    """A table with the same inner products of rows, and at most as many columns as rows."""
    if Y.shape[1] <= len(Y):
        return Y
    return np.ascontiguousarray(np.linalg.qr(Y.T, mode="r").T)


def _bounds(covariance: Covariance, unknowns: _Unknowns, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest values of the unknowns."""
    places, inducing = np.full((unknowns.n, unknowns.q), FARTHEST), np.full(m, FARTHEST)
    inducing = np.repeat(inducing, unknowns.q)
    sides = []
    for side, sign in ((0, -1), (1, 1)):
        theta = covariance.vector(VARIANCE[side], LENGTH[side], WEIGHT[side], BIAS[side])
        noise = float(np.log(NOISE[side]))
        sides.append(unknowns.joined(sign * places / STEP, theta, noise, sign * inducing / STEP))
    return sides[0], sides[1]
