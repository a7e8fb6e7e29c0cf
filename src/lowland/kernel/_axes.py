"""Principal axes in feature space by three roads: the matrix, products with it, landmarks.

All give the same thing, :class:`KernelAxes`. An axis is a combination of kept rows,

    v_k = sum_j A_jk phi(x_j),   |v_k| = 1,   and the mean of all rows is  sum_j b_j phi(x_j),

so that a row's coordinate is  sum_j A_jk k(x, x_j) - c_k.  For the first two roads all rows are
kept, A = V lambda^(-1/2) with the eigenpairs (lambda, V) of H K H, and b = 1/n.

    matrix     K in memory, n x n          O(n^2 p), then LAPACK or Lanczos    exact
    krylov     K times blocks of vectors   O(n^2 p) per product, O(n) memory   to a tolerance
    landmarks  K between n and m rows      O(n m p + n m^2)                    approximate

References: Schoelkopf, Smola & Mueller (1998), Neural Computation 10; Williams & Seeger (2001),
NIPS 13, on landmarks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.monitor import Monitor
from lowland._core.threads import limit_blas
from lowland._engines.kernels.kernel_operators import Kernel, kernel_matrix, panel_blocks
from lowland._engines.kernels.kernel_values import check_finite_products
from lowland._engines.linalg.centering import CenteredOperator, double_center
from lowland._engines.linalg.eigen import (
    LargestPairs,
    all_eigenpairs,
    eigenvalues,
    fix_signs,
    largest_eigenpairs,
)
from lowland._engines.linalg.moments import Moments, merge, moments

__all__ = ["KernelAxes", "by_krylov", "by_landmarks", "by_matrix"]

NEGLIGIBLE = 1e-12  # an eigenvalue below this share of the largest is rounding
BLOCK_WIDTH = 24  # vectors per product with tiles: three registers of floats
SAMPLE = 200  # rows on which the rounding of single precision is measured


class KernelAxes(NamedTuple):
    """Axes in feature space, largest eigenvalue first; see the module.

    Attributes
    ----------
    duals, offsets, mean_weights : ndarray
        A, c and b. An axis without a positive eigenvalue has zeros, and eigenvalue 0.
    kept : ndarray of int or None
        The landmarks; None when all rows are kept.
    scores : ndarray or None
        Coordinates of the fitted rows, where they are known without another product.
    total : float
        Trace of the centered kernel matrix.
    lowest : float
        The smallest eigenvalue seen.
    residual : float or None
        max |H K H v - l v| / l_1 where it was measured.
    """

    eigenvalues: np.ndarray
    duals: np.ndarray
    offsets: np.ndarray
    mean_weights: np.ndarray
    kept: np.ndarray | None
    scores: np.ndarray | None
    total: float
    lowest: float
    residual: float | None


def by_matrix(
    X: Any, kernel: Kernel, n_axes: int, threads: int, rng: np.random.Generator, monitor: Monitor
) -> KernelAxes:
    """Eigenvectors of the centered kernel matrix, which is formed."""
    with monitor.phase("kernel matrix", total=1) as phase:
        K = kernel_matrix(X, kernel, threads).matrix()
        means = check_finite_products(double_center(K))
        phase.advance()
    pairs = largest_eigenpairs(K, n_axes, tol=1e-11, rng=rng, monitor=monitor)
    return _from_pairs(pairs, means, float(np.trace(K)), NEGLIGIBLE)


def by_krylov(
    X: Any,
    kernel: Kernel,
    n_axes: int,
    tol: float,
    threads: int,
    rng: np.random.Generator,
    monitor: Monitor,
) -> KernelAxes:
    """Block Lanczos on H K H, in single precision where that is enough for ``tol``."""
    dtype = np.float32 if _single_is_enough(X, kernel, tol, threads) else np.float64
    K = kernel_matrix(X, kernel, threads, dtype)
    centered = CenteredOperator(lambda V: check_finite_products(K.times(V)), with_means=True)
    pairs = largest_eigenpairs(
        centered, n_axes, order=K.n, tol=tol, rng=rng, monitor=monitor, width=BLOCK_WIDTH
    )
    assert centered.means is not None
    total = float(K.diagonal().sum() - centered.means.sum())
    return _from_pairs(pairs, centered.means, total, max(tol, NEGLIGIBLE))


def _from_pairs(
    pairs: LargestPairs, means: np.ndarray, total: float, negligible: float
) -> KernelAxes:
    n = len(means)
    largest = max(float(pairs.values[0]), 0.0)
    positive = pairs.values > negligible * largest
    values = np.where(positive, pairs.values, 0.0)
    root = np.where(positive, np.sqrt(np.where(positive, values, 1.0)), np.inf)
    V = pairs.vectors - pairs.vectors.mean(axis=0)
    duals = V / root
    return KernelAxes(
        eigenvalues=values,
        duals=duals,
        offsets=(means[:, None] * duals).sum(axis=0),
        mean_weights=np.full(n, 1.0 / n),
        kept=None,
        scores=V * np.sqrt(values),
        total=total,
        lowest=pairs.lowest,
        residual=pairs.residual,
    )


def _single_is_enough(X: Any, kernel: Kernel, tol: float, threads: int) -> bool:
    """Whether float32 changes H K H by less than ``tol`` of its largest eigenvalue.

    Measured on some rows, the longest among them; the errors of more rows cancel further.
    """
    if kernel.name == "precomputed" or callable(kernel.name) or not isinstance(X, np.ndarray):
        return False
    longest = np.argmax(np.abs(X).max(axis=1))
    sample = X[np.unique(np.r_[0 : len(X) : max(1, len(X) // SAMPLE), longest])]
    exact = kernel_matrix(sample, kernel, threads).matrix()
    with np.errstate(over="ignore"):
        error = kernel_matrix(sample, kernel, threads, np.float32).matrix() - exact
    if not np.isfinite(error).all():
        return False
    double_center(exact), double_center(error)
    largest, most = (np.abs(eigenvalues(A)).max() for A in (exact, error))
    return bool(most <= tol * largest)


def by_landmarks(
    X: Any,
    kernel: Kernel,
    n_axes: int,
    n_landmarks: int,
    threads: int,
    rng: np.random.Generator,
    monitor: Monitor,
) -> KernelAxes:
    """PCA of the rows' projections on the span of m of them, chosen at random.

    With G = K_mm, M M^T = G^+ and the scatter S of the rows k(x, landmarks), the matrix M^T S M has
    the eigenvalues of the centered approximation; its vectors W give A = M W.
    """
    n = X.shape[0]
    kept = np.sort(rng.choice(n, size=n_landmarks, replace=False))
    given = kernel.name == "precomputed"
    landmarks = X[kept][:, kept] if given else X[kept]
    K = kernel_matrix(landmarks, kernel, threads)
    sums: Moments | None = None
    with monitor.phase("landmarks", total=-(-n // 1024)) as phase:
        for block in panel_blocks(n, n_landmarks):
            some = K.rows(X[block][:, kept] if given else X[block])
            part = moments(some, threads, Monitor())
            sums = part if sums is None else merge(sums, part)
            phase.advance((block.stop - block.start) // 1024)
    assert sums is not None
    values, U = all_eigenpairs(K.matrix())
    with limit_blas(1):
        positive = values > 1e-10 * values[0]
        M = U[:, positive] / np.sqrt(values[positive])
        spread = M.T @ sums.scatter @ M
        pairs = largest_eigenpairs(
            (spread + spread.T) / 2, min(n_axes, len(spread)), tol=1e-11, rng=rng, monitor=monitor
        )
        weights = M @ (M.T @ sums.mean)
        A = np.zeros((n_landmarks, n_axes))
        A[:, : pairs.vectors.shape[1]] = fix_signs(M @ pairs.vectors)
    eigenvalues = np.zeros(n_axes)
    eigenvalues[: len(pairs.values)] = pairs.values
    real = eigenvalues > NEGLIGIBLE * max(eigenvalues[0], 0.0)
    A[:, ~real], eigenvalues[~real] = 0.0, 0.0
    whole = kernel_matrix(X, kernel, threads).diagonal().sum()
    return KernelAxes(
        eigenvalues=eigenvalues,
        duals=A,
        offsets=(sums.mean[:, None] * A).sum(axis=0),
        mean_weights=weights,
        kept=kept,
        scores=None,
        total=float(whole - n * (sums.mean @ weights)),
        lowest=float(values[-1]),
        residual=None,
    )
