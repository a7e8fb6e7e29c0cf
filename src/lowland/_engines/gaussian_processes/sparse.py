"""A lower bound of the likelihood by m inducing points Z (Titsias 2009; Titsias & Lawrence 2010).

With b = 1 / s^2, S0 = sum_i k(x_i, x_i), S1 = k(X, Z), S2 = S1^T S1 and C = S1^T Y:

    F = D [n/2 log b - n/2 log 2 pi + 1/2 log |Kz| - 1/2 log |Kz + b S2|
           - b/2 S0 + b/2 tr(Kz^-1 S2)] - b/2 |Y|^2 + b^2/2 tr(C^T (Kz + b S2)^-1 C)

Nothing but S0, S1 and S2 depends on the rows' places, so the bound of places that are distributions
instead of points has the same form, with expectations of these statistics. O(n m^2 + n m D).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.threads import limit_blas
from lowland._engines.gaussian_processes.covariance import Covariance, Slopes
from lowland._engines.gaussian_processes.posterior import Posterior
from lowland._engines.linalg.cholesky import inverse_from, lower_factor, solve_lower
from lowland._engines.linalg.products import times

__all__ = [
    "JITTER",
    "BoundSlopes",
    "SparseBound",
    "Statistics",
    "collapsed_bound",
    "inducing_matrix",
    "inducing_slopes",
    "posterior_of",
    "sparse_bound",
    "sparse_posterior",
]

JITTER = 1e-6  # share of the mean variance that is added to the diagonal of Kz


class Statistics(NamedTuple):
    """S0, S1 (n, m) and S2 (m, m)."""

    S0: float
    S1: np.ndarray
    S2: np.ndarray


class BoundSlopes(NamedTuple):
    """The bound, and its slopes by Kz, S0, S1, S2 and log s^2."""

    value: float
    Kz: np.ndarray
    S0: float
    S1: np.ndarray
    S2: np.ndarray
    noise: float


class SparseBound(NamedTuple):
    """The bound, and its slopes by log parameters, log s^2, the rows of X and those of Z."""

    value: float
    theta: np.ndarray
    noise: float
    X: np.ndarray
    Z: np.ndarray


def inducing_matrix(covariance: Covariance, theta: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Kz = k(Z, Z) with :data:`JITTER`, which scales with the covariance and has its slopes."""
    K = covariance.matrix(theta, Z, Z)
    K.flat[:: len(Z) + 1] += JITTER * np.mean(covariance.diagonal(theta, Z))
    return K


def collapsed_bound(
    Kz: np.ndarray,
    statistics: Statistics,
    Y: np.ndarray,
    log_noise: float,
    n_columns: int,
    threads: int = 1,
) -> BoundSlopes:
    """F and its slopes, with Kz = L L^T and I + b L^-1 S2 L^-T = M M^T."""
    S0, S1, S2 = statistics
    n, m, D = len(Y), len(Kz), n_columns
    b = float(np.exp(-log_noise))
    L = lower_factor(Kz)
    P = solve_lower(L, solve_lower(L, S2).T)
    M = lower_factor(np.eye(m) + b * P)
    C = _cross(S1, Y)
    V = solve_lower(M, solve_lower(L, C))
    squares, fitted = float(np.einsum("ij,ij->", Y, Y)), float(np.sum(V * V))
    value = (
        0.5 * D * n * (np.log(b) - np.log(2 * np.pi))
        - D * float(np.log(np.diag(M)).sum())
        - 0.5 * D * b * (S0 - float(np.trace(P)))
        - 0.5 * b * squares
        + 0.5 * b**2 * fitted
    )
    B = solve_lower(L, solve_lower(M, V, transposed=True), transposed=True)  # (Kz + b S2)^-1 C
    inverse = inverse_from(L)
    A_inverse = inverse_from(_cross(L.T, M))
    BB = _gram(B.T)
    explained = _cross(_cross(inverse, S2).T, inverse)  # Kz^-1 S2 Kz^-1
    by_Kz = 0.5 * (D * (inverse - A_inverse - b * explained) - b**2 * BB)
    by_S2 = 0.5 * (D * b * (inverse - A_inverse) - b**3 * BB)
    by_b = (
        0.5 * D * (n / b - float(np.sum(A_inverse * S2)) - S0 + float(np.trace(P)))
        - 0.5 * squares
        + b * fitted
        - 0.5 * b**2 * float(np.sum(BB * S2))
    )
    by_S1 = times(Y, np.zeros(Y.shape[1]), b**2 * B.T, threads)
    return BoundSlopes(value, by_Kz, -0.5 * D * b, by_S1, by_S2, -b * by_b)


def sparse_bound(
    covariance: Covariance,
    theta: np.ndarray,
    log_noise: float,
    X: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    n_columns: int | None = None,
    threads: int = 1,
) -> SparseBound:
    """F for places X that are points; see :func:`exact.log_likelihood` for ``n_columns``."""
    D, none = n_columns or Y.shape[1], np.zeros(len(Z))
    S1 = covariance.matrix(theta, X, Z, threads)
    S0 = float(covariance.diagonal(theta, X).sum())
    Kz = inducing_matrix(covariance, theta, Z)
    F = collapsed_bound(Kz, Statistics(S0, S1, _gram(S1)), Y, log_noise, D, threads)
    by_S1 = times(S1, none, 2 * F.S2, threads)
    by_S1 += F.S1
    cross = covariance.slopes(theta, X, Z, by_S1, threads)
    own = inducing_slopes(covariance, theta, Z, F.Kz)
    prior = covariance.diagonal_slopes(theta, X, np.full(len(X), F.S0))
    by_theta = cross.theta + own.theta + prior.theta
    return SparseBound(F.value, by_theta, F.noise, cross.X + prior.X, cross.Z + own.X)


def inducing_slopes(
    covariance: Covariance, theta: np.ndarray, Z: np.ndarray, G: np.ndarray
) -> Slopes:
    """Slopes of sum(G * Kz) for a symmetric G, by log parameters and by Z, which is ``X`` here."""
    own = covariance.symmetric_slopes(theta, Z, G)
    share = np.full(len(Z), JITTER * np.trace(G) / len(Z))
    jitter = covariance.diagonal_slopes(theta, Z, share)
    return own._replace(theta=own.theta + jitter.theta, X=own.X + jitter.X)


def sparse_posterior(
    covariance: Covariance,
    theta: np.ndarray,
    log_noise: float,
    X: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    threads: int = 1,
) -> Posterior:
    """What the process is at other places, given the rows, seen through the inducing points."""
    S1 = covariance.matrix(theta, X, Z, threads)
    Kz = inducing_matrix(covariance, theta, Z)
    return posterior_of(covariance, theta, log_noise, Z, Kz, _gram(S1), _cross(S1, Y))


def posterior_of(
    covariance: Covariance,
    theta: np.ndarray,
    log_noise: float,
    Z: np.ndarray,
    Kz: np.ndarray,
    S2: np.ndarray,
    C: np.ndarray,
) -> Posterior:
    """Of statistics: A = b (Kz + b S2)^-1 C and P = Kz^-1 - (Kz + b S2)^-1."""
    b = float(np.exp(-log_noise))
    L = lower_factor(Kz)
    M = lower_factor(np.eye(len(Z)) + b * solve_lower(L, solve_lower(L, S2).T))
    V = solve_lower(M, solve_lower(L, C))
    weights = b * solve_lower(L, solve_lower(M, V, transposed=True), transposed=True)
    precision = inverse_from(L) - inverse_from(_cross(L.T, M))
    return Posterior(covariance, theta, Z, weights, precision, 1 / b)


def _gram(A: np.ndarray) -> np.ndarray:
    """A^T A; BLAS on one thread, so that sums have one order."""
    with limit_blas(1):
        return A.T @ A


def _cross(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    with limit_blas(1):
        return A.T @ B
