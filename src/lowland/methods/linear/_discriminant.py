"""Discriminant axes by two solvers: the p x p covariance within classes, or n x n inner products.

S is the covariance within classes, and M has the centered class means in rows.

    covariance   S, p x p                                     O(n p^2 + p^3)    mergeable
    gram         rows in the n - 1 coordinates of their span  O(n^2 p + n^3)

Both factor S once. The remaining work depends on the number of classes only: with A^T S A = I the
axes are A times the left singular vectors of A^T M^T N^{1/2}, where N holds the class weights.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows
from lowland._base.targets import Labels, check_labels, join_classes
from lowland._base.threads import limit_blas
from lowland._base.validation import is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.class_moments import (
    ClassColumns,
    ClassMoments,
    class_moments,
    members,
    merge_classes,
    widened,
)
from lowland._engines.linalg.eigen import all_eigenpairs, thin_svd
from lowland._engines.linalg.moments import Moments, merge, moments
from lowland._engines.linalg.products import contiguous_blocks, rows_within

# Sums of labeled rows by class, for LDA: batches with different classes can be merged.


class LabeledSums(NamedTuple):
    """The sorted classes, and the sums of the rows of each."""

    classes: np.ndarray
    sums: ClassMoments

    @classmethod
    def of(cls, X: Any, labels: Labels, named: Any, run: FitContext) -> LabeledSums:
        """Of the rows of X; ``named`` lists all classes that may come, or is None."""
        classes = join_classes(labels, None, named, owner="LDA")
        codes = np.searchsorted(classes, labels.classes)[labels.codes]
        return cls(classes, class_moments(X, codes, len(classes), run.threads, run.monitor))

    def merged(self, other: LabeledSums) -> LabeledSums:
        """Sums of the rows of both, over the classes of either."""
        new = Labels(other.classes, np.arange(len(other.classes)))
        classes = join_classes(new, self.classes, None, owner="LDA")
        parts = [
            widened(p.sums, np.searchsorted(classes, p.classes), len(classes))
            for p in (self, other)
        ]
        return LabeledSums(classes, merge_classes(*parts))


def check_sizes(classes: np.ndarray, n: int, p: int, n_components: int | None) -> None:
    """Refuse n rows of p columns with these classes where LDA has no answer or too few bytes."""
    C = len(classes)
    if C < 2:
        raise DataError(
            "LDA needs at least two classes, but y has only one class, "
            f"{classes.tolist()[0]!r}; give rows of another class, too."
        )
    if n <= C:  # the variance within classes cannot be estimated
        raise DataError(
            f"LDA needs more rows than classes, not {n} rows of {C} classes; give more rows."
        )
    most = min(C - 1, p)
    if n_components is not None and n_components > most:
        raise ParameterError(
            f"LDA: n_components={n_components} is more than {most}, one less than the "
            f"{C} classes or the number of columns ({p}); ask for at most {most}."
        )
    size, matrix = min(n, p), "covariances" if p <= n else "inner products"
    require_memory(
        8 * (5 * size * size + (n * p if n < p else 0)),
        task=f"LDA with {size} x {size} {matrix}",
        alternative="reduce the columns first, for example with PCA(n_components=1000)",
    )


def class_priors(priors: Any, counts: np.ndarray) -> np.ndarray:
    """The given probabilities of the classes, checked; None gives the shares of the rows."""
    if priors is None:
        return counts / counts.sum()
    given = np.asarray(priors, dtype=float)
    if len(given) != len(counts) or abs(given.sum() - 1.0) > 1e-5:
        raise ParameterError(
            f"LDA: priors={priors!r} are {len(given)} numbers with the sum "
            f"{given.sum():g}; give {len(counts)}, one per class, with the sum 1."
        )
    return given / given.sum()


# Shrinkage of covariance matrices towards a multiple of the identity.
#
#     S' = (1 - d) S + d t I,   t = tr(S) / p
#
# The share d is given (Friedman 1989), or chosen to minimize the expected squared error (Ledoit &
# Wolf 2004, J. Multivariate Analysis 88).


class Shrinkage(NamedTuple):
    """The shrunk S: the part of class c times ``weights[c]``, plus ``ridge`` on the diagonal."""

    weights: np.ndarray
    ridge: np.ndarray


def by_share(share: float, variances: np.ndarray, n_classes: int) -> Shrinkage:
    """The same share for every class; ``variances`` is the diagonal of S."""
    ridge = np.full(len(variances), share * variances.mean())
    return Shrinkage(np.full(n_classes, 1.0 - share), ridge)


class LabeledRows(NamedTuple):
    """Rows, the number of the class of each, and the sums of each class by column."""

    X: Any
    codes: np.ndarray
    columns: ClassColumns


def ledoit_wolf_classes(rows: LabeledRows, units: np.ndarray, run: FitContext) -> Shrinkage:
    """A share for each class from its own rows, in units of its own standard deviations.

    ``units`` (p,) replace the standard deviation of a column that is constant in a class.
    """
    X, codes, columns = rows
    n, C = len(codes), len(columns.counts)
    weights, ridge = np.ones(C), np.zeros(X.shape[1])
    with run.monitor.phase("shrinkage", total=C) as phase:
        for c, ids in enumerate(members(codes, C)):
            variances = columns.squares[c] / len(ids)
            unit = np.where(variances > 0, np.sqrt(variances), units)
            share = ledoit_wolf(X[ids], columns.means[c], unit, run.threads, run.monitor)
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


def share_of_norms(product: np.ndarray, fourth: float, n: int, p: int) -> float:
    """d from Z^T Z, or from Z Z^T, of p columns, and the sum of the fourth powers |z_i|^4."""
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
    rows: LabeledRows, shrinkage: float | str | None, weights: np.ndarray, run: FitContext
) -> Discriminants:
    """Axes from all rows: for more columns than rows, and for shrinkage="auto" (Ledoit, Wolf)."""
    X, codes, columns = rows
    C, (n, p) = len(columns.counts), X.shape
    if shrinkage == "auto":
        units, _ = column_units(columns.variances, columns.means, weights)
        shrunk = ledoit_wolf_classes(rows, units, run)
    else:
        shrunk = by_share(float(shrinkage or 0.0), columns.variances, C)
    if n < p:
        with run.monitor.phase("inner products"):
            return by_gram(rows, shrunk, weights, run.threads)
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
    rows: LabeledRows, shrinkage: Shrinkage, weights: np.ndarray, threads: int
) -> Discriminants:
    """Axes from the inner products of the rows, without a p x p matrix.

    With Z = (X - 1 m^T) / g and Z Z^T = U s^2 U^T, the rows have the coordinates F = U s in their
    span. A direction w in the span is Z^T U s^-1 w / g in the data space. The units g are the
    standard deviations of the columns. With a ridge they are its square roots, so that the ridge
    is the identity in these coordinates.
    """
    X, codes, columns = rows
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
    L = _triangular(S)
    if L is None:
        null = _null_space(S)
        # Columns that are combinations of others give directions in which the means do not differ
        # either. The value of S in these directions does not matter; 1 makes S regular.
        if np.abs(null.T @ B).max(initial=0.0) <= SINGULAR * np.abs(B).max():
            L = _triangular(S + null @ null.T)
    if L is not None:
        solved = functools.partial(scipy.linalg.solve_triangular, L, lower=True, check_finite=False)
        return solved(B), functools.partial(solved, trans="T")
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


# Ledoit and Wolf's shrinkage of the classes of a table in chunks, in two passes or more.
#
# The first pass gives the means and deviations of each class. The second gives, in these units,
# the scatter matrix of each class and the sum of |z_i|^4. Together they give the share d of each
# class and the covariance within classes. If the
# matrices of all classes take more than GROUP_BYTES, classes come in groups, with one pass for
# each group.


GROUP_BYTES = 1 << 28  # of the scatter matrices that are summed in one pass


class Spread(NamedTuple):
    """Moments of scaled rows of a class, and the sum of the fourth powers of their lengths."""

    moments: Moments
    fourth: float


def shrunk_scatter(
    rows: Rows, classes: np.ndarray, columns: ClassColumns, weights: np.ndarray, run: FitContext
) -> np.ndarray:
    """The shrunk covariance within classes; ``columns`` are the sums of each class by column."""
    counts, C, p = columns.counts, len(classes), rows.shape[1]
    n = int(counts.sum())
    usual, _ = column_units(columns.variances, columns.means, weights)
    variances = columns.squares / counts[:, None]
    units = np.where(variances > 0, np.sqrt(variances), usual)
    size = max(1, GROUP_BYTES // (8 * p * p))
    require_memory(
        8 * p * p * (4 + 3 * min(size, C)),
        task=f"LDA with {p} x {p} covariances of {min(size, C)} classes",
        alternative="reduce the columns first, for example with PCA(n_components=1000)",
    )
    S, ridge = np.zeros((p, p)), np.zeros(p)
    for first in range(0, C, size):
        group = range(first, min(C, first + size))
        some = slice(group.start, group.stop)
        work = functools.partial(
            class_spreads, classes, group, columns.means[some], units[some], run.threads
        )
        spreads = rows.total(work, merged_spreads, run.monitor, "shrinkage")
        for c, spread in zip(group, spreads, strict=True):
            assert spread is not None  # each class has rows
            scatter = spread.moments.scatter
            share = share_of_norms(scatter, spread.fourth, int(counts[c]), p)
            S += (1.0 - share) * scatter * np.outer(units[c], units[c])
            ridge += counts[c] * share * (variances[c] > 0).mean() * units[c] ** 2
    S[np.diag_indices(p)] += ridge
    return S / (n - C)


def class_spreads(
    classes: np.ndarray,
    group: range,
    means: np.ndarray,
    units: np.ndarray,
    threads: int,
    block: Block,
) -> list[Spread | None]:
    """The spread of each class of a group among the rows of one block; None without rows."""
    labels = check_labels(block.y, block.n_rows, owner="LDA")
    codes = np.searchsorted(classes, labels.classes)[labels.codes]
    found: list[Spread | None] = [None] * len(group)
    for i, (mean, unit) in enumerate(zip(means, units, strict=True)):
        ids = np.flatnonzero(codes == group[i])
        if len(ids):
            Z = divided(block.X[ids], unit)
            fourth = float((row_lengths(Z, mean / unit) ** 2).sum())
            found[i] = Spread(moments(Z, threads, Monitor()), fourth)
    return found


def merged_spreads(a: list[Spread | None], b: list[Spread | None]) -> list[Spread | None]:
    """The spreads of the classes of both."""
    return [
        Spread(merge(one.moments, other.moments), one.fourth + other.fourth)
        if one and other
        else one or other
        for one, other in zip(a, b, strict=True)
    ]
