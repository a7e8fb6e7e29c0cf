"""What filters sum over a table in chunks: columns, columns by class, columns with a target.

All these sums can be merged, and have the least and greatest value of each column.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows
from lowland._base.targets import Labels, check_labels, check_numbers, join_classes
from lowland._base.validation import check_size, is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.class_moments import ClassColumns, LabeledColumns, merge_labeled
from lowland._engines.linalg.moments import ColumnSums, column_sums, merge_columns
from lowland._engines.linalg.products import row_blocks
from lowland.selection._base import holds_numbers, require_two


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


def cross_sums(X: Any, y: Any, owner: str) -> CrossSums:
    """Sums of columns with a target of numbers."""
    numbers = check_numbers(y, X.shape[0], owner=owner)[:, None]
    target, columns = column_sums(numbers), column_sums(X)
    rows = X.astype(np.float64, copy=False)
    away = numbers - target.mean
    if is_sparse(X):  # sum_i x_i (y_i - t): the means of both cancel
        cross = products.transpose_times(rows, np.zeros(X.shape[1]), away, 1)
    else:
        cross = np.einsum("ij,ik->jk", rows - columns.mean, away)
    return CrossSums(columns, target, cross[:, 0])


def _merged_cross(a: CrossSums, b: CrossSums) -> CrossSums:
    n_a, n_b = int(a.target.known[0]), int(b.target.known[0])
    apart = (b.columns.mean - a.columns.mean) * (b.target.mean - a.target.mean)
    return CrossSums(
        merge_columns(a.columns, b.columns),
        merge_columns(a.target, b.target),
        a.cross + b.cross + apart * (n_a * (n_b / (n_a + n_b))),
    )


def merged_sums(a: Any, b: Any, owner: str) -> Any:
    """Sums of the rows of both: of columns, of columns by class, or of columns with numbers."""
    if type(a) is not type(b):
        raise DataError("the labels are text in some rows and numbers in others; use one kind.")
    if isinstance(a, LabeledColumns):
        return merge_labeled(a, b, owner)
    return _merged_cross(a, b) if isinstance(a, CrossSums) else merge_columns(a, b)


# Counts of states of all pairs of columns of a table in chunks, for mRMR: three passes.
#
# The first pass gives means, the second deviations, and the third counts how often two columns,
# or a column and the target, are in each pair of states. Counts are whole numbers, so they are
# exact in any order. O(n p^2) time and O(p^2) memory.


STATES = 3
MOST_VALUES = 1 << 16  # of a target, which are collected to tell classes from numbers
AT_A_TIME = 4096  # rows; their counts are exact in float32


class StateCounts(NamedTuple):
    """Which columns are constant; counts (p, C, 3) with the target, (p, 3, p, 3) with columns."""

    constant: np.ndarray
    with_target: np.ndarray
    with_columns: np.ndarray


class TableFacts(NamedTuple):
    """Sums of differences from the first row, ranges, and what the target holds."""

    total: np.ndarray
    low: np.ndarray
    high: np.ndarray
    target_total: float
    is_numbers: bool
    is_whole: bool  # whole numbers, or no numbers: they may be classes
    values: np.ndarray | None  # the different ones; None if there are too many


class States(NamedTuple):
    """Which rows of a block are below, within and above the middle of each column."""

    first: np.ndarray
    mean: np.ndarray
    edge: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        away = (X - self.first) - self.mean
        return 1 + (away > self.edge).astype(np.int64) - (away < -self.edge)


def state_counts(rows: Rows, cut: float, kind: str, run: FitContext) -> StateCounts:
    """The counts of all rows; ``kind`` is what the target holds."""
    n, p = rows.shape
    require_memory(
        8 * 3 * (STATES * p) ** 2,
        task=f"MRMR with counts of {p} x {p} pairs of columns",
        alternative="drop columns first, for example with AnovaF",
    )
    start = rows.without_names().take(np.arange(1))
    first = start.X[0].astype(np.float64)
    first_target = float(start.y[0]) if holds_numbers(start.y) else 0.0
    facts_of = partial(block_facts, first=first, first_target=first_target, kind=kind)
    facts = rows.total(facts_of, merged_facts, run.monitor, "means")
    check_size(float(np.maximum(-facts.low, facts.high).max()))
    classes = _classes(facts, kind, n)
    require_memory(
        8 * 3 * STATES * p * (STATES if classes is None else len(classes)),
        task=f"MRMR with counts of {p} columns and the classes",
        alternative="give a target with fewer classes",
    )
    means = np.append(facts.total, facts.target_total) / n
    target = first_target if facts.is_numbers else None
    spread = partial(squared_deviations, first=first, target=target, means=means)
    edges = cut * np.sqrt(rows.total(spread, np.add, run.monitor, "deviations") / n)
    states = States(first, means[:p], edges[:p])
    of_target = States(np.array([first_target]), means[p:], edges[p:])
    counts = partial(pair_counts, states=states, target=of_target if classes is None else classes)
    found = rows.total(counts, merged_counts, run.monitor, "counts")
    return StateCounts(facts.low == facts.high, *found)


def _classes(facts: TableFacts, kind: str, n: int) -> np.ndarray | None:
    """The classes of the target; None if it holds numbers, as in ``_targets.holds_classes``."""
    values = facts.values
    if kind == "numbers" or (kind == "auto" and not facts.is_whole):
        return None
    seen = MOST_VALUES + 1 if values is None else len(values)  # or more
    if kind == "auto" and facts.is_numbers and seen > max(2, n // 3):
        return None
    if values is None:
        raise ParameterError(
            f"MRMR: target={kind!r}, but y has more than {MOST_VALUES} different values, which are "
            "many classes; set target='numbers', or give another target."
        )
    require_two(values, "MRMR")
    return values


def block_facts(block: Block, first: np.ndarray, first_target: float, kind: str) -> TableFacts:
    """The facts of one block."""
    X, y, n = block.X, block.y, block.n_rows
    total, is_whole, values = 0.0, True, None
    is_numbers = holds_numbers(y)
    if is_numbers or kind == "numbers":
        numbers = check_numbers(y, n, owner="MRMR")
        total = float((numbers - first_target).sum())
        is_whole = np.array_equal(numbers, np.floor(numbers))
    if kind == "classes" or (kind == "auto" and is_whole):
        values = check_labels(y, n, owner="MRMR").classes
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    return TableFacts((X - first).sum(axis=0), low, high, total, is_numbers, is_whole, values)


def merged_facts(a: TableFacts, b: TableFacts) -> TableFacts:
    """The facts of the rows of both."""
    values = None
    if a.is_numbers != b.is_numbers:
        raise DataError("the labels are text in some rows and numbers in others; use one kind.")
    if a.values is not None and b.values is not None:
        new = Labels(b.values, np.arange(len(b.values)))
        values = join_classes(new, a.values, None, owner="MRMR")
    return TableFacts(
        a.total + b.total,
        np.minimum(a.low, b.low),
        np.maximum(a.high, b.high),
        a.target_total + b.target_total,
        a.is_numbers,
        a.is_whole and b.is_whole,
        values if values is not None and len(values) <= MOST_VALUES else None,
    )


def squared_deviations(
    block: Block, first: np.ndarray, target: float | None, means: np.ndarray
) -> np.ndarray:
    """Sums of squared deviations of the columns of one block, and of its target of numbers."""
    squares = np.zeros(len(means))
    squares[:-1] = (((block.X - first) - means[:-1]) ** 2).sum(axis=0)
    if target is not None:
        numbers = check_numbers(block.y, block.n_rows, owner="MRMR")
        squares[-1] = (((numbers - target) - means[-1]) ** 2).sum()
    return squares


def pair_counts(
    block: Block, states: States, target: States | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Counts of pairs of states in one block; ``target`` are the states of numbers, or classes."""
    if isinstance(target, States):
        numbers = check_numbers(block.y, block.n_rows, owner="MRMR")
        C, codes = STATES, target(numbers[:, None])[:, 0]
    else:
        labels = check_labels(block.y, block.n_rows, owner="MRMR")
        C, codes = len(target), np.searchsorted(target, labels.classes)[labels.codes]
    p = block.X.shape[1]
    with_target = np.zeros(p * C * STATES, np.int64)
    with_columns = np.zeros((p * STATES, p * STATES), np.int64)
    for some in row_blocks(block.n_rows, AT_A_TIME):
        found = states(block.X[some])
        cells = found + codes[some, None] * STATES + np.arange(p) * (C * STATES)
        with_target += np.bincount(cells.ravel(), minlength=len(with_target))
        marks = (found[:, :, None] == np.arange(STATES)).astype(np.float32)
        marks = marks.reshape(len(found), p * STATES)
        with_columns += (marks.T @ marks).astype(np.int64)
    return with_target.reshape(p, C, STATES), with_columns.reshape(p, STATES, p, STATES)


def merged_counts(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The counts of the rows of both."""
    return a[0] + b[0], a[1] + b[1]
