"""The bound of :mod:`sparse` for tables of any length, as sums over blocks of rows.

With Kz = L L^T, f_i = L^-1 k(Z, x_i), S = sum_i f_i f_i^T, C = sum_i f_i y_i^T and B = I + b S:

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
from typing import TypeVar

import numpy as np

from lowland._base.threads import limit_blas
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.exact import Posterior
from lowland._engines.gaussian_processes.sparse import (
    SparseBound,
    Sums,
    bound_slopes,
    bound_value,
    inducing_slopes,
    inverse_factor,
    posterior_from,
)
from lowland._engines.linalg.products import row_blocks, rows_within

BLOCK = 1024  # rows; with 50 inducing points, a block of k(X, Z) stays in the near caches
BLOCK_BYTES = 2**22  # of k(X, Z), if there are more inducing points

Result = TypeVar("Result")


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


def streamed_bound(
    covariance: Covariance,
    theta: np.ndarray,
    log_noise: float,
    X: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    threads: int,
    n_columns: int | None = None,
) -> SparseBound:
    """The same as :func:`sparse.sparse_bound`, in O(block m) memory beside X, Y and the slopes."""
    D = n_columns or Y.shape[1]
    F = bound_slopes(_sums(covariance, theta, X, Z, Y, D, threads), log_noise)
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


def streamed_value(
    covariance: Covariance,
    theta: np.ndarray,
    log_noise: float,
    X: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    threads: int,
    n_columns: int | None = None,
) -> float:
    """The bound without its slopes."""
    D = n_columns or Y.shape[1]
    return bound_value(_sums(covariance, theta, X, Z, Y, D, threads), log_noise)[0]


def streamed_posterior(
    covariance: Covariance,
    theta: np.ndarray,
    log_noise: float,
    X: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    threads: int,
) -> Posterior:
    """The same as :func:`sparse.sparse_posterior`, in O(block m) memory beside X and Y."""
    sums = _sums(covariance, theta, X, Z, Y, Y.shape[1], threads)
    return posterior_from(covariance, theta, Z, sums, log_noise)


def _sums(
    covariance: Covariance,
    theta: np.ndarray,
    X: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    D: int,
    threads: int,
) -> Sums:
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
