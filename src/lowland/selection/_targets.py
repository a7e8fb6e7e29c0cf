"""Whether a target holds classes or numbers, for selectors that take both."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.targets import Labels, check_labels, check_numbers, require_target
from lowland._core.validation import as_array


def read_target(y: Any, n_rows: int, kind: str, *, owner: str) -> Labels | np.ndarray:
    """Classes or numbers; ``kind`` is "classes", "numbers" or "auto"."""
    require_target(y, owner=owner)
    if kind == "classes" or (kind == "auto" and holds_classes(y)):
        return read_classes(y, n_rows, owner=owner)
    return check_numbers(y, n_rows, owner=owner)


def read_classes(y: Any, n_rows: int, *, owner: str) -> Labels:
    """Labels with at least two classes."""
    labels = check_labels(y, n_rows, owner=owner)
    require_two(labels.classes, owner)
    return labels


def require_two(classes: np.ndarray, owner: str) -> None:
    """Refuse a single class."""
    if len(classes) < 2:
        raise DataError(
            f"{owner} needs at least two classes, but y has only one class, "
            f"{classes.tolist()[0]!r}; add rows of another class."
        )


def holds_numbers(y: Any) -> bool:
    """Whether y holds numbers; booleans do not count, numbers in an object array do."""
    values = as_array(y, "y")
    if values.dtype != object:
        return values.dtype.kind in "iuf"
    return all(isinstance(value, int | float) for value in values.ravel().tolist())


def holds_classes(y: Any) -> bool:
    """Text and booleans are classes; so are integers that occur three times on average."""
    if not holds_numbers(y):
        return True
    try:
        values = as_array(y, "y").astype(np.float64)
    except (OverflowError, TypeError, ValueError):  # integers beyond float64: refused as numbers
        return False
    if not np.array_equal(values, np.floor(values)):
        return False
    return len(np.unique(values)) <= max(2, values.size // 3)
