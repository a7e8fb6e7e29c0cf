"""Whether the columns of a table need scaling, and by which values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, shown
from lowland._base.validation import column_label, is_sparse, values_of

# If deviations differ by more than this factor, the columns seem to have different units.
ALIKE = 10.0
# If so many columns have the same minimum, they are counts, intensities or pixels of one kind.
MANY, SHARE = 16, 0.9


class Scale(NamedTuple):
    """The values to subtract and divide by (None: nothing), the kind of scale, and the reason."""

    kind: str
    reason: str
    center: np.ndarray | None = None
    spread: np.ndarray | None = None


def decided(deviations: np.ndarray, least: np.ndarray, names: Sequence[str] | None) -> Scale:
    """The kind of scale for columns of these deviations and least values, and the reason."""
    varying = np.flatnonzero(deviations > 0)
    if not len(varying):
        return Scale("none", "every column is constant")
    small = int(varying[np.argmin(deviations[varying])])
    large = int(np.argmax(deviations))
    with np.errstate(over="ignore"):
        ratio = deviations[large] / deviations[small]
    if ratio <= ALIKE:
        return Scale("none", f"the deviations of the columns agree within a factor of {ratio:.2g}")
    if names is None:
        why = "the columns have no names, so their units are not known; their deviations differ"
        return Scale("none", f"{why} by a factor of {ratio:.2g}")
    values, counts = np.unique(least, return_counts=True)
    if len(least) >= MANY and counts.max() >= SHARE * len(least):
        floor = values[np.argmax(counts)]
        return Scale("none", f"the columns are of one kind: nearly all start at {floor:g}")
    least = f"{deviations[small]:.2g} ({names[small]!r})"
    most = f"{deviations[large]:.2g} ({names[large]!r})"
    return Scale("standard", f"units seem to differ: deviations range from {least} to {most}")


def no_zeros(spread: np.ndarray) -> np.ndarray:
    return np.where(spread > 0, spread, 1.0)


# Normalization of rows: counts per million, logarithms, unit length. Sparse rows stay sparse.


STEPS = ("cpm", "log1p", "l2")
MILLION = 1e6


def normalized(X: Any, steps: Sequence[str], names: np.ndarray | None) -> tuple[Any, int]:
    """The rows after the steps, in their order, and how many rows have nothing but zeros.

    "cpm" scales each row to the sum 1e6, "log1p" replaces x by log(1 + x), "l2" scales each row to
    the length 1. A row of zeros stays as it is. Each row is independent of the others.
    """
    if not steps:
        return X, 0
    n_empty = int((~_nonzero_rows(X)).sum())
    for step in steps:
        if step != "l2":
            _refuse_negative(X, step, names)
        values = values_of(X)
        if step == "log1p":
            X = _with_values(X, np.log1p(values))
            continue
        divisors = no_zeros(_sums(X) / MILLION if step == "cpm" else _lengths(X))
        each = np.repeat(divisors, np.diff(X.indptr)) if is_sparse(X) else divisors[:, None]
        X = _with_values(X, (values / each).astype(X.dtype, copy=False))
    return X, n_empty


def _nonzero_rows(X: Any) -> np.ndarray:
    if is_sparse(X):
        stored = X.data != 0
        return np.diff(np.concatenate([[0], np.cumsum(stored)])[X.indptr]) > 0
    return (X != 0).any(axis=1)


def _refuse_negative(X: Any, step: str, names: np.ndarray | None) -> None:
    values = values_of(X)
    if not values.size or values.min() >= 0:
        return
    place = int(np.argmax(values.ravel() < 0))
    if is_sparse(X):
        row = int(np.searchsorted(X.indptr, place, side="right")) - 1
        column, value = int(X.indices[place]), values[place]
    else:
        row, column = divmod(place, X.shape[1])
        value = X[row, column]
    where = f"{column_label(names, column)} has {shown(float(value))} in row {row}"
    raise DataError(f"normalize: {step!r} is for counts, but {where}; drop the column or the step.")


def _sums(X: Any) -> np.ndarray:
    """Sum of each row; one order of summation, whatever the other rows are."""
    if is_sparse(X):
        return _row_reduced(X, X.data.astype(np.float64))
    return np.ascontiguousarray(X).sum(axis=1, dtype=np.float64)


def _lengths(X: Any) -> np.ndarray:
    """Length of each row, whose largest entry is the unit: squares stay in range."""
    if is_sparse(X):
        values = np.abs(X.data.astype(np.float64))
        unit = no_zeros(_row_reduced(X, values, np.maximum))
        values /= np.repeat(unit, np.diff(X.indptr))
        return unit * np.sqrt(_row_reduced(X, values * values))
    values = np.ascontiguousarray(X, dtype=np.float64)
    unit = no_zeros(np.abs(values).max(axis=1))
    values = values / unit[:, None]
    return unit * np.sqrt((values * values).sum(axis=1))


def _row_reduced(X: Any, values: np.ndarray, reduce: np.ufunc = np.add) -> np.ndarray:
    """Sums, or another reduction, of the stored values of each row of a CSR matrix."""
    found = np.zeros(X.shape[0])
    filled = np.flatnonzero(np.diff(X.indptr))
    if len(filled):
        found[filled] = reduce.reduceat(values, X.indptr[filled])
    return found


def _with_values(X: Any, values: np.ndarray) -> Any:
    """The rows with other values in the places of the stored ones."""
    if not is_sparse(X):
        return values
    out = X.copy()
    out.data = values
    return out
