"""Mergeable sums: the count, mean and scatter matrix of rows.

The sums of two sets of rows give those of their union, so that one fit, many batches and many
machines use the same three functions: ``moments``, ``merge`` and the method's own last step.

References: Chan, Golub & LeVeque (1983), Algorithms for computing the sample variance,
The American Statistician 37.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas, resolve_n_jobs
from lowland._base.traits import Estimate
from lowland._base.validation import (
    all_finite,
    canonical,
    check_size,
    column_names,
    dense_if_small,
    is_sparse,
    refuse_empty_columns,
)
from lowland._engines.linalg import products

# Overflow leaves infinity or NaN in the sums, which callers check.
may_overflow = np.errstate(over="ignore", invalid="ignore")


class Moments(NamedTuple):
    """n, m = sum x / n and S = sum (x - m)(x - m)^T of n rows."""

    n_rows: int
    mean: np.ndarray
    scatter: np.ndarray


def moments_cost(n: int, p: int) -> Estimate:
    """Of :func:`moments` of dense rows."""
    return Estimate(1.8e-11 * n * p * p + 1e-9 * n * p, 24 * p * p)


@may_overflow
def moments(X: Any, threads: int, monitor: Monitor) -> Moments:
    """Moments of the rows of X in one pass over it, without a centered copy.

    Rows of float32 whose squares overflow or vanish are summed again in float64.
    """
    if is_sparse(X):
        return _sparse_moments(X)
    sums = _dense_moments(X, threads, monitor)
    if X.dtype == np.float32 and not float32_holds(np.diagonal(sums.scatter), sums.n_rows):
        return _dense_moments(X.astype(np.float64), threads, monitor)
    return sums


def largest_square(sums: Moments) -> float:
    """The largest mean square of a column."""
    return float((sums.mean**2 + np.diagonal(sums.scatter) / sums.n_rows).max())


def float32_holds(squares: np.ndarray, n: int) -> bool:
    """Whether sums of squares of n float32 rows neither overflowed nor vanished."""
    return bool(2.0**-60 < float(squares.max()) / n < 2.0**90)


def _dense_moments(X: np.ndarray, threads: int, monitor: Monitor) -> Moments:
    n, p = X.shape
    shift = pilot(X)
    sums, scatter = np.zeros(p), np.zeros((p, p))
    block_sums, block_scatter = (
        np.empty(p),
        np.zeros((p, p)) if n > products.BLOCK_ROWS else scatter,
    )
    with monitor.phase("covariance", total=-(-n // products.BLOCK_ROWS)) as phase:
        for _, block in products.contiguous_blocks(X):
            _native.scatter_matrix(block, shift, block_sums, block_scatter, threads)
            sums += block_sums
            if block_scatter is not scatter:
                scatter += block_scatter
            phase.advance()
    offset = sums / n  # the mean relative to the pilot
    products.mirror(scatter)
    scatter -= n * np.outer(offset, offset)
    return Moments(n, shift + offset, scatter)


def pilot(X: np.ndarray, n_sample: int = 128) -> np.ndarray:
    """A value near each column's mean, in the type of X, to sum around without cancellation.

    The commonest value where it fills half of a sample: such a value is at most 1.5 standard
    deviations from the mean, and shifted by it the column is mostly exact zeros, which the kernel
    skips. Elsewhere the sample's mean. A column that does not vary is shifted to 0.
    """
    sample = np.sort(np.ascontiguousarray(X[:: max(1, X.shape[0] // n_sample)]), axis=0)
    middle = sample[len(sample) // 2]
    share = (sample == middle).mean(axis=0)
    return np.where(share >= 0.5, middle, sample.mean(axis=0, dtype=np.float64)).astype(X.dtype)


def _sparse_moments(X: Any) -> Moments:
    """S = X^T X - n m m^T with implicit zeros; in float64, because the two terms may be close."""
    n = X.shape[0]
    X = X.astype(np.float64)
    mean, squares = column_moments(X)
    scatter = (X.T @ X).toarray() - n * np.outer(mean, mean)
    constant = squares == 0
    scatter[constant], scatter[:, constant] = 0.0, 0.0
    np.fill_diagonal(scatter, squares)
    return Moments(n, mean, scatter)


@may_overflow
def merge(a: Moments, b: Moments) -> Moments:
    """Moments of two disjoint sets of rows together (Chan et al., eq. 2.1)."""
    n = a.n_rows + b.n_rows
    delta = b.mean - a.mean
    return Moments(
        n,
        a.mean + delta * (b.n_rows / n),
        a.scatter + b.scatter + np.outer(delta, delta) * (a.n_rows * b.n_rows / n),
    )


def without_gaps(X: np.ndarray) -> np.ndarray:
    """X with the means of the columns in place of NaN; X itself if it has none."""
    if all_finite(X):
        return X
    return np.where(np.isnan(X), np.nanmean(X, axis=0, dtype=np.float64), X).astype(X.dtype)


@may_overflow
def column_moments(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sum of squared deviations of each column, in float64, by blocks of rows.

    The latter is exactly 0 for a column that does not vary.
    """
    n, p = X.shape
    if is_sparse(X):
        X = canonical(X)
        mean = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel() / n
        filled = np.bincount(X.indices, minlength=p)
        deviations = (X.data - mean[X.indices]) ** 2
        squares = np.bincount(X.indices, deviations, minlength=p) + (n - filled) * mean**2
        rounding = n * (n * np.finfo(np.float64).eps * mean) ** 2
        squares = np.where(squares > rounding, squares, 0.0)
        full = (squares == 0) & (filled == n)  # their mean is their value, as in dense columns
        if full.any():
            mean[full] = X[[0]].toarray()[0, full]
        return mean, squares
    first = X[0].astype(np.float64)  # differences from a row are exact where nothing varies
    mean, squares = first.copy(), np.zeros(p)
    for at, block in products.contiguous_blocks(X, products.rows_within(8 * p)):
        deviations = block - first
        center = deviations.mean(axis=0)
        deviations -= center
        delta = first + center - mean
        mean += delta * (block.shape[0] / at.stop)
        squares += np.einsum("ij,ij->j", deviations, deviations)
        squares += delta**2 * (at.start * block.shape[0] / at.stop)
    return mean, squares


class KnownMoments(NamedTuple):
    """Of each column: the number of known values, their mean and summed squared deviations."""

    known: np.ndarray
    mean: np.ndarray
    squares: np.ndarray


def known_moments(X: np.ndarray) -> KnownMoments:
    """Moments of the known values of dense columns, NaN where unknown; 0 without a value.

    As in :func:`column_moments`, a column that does not vary has its value as mean, and 0.
    """
    n, p = X.shape
    blocks = list(products.row_blocks(n, products.rows_within(32 * p)))
    known = sum(((~np.isnan(X[rows])).sum(axis=0) for rows in blocks), np.zeros(p, int))
    if known.min() == n:
        return KnownMoments(known, *column_moments(X))
    first = np.zeros(p)  # of each column: differences from it are exact where nothing varies
    for rows in reversed(blocks):
        here = ~np.isnan(X[rows])
        value = X[rows][here.argmax(axis=0), np.arange(p)]
        first = np.where(here.any(axis=0), value, first)
    total = sum((np.nansum(X[rows] - first, axis=0) for rows in blocks), np.zeros(p))
    mean = first + total / np.maximum(known, 1)
    squares = sum((np.nansum((X[rows] - mean) ** 2, axis=0) for rows in blocks), np.zeros(p))
    return KnownMoments(known, mean, squares)


# Mergeable sums of columns, without a p x p matrix: count, mean, squared deviations, range.
#
# As in :mod:`lowland._engines.linalg.moments`, the sums of two sets of rows give those of both. The
# arrays may have any shape, so that there can be a row of sums for each class.


class ColumnSums(NamedTuple):
    """Of each column: known values, their mean, sum of squared deviations, least and greatest.

    A column without values has the mean 0, and infinity as its least value.
    """

    known: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def constant(self) -> np.ndarray:
        """Which columns have a single value, or none."""
        return self.low >= self.high

    @property
    def largest(self) -> np.ndarray:
        """The largest absolute value of each column."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def no_columns(shape: tuple[int, ...]) -> ColumnSums:
    """The sums of no rows."""
    zero, most = np.zeros(shape), np.full(shape, np.inf)
    return ColumnSums(np.zeros(shape, np.int64), zero, zero, most, -most)


@may_overflow
def column_sums(X: Any) -> ColumnSums:
    """The sums of the rows of X, in float64; NaN is a value that is not known. O(n p)."""
    n, p = X.shape
    if not n:
        return no_columns((p,))
    if is_sparse(X) or all_finite(X):
        return ColumnSums(np.full(p, n, np.int64), *column_moments(X), *_ends(X))
    gaps = np.isnan(X)
    empty = gaps.all(axis=0)
    known, mean, squares = known_moments(np.where(empty, 0.0, X))
    low = np.where(gaps, np.inf, X).min(axis=0).astype(np.float64)
    high = np.where(gaps, -np.inf, X).max(axis=0).astype(np.float64)
    return ColumnSums(np.where(empty, 0, known).astype(np.int64), mean, squares, low, high)


def _ends(X: Any) -> list[np.ndarray]:
    """The least and the greatest value of each column."""
    ends = X.min(axis=0), X.max(axis=0)
    return [(e.toarray().ravel() if is_sparse(X) else e).astype(np.float64) for e in ends]


@may_overflow
def merge_columns(a: ColumnSums, b: ColumnSums) -> ColumnSums:
    """Sums of two disjoint sets of rows together (Chan et al. 1983, eq. 2.1)."""
    known = a.known + b.known
    delta = np.where((a.known > 0) & (b.known > 0), b.mean - a.mean, 0.0)
    share = b.known / np.maximum(known, 1)
    mean = np.where(a.known > 0, a.mean, b.mean) + delta * share
    squares = a.squares + b.squares + delta**2 * (a.known * share)
    return ColumnSums(known, mean, squares, np.minimum(a.low, b.low), np.maximum(a.high, b.high))


def with_value(sums: ColumnSums, counts: np.ndarray, values: np.ndarray) -> ColumnSums:
    """The sums after so many more rows had one value, as filled gaps have."""
    low = np.where(counts > 0, values, np.inf)
    high = np.where(counts > 0, values, -np.inf)
    more = ColumnSums(counts, np.where(counts > 0, values, 0.0), np.zeros(len(counts)), low, high)
    return merge_columns(sums, more)


# Moments of a table that is read in chunks, with missing values or without.
#
# One pass gives what a method must know of the whole table before it begins. Where values are
# missing (NaN), the moments of rows whose gaps are filled with means take a second pass.


def moments_of_chunks(rows: Rows, owner: str, threads: int, monitor: Monitor) -> Moments:
    """Count, mean and scatter matrix of all rows, in one pass."""
    p = rows.shape[1]
    require_memory(
        8 * 5 * p * p,  # of two parts, their sum, and the solver's copies
        task=f"{owner} with {p} x {p} covariances",
        alternative="drop columns first, for example with VarianceScore",
    )
    work = functools.partial(_moments_of_block, threads=threads)
    sums = rows.total(work, merge, monitor, "covariance")
    check_size(float(np.sqrt(largest_square(sums))))
    return sums


def _moments_of_block(block: Block, threads: int) -> Moments:
    return moments(block.X, threads, Monitor())


def sums_of_columns(rows: Rows, monitor: Monitor) -> ColumnSums:
    """The sums of all columns, in one pass."""
    return rows.total(_of_block, merge_columns, monitor, "means")


def _of_block(block: Block) -> ColumnSums:
    return column_sums(block.X)


class Survey(NamedTuple):
    """What one pass finds about a table; the moments if requested and if no value is missing."""

    n_rows: int
    columns: ColumnSums
    moments: Moments | None

    @property
    def missing(self) -> bool:
        return bool(self.columns.known.min() < self.n_rows)

    @property
    def greatest(self) -> float:
        """The greatest absolute value."""
        return float(self.columns.largest.max())


def survey(
    rows: Rows, owner: str, *, scatter: bool, n_jobs: int | None, monitor: Monitor
) -> Survey:
    """The survey of all rows; with ``scatter``, their p x p moments, O(n p^2).

    Refuses a column without any value, and values that are all too small.
    """
    p = rows.shape[1]
    if scatter:
        require_memory(
            8 * 6 * p * p,
            task=f"{owner}: the covariance matrix of {p} columns",
            alternative="map the rows by PCA of a sample first",
        )
    work = functools.partial(_survey_of, scatter=scatter, n_jobs=n_jobs)
    found: Survey = rows.total(work, merged, monitor, "survey")
    refuse_empty_columns(found.columns.known == 0, column_names(rows))
    check_size(found.greatest)
    return found


def filled_moments(
    rows: Rows, mean: np.ndarray, *, n_jobs: int | None, monitor: Monitor
) -> Moments:
    """The moments of the rows with ``mean`` in place of what is missing."""
    work = functools.partial(_filled_moments_of, mean=mean, n_jobs=n_jobs)
    return rows.total(work, merge, monitor, "covariance")


def _survey_of(block: Block, scatter: bool, n_jobs: int | None) -> Survey:
    X = dense_if_small(block.X)
    n, p = X.shape
    if not scatter or not (is_sparse(X) or all_finite(X)):
        return Survey(n, column_sums(X), None)
    sums = _moments_of(X, n_jobs)
    squares = np.diagonal(sums.scatter).copy()
    columns = ColumnSums(np.full(p, n, np.int64), sums.mean, squares, *_ends(X))
    return Survey(n, columns, sums)


def _filled_moments_of(block: Block, mean: np.ndarray, n_jobs: int | None) -> Moments:
    X = dense_if_small(block.X)
    if not is_sparse(X) and not all_finite(X):
        X = np.where(np.isnan(X), mean, X).astype(X.dtype)
    return _moments_of(X, n_jobs)


def _moments_of(X: Any, n_jobs: int | None) -> Moments:
    with limit_blas(1):
        return moments(X, resolve_n_jobs(n_jobs), Monitor())


def merged(a: Survey, b: Survey) -> Survey:
    """The survey of both sets of rows."""
    both = merge(a.moments, b.moments) if a.moments and b.moments else None
    return Survey(a.n_rows + b.n_rows, merge_columns(a.columns, b.columns), both)
