"""A lower bound of the likelihood by m inducing points Z (Titsias 2009; Titsias & Lawrence 2010).

With b = 1 / s^2, S0 = sum_i k(x_i, x_i), S1 = k(X, Z), S2 = S1^T S1 and C = S1^T Y:

    F = D [n/2 log b - n/2 log 2 pi + 1/2 log |Kz| - 1/2 log |Kz + b S2|
           - b/2 S0 + b/2 tr(Kz^-1 S2)] - b/2 |Y|^2 + b^2/2 tr(C^T (Kz + b S2)^-1 C)

Nothing but S0, S1 and S2 depends on the rows' places, so the bound of places that are distributions
instead of points has the same form, with expectations of these statistics
(:func:`collapsed_bound`). O(n m^2 + n m D).

For places that are points, tables may be of any length, because the bound is made of sums over
blocks of rows. With Kz = L L^T, f_i = L^-1 k(Z, x_i), S = sum_i f_i f_i^T, C = sum_i f_i y_i^T and
B = I + b S:

    F = D [n/2 log b - n/2 log 2 pi - 1/2 log |B| - b/2 sum_i k(x_i, x_i) + b/2 tr S]
        - b/2 |Y|^2 + b^2/2 tr(C^T B^-1 C)

One pass makes these sums, a second one the slopes by the rows' places, so that memory is O(n q)
and O(block m) instead of O(n m). The length of f_i is at most sqrt(k(x_i, x_i)), so B has the
digits that sums of k(Z, x_i) lose in a million rows. Blocks depend on the sizes only, and their
sums are added in order: bytes do not depend on the number of threads. See
:func:`exact.log_likelihood` for ``n_columns``.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from lowland._base.threads import limit_blas
from lowland._engines.gaussian_processes.covariance import Covariance, Slopes
from lowland._engines.gaussian_processes.exact import (
    Posterior,
    inverse_from,
    lower_factor,
    solve_lower,
)
from lowland._engines.linalg.products import row_blocks, rows_within, times

JITTER = 1e-6  # share of the mean variance that is added to the diagonal of Kz
BLOCK = 1024  # rows; with 50 inducing points, a block of k(X, Z) stays in the near caches
BLOCK_BYTES = 2**22  # of k(X, Z), if there are more inducing points

Result = TypeVar("Result")


class SparseProcess(NamedTuple):
    """A covariance with its log parameters, log s^2, places X (n, q), inducing points Z (m, q)."""

    covariance: Covariance
    theta: np.ndarray
    log_noise: float
    X: np.ndarray
    Z: np.ndarray


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


def inducing_slopes(
    covariance: Covariance, theta: np.ndarray, Z: np.ndarray, G: np.ndarray
) -> Slopes:
    """Slopes of sum(G * Kz) for a symmetric G, by log parameters and by Z, which is ``X`` here."""
    own = covariance.symmetric_slopes(theta, Z, G)
    share = np.full(len(Z), JITTER * np.trace(G) / len(Z))
    jitter = covariance.diagonal_slopes(theta, Z, share)
    return own._replace(theta=own.theta + jitter.theta, X=own.X + jitter.X)


def in_blocks(work: Callable[[slice], Result], n: int, m: int, threads: int) -> Iterator[Result]:
    """``work(rows)`` of all blocks of n rows, in order, by several threads; BLAS has one each.

    A block has fewer rows if there are many inputs of the process (m).
    """
    blocks = list(row_blocks(n, min(BLOCK, rows_within(8 * m, BLOCK_BYTES))))
    with limit_blas(1):
        if threads == 1 or len(blocks) == 1:
            yield from map(work, blocks)
            return
        # Each thread works in a copy of this context, which holds what numpy does about overflow.
        contexts = [contextvars.copy_context() for _ in range(threads)]

        def strand(context: contextvars.Context, group: list[slice]) -> list[Result]:
            return [context.run(work, rows) for rows in group]

        with ThreadPoolExecutor(threads) as pool:
            together = 16 * threads  # results that wait for their turn
            for at in range(0, len(blocks), together):
                some = blocks[at : at + together]
                groups = [some[part::threads] for part in range(threads)]
                found = list(pool.map(strand, contexts, groups))
                for place in range(len(some)):
                    yield found[place % threads][place // threads]


def sparse_bound(
    at: SparseProcess, Y: np.ndarray, n_columns: int | None = None, threads: int = 1
) -> SparseBound:
    """F and its slopes for places that are points; O(block m) memory without X, Y and slopes."""
    (covariance, theta, log_noise, X, Z), D = at, n_columns or Y.shape[1]
    F = bound_slopes(_sums(at, Y, D, threads), log_noise)
    by_theta, by_Z = inducing_slopes(covariance, theta, Z, F.Kz)[:2]
    by_prior = -0.5 * D * float(np.exp(-log_noise))
    by_rows, by_values = 2 * F.S2, np.ascontiguousarray(F.cross.T)
    by_X = np.empty(X.shape)

    def of_block(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        G = Y[rows].astype(np.float64, copy=False) @ by_values
        G += covariance.matrix(theta, X[rows], Z) @ by_rows
        cross = covariance.slopes(theta, X[rows], Z, G)
        own = covariance.diagonal_slopes(theta, X[rows], np.full(len(G), by_prior))
        by_X[rows] = cross.X + own.X
        return cross.theta + own.theta, cross.Z

    for theta_part, Z_part in in_blocks(of_block, len(X), len(Z), threads):
        by_theta = by_theta + theta_part
        by_Z = by_Z + Z_part
    return SparseBound(F.value, by_theta, F.noise, by_X, by_Z)


def sparse_value(
    at: SparseProcess, Y: np.ndarray, n_columns: int | None = None, threads: int = 1
) -> float:
    """The bound without its slopes."""
    return bound_value(_sums(at, Y, n_columns or Y.shape[1], threads), at.log_noise)[0]


def sparse_posterior(at: SparseProcess, Y: np.ndarray, threads: int = 1) -> Posterior:
    """What the process is at other places, given the rows, seen through the inducing points."""
    sums = _sums(at, Y, Y.shape[1], threads)
    return posterior_from(at.covariance, at.theta, at.Z, sums, at.log_noise)


def _sums(at: SparseProcess, Y: np.ndarray, D: int, threads: int) -> Sums:
    covariance, theta, _, X, Z = at
    m, unfactor = len(Z), inverse_factor(covariance, theta, Z)

    def of_block(rows: slice) -> tuple[float, np.ndarray, np.ndarray, float]:
        f = covariance.matrix(theta, X[rows], Z) @ unfactor.T
        V = Y[rows].astype(np.float64, copy=False)
        prior = float(covariance.diagonal(theta, X[rows]).sum())
        return prior, f.T @ f, f.T @ V, float(np.einsum("ij,ij->", V, V))

    prior, S, C, squares = 0.0, np.zeros((m, m)), np.zeros((m, Y.shape[1])), 0.0
    for block in in_blocks(of_block, len(X), m, threads):
        prior, squares = prior + block[0], squares + block[3]
        S += block[1]
        C += block[2]
    return Sums(len(X), D, prior, S, C, squares, unfactor)
