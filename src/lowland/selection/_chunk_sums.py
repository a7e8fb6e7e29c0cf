"""What filters sum over a table in chunks: columns, columns by class, columns with a target.

Each kind of sums can be merged, and knows the least and greatest value of each column.
"""

from __future__ import annotations

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
from lowland._engines.linalg.class_moments import (
    ClassColumns,
    LabeledColumns,
    labeled_columns,
    merge_labeled,
)
from lowland._engines.linalg.moments import ColumnSums, column_sums, merge_columns
from lowland._engines.linalg.products import row_blocks
from lowland.selection._base import holds_numbers, require_two


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
    """The sums of one block."""

    def __init__(self, method: Any) -> None:
        self.method = method

    def __call__(self, block: Block) -> Any:
        self.method._check_block(block.X)
        return self.method._chunk_kind(block.y).of(block.X, block.y, type(self.method).__name__)

    def merged(self, a: Any, b: Any) -> Any:
        if type(a) is not type(b):
            raise DataError("the labels are text in some rows and numbers in others; use one kind.")
        return KINDS[type(a)].merged(a, b, type(self.method).__name__)


KINDS: dict[type, Any] = {ColumnSums: ByColumn, LabeledColumns: ByClass, CrossSums: WithNumbers}


def sums_of_chunks(rows: Rows, method: Any, run: Any) -> Any:
    """Sums of a table, in one pass."""
    work = Summed(method)
    sums = rows.total(work, work.merged, run.monitor, "columns")
    check_size(float(np.maximum(np.abs(sums.low), np.abs(sums.high)).max()))
    return sums


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


class States:
    """Which rows of a block are below, within and above the middle of each column."""

    def __init__(self, first: np.ndarray, mean: np.ndarray, edge: np.ndarray) -> None:
        self.first, self.mean, self.edge = first, mean, edge

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
    block_facts = BlockFacts(first, first_target, kind)
    facts = rows.total(block_facts, block_facts.merged, run.monitor, "means")
    check_size(float(np.maximum(-facts.low, facts.high).max()))
    classes = _classes(facts, kind, n)
    require_memory(
        8 * 3 * STATES * p * (STATES if classes is None else len(classes)),
        task=f"MRMR with counts of {p} columns and the classes",
        alternative="give a target with fewer classes",
    )
    means = np.append(facts.total, facts.target_total) / n
    spread = Spread(first, first_target if facts.is_numbers else None, means)
    edges = cut * np.sqrt(rows.total(spread, np.add, run.monitor, "deviations") / n)
    counts = Counts(
        States(first, means[:p], edges[:p]),
        classes if classes is not None else States(np.array([first_target]), means[p:], edges[p:]),
    )
    found = rows.total(counts, counts.merged, run.monitor, "counts")
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


class BlockFacts:
    """The facts of one block."""

    def __init__(self, first: np.ndarray, first_target: float, kind: str) -> None:
        self.first, self.first_target, self.kind = first, first_target, kind

    def __call__(self, block: Block) -> TableFacts:
        X, y, n = block.X, block.y, block.n_rows
        total, is_whole, values = 0.0, True, None
        is_numbers = holds_numbers(y)
        if is_numbers or self.kind == "numbers":
            numbers = check_numbers(y, n, owner="MRMR")
            total = float((numbers - self.first_target).sum())
            is_whole = np.array_equal(numbers, np.floor(numbers))
        if self.kind == "classes" or (self.kind == "auto" and is_whole):
            values = check_labels(y, n, owner="MRMR").classes
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        return TableFacts(
            (X - self.first).sum(axis=0), low, high, total, is_numbers, is_whole, values
        )

    def merged(self, a: TableFacts, b: TableFacts) -> TableFacts:
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


class Spread:
    """Sums of squared deviations of the columns of one block, and of its target of numbers."""

    def __init__(self, first: np.ndarray, target: float | None, means: np.ndarray) -> None:
        self.first, self.target, self.means = first, target, means

    def __call__(self, block: Block) -> np.ndarray:
        away = (block.X - self.first) - self.means[:-1]
        squares = np.zeros(len(self.means))
        squares[:-1] = (away**2).sum(axis=0)
        if self.target is not None:
            numbers = check_numbers(block.y, block.n_rows, owner="MRMR")
            squares[-1] = (((numbers - self.target) - self.means[-1]) ** 2).sum()
        return squares


class Counts:
    """Counts of pairs of states in one block."""

    def __init__(self, states: States, target: Any) -> None:
        self.states, self.target = states, target

    def __call__(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        p, codes = block.X.shape[1], self._codes(block)
        C = STATES if isinstance(self.target, States) else len(self.target)
        with_target = np.zeros(p * C * STATES, np.int64)
        with_columns = np.zeros((p * STATES, p * STATES), np.int64)
        for some in row_blocks(block.n_rows, AT_A_TIME):
            states = self.states(block.X[some])
            cells = states + codes[some, None] * STATES + np.arange(p) * (C * STATES)
            with_target += np.bincount(cells.ravel(), minlength=len(with_target))
            marks = (states[:, :, None] == np.arange(STATES)).astype(np.float32)
            marks = marks.reshape(len(states), p * STATES)
            with_columns += (marks.T @ marks).astype(np.int64)
        shape = (p, C, STATES), (p, STATES, p, STATES)
        return with_target.reshape(shape[0]), with_columns.reshape(shape[1])

    def merged(self, a: Any, b: Any) -> Any:
        return tuple(first + second for first, second in zip(a, b, strict=True))

    def _codes(self, block: Block) -> np.ndarray:
        if isinstance(self.target, States):
            numbers = check_numbers(block.y, block.n_rows, owner="MRMR")
            return self.target(numbers[:, None])[:, 0]
        labels = check_labels(block.y, block.n_rows, owner="MRMR")
        return np.searchsorted(self.target, labels.classes)[labels.codes]
