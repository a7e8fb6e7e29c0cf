"""Moments of a table that is read in chunks, with missing values or without.

One pass gives what a method must know of the whole table before it begins. Where values are missing
(NaN), the moments of rows whose gaps are filled with means take a second pass.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from lowland._base import validation
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas, resolve_n_jobs
from lowland._base.validation import check_size
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import fix_signs, largest_eigenpairs
from lowland._engines.linalg.moments import (
    ColumnSums,
    Moments,
    column_moments,
    column_sums,
    known_moments,
    largest_square,
    merge,
    merge_columns,
    moments,
)
from lowland._engines.linalg.principal_axes import PrincipalAxes, column_scale


class Survey(NamedTuple):
    """What one pass tells of a table.

    ``known`` values of each column, their ``mean`` and summed squared deviations; the ``greatest``
    absolute value; the ``moments``, if they were asked for and no value is missing.
    """

    n_rows: int
    known: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    greatest: float
    moments: Moments | None

    @property
    def missing(self) -> bool:
        return bool(self.known.min() < self.n_rows)


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
    found: Survey = rows.total(Surveying(scatter, n_jobs), merged, monitor, "survey")
    validation.check_size(found.greatest)
    validation.refuse_empty_columns(found.known == 0, validation.column_names(rows))
    return found


def filled_moments(
    rows: Rows, mean: np.ndarray, *, n_jobs: int | None, monitor: Monitor
) -> Moments:
    """The moments of the rows with ``mean`` in place of what is missing."""
    total: Moments = rows.total(Filling(mean, n_jobs), merge, monitor, "covariance")
    return total


class Surveying:
    """The survey of one block."""

    def __init__(self, scatter: bool, n_jobs: int | None) -> None:
        self.scatter, self.n_jobs = scatter, n_jobs

    def __call__(self, block: Block) -> Survey:
        X = validation.dense_if_small(block.X)
        n, p = X.shape
        greatest = validation.largest_value(X)
        if validation.is_sparse(X) or validation.all_finite(X):
            known = np.full(p, n, np.int64)
            if not self.scatter:
                return Survey(n, known, *column_moments(X), greatest, None)
            sums = _moments_of(X, self.n_jobs)
            return Survey(n, known, sums.mean, np.diagonal(sums.scatter).copy(), greatest, sums)
        return Survey(n, *known_moments(X), greatest, None)


class Filling:
    """The moments of one block whose missing values are set to the means of the columns."""

    def __init__(self, mean: np.ndarray, n_jobs: int | None) -> None:
        self.mean, self.n_jobs = mean, n_jobs

    def __call__(self, block: Block) -> Moments:
        X = validation.dense_if_small(block.X)
        if not validation.is_sparse(X) and not validation.all_finite(X):
            X = np.where(np.isnan(X), self.mean, X).astype(X.dtype)
        return _moments_of(X, self.n_jobs)


def _moments_of(X: Any, n_jobs: int | None) -> Moments:
    with limit_blas(1):
        return moments(X, resolve_n_jobs(n_jobs), Monitor())


def merged(a: Survey, b: Survey) -> Survey:
    """The survey of both sets of rows."""
    known = a.known + b.known
    share = b.known / np.maximum(known, 1)  # the mean of a column without values is 0
    delta = b.mean - a.mean
    mean = a.mean + delta * share
    squares = a.squares + b.squares + delta**2 * (a.known * share)
    both = a.moments is not None and b.moments is not None
    return Survey(
        a.n_rows + b.n_rows,
        known,
        mean,
        squares,
        max(a.greatest, b.greatest),
        merge(a.moments, b.moments) if both else None,  # type: ignore[arg-type]
    )


# Principal axes of a table in chunks, by the covariance in one pass or by block Krylov in some.
#
# The covariance needs a p x p matrix. Krylov needs p x q blocks of vectors, and goes through the
# rows once for the means and once for each product S V = sum_i (x_i - m) (x_i - m)^T V.


# Vectors per product: reading rows takes longer than multiplying them by a few more vectors, and
# wider blocks need fewer passes.
FEWEST, MOST = 64, 128


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


def by_krylov_in_chunks(
    rows: Rows,
    sums: ColumnSums,
    n_axes: int,
    scaled: bool,
    threads: int,
    rng: np.random.Generator,
    monitor: Monitor,
) -> PrincipalAxes:
    """Axes by block Lanczos on the scatter matrix, which is not formed: some ten passes.

    ``sums`` are those of all columns. The tolerance is that of the solver in memory. O(n p q) per
    pass for q vectors at a time.
    """
    n, p = rows.shape
    width = min(p, MOST, max(FEWEST, 2 * n_axes))
    require_memory(
        16 * p * (n_axes + 8 * width),
        task=f"{n_axes} axes of {p} columns",
        alternative="ask for fewer axes",
    )
    scale = column_scale(sums.squares, n) if scaled else None
    weights = np.ones((p, 1)) if scale is None else 1.0 / scale[:, None]

    def times(V: np.ndarray) -> np.ndarray:
        work = ScatterTimes(sums.mean, V * weights, threads)
        return rows.total(work, np.add, monitor, "products") * weights

    pairs = largest_eigenpairs(
        times,
        n_axes,
        order=p,
        tol=1e-8 if rows.dtype == np.float64 else 1e-5,
        rng=rng,
        monitor=monitor,
        width=width,
    )
    variances = np.maximum(pairs.values, 0.0) / (n - 1)
    per_column = sums.squares / (n - 1) / (1.0 if scale is None else scale**2)
    return PrincipalAxes(sums.mean, scale, fix_signs(pairs.vectors).T, variances, per_column, n)


class ScatterTimes:
    """(X - 1 m^T)^T (X - 1 m^T) V of one block."""

    def __init__(self, mean: np.ndarray, V: np.ndarray, threads: int) -> None:
        self.mean, self.V, self.threads = mean, V, threads

    def __call__(self, block: Block) -> np.ndarray:
        with limit_blas(1):
            Z = products.times(block.X, self.mean, self.V, self.threads)
            return products.transpose_times(block.X, self.mean, Z, self.threads)
