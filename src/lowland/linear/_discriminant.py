"""Discriminant axes by two roads: the p x p covariance within classes, or the n x n inner products.

With S the covariance within classes and M the class means, centered, in rows:

    covariance   S, p x p                 O(n p^2 + p^3)    mergeable
    gram         rows in the coordinates of their own span, n - 1 of them: O(n^2 p + n^3)

Either way S is factored once and the rest is the size of the classes: with A^T S A = I the axes
are A times the left singular vectors of A^T M^T N^{1/2}, where N holds the classes' weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from lowland._core.monitor import Monitor
from lowland._core.threads import limit_blas
from lowland._engines.linalg import products
from lowland._engines.linalg.class_moments import ClassColumns, ClassMoments, class_moments, members
from lowland._engines.linalg.eigen import all_eigenpairs, thin_svd
from lowland.linear._shrinkage import Shrinkage, by_share, divided, ledoit_wolf_classes

__all__ = [
    "Discriminants",
    "by_covariance",
    "by_gram",
    "centered",
    "column_units",
    "decision",
    "from_rows",
    "from_sums",
]

# Eigenvalues below this share of the largest are rounding: the matrix is singular.
SINGULAR = 1e-12
# Cholesky's axes are good to eps / this; matrices nearer to singular get their eigenvalues.
WELL_CONDITIONED = 1e-10


class Discriminants(NamedTuple):
    """Axes in rows (unit variance within classes), between / within along each; S^-1 M in rows."""

    axes: np.ndarray
    ratios: np.ndarray
    coefficients: np.ndarray


def from_sums(sums: ClassMoments, shrinkage: Any, weights: np.ndarray) -> Discriminants:
    """From mergeable sums; ``shrinkage`` is a share or None, ``weights`` n prior_c / (n - C)."""
    C, share = len(sums.counts), float(shrinkage or 0.0)
    S = sums.scatter / (sums.n_rows - C)
    ridge = by_share(share, np.diag(S), C).ridge
    S *= 1.0 - share
    S[np.diag_indices_from(S)] += ridge
    return by_covariance(S, sums.means, weights)


def from_rows(
    X: Any,
    codes: np.ndarray,
    columns: ClassColumns,
    shrinkage: float | str | None,
    weights: np.ndarray,
    threads: int,
    monitor: Monitor,
) -> Discriminants:
    """From what has to see the rows: their inner products, or Ledoit and Wolf's shares ("auto")."""
    C, (n, p) = len(columns.counts), X.shape
    if shrinkage == "auto":
        units, _ = column_units(columns.variances, columns.means, weights)
        pull = ledoit_wolf_classes(X, codes, columns, units, threads, monitor)
    else:
        pull = by_share(float(shrinkage or 0.0), columns.variances, C)
    if n < p:
        with monitor.phase("inner products"):
            return by_gram(X, codes, columns, pull, weights, threads)
    S = class_moments(X, codes, C, threads, monitor, pull.weights).scatter / (n - C)
    S[np.diag_indices_from(S)] += pull.ridge
    return by_covariance(S, columns.means, weights)


def by_covariance(S: np.ndarray, means: np.ndarray, weights: np.ndarray) -> Discriminants:
    """From the p x p covariance, in units of the columns' deviations within classes."""
    units, varies = column_units(np.diag(S), means, weights)
    M, g = centered(means, weights)[:, varies], units[varies]
    found = _solve(S[np.ix_(varies, varies)] / np.outer(g, g), M / g, weights)
    axes, coefficients = np.zeros((len(found.ratios), len(S))), np.zeros(means.shape)
    axes[:, varies], coefficients[:, varies] = found.axes / g, found.coefficients / g
    return Discriminants(axes, found.ratios, coefficients)


def by_gram(
    X: Any,
    codes: np.ndarray,
    columns: ClassColumns,
    shrinkage: Shrinkage,
    weights: np.ndarray,
    threads: int,
) -> Discriminants:
    """From the inner products of the rows, without a p x p matrix.

    With Z = (X - 1 m^T) / g and Z Z^T = U s^2 U^T, the rows have the coordinates F = U s in their
    span, and a direction w there is Z^T U s^-1 w / g in the data space. The units g are the
    columns' deviations, or the roots of a ridge, which in these coordinates is the identity.
    """
    ridged = bool(shrinkage.ridge.any())
    units, _ = column_units(columns.variances, columns.means, weights)
    units = np.sqrt(shrinkage.ridge) if ridged else units
    scaled = divided(X, units)
    mean = columns.counts @ columns.means / len(codes) / units
    gram = products.sample_gram(scaled, mean, threads)
    values, U = all_eigenpairs(gram)
    kept = values > _cutoff(values)
    U, s = U[:, kept], np.sqrt(values[kept])
    F = U * s
    C = len(weights)
    M = np.array([F[ids].mean(axis=0) for ids in members(codes, C)])
    within = (F - M[codes]) * np.sqrt(shrinkage.weights[codes])[:, None]
    with limit_blas(1):
        S = within.T @ within / (len(F) - C)
    if ridged:
        S += np.eye(len(S))
    found = _solve(S, centered(M, weights), weights)
    with limit_blas(1):
        dual = U @ (np.vstack([found.axes, found.coefficients]) / s).T
    back = products.transpose_times(scaled, mean, dual, threads).T / units
    k = len(found.ratios)
    return Discriminants(back[:k], found.ratios, back[k:])


def decision(
    coefficients: np.ndarray, M: np.ndarray, log_priors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """score_c(x) = b_c^T (x - m) - b_c^T (m_c - m) / 2 + log prior_c with b_c = S^-1 (m_c - m).

    The weights b_c and what is added to them; for two classes those of the log-odds of the second.
    """
    constants = log_priors - 0.5 * np.einsum("cp,cp->c", coefficients, M)
    if len(M) == 2:
        return np.diff(coefficients, axis=0), np.diff(constants)
    return coefficients, constants


def centered(means: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Class means about their weighted mean; exactly 0 in columns where all are equal."""
    away = means - means[0]
    return away - (weights / weights.sum()) @ away


def column_units(
    variances: np.ndarray, means: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Deviation of each column within classes, or between them where it is constant within; and
    whether it varies at all, by more than the rounding of its values (if not, its unit is 1)."""
    rounding = 16 * np.finfo(float).eps * np.abs(means).max(axis=0)
    within = np.sqrt(np.maximum(variances, 0.0))
    between = np.sqrt(weights @ centered(means, weights) ** 2 / weights.sum())
    units = np.where(within > rounding, within, between)
    varies = units > rounding
    return np.where(varies, units, 1.0), varies


def _solve(S: np.ndarray, M: np.ndarray, weights: np.ndarray) -> Discriminants:
    """All min(C - 1, p) axes and S^-1 M; axes that S has no room for are 0."""
    n_axes = min(M.shape[0] - 1, M.shape[1])
    if n_axes == 0:  # no column varies
        return Discriminants(M[:0], np.zeros(0), M)
    with limit_blas(1):
        Y, back = _whitened(S, M.T)
        left, s, _ = thin_svd(Y * np.sqrt(weights))
        n_axes = min(n_axes, len(s))
        return Discriminants(back(left[:, :n_axes]).T, s[:n_axes] ** 2, back(Y).T)


def _whitened(
    S: np.ndarray, B: np.ndarray
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """A^T B and v -> A v, where A^T S A = I.

    A singular S has directions in which no class varies. Where the means differ there, these
    directions separate the classes perfectly, so they are not thrown away (as a pseudo-inverse
    would): they count as much as the least varying direction that does vary.
    """
    factor = _triangular(S)
    if factor is None:
        null = _null_space(S)
        # Columns that repeat others leave directions in which not even the means differ: what
        # S is there does not matter, so let it be 1.
        if np.abs(null.T @ B).max(initial=0.0) <= SINGULAR * np.abs(B).max():
            factor = _triangular(S + null @ null.T)
    if factor is not None:
        L = factor
        return (
            scipy.linalg.solve_triangular(L, B, lower=True, check_finite=False),
            lambda v: scipy.linalg.solve_triangular(
                L, v, lower=True, trans="T", check_finite=False
            ),
        )
    values, vectors = all_eigenpairs(S)
    varies = values > _cutoff(values)
    least = values[varies].min() if varies.any() else 1.0
    A = vectors / np.sqrt(np.where(varies, values, least))
    return A.T @ B, lambda v: A @ v


def _triangular(S: np.ndarray) -> np.ndarray | None:
    """Cholesky's factor of S, or None when S is too near to singular for it."""
    factor, failed = scipy.linalg.lapack.dpotrf(S, lower=1, clean=1)
    if failed:
        return None
    norm = np.abs(S).sum(axis=0).max()
    condition = scipy.linalg.lapack.dpocon(factor, norm, uplo="L")[0]
    return factor if condition > WELL_CONDITIONED else None


def _null_space(S: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the directions v with S v = 0, by Cholesky with pivots.

    With P^T S P = L L^T, L of r columns: the solutions of L^T P^T v = 0.
    """
    factor, pivots, r, _ = scipy.linalg.lapack.dpstrf(S, tol=SINGULAR * S.max(), lower=1)
    top, bottom = np.tril(factor[:r, :r]), factor[r:, :r]
    null = np.empty((len(S), len(S) - r))
    null[pivots[:r] - 1] = -scipy.linalg.solve_triangular(top, bottom.T, lower=True, trans="T")
    null[pivots[r:] - 1] = np.eye(len(S) - r)
    return np.linalg.qr(null)[0]


def _cutoff(values: np.ndarray) -> float:
    share = max(SINGULAR, 4 * len(values) * np.finfo(float).eps)
    return float(share * values.max(initial=0.0))
