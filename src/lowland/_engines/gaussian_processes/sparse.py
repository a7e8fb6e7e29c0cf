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

from lowland._base.threads import limit_blas
from lowland._engines.gaussian_processes.covariance import Covariance, Slopes
from lowland._engines.gaussian_processes.exact import Posterior
from lowland._engines.linalg.cholesky import inverse_from, lower_factor, solve_lower
from lowland._engines.linalg.products import times

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


class Sums(NamedTuple):
    """n rows of D columns, S0, S2 and C between L^-1 and L^-T, |Y|^2, and L^-1 with Kz = L L^T.

    S = L^-1 S2 L^-T and C = L^-1 S1^T Y: so B = I + b S has digits where Kz is near singular.
    """

    n: int
    D: int
    S0: float
    S: np.ndarray
    C: np.ndarray
    squares: float
    unfactor: np.ndarray


class SumSlopes(NamedTuple):
    """The bound, and its slopes by Kz, S2, S1^T Y and log s^2; that by S0 is -D b / 2."""

    value: float
    Kz: np.ndarray
    S2: np.ndarray
    cross: np.ndarray
    noise: float


def bound_value(sums: Sums, log_noise: float) -> tuple[float, np.ndarray, np.ndarray]:
    """F, M with M M^T = B, and M^-1 C."""
    n, D, S0, S, C, squares, _ = sums
    b = float(np.exp(-log_noise))
    M = lower_factor(np.eye(len(S)) + b * S)
    V = solve_lower(M, C)
    value = (
        -0.5 * D * n * (log_noise + float(np.log(2 * np.pi)))
        - D * float(np.log(np.diag(M)).sum())
        - 0.5 * b * (D * (S0 - float(np.trace(S))) + squares)
        + 0.5 * b**2 * float(np.sum(V * V))
    )
    return value, M, V


def bound_slopes(sums: Sums, log_noise: float) -> SumSlopes:
    """F and its slopes, all of which have B^-1 and W = B^-1 C in them."""
    n, D, S0, S, _, squares, unfactor = sums
    b = float(np.exp(-log_noise))
    value, M, V = bound_value(sums, log_noise)
    with limit_blas(1):
        W, inverse = solve_lower(M, V, transposed=True), inverse_from(M)
        WW, shrunk = W @ W.T, np.eye(len(S)) - inverse
        by_b = (
            0.5 * D * (n / b - float(np.sum(inverse * S)) - S0 + float(np.trace(S)))
            - 0.5 * squares
            + b * float(np.sum(V * V))
            - 0.5 * b**2 * float(np.sum(WW * S))
        )
        by_Kz = -0.5 * unfactor.T @ (D * b * (shrunk @ S) + b**2 * WW) @ unfactor
        by_S2 = 0.5 * unfactor.T @ (D * b * shrunk - b**3 * WW) @ unfactor
        cross = b**2 * (unfactor.T @ W)
    return SumSlopes(value, 0.5 * (by_Kz + by_Kz.T), by_S2, cross, -b * by_b)


def posterior_from(
    covariance: Covariance, theta: np.ndarray, Z: np.ndarray, sums: Sums, log_noise: float
) -> Posterior:
    """A = b L^-T B^-1 C and P = L^-T (I - B^-1) L^-1."""
    b = float(np.exp(-log_noise))
    _, M, V = bound_value(sums, log_noise)
    with limit_blas(1):
        weights = b * (sums.unfactor.T @ solve_lower(M, V, transposed=True))
        shrunk = np.eye(len(Z)) - inverse_from(M)
        precision = sums.unfactor.T @ shrunk @ sums.unfactor
    return Posterior(covariance, theta, Z, weights, 0.5 * (precision + precision.T), 1 / b)


def inverse_factor(covariance: Covariance, theta: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """L^-1 with L L^T = Kz, rows one after the other in memory."""
    L = lower_factor(inducing_matrix(covariance, theta, Z))
    return np.ascontiguousarray(solve_lower(L, np.eye(len(Z))))


def statistics_sums(
    unfactor: np.ndarray, statistics: Statistics, Y: np.ndarray, n_columns: int
) -> Sums:
    """The sums of given statistics of all rows."""
    S0, S1, S2 = statistics
    with limit_blas(1):
        S = unfactor @ (0.5 * (S2 + S2.T)) @ unfactor.T
        C = unfactor @ (S1.T @ Y)
    squares = float(np.einsum("ij,ij->", Y, Y))
    return Sums(len(Y), n_columns, S0, 0.5 * (S + S.T), C, squares, unfactor)


def collapsed_bound(
    unfactor: np.ndarray,
    statistics: Statistics,
    Y: np.ndarray,
    log_noise: float,
    n_columns: int,
    threads: int = 1,
) -> BoundSlopes:
    """F and its slopes by given statistics; ``unfactor`` is :func:`inverse_factor`."""
    F = bound_slopes(statistics_sums(unfactor, statistics, Y, n_columns), log_noise)
    by_S1 = times(Y, np.zeros(Y.shape[1]), F.cross.T, threads)
    by_S0 = -0.5 * n_columns * float(np.exp(-log_noise))
    return BoundSlopes(F.value, F.Kz, by_S0, by_S1, F.S2, F.noise)


def sparse_bound(
    covariance: Covariance,
    theta: np.ndarray,
    log_noise: float,
    X: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    n_columns: int | None = None,
) -> SparseBound:
    """F for places X that are points, all rows at once; :mod:`streamed` does it in blocks.

    See :func:`exact.log_likelihood` for ``n_columns``.
    """
    unfactor, seen = inverse_factor(covariance, theta, Z), _of_points(covariance, theta, X, Z)
    F = collapsed_bound(unfactor, seen, Y, log_noise, n_columns or Y.shape[1])
    by_S1 = F.S1 + times(seen.S1, np.zeros(len(Z)), 2 * F.S2, 1)
    cross = covariance.slopes(theta, X, Z, by_S1)
    own = inducing_slopes(covariance, theta, Z, F.Kz)
    prior = covariance.diagonal_slopes(theta, X, np.full(len(X), F.S0))
    by_theta = cross.theta + own.theta + prior.theta
    return SparseBound(F.value, by_theta, F.noise, cross.X + prior.X, cross.Z + own.X)


def _of_points(
    covariance: Covariance, theta: np.ndarray, X: np.ndarray, Z: np.ndarray
) -> Statistics:
    S1 = covariance.matrix(theta, X, Z)
    with limit_blas(1):
        return Statistics(float(covariance.diagonal(theta, X).sum()), S1, S1.T @ S1)


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
) -> Posterior:
    """What the process is at other places, given the rows, seen through the inducing points."""
    unfactor, statistics = inverse_factor(covariance, theta, Z), _of_points(covariance, theta, X, Z)
    sums = statistics_sums(unfactor, statistics, Y, Y.shape[1])
    return posterior_from(covariance, theta, Z, sums, log_noise)
