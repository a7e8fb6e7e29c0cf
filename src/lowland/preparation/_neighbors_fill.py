"""Missing values filled from the nearest rows (Troyanskaya et al. 2001; scikit-learn's KNNImputer).

    d(x, y)^2 = p / |C| sum over C of ((x_j - y_j) / s_j)^2,  C = columns that both rows have

A missing value is the mean of the k nearest fitted rows that have a value in this column; the mean
of the column where no fitted row shares a column with this one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._base.memory import require_memory
from lowland._engines.linalg.products import row_blocks, rows_within, times

N_NEIGHBORS = 5
CANDIDATES = 64  # nearest rows looked at first; most have the values that are missing
BUDGET = 2**27  # bytes of distances at a time
CACHE = 2**21  # bytes of the parts that they are computed from


def column_spread(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Deviation of the known values of each column; 1 where they do not vary."""
    known = ~np.isnan(X)
    centered = np.where(known, X - mean, 0.0)
    greatest = np.abs(centered).max(axis=0)
    unit = np.where(greatest > 0, greatest, 1.0)  # squares of large or tiny numbers stay in range
    n_known = np.maximum(known.sum(axis=0), 1)
    spread = unit * np.sqrt(((centered / unit) ** 2).sum(axis=0) / n_known)
    return np.where(spread > 0, spread, 1.0)


class Fitted(NamedTuple):
    """The fitted rows, and the means and deviations of their columns."""

    X: np.ndarray
    mean: np.ndarray
    spread: np.ndarray


def fill_from_neighbors(X: np.ndarray, fitted: Fitted, threads: int) -> np.ndarray:
    """X with its NaN filled from the fitted rows, which may have NaN, too.

    Every row is filled as if it came alone. Equal distances are decided by the order of the fitted
    rows. O(m n p) for m rows with missing values.
    """
    filled = X.copy()
    rows = np.flatnonzero(np.isnan(X).any(axis=1))
    n = len(fitted.X)
    at_once = rows_within(8 * n, BUDGET)
    need, task = 16 * n * min(at_once, len(rows)), f"filling missing values from {n} fitted rows"
    require_memory(need, task=task, alternative="fill them with the mean or the median")
    for block in row_blocks(len(rows), at_once):
        here = rows[block]
        D2 = _squared_distances(X[here], fitted, threads)
        for row, squares in zip(here, D2, strict=True):
            filled[row] = _filled_row(X[row], squares, fitted)
    return filled


def _squared_distances(X: np.ndarray, fitted: Fitted, threads: int) -> np.ndarray:
    """Mean squared difference over the columns that both rows have; infinite where none.

    With z = w = 0 where a value is missing, the sum is w_y . z_x^2 + z_y^2 . w_x - 2 z_y . z_x.
    """
    Z, W = _standardized(X, fitted)
    factors = np.ascontiguousarray(np.hstack([Z * Z, W, -2.0 * Z]).T)
    weights = np.ascontiguousarray(W.T)
    n, p = fitted.X.shape
    squares = np.empty((len(X), n))
    zeros = np.zeros(3 * p)
    for block in row_blocks(n, rows_within(8 * (4 * p + 2 * len(X)), CACHE)):
        Zf, Wf = _standardized(fitted.X[block], fitted)
        sums = times(np.hstack([Wf, Zf * Zf, Zf]), zeros, factors, threads)
        common = times(Wf, zeros[:p], weights, threads)
        np.maximum(sums, 0.0, out=sums)
        if common.min() > 0:
            sums /= common
        else:
            sums = np.divide(sums, common, out=np.full_like(sums, np.inf), where=common > 0)
        squares[:, block] = sums.T
    return squares


def _standardized(X: np.ndarray, fitted: Fitted) -> tuple[np.ndarray, np.ndarray]:
    """Standardized values, 0 where they are missing; and 1 where they are known."""
    known = ~np.isnan(X)
    return np.where(known, (X - fitted.mean) / fitted.spread, 0.0), known.astype(np.float64)


def _filled_row(x: np.ndarray, squares: np.ndarray, fitted: Fitted) -> np.ndarray:
    """One row, filled; ``squares`` are its squared distances from the fitted rows."""
    out = x.copy()
    nearest = _smallest(squares, CANDIDATES)
    for column in np.flatnonzero(np.isnan(x)):
        values = fitted.X[nearest, column]
        values = values[~np.isnan(values)]
        if len(values) < N_NEIGHBORS and len(nearest) < np.isfinite(squares).sum():
            lacks = np.isnan(fitted.X[:, column])
            donors = _smallest(np.where(lacks, np.inf, squares), N_NEIGHBORS)
            values = fitted.X[donors, column]
        values = values[:N_NEIGHBORS].astype(np.float64)
        out[column] = values.mean() if len(values) else fitted.mean[column]
    return out


def _smallest(squares: np.ndarray, count: int) -> np.ndarray:
    """Places of the smallest finite values, ascending; equal ones in the order of their places."""
    if count < len(squares):
        limit = np.partition(squares, count - 1)[count - 1]
        places = np.flatnonzero(squares <= limit)
    else:
        places = np.arange(len(squares))
    places = places[np.isfinite(squares[places])]
    return places[np.argsort(squares[places], kind="stable")[:count]]
