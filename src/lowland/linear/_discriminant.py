"""Discriminant axes by two solvers: the p x p covariance within classes, or n x n inner products.

S is the covariance within classes, and M has the centered class means in rows.

    covariance   S, p x p                                     O(n p^2 + p^3)    mergeable
    gram         rows in the n - 1 coordinates of their span  O(n^2 p + n^3)

Both factor S once. The remaining work depends on the number of classes only: with A^T S A = I the
axes are A times the left singular vectors of A^T M^T N^{1/2}, where N holds the class weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from lowland._core.context import FitContext
from lowland._core.threads import limit_blas
from lowland._engines.linalg import products
from lowland._engines.linalg.class_moments import ClassColumns, ClassMoments, class_moments, members
from lowland._engines.linalg.eigen import all_eigenpairs, thin_svd
from lowland.linear._shrinkage import Shrinkage, by_share, divided, ledoit_wolf_classes

# Eigenvalues below this share of the largest are rounding errors: the matrix is singular.
SINGULAR = 1e-12
# Below this reciprocal condition number, eigenvalues are used in place of Cholesky's factor.
WELL_CONDITIONED = 1e-10


class Discriminants(NamedTuple):
    """Discriminant axes and what the classifier needs.

    Attributes
    ----------
    axes : ndarray of shape (k, p)
        Axes in rows, with unit variance within classes.
    ratios : ndarray of shape (k,)
        Variance between classes over variance within, along each axis.
    coefficients : ndarray of shape (C, p)
        S^-1 M in rows.
    """

    axes: np.ndarray
    ratios: np.ndarray
    coefficients: np.ndarray

    def padded(self, n_axes: int) -> tuple[np.ndarray, np.ndarray]:
        """Axes and ratios, with zeros beyond the rank of the data."""
        axes, ratios = np.zeros((n_axes, self.axes.shape[1])), np.zeros(n_axes)
        axes[: len(self.axes)], ratios[: len(self.ratios)] = self.axes, self.ratios
        return axes, ratios


def from_sums(sums: ClassMoments, shrinkage: Any, weights: np.ndarray) -> Discriminants:
    """Axes from mergeable sums.

    ``shrinkage`` is a share or None; ``weights`` are n prior_c / (n - C).
    """
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
    run: FitContext,
) -> Discriminants:
    """Axes from all rows, for more columns than rows and for shrinkage by Ledoit and Wolf ("auto").

    ``codes`` are the class numbers of the rows, ``columns`` the sums of each class by column.
    """
    C, (n, p) = len(columns.counts), X.shape
    if shrinkage == "auto":
        units, _ = column_units(columns.variances, columns.means, weights)
        shrunk = ledoit_wolf_classes(X, codes, columns, units, run.threads, run.monitor)
    else:
        shrunk = by_share(float(shrinkage or 0.0), columns.variances, C)
    if n < p:
        with run.monitor.phase("inner products"):
            return by_gram(X, codes, columns, shrunk, weights, run.threads)
    S = class_moments(X, codes, C, run.threads, run.monitor, shrunk.weights).scatter / (n - C)
    S[np.diag_indices_from(S)] += shrunk.ridge
    return by_covariance(S, columns.means, weights)


def by_covariance(S: np.ndarray, means: np.ndarray, weights: np.ndarray) -> Discriminants:
    """Axes from the p x p covariance, solved in units of the standard deviations within classes."""
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
    """Axes from the inner products of the rows, without a p x p matrix.

    With Z = (X - 1 m^T) / g and Z Z^T = U s^2 U^T, the rows have the coordinates F = U s in their
    span. A direction w in the span is Z^T U s^-1 w / g in the data space. The units g are the
    standard deviations of the columns. With a ridge they are its square roots, so that the ridge
    is the identity in these coordinates.
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
    """Weights b_c and constants of score_c(x) = b_c^T (x - m) - b_c^T (m_c - m) / 2 + log prior_c.

    b_c = S^-1 (m_c - m). For two classes the result is one row: the log-odds of the second class.
    """
    constants = log_priors - 0.5 * np.einsum("cp,cp->c", coefficients, M)
    if len(M) == 2:
        return np.diff(coefficients, axis=0), np.diff(constants)
    return coefficients, constants


def centered(means: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Class means minus their weighted mean; exactly 0 in columns where all are equal."""
    offsets = means - means[0]
    return offsets - (weights / weights.sum()) @ offsets


def column_units(
    variances: np.ndarray, means: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The unit of each column, and whether the column varies by more than its rounding error.

    The unit is the standard deviation within classes. It is the standard deviation between classes
    for a column that is constant within all classes, and 1 for a column that does not vary.
    """
    rounding = 16 * np.finfo(float).eps * np.abs(means).max(axis=0)
    within = np.sqrt(np.maximum(variances, 0.0))
    between = np.sqrt(weights @ centered(means, weights) ** 2 / weights.sum())
    units = np.where(within > rounding, within, between)
    varies = units > rounding
    return np.where(varies, units, 1.0), varies


def _solve(S: np.ndarray, M: np.ndarray, weights: np.ndarray) -> Discriminants:
    """Up to min(C - 1, p) axes, as many as the data have, and S^-1 M."""
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
    """A^T B and the function v -> A v, where A^T S A = I.

    A singular S has directions in which no class varies. If the class means differ in such a
    direction, it separates the classes perfectly, so it is not dropped (as a pseudo-inverse would).
    Instead it gets the smallest positive variance of S.
    """
    factor = _triangular(S)
    if factor is None:
        null = _null_space(S)
        # Columns that are combinations of others give directions in which the means do not differ
        # either. The value of S in these directions does not matter; 1 makes S regular.
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
    """Cholesky's factor of S, or None if S is too close to singular."""
    factor, failed = scipy.linalg.lapack.dpotrf(S, lower=1, clean=1)
    if failed:
        return None
    norm = np.abs(S).sum(axis=0).max()
    condition = scipy.linalg.lapack.dpocon(factor, norm, uplo="L")[0]
    return factor if condition > WELL_CONDITIONED else None


def _null_space(S: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the null space of S, by the pivoted Cholesky factorization.

    With P^T S P = L L^T and L of r columns, it consists of the solutions of L^T P^T v = 0.
    """
    factor, pivots, r, _ = scipy.linalg.lapack.dpstrf(S, tol=SINGULAR * S.max(), lower=1)
    top, bottom = np.tril(factor[:r, :r]), factor[r:, :r]
    null = np.empty((len(S), len(S) - r))
    null[pivots[:r] - 1] = -scipy.linalg.solve_triangular(top, bottom.T, lower=True, trans="T")
    null[pivots[r:] - 1] = np.eye(len(S) - r)
    return np.linalg.qr(null)[0]


def _cutoff(values: np.ndarray) -> float:
    """Eigenvalues of a positive semidefinite matrix up to this one are rounding errors."""
    share = max(SINGULAR, 4 * len(values) * np.finfo(float).eps)
    return float(share * values.max(initial=0.0))
