"""Block Lanczos: the largest eigenpairs of a symmetric operator; called through :mod:`.eigen` only.

With an orthonormal basis Q of the Krylov space, C Q = Q T + Q_next R E^T: T = Q^T C Q is small, its
eigenpairs (l, y) give those of C as (l, Q y), and |R y_last| is their residual |C Q y - l Q y|. The
basis grows, fully reorthogonalized, until all residuals are small enough.

References
----------
Golub & Underwood (1977), The block Lanczos method for computing eigenvalues; Musco & Musco (2015),
Randomized block Krylov methods, NIPS 28, on random starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland._base.monitor import Monitor
from lowland._engines.linalg.dense_eigen import fix_signs, lapack_pairs

Operator = Callable[[np.ndarray], np.ndarray]

# Vectors per product: enough to use each number of A several times, few enough to converge.
BLOCK_WIDTH = 16


class LargestPairs(NamedTuple):
    """Eigenvalues, largest first, and unit eigenvectors in columns; how accurate they are.

    Attributes
    ----------
    residual : float
        The largest |A v - l v| over the pairs, relative to the largest |l|, of either end.
    lowest : float
        The smallest eigenvalue that was computed: with LAPACK that of A; with Lanczos a value above
        it, and close to it where it is isolated. A clearly negative value means that A is
        indefinite.
    converged : bool
        Whether the residual is within the tolerance.
    """

    values: np.ndarray
    vectors: np.ndarray
    residual: float
    lowest: float
    converged: bool


def block_lanczos(
    apply: Operator,
    order: int,
    n_pairs: int,
    tol: float,
    rng: np.random.Generator,
    monitor: Monitor,
    width: int = BLOCK_WIDTH,
    known: np.ndarray | None = None,
) -> LargestPairs:
    """The largest pairs of a symmetric operator from a random block, to ``tol`` times the largest.

    ``known`` (order, m) are orthonormal eigenvectors to leave out: the Krylov space is kept
    orthogonal to them.
    """
    known = np.empty((order, 0)) if known is None else known
    space_size = order - known.shape[1]
    width = min(width, space_size)
    most = min(space_size, 10 * n_pairs + 20 * width)
    # In columns, and not written to until needed: memory is taken as the basis grows.
    space = np.empty((order, min(space_size, most + width)), order="F")
    newest = _without(known, rng.standard_normal((order, width)))
    newest = np.linalg.qr(newest)[0]
    T = np.empty((0, 0))
    with monitor.phase("block Lanczos", total=-(-most // width)) as phase:
        while True:
            done = T.shape[0]
            size = min(done + width, space_size)
            space[:, done:size] = newest[:, : size - done]
            basis = space[:, :size]
            image = np.array(apply(np.ascontiguousarray(basis[:, done:])), dtype=np.float64)
            image = _without(known, image)
            column = basis.T @ image
            image -= basis @ column
            again = basis.T @ image  # once is not enough: rounding grows with the basis
            image -= basis @ again
            T = _grown(T, column + again)
            newest, R = np.linalg.qr(image)
            if np.abs(np.diag(R)).min() <= 1e-10 * np.abs(T).max():
                # C adds nothing in some direction: continue with a random one outside the basis.
                newest = _outside(basis, known, newest, rng)
            phase.advance()
            if size < n_pairs:
                continue
            values, y = lapack_pairs(T, size - n_pairs, size - 1)
            # no column of T is longer than its largest eigenvalue, of either sign
            scale = max(np.abs(values).max(), np.linalg.norm(T, axis=0).max()) or 1.0
            residual = np.linalg.norm(R @ y[-R.shape[1] :], axis=0).max() / scale
            converged = residual <= tol or size == space_size
            if converged or size >= most:
                break
    lowest = lapack_pairs(T, 0, 0)[0][0]
    vectors = fix_signs(basis @ y[:, ::-1])
    return LargestPairs(
        values[::-1].copy(), vectors, float(residual), float(lowest), bool(converged)
    )


def _without(known: np.ndarray, V: np.ndarray) -> np.ndarray:
    return V - known @ (known.T @ V) if known.shape[1] else V


def _outside(
    basis: np.ndarray, known: np.ndarray, block: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """An orthonormal block orthogonal to the basis, close to the given one where that is not 0."""
    block = block + 1e-8 * rng.standard_normal(block.shape)
    for _ in range(3):
        block = np.linalg.qr(_without(known, block - basis @ (basis.T @ block)))[0]
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
