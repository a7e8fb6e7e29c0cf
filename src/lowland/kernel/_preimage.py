"""Pre-images: rows whose images in feature space are near given points of the map.

rbf      z = sum_j g_j k(z, x_j) x_j / sum_j g_j k(z, x_j), iterated (Mika et al. 1999)
linear   linear regression of the fitted rows on their coordinates in the map
others   kernel ridge regression of the fitted rows on their coordinates in the map
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist

from lowland._core.threads import limit_blas
from lowland._core.validation import is_sparse
from lowland._engines.kernels.kernel_operators import (
    Kernel,
    KernelMatrix,
    kernel_matrix,
    panel_blocks,
)
from lowland._engines.kernels.kernel_scale import median_distance
from lowland._engines.linalg import products

MAX_STEPS = 200
GAIN = 1e-10  # a smaller relative gain ends the iteration
RIDGE_ROWS = 2000  # the regression uses at most so many rows, because it costs their number cubed


class Axes(NamedTuple):
    """Kept rows x_j, their coordinates in the map, and the weights A and b.

    The axes are sum_j A_jk phi(x_j), and the mean of the images is sum_j b_j phi(x_j).
    """

    rows: Any
    places: np.ndarray
    duals: np.ndarray
    mean_weights: np.ndarray


def preimages(Y: np.ndarray, axes: Axes, kernel: Kernel, ridge: float, threads: int) -> np.ndarray:
    """Rows for the points Y of the map; ``ridge`` is for kernels other than rbf and linear."""
    if kernel.name == "linear":
        return by_least_squares(Y, axes.places, axes.rows, threads)
    if kernel.name == "rbf":
        return by_fixed_point(Y, axes, kernel, threads)
    return by_ridge(Y, axes.places, axes.rows, ridge, threads)


def by_fixed_point(Y: np.ndarray, axes: Axes, kernel: Kernel, threads: int) -> np.ndarray:
    """Rows z that minimize |phi(z) - P|^2 for the points P = sum_j g_j phi(x_j) of the map.

    g = b + A y. Up to constants this maximizes sum_j g_j k(z, x_j), starting from the kept row that
    is nearest in the map. Steps never lower the sum while the weights g_j of near rows are
    positive. A step that would lower it is not taken and ends the iteration of that row.
    """
    X = np.empty((len(Y), axes.rows.shape[1]))
    matrix = kernel_matrix(axes.rows, kernel, threads)
    zero = np.zeros(Y.shape[1])
    for block in panel_blocks(len(Y), matrix.n):
        start = axes.rows[nearest_rows(Y[block], axes.places)]
        weights = products.times(Y[block], zero, axes.duals.T, threads) + axes.mean_weights
        start = start.toarray() if is_sparse(start) else start
        X[block] = _climb(start, weights, axes.rows, matrix, threads)
    return X


def _climb(
    start: np.ndarray, weights: np.ndarray, rows: Any, matrix: KernelMatrix, threads: int
) -> np.ndarray:
    """Iterate z = sum_j g_j k(z, x_j) x_j / sum_j g_j k(z, x_j) for each row g of the weights."""
    zero = np.zeros(matrix.n)
    best, reached = np.array(start, dtype=np.float64), np.zeros(len(start))
    Z, active = best.copy(), np.arange(len(best))
    for _ in range(MAX_STEPS):
        shares = matrix.rows(Z[active])
        shares *= weights[active]
        value = shares.sum(axis=1)
        better = value > reached[active] * (1 + GAIN)
        active, shares, value = active[better], shares[better], value[better]
        if not len(active):
            break
        best[active], reached[active] = Z[active], value
        if is_sparse(rows):
            moved = np.asarray(shares @ rows)
        else:
            moved = products.times(shares, zero, rows, threads)
        Z[active] = moved / value[:, None]
    return best


def nearest_rows(Y: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The index of the nearest of ``places`` for each point of the map."""
    nearest = np.empty(len(Y), dtype=np.int64)
    for block in panel_blocks(len(Y), len(places)):
        nearest[block] = cdist(Y[block], places).argmin(axis=1)
    return nearest


def by_ridge(
    Y: np.ndarray, places: np.ndarray, rows: Any, ridge: float, threads: int
) -> np.ndarray:
    """Kernel ridge regression of the rows on their coordinates; the rbf kernel has median width."""
    some = slice(None, None, -(-len(places) // RIDGE_ROWS))
    centers = np.ascontiguousarray(places[some])
    targets = rows[some].toarray() if is_sparse(rows) else np.asarray(rows[some], np.float64)
    mean = targets.mean(axis=0)
    kernel = Kernel("rbf", 0.5 / median_distance(centers, "euclidean") ** 2)
    matrix = kernel_matrix(centers, kernel, threads)
    K = matrix.matrix()
    K[np.diag_indices_from(K)] += ridge
    if not (np.isfinite(K).all() and np.isfinite(targets - mean).all()):
        return np.full((len(Y), targets.shape[1]), np.nan)  # of extreme rows; refused by the caller
    with limit_blas(1):
        coefficients = scipy.linalg.solve(K, targets - mean, assume_a="pos")
    return matrix.rows_times(Y, coefficients) + mean


def by_least_squares(Y: np.ndarray, places: np.ndarray, rows: Any, threads: int) -> np.ndarray:
    """Linear regression of the rows on their coordinates, for maps that are linear themselves."""
    mean = np.asarray(rows.mean(axis=0, dtype=np.float64)).ravel()
    center = places.mean(axis=0)
    square = products.transpose_times(places, center, places - center, threads)
    if is_sparse(rows):
        cross = np.asarray((places - center).T @ rows)
    else:
        cross = products.transpose_times(places, center, rows, threads)
    with limit_blas(1):
        axes = np.linalg.pinv(square, hermitian=True) @ cross
    return products.times(Y, center, axes, threads) + mean
