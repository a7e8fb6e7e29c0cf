"""Principal axes of a table in chunks, by the covariance in one pass or by block Krylov in some.

The covariance needs a p x p matrix. Krylov needs p x q blocks of vectors, and goes through the rows
once for the means and once for each product S V = sum_i (x_i - m) (x_i - m)^T V.
"""

from __future__ import annotations

import functools

import numpy as np

from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas
from lowland._base.validation import check_size
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import fix_signs, largest_eigenpairs
from lowland._engines.linalg.moments import (
    ColumnSums,
    Moments,
    column_sums,
    largest_square,
    merge,
    merge_columns,
    moments,
)
from lowland._engines.linalg.principal_axes import PrincipalAxes, column_scale

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
