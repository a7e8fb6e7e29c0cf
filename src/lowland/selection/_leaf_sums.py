"""What filters sum over a table in leaves: columns, columns by class, columns with a target.

Each kind of sums can be merged, and knows the least and greatest value of each column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland._core.rows.leaves import Block
from lowland._core.rows.table import Rows
from lowland._core.targets import check_numbers
from lowland._core.validation import is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.class_moments import ClassColumns
from lowland._engines.linalg.column_sums import ColumnSums, column_sums, merge_columns
from lowland._engines.linalg.labeled_columns import LabeledColumns, labeled_columns, merge_labeled
from lowland._engines.linalg.magnitude import check_magnitude
from lowland.selection._units import far_exponents, in_column_units


class ByColumn:
    """Sums of columns, without a target."""

    @staticmethod
    def of(X: Any, y: Any, owner: str) -> ColumnSums:
        return column_sums(X)

    @staticmethod
    def merged(a: Any, b: Any, owner: str) -> ColumnSums:
        return merge_columns(a, b)


class ByClass:
    """Sums of columns for each class."""

    of = staticmethod(labeled_columns)
    merged = staticmethod(merge_labeled)


def scatter_ratio(sums: ClassColumns) -> np.ndarray:
    """Sum of squares between classes over that within classes, of each column."""
    counts, means, squares = sums
    mean = means[0] + counts / counts.sum() @ (means - means[0])
    between = counts @ (means - mean) ** 2
    return between / squares.sum(axis=0)


class CrossSums(NamedTuple):
    """Sums of the columns and of the target, and sum_i (x_i - m)(y_i - t) of each column."""

    columns: ColumnSums
    target: ColumnSums
    cross: np.ndarray

    @property
    def low(self) -> np.ndarray:
        return self.columns.low

    @property
    def high(self) -> np.ndarray:
        return self.columns.high


class WithNumbers:
    """Sums of columns with a target of numbers."""

    @staticmethod
    def of(X: Any, y: Any, owner: str) -> CrossSums:
        numbers = check_numbers(y, X.shape[0], owner=owner)[:, None]
        target, columns = column_sums(numbers), column_sums(X)
        check_magnitude(float(target.largest.max()), owner, "value", "y")
        rows = X.astype(np.float64, copy=False)
        away = numbers - target.mean
        if is_sparse(X):  # sum_i x_i (y_i - t): the means of both cancel
            cross = products.transpose_times(rows, np.zeros(X.shape[1]), away, 1)
        else:
            cross = np.einsum("ij,ik->jk", rows - columns.mean, away)
        return CrossSums(columns, target, cross[:, 0])

    @staticmethod
    def merged(a: CrossSums, b: CrossSums, owner: str) -> CrossSums:
        n_a, n_b = int(a.target.known[0]), int(b.target.known[0])
        apart = (b.columns.mean - a.columns.mean) * (b.target.mean - a.target.mean)
        return CrossSums(
            merge_columns(a.columns, b.columns),
            merge_columns(a.target, b.target),
            a.cross + b.cross + apart * (n_a * (n_b / (n_a + n_b))),
        )


class Summed:
    """The sums of one block, whose columns are multiplied by 2^exponent first."""

    def __init__(self, method: Any, exponents: np.ndarray | None) -> None:
        self.method, self.exponents = method, exponents

    def __call__(self, block: Block) -> Any:
        X = block.X
        self.method._check_block(X)
        if self.exponents is not None:
            X = in_column_units(X, self.exponents)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.method._leaf_kind(block.y).of(X, block.y, type(self.method).__name__)

    def merged(self, a: Any, b: Any) -> Any:
        if type(a) is not type(b):
            raise DataError("the labels are text in some rows and numbers in others; use one kind.")
        with np.errstate(over="ignore", invalid="ignore"):
            return KINDS[type(a)].merged(a, b, type(self.method).__name__)


KINDS: dict[type, Any] = {ColumnSums: ByColumn, LabeledColumns: ByClass, CrossSums: WithNumbers}


def sums_of_leaves(rows: Rows, method: Any, run: Any) -> tuple[Any, np.ndarray]:
    """Sums of a table in which no square overflows, and the exponents of the columns' units.

    One pass; a second one if columns have extreme values.
    """
    work = Summed(method, None)
    sums = rows.total(work, work.merged, run.monitor, "columns")
    e = far_exponents(np.maximum(np.abs(sums.low), np.abs(sums.high)))
    if e.any():
        work = Summed(method, e)
        sums = rows.total(work, work.merged, run.monitor, "columns")
    return sums, e
