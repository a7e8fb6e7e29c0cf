"""Principal axes in feature space by three solvers: the matrix, products with it, landmarks.

All of them give :class:`KernelAxes`. An axis is a combination of the images of kept rows,

    v_k = sum_j A_jk phi(x_j),   |v_k| = 1,   and the mean of all rows is  sum_j b_j phi(x_j),

so that a row has the coordinate  sum_j A_jk k(x, x_j) - c_k.  The first two solvers keep all rows:
A = V lambda^(-1/2) with the eigenpairs (lambda, V) of H K H, and b = 1/n.

    matrix     K in memory, n x n          O(n^2 p), then LAPACK or Lanczos    exact
    krylov     K times blocks of vectors   O(n^2 p) per product, O(n) memory   to a tolerance
    landmarks  K between n and m rows      O(n m p + n m^2)                    approximate

References: Schoelkopf, Smola & Mueller (1998), Neural Computation 10; Williams & Seeger (2001),
NIPS 13, on landmarks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor, Phase
from lowland._base.rows.chunks import Block
from lowland._base.rows.fitting import rows_at
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas, resolve_n_jobs
from lowland._base.validation import DENSE_NUMBERS, dense_if_small, largest_value
from lowland._engines.kernels.kernel_operators import (
    GivenKernel,
    Kernel,
    KernelMatrix,
    check_finite_products,
    kernel_matrix,
    mean_square,
    panel_blocks,
    sample_numbers,
)
from lowland._engines.linalg.eigen import (
    LargestPairs,
    all_eigenpairs,
    eigenvalues,
    fix_signs,
    largest_eigenpairs,
)
from lowland._engines.linalg.moments import Moments, merge, moments
from lowland._engines.linalg.products import CenteredOperator, double_center

NEGLIGIBLE = 1e-12  # an eigenvalue below this share of the largest is a rounding error
BLOCK_WIDTH = 24  # vectors per product with tiles: three registers of floats
SAMPLE = 200  # rows on which the rounding error of float32 is measured


class KernelAxes(NamedTuple):
    """Axes in feature space, largest eigenvalue first; the module defines A, b and c.

    Attributes
    ----------
    duals, offsets, mean_weights : ndarray
        A, c and b. An axis without a positive eigenvalue has zeros, and eigenvalue 0.
    kept : ndarray of int or None
        Row numbers of the landmarks; None if all rows are kept.
    scores : ndarray or None
        Coordinates of the fitted rows, if they are known without another product.
    total : float
        Trace of the centered kernel matrix.
    lowest : float
        The smallest eigenvalue seen.
    residual : float or None
        max |H K H v - l v| / l_1; None with landmarks.
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

    def over_all_rows(self, n: int) -> KernelAxes:
        """The same axes with all n rows kept; rows that are not landmarks have zeros."""
        if self.kept is None:
            return self
        duals, weights = np.zeros((n, self.duals.shape[1])), np.zeros(n)
        duals[self.kept], weights[self.kept] = self.duals, self.mean_weights
        return self._replace(duals=duals, mean_weights=weights, kept=None)


def by_matrix(X: Any, kernel: Kernel, n_axes: int, run: FitContext) -> KernelAxes:
    """Axes from eigenvectors of the centered kernel matrix in memory."""
    with run.monitor.phase("kernel matrix", total=1) as phase:
        K = kernel_matrix(X, kernel, run.threads).matrix()
        means = check_finite_products(double_center(K))
        phase.advance()
    pairs = largest_eigenpairs(K, n_axes, tol=1e-11, rng=run.rng, monitor=run.monitor)
    return _from_pairs(pairs, means, float(np.trace(K)), NEGLIGIBLE)


def by_krylov(X: Any, kernel: Kernel, n_axes: int, tol: float, run: FitContext) -> KernelAxes:
    """Axes from block Lanczos on H K H, in float32 if that is accurate enough for ``tol``."""
    dtype = np.float32 if _single_is_enough(X, kernel, tol, run.threads) else np.float64
    K = kernel_matrix(X, kernel, run.threads, dtype)
    centered = CenteredOperator(lambda V: check_finite_products(K.times(V)), with_means=True)
    pairs = largest_eigenpairs(
        centered, n_axes, order=K.n, tol=tol, rng=run.rng, monitor=run.monitor, width=BLOCK_WIDTH
    )
    assert centered.means is not None
    total = float(K.diagonal().sum() - centered.means.sum())
    return _from_pairs(pairs, centered.means, total, max(tol, NEGLIGIBLE))


def _from_pairs(
    pairs: LargestPairs, means: np.ndarray, total: float, negligible: float
) -> KernelAxes:
    n = len(means)
    positive = pairs.values > negligible * max(float(pairs.values[0]), 0.0)
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

    This is measured on a sample of rows that includes the longest row. The errors of more rows
    cancel further.
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
    most, worst = (np.abs(eigenvalues(A)).max() for A in (exact, error))
    return bool(worst <= tol * most)


class LandmarkSums(NamedTuple):
    """Sums over all rows x: the moments of k(x, landmarks), the sum of k(x, x), the largest |x|."""

    moments: Moments
    trace: float
    greatest: float


def by_landmarks(
    X: Any, kernel: Kernel, n_axes: int, n_landmarks: int, run: FitContext
) -> KernelAxes:
    """Axes of the projections of all rows on the span of m random rows, the landmarks."""
    kept = np.sort(run.rng.choice(X.shape[0], n_landmarks, replace=False))
    given = kernel.name == "precomputed"
    K = kernel_matrix(X[kept][:, kept] if given else X[kept], kernel, run.threads)
    with run.monitor.phase("landmarks", total=-(-X.shape[0] // 1024)) as phase:
        sums = landmark_sums(X, K, kept if given else None, phase)
    return axes_of_landmarks(K, sums, kept, n_axes, run)


def landmark_sums(
    X: Any, K: KernelMatrix, columns: np.ndarray | None = None, phase: Phase | None = None
) -> LandmarkSums:
    """Of the rows of X, whose kernel values with the landmarks are in ``columns`` if given."""
    sums: Moments | None = None
    for block in panel_blocks(X.shape[0], K.n):
        values = K.rows(X[block] if columns is None else X[block][:, columns])
        part = moments(values, K.threads, Monitor())
        sums = part if sums is None else merge(sums, part)
        if phase is not None:
            phase.advance((block.stop - block.start) // 1024)
    assert sums is not None
    diagonal = K.diagonal(X) if columns is None else GivenKernel(X, K.threads).diagonal()
    return LandmarkSums(sums, float(diagonal.sum()), largest_value(X))


def merged_sums(a: LandmarkSums, b: LandmarkSums) -> LandmarkSums:
    """The sums over both sets of rows."""
    return LandmarkSums(merge(a.moments, b.moments), a.trace + b.trace, max(a.greatest, b.greatest))


def axes_of_landmarks(
    K: KernelMatrix, found: LandmarkSums, kept: np.ndarray, n_axes: int, run: FitContext
) -> KernelAxes:
    """Axes from the sums over all rows.

    With G = K_mm, M M^T = G^+ and the scatter S of the rows k(x, landmarks), the matrix M^T S M has
    the eigenvalues of the centered approximation. Its eigenvectors W give A = M W.
    """
    sums = found.moments
    values, U = all_eigenpairs(K.matrix())
    with limit_blas(1):
        positive = values > 1e-10 * values[0]
        M = U[:, positive] / np.sqrt(values[positive])
        spread = M.T @ sums.scatter @ M
        pairs = largest_eigenpairs(
            (spread + spread.T) / 2,
            min(n_axes, len(spread)),
            tol=1e-11,
            rng=run.rng,
            monitor=run.monitor,
        )
        weights = M @ (M.T @ sums.mean)
        A = np.zeros((K.n, n_axes))
        A[:, : pairs.vectors.shape[1]] = fix_signs(M @ pairs.vectors)
    lengths = np.zeros(n_axes)
    lengths[: len(pairs.values)] = pairs.values
    negligible = lengths <= NEGLIGIBLE * max(lengths[0], 0.0)
    A[:, negligible], lengths[negligible] = 0.0, 0.0
    return KernelAxes(
        eigenvalues=lengths,
        duals=A,
        offsets=(sums.mean[:, None] * A).sum(axis=0),
        mean_weights=weights,
        kept=kept,
        scores=None,
        total=float(found.trace - sums.n_rows * (sums.mean @ weights)),
        lowest=float(values[-1]),
        residual=None,
    )


# Landmarks of a table that is read in chunks, and the axes of all its rows.
#
# The landmarks and the rows that gamma is taken from are the same ones as in memory. They are read
# first; then one pass sums the kernel values of all rows with the landmarks.


HELD = 16  # matrices of the landmarks: sums of a chunk, a task and the tree, and the eigenproblem


class ReadRows(NamedTuple):
    """The landmarks, their row numbers, and the sample of rows that gamma is taken from."""

    landmarks: Any
    numbers: np.ndarray
    sample: Any


def read_rows(rows: Rows, n_landmarks: int, run: FitContext) -> ReadRows:
    """Read the landmarks and the sample, both at once."""
    (n, p), m = rows.shape, n_landmarks
    require_memory(
        8 * (HELD * m * m + m * p),
        task=f"KernelPCA with {m} landmarks",
        alternative="use a smaller n_landmarks",
    )
    numbers, sample = np.sort(run.rng.choice(n, m, replace=False)), sample_numbers(n, p)
    both = np.union1d(numbers, sample)
    found = rows_at(rows, both, run.monitor)
    if math.prod(rows.shape) <= DENSE_NUMBERS:  # as a table in memory
        found = dense_if_small(found)
    places = [np.searchsorted(both, some) for some in (numbers, sample)]
    return ReadRows(found[places[0]], numbers, found[places[1]])


def block_sums(landmarks: Any, kernel: Kernel, n_jobs: int | None, block: Block) -> LandmarkSums:
    """The sums of one block."""
    return landmark_sums(block.X, kernel_matrix(landmarks, kernel, resolve_n_jobs(n_jobs)))


def mean_square_of(rows: Rows, run: FitContext) -> float:
    """The mean of |x|^2, in a separate pass."""
    n, total = rows.total(_squares, _added, run.monitor, "scale")
    return float(total / n)


def _squares(block: Block) -> tuple[int, float]:
    return block.n_rows, block.n_rows * mean_square(block.X)


def _added(a: tuple[int, float], b: tuple[int, float]) -> tuple[int, float]:
    return a[0] + b[0], a[1] + b[1]
