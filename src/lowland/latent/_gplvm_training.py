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

__all__ = ["State", "Trained", "first_state", "train"]

STEP = 10.0  # places take longer steps than logarithms: the map unfolds before lengths shrink
FARTHEST = 1e3  # bound of the coordinates
VARIANCE, LENGTH, WEIGHT, BIAS = (1e-3, 1e3), (1e-2, 1e3), (1e-6, 1e2), (1e-6, 1e2)
NOISE = (1e-5, 1e1)  # variance, beside that of the columns
MOST_DESCENTS, FEW_STEPS = 5, 5
FIRST_LENGTH, FIRST_BIAS, FIRST_NOISE = 10.0, 0.1, 0.5


class State(NamedTuple):
    """Places, log parameters, log noise variance, and inducing points; these None if exact."""

    X: np.ndarray
    theta: np.ndarray
    log_noise: float
    Z: np.ndarray | None

    def posterior(self, covariance: Covariance, Y: np.ndarray) -> Posterior:
        """Of the rows at these places."""
        if self.Z is None:
            return exact_posterior(covariance, self.theta, self.log_noise, self.X, Y)
        return sparse_posterior(covariance, self.theta, self.log_noise, self.X, self.Z, Y)


class Trained(NamedTuple):
    """The last state, its log-likelihood per value, and the losses per value."""

    state: State
    mean_log_likelihood: float
    losses: np.ndarray
    n_iter: int


class _Unknowns(NamedTuple):
    """The parts of the vector that is optimized."""

    n: int
    q: int
    n_parameters: int

    def joined(self, X: np.ndarray, theta: np.ndarray, noise: float, Z: np.ndarray) -> np.ndarray:
        return np.concatenate([X.ravel() / STEP, theta, [noise], Z.ravel() / STEP])

    def parts(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
        X, theta, noise, Z = np.split(vector, np.cumsum([self.n * self.q, self.n_parameters, 1]))
        places, inducing = STEP * X.reshape(-1, self.q), STEP * Z.reshape(-1, self.q)
        return places, theta, float(noise[0]), inducing


def first_state(covariance: Covariance, X: np.ndarray, Z: np.ndarray | None) -> State:
    """A process that is almost linear over the places, and much noise."""
    theta = covariance.vector(1.0, FIRST_LENGTH, 1.0 / covariance.q, FIRST_BIAS)
    return State(X, theta, float(np.log(FIRST_NOISE)), Z)


def train(
    covariance: Covariance,
    start: State,
    Y: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    monitor: Monitor,
) -> Trained:
    """L-BFGS on the likelihood, or on its bound if the start has inducing points.

    The descent begins again where it stopped, until it gains nothing more: the slopes of a bound
    with many inducing points are rounded, and a line search may fail on them.
    """
    (n, D), q, exact = Y.shape, covariance.q, start.Z is None
    unknowns = _Unknowns(n, q, len(start.theta))
    products = _with_fewer_columns(Y)
    none = np.empty((0, q))

    def negative(vector: np.ndarray) -> tuple[float, np.ndarray]:
        X, theta, log_noise, Z = unknowns.parts(vector)
        if exact:
            f = log_likelihood(covariance, theta, log_noise, X, products, D)
        else:
            f = sparse_bound(covariance, theta, log_noise, X, Z, products, D)
        by_Z = none if exact else f.Z
        slope = unknowns.joined(STEP**2 * (f.X - X), f.theta, f.noise, STEP**2 * by_Z)
        return -(f.value + log_prior(X)) / (n * D), -slope / (n * D)

    point = unknowns.joined(start.X, start.theta, start.log_noise, none if exact else start.Z)
    bounds = _bounds(covariance, unknowns, 0 if exact else len(start.Z))
    point, losses = np.clip(point, *bounds), np.empty(0)
    for _ in range(MOST_DESCENTS):
        found = minimize(
            negative,
            point,
            max_iter=max_iter - max(0, len(losses) - 1),
            tol=tol,
            monitor=monitor,
            show=lambda vector: unknowns.parts(vector)[0],
            bounds=bounds,
        )
        point, losses = found.point, np.concatenate([losses, found.losses[len(losses) > 0 :]])
        if not found.converged or found.n_iter < FEW_STEPS:
            break
    X, theta, log_noise, Z = unknowns.parts(point)
    likelihood = -float(losses[-1]) - log_prior(X) / (n * D)
    state = State(X, theta, log_noise, None if exact else Z)
    return Trained(state, likelihood, losses, len(losses) - 1)


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
    places, inducing = (np.full((rows, unknowns.q), FARTHEST) for rows in (unknowns.n, m))
    least, most = (
        unknowns.joined(
            sign * places,
            covariance.vector(VARIANCE[side], LENGTH[side], WEIGHT[side], BIAS[side]),
            float(np.log(NOISE[side])),
            sign * inducing,
        )
        for side, sign in ((0, -1), (1, 1))
    )
    return least, most
