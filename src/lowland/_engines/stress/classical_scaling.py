"""Classical scaling (Torgerson 1952; Gower 1966): the map whose inner products fit best.

From squared distances D2, B = -1/2 H D2 H with H = I - 11^T/n holds the inner products of points
around their mean; its leading eigenvectors times the roots of their eigenvalues are the map Y. A
row with squared distances t to the fitted points has the coordinates

    y = 1/2 L^-1 Y^T (b - t),   b_j = mean_i d_ij^2,   L = diag(eigenvalues)         (Gower 1968)

where a constant added to b or t has no effect, because Y^T 1 = 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._base.context import FitContext
from lowland._base.traits import Estimate
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import (
    all_eigenpairs,
    all_pairs_cost,
    eigenvalues,
    fix_signs,
    general_eigenvalues,
    is_small,
    largest_eigenpairs,
    operator_pairs_cost,
)
from lowland._engines.linalg.principal_axes import PrincipalAxes, leading_axes
from lowland._engines.linalg.products import (
    CenteredOperator,
    double_center,
    row_blocks,
    rows_within,
)


class Scaling(NamedTuple):
    """A classical solution.

    Attributes
    ----------
    Y : ndarray of shape (n, q)
        The map; a coordinate without a positive eigenvalue is 0.
    eigenvalues : ndarray
        Largest first: all n of them, or only the q of the map.
    absolute, positive : float or None
        Sums of the absolute and of the positive eigenvalues; None where only q are known.
    mean_squares : ndarray of shape (n,) or None
        b of the formula for new rows.
    axes, mean : ndarray or None
        The map as a projection of rows, y = axes (x - mean); None for distances.
    """

    Y: np.ndarray
    eigenvalues: np.ndarray
    absolute: float | None
    positive: float | None
    mean_squares: np.ndarray | None = None
    axes: np.ndarray | None = None
    mean: np.ndarray | None = None


def classical_scaling_cost(n: int, q: int) -> Estimate:
    """Of :func:`of_distances`, without the distances themselves."""
    if is_small(n, 1):
        return all_pairs_cost(n).holding(16 * n * n)
    product = Estimate(6e-10 * n * n, 8 * n * (q + 4))
    return operator_pairs_cost(n, q, product) + Estimate(7e-10 * n * n, 0)


def of_distances(
    D: np.ndarray,
    q: int,
    run: FitContext,
    *,
    tol: float = 1e-9,
    all_values: bool | None = None,
    rough: bool = False,
) -> Scaling:
    """From a matrix of distances; a few pairs of a large one come from block Lanczos.

    ``all_values`` asks for the whole spectrum; None: where it is cheap. ``rough``: a start is
    wanted, so eigenvectors that miss ``tol`` give no warning.
    """
    n = len(D)
    if all_values is None:
        all_values = is_small(n, 1)
    means = np.array([float(np.square(row, dtype=np.float64).mean()) for row in D])
    if all_values:
        B = np.square(D, dtype=np.float64)
        double_center(B, -0.5)
        values, vectors = _all_values(B, q, run, tol)
        absolute: float | None = float(np.abs(values).sum())
        positive: float | None = float(values[values > 0].sum())
    else:
        values, vectors = _leading(D, min(q, n), run, tol, rough)
        absolute = positive = None
    return Scaling(_map(values, vectors, q), values.copy(), absolute, positive, means)


def _all_values(
    B: np.ndarray, q: int, run: FitContext, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    """All eigenvalues, largest first, and at least q vectors: computing all costs far more."""
    if is_small(len(B), q):
        return all_eigenpairs(B)
    vectors = largest_eigenpairs(B, q, tol=tol, rng=run.rng, monitor=run.monitor).vectors
    return eigenvalues(B), vectors


def _leading(
    D: np.ndarray, q: int, run: FitContext, tol: float, rough: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Leading pairs of -1/2 H D2 H, which is not formed: the centering is applied to vectors."""
    n, zero = len(D), np.zeros(len(D))

    def times(V: np.ndarray) -> np.ndarray:
        out = np.empty(V.shape)
        for rows in row_blocks(n, rows_within(8 * n)):
            out[rows] = products.times(np.square(D[rows]), zero, V, run.threads)
        return out

    found = largest_eigenpairs(
        CenteredOperator(times, -0.5),
        q,
        order=n,
        tol=tol,
        rng=run.rng,
        monitor=run.monitor,
        width=max(8, q + 4),
        rough=rough,
    )
    return found.values, found.vectors


def _map(values: np.ndarray, vectors: np.ndarray, q: int) -> np.ndarray:
    """Coordinates from eigenpairs, largest first; eigenvalues that are rounding count as 0."""
    kept = min(q, len(values))
    top = values[:kept]
    real = top > 1e-12 * np.abs(values).max(initial=0.0)
    Y = np.zeros((len(vectors), q))
    Y[:, :kept] = vectors[:, :kept] * np.sqrt(np.where(real, top, 0.0))
    return fix_signs(Y)


def of_rows(X: Any, q: int, run: FitContext, *, all_values: bool = False) -> Scaling:
    """From rows with Euclidean distances, where classical scaling is PCA."""
    n, p = X.shape
    k = min(n, p) if all_values else min(q, n, p)
    found = of_axes(
        leading_axes(X, k, run.threads, run.rng, run.monitor), q, n if all_values else q
    )
    assert found.axes is not None
    assert found.mean is not None
    Y = products.times(X, found.mean, found.axes.T, run.threads).astype(np.float64)
    signs = np.where((fix_signs(Y) == Y).all(axis=0), 1.0, -1.0)
    return found._replace(Y=Y * signs, axes=found.axes * signs[:, None])


def of_axes(found: PrincipalAxes, q: int, n_values: int) -> Scaling:
    """From the principal axes of rows, with ``n_values`` eigenvalues; Y is a map of no rows.

    The signs of the axes are those of ``found``, not yet those of the map.
    """
    axes = np.zeros((q, len(found.mean)))
    axes[: len(found.axes)] = found.axes[:q]
    values = np.zeros(n_values)
    values[: len(found.variances)] = found.variances * (found.n_rows - 1)
    total = float(found.column_variances.sum()) * (found.n_rows - 1)
    return Scaling(np.empty((0, q)), values, total, total, None, axes, found.mean)


def gower_duals(Y: np.ndarray, eigenvalues: np.ndarray) -> np.ndarray:
    """1/2 Y L^-1; 0 for a coordinate without a positive eigenvalue.

    The eigenvalues may be more or fewer than the coordinates.
    """
    kept = eigenvalues[: Y.shape[1]]
    values = np.full(Y.shape[1], np.inf)
    values[: len(kept)] = np.where(kept > 0, kept, np.inf)
    return 0.5 * Y / values


def gower_placement(
    squares: np.ndarray, mean_squares: np.ndarray, duals: np.ndarray, threads: int
) -> np.ndarray:
    """Places of rows from their squared distances t (m, n) to fitted points: (b - t) duals.

    ``mean_squares`` is b. The points need not be a classical solution: with b_j = |y_j|^2 and
    duals = 1/2 (Y^+)^T it is the least-squares solution of t_j = |z|^2 - 2 z.y_j + |y_j|^2.
    """
    return products.times(squares, mean_squares, -duals, threads)


def additive_constant(D: np.ndarray) -> float:
    """The least c >= 0 such that d_ij + c, i != j, are Euclidean distances (Cailliez 1983).

    The largest eigenvalue of [[0, 2 B2], [-I, -4 B1]] with B2 = -1/2 H D^2 H and B1 = -1/2 H D H.
    """
    n = len(D)
    B2, B1 = np.square(D, dtype=np.float64), D.astype(np.float64)
    double_center(B2, -0.5)
    double_center(B1, -0.5)
    block = np.zeros((2 * n, 2 * n))
    block[:n, n:] = 2 * B2
    block[n:, :n] = -np.eye(n)
    block[n:, n:] = -4 * B1
    values = general_eigenvalues(block)
    # the constant vector is in the null space of both and leaves complex pairs around 0
    real = values.real[np.abs(values.imag) <= 1e-8 * np.abs(values).max(initial=0.0)]
    return max(0.0, float(real.max(initial=0.0)))
