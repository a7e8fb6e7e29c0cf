"""Shrinkage of covariance matrices towards a multiple of the identity.

    S' = (1 - d) S + d t I,   t = tr(S) / p

The share d is given (Friedman 1989), or chosen to minimize the expected squared error (Ledoit &
Wolf 2004, J. Multivariate Analysis 88).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.monitor import Monitor
from lowland._core.validation import is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.blocks import contiguous_blocks, rows_within
from lowland._engines.linalg.class_moments import ClassColumns, members
from lowland._engines.linalg.moments import moments


class Shrinkage(NamedTuple):
    """The shrunk S: the part of class c times ``weights[c]``, plus ``ridge`` on the diagonal."""

    weights: np.ndarray
    ridge: np.ndarray


def by_share(share: float, variances: np.ndarray, n_classes: int) -> Shrinkage:
    """The same share for every class; ``variances`` is the diagonal of S."""
    ridge = np.full(len(variances), share * variances.mean())
    return Shrinkage(np.full(n_classes, 1.0 - share), ridge)


def ledoit_wolf_classes(
    X: Any,
    codes: np.ndarray,
    columns: ClassColumns,
    units: np.ndarray,
    threads: int,
    monitor: Monitor,
) -> Shrinkage:
    """A share for each class from its own rows, in units of its own standard deviations.

    ``units`` (p,) replace the standard deviation of a column that is constant in a class.
    """
    n, C = len(codes), len(columns.counts)
    weights, ridge = np.ones(C), np.zeros(X.shape[1])
    with monitor.phase("shrinkage", total=C) as phase:
        for c, ids in enumerate(members(codes, C)):
            variances = columns.squares[c] / len(ids)
            unit = np.where(variances > 0, np.sqrt(variances), units)
            share = ledoit_wolf(X[ids], columns.means[c], unit, threads, monitor)
            weights[c] = 1.0 - share
            ridge += len(ids) / (n - C) * share * (variances > 0).mean() * unit**2
            phase.advance()
    return Shrinkage(weights, ridge)


def ledoit_wolf(
    X: Any, mean: np.ndarray, unit: np.ndarray, threads: int, monitor: Monitor
) -> float:
    """The best share d for the covariance of Z = (X - 1 m^T) / unit (eq. 14 and lemma 3.2).

    d = b / a with a = |S - t I|^2 and b = min(a, sum_i |z_i z_i^T - S|^2 / n^2). The Frobenius norm
    |.| is computed from the smaller of Z^T Z and Z Z^T, whose norms are equal.
    """
    n, p = X.shape
    X, mean = divided(X, unit), mean / unit
    if n <= p:
        product = products.sample_gram(X, mean, threads)
        lengths = np.diag(product)
    else:
        product = moments(X, threads, monitor).scatter
        lengths = row_lengths(X, mean)
    return share_of_norms(product, float((lengths**2).sum()), n, p)


def share_of_norms(product: np.ndarray, fourth: float, n: int, p: int | None = None) -> float:
    """d from Z^T Z, or from Z Z^T of p columns, and the sum of the fourth powers |z_i|^4."""
    p = len(product) if p is None else p
    norm = float((product**2).sum()) / n**2
    target = float(np.trace(product)) / (n * p)
    distance = norm - p * target**2  # a, from S to its target
    noise = min((fourth / n - norm) / n, distance)  # b
    return noise / distance if noise > 0 else 0.0


def row_lengths(X: Any, mean: np.ndarray) -> np.ndarray:
    """|x_i - m|^2 of each row."""
    if is_sparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        return squares - 2 * (X @ mean) + mean @ mean
    lengths = np.empty(len(X))
    for rows, block in contiguous_blocks(X, rows_within(8 * X.shape[1])):
        deviations = block - mean
        lengths[rows] = np.einsum("ij,ij->i", deviations, deviations)
    return lengths


def divided(X: Any, units: np.ndarray) -> Any:
    """X with each column divided by its unit, in float64; sparse rows stay sparse."""
    if is_sparse(X):
        return X.astype(np.float64).multiply(1.0 / units).tocsr()
    return np.divide(X, units, dtype=np.float64)
