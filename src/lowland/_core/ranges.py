"""Rows for Gower's distance: columns in units of their range, which the fitted rows decide.

Gower's distance of two rows of numbers is the mean over the columns of |x - y| / range. It is the
Manhattan distance of rows whose columns are divided by their range and by their number. A model
keeps the ranges of the rows that it was fitted to, so that new rows do not change any distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import is_sparse

GOWER = "gower"


def needs_ranges(X: Any, metric: Any) -> bool:
    """Whether rows are compared by Gower's distance; sparse rows are refused where it is used."""
    wanted = isinstance(metric, str) and metric == GOWER
    return wanted and isinstance(X, np.ndarray) and not is_sparse(X)


def column_ranges(X: np.ndarray) -> np.ndarray:
    """Greatest minus least value of each column; 1 for a constant column, which adds nothing."""
    return ranges_between(X.min(axis=0), X.max(axis=0))


def ranges_between(least: np.ndarray, greatest: np.ndarray) -> np.ndarray:
    """The ranges of columns whose least and greatest values are given."""
    with np.errstate(over="ignore"):
        ranges = greatest.astype(np.float64) - least
    if not np.isfinite(ranges).all():
        column = int(np.argmin(np.isfinite(ranges)))
        raise DataError(
            f"X: with metric='gower' the range of column {column} is beyond what float64 can hold; "
            "divide this column by 1e10."
        )
    return np.where(ranges > 0, ranges, 1.0)


def in_ranges(X: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """Columns divided by their range and by the number of columns, in the type of X."""
    with np.errstate(over="ignore", under="ignore"):
        found = (X / (ranges * len(ranges))).astype(X.dtype, copy=False)
    if not np.isfinite(found).all():
        raise DataError(
            "X: with metric='gower' a value is beyond what its type can hold, in units of the "
            "range that its column had in the fitted rows; leave out extreme rows."
        )
    return found
