"""The largest eigenpairs of a symmetric matrix, or of an operator that only multiplies.

    largest_eigenpairs(A, 10, tol=1e-8, rng=rng, monitor=monitor)  # a dense matrix
    largest_eigenpairs(apply, 10, order=n, tol=1e-6, rng=rng, monitor=monitor)  # apply(V) = A V

Small matrices, and those of which many pairs are wanted, go to LAPACK; all else to block Lanczos
from a seeded random block. The pairs are sorted by value, largest first, their signs fixed, and the
residual is measured. All dense steps run on one BLAS thread, so that the number of threads cannot
change a digit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland._core.errors import ConvergenceWarning
from lowland._core.monitor import Monitor
from lowland._core.threads import limit_blas
from lowland._engines.linalg.dense_eigen import DENSE_ORDER, fix_signs, some_pairs

__all__ = ["LargestEigenpairs", "largest_eigenpairs"]

Operator = Callable[[np.ndarray], np.ndarray]

# Vectors per product: enough to use each number of A several times, few enough to converge.
BLOCK_WIDTH = 16


class LargestEigenpairs(NamedTuple):
    """Eigenvalues, largest first, and unit eigenvectors in columns; how well they are known.

    Attributes
    ----------
    residual : float
        The largest |A v - l v| over the pairs, relative to the largest |l|, of either end.
    lowest : float
        The smallest eigenvalue that was seen: with LAPACK that of A; with Lanczos a value above it,
        and close to it where it stands out. Clearly below 0 it says that A is indefinite.
    converged : bool
        Whether the residual is within the tolerance.
    """

    values: np.ndarray
    vectors: np.ndarray
    residual: float
    lowest: float
    converged: bool


def largest_eigenpairs(
    A: np.ndarray | Operator,
    n_pairs: int,
    *,
    tol: float,
    rng: np.random.Generator,
    monitor: Monitor,
    order: int | None = None,
    width: int = BLOCK_WIDTH,
) -> LargestEigenpairs:
    """The ``n_pairs`` largest eigenpairs of a symmetric matrix or operator, by value.

    A ``ConvergenceWarning`` says when an operator's pairs miss ``tol``; a matrix then goes to
    LAPACK instead. An operator needs its ``order``; ``width`` vectors are multiplied at a time.
    """
    with limit_blas(1):
        if callable(A):
            assert order is not None
            found = _block_lanczos(A, order, n_pairs, tol, rng, monitor, width)
            if not found.converged:
                _warn(found.residual, tol)
            return found
        n = A.shape[0]
        if n > DENSE_ORDER and n_pairs <= n // 10:
            found = _block_lanczos(lambda V: A @ V, n, n_pairs, tol, rng, monitor, width)
            if found.converged:
                return found
        return _by_lapack(A, n_pairs)


def _by_lapack(A: np.ndarray, n_pairs: int) -> LargestEigenpairs:
    import scipy.linalg  # slow to import

    values, vectors = scipy.linalg.eigh(A, driver="evd", check_finite=False)
    top, V = values[::-1][:n_pairs], fix_signs(vectors[:, ::-1][:, :n_pairs])
    scale = np.abs(values).max(initial=0.0) or 1.0
    residual = np.linalg.norm(A @ V - V * top, axis=0).max(initial=0.0) / scale
    return LargestEigenpairs(top.copy(), V, float(residual), float(values[0]), True)


def _block_lanczos(
    apply: Operator,
    order: int,
    n_pairs: int,
    tol: float,
    rng: np.random.Generator,
    monitor: Monitor,
    width: int,
) -> LargestEigenpairs:
    """Top pairs of a symmetric operator C by block Lanczos from a random block.

    With an orthonormal basis Q of the Krylov space, C Q = Q T + Q_next R E^T: T = Q^T C Q is small,
    its eigenpairs (l, y) give those of C as (l, Q y), and |R y_last| is their residual
    |C Q y - l Q y|. The basis grows, fully reorthogonalized, until all residuals are below
    ``tol`` times the largest l (Golub & Underwood 1977; Musco & Musco 2015 on random starts).
    """
    width = min(width, order)
    most = min(order, 10 * n_pairs + 20 * width)
    # In columns, and untouched until needed: memory is taken as the basis grows.
    space = np.empty((order, min(order, most + width)), order="F")
    newest = np.linalg.qr(rng.standard_normal((order, width)))[0]
    T = np.empty((0, 0))
    with monitor.phase("block Lanczos", total=-(-most // width)) as phase:
        while True:
            done = T.shape[0]
            size = min(done + width, order)
            space[:, done:size] = newest[:, : size - done]
            basis = space[:, :size]
            image = np.array(apply(np.ascontiguousarray(basis[:, done:])), dtype=np.float64)
            column = basis.T @ image
            image -= basis @ column
            again = basis.T @ image  # once is not enough: rounding grows with the basis
            image -= basis @ again
            T = _grown(T, column + again)
            newest, R = np.linalg.qr(image)
            if np.abs(np.diag(R)).min() <= 1e-10 * np.abs(T).max():
                # C adds nothing in some direction: go on with a random one outside the basis.
                newest = _outside(basis, newest, rng)
            phase.advance()
            if size < n_pairs:
                continue
            values, y = some_pairs(T, size - n_pairs, size - 1)
            # no column of T is longer than its largest eigenvalue, of either sign
            scale = max(np.abs(values).max(), np.linalg.norm(T, axis=0).max()) or 1.0
            residual = np.linalg.norm(R @ y[-R.shape[1] :], axis=0).max() / scale
            converged = residual <= tol or size == order
            if converged or size >= most:
                break
    lowest = some_pairs(T, 0, 0)[0][0]
    vectors = fix_signs(basis @ y[:, ::-1])
    return LargestEigenpairs(
        values[::-1].copy(), vectors, float(residual), float(lowest), bool(converged)
    )


def _warn(residual: float, tol: float) -> None:
    warnings.warn(
        "the last axes may be inexact: block Lanczos stopped at a relative residual of "
        f"{residual:.1e} (tol={tol:g}); ask for fewer components or use another solver.",
        ConvergenceWarning,
        stacklevel=3,
    )


def _outside(basis: np.ndarray, block: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An orthonormal block orthogonal to the basis, near the given one where that has substance."""
    block = block + 1e-8 * rng.standard_normal(block.shape)
    for _ in range(3):
        block = np.linalg.qr(block - basis @ (basis.T @ block))[0]
    return block


def _grown(T: np.ndarray, column: np.ndarray) -> np.ndarray:
    """T with one more block of columns and, because it is symmetric, of rows."""
    old, new = T.shape[0], column.shape[0]
    grown = np.empty((new, new))
    grown[:old, :old] = T
    grown[:, old:] = column
    grown[old:, :old] = column[:old].T
    grown[old:, old:] = (column[old:] + column[old:].T) / 2
    return grown
