"""Mergeable sums of columns by class: blocks of labeled rows may have different classes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._core.memory import require_memory
from lowland._core.monitor import Monitor
from lowland._core.rows.leaves import Block
from lowland._core.rows.table import Rows
from lowland._core.targets import Labels, check_labels, join_classes
from lowland._engines.linalg.class_moments import ClassColumns, members
from lowland._engines.linalg.column_sums import (
    ColumnSums,
    column_sums,
    merge_columns,
    no_columns,
)


class LabeledColumns(NamedTuple):
    """The sorted classes, and sums (C, p) with one row for each."""

    classes: np.ndarray
    sums: ColumnSums

    @property
    def low(self) -> np.ndarray:
        return self.sums.low.min(axis=0)

    @property
    def high(self) -> np.ndarray:
        return self.sums.high.max(axis=0)

    @property
    def by_class(self) -> ClassColumns:
        return ClassColumns(self.sums.known[:, 0], self.sums.mean, self.sums.squares)


def sums_by_class(rows: Rows, owner: str, monitor: Monitor) -> LabeledColumns:
    """The sums of all classes of a table with a target, in one pass."""
    work = functools.partial(_of_block, owner=owner)
    merge: Callable = functools.partial(merge_labeled, owner=owner)
    return rows.total(work, merge, monitor, "means of classes")


def _of_block(block: Block, owner: str) -> LabeledColumns:
    return labeled_columns(block.X, block.y, owner)


def labeled_columns(X: Any, y: Any, owner: str) -> LabeledColumns:
    """Sums of the rows of X by class, y having one label per row. O(n p)."""
    classes, codes = check_labels(y, X.shape[0], owner=owner)
    _require_room(len(classes), X.shape[1], owner)
    parts = [column_sums(X[ids]) for ids in members(codes, len(classes))]
    stacked = (np.stack(values) for values in zip(*parts, strict=True))
    return LabeledColumns(classes, ColumnSums(*stacked))


def merge_labeled(a: LabeledColumns, b: LabeledColumns, owner: str) -> LabeledColumns:
    """Sums of the rows of both, over the classes of either."""
    new = Labels(b.classes, np.arange(len(b.classes)))
    classes = join_classes(new, a.classes, None, owner=owner)
    _require_room(len(classes), a.sums.mean.shape[1], owner)
    parts = [_widened(part, classes) for part in (a, b)]
    return LabeledColumns(classes, merge_columns(*parts))


def _widened(part: LabeledColumns, classes: np.ndarray) -> ColumnSums:
    """The same sums among more classes, some of which have no rows."""
    places = np.searchsorted(classes, part.classes)
    wide = ColumnSums(*(a.copy() for a in no_columns((len(classes), part.sums.mean.shape[1]))))
    for values, own in zip(wide, part.sums, strict=True):
        values[places] = own
    return wide


def _require_room(n_classes: int, p: int, owner: str) -> None:
    require_memory(
        8 * 5 * 3 * n_classes * p,
        task=f"{owner}: sums of {p} columns for {n_classes} classes",
        alternative="give a target with fewer classes",
    )
