"""Whether the columns of a table need scaling, and by which values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._base.columns import column_label
from lowland._base.errors import DataError, shown
from lowland._base.validation import all_finite, is_sparse

# If deviations differ by more than this factor, the columns seem to have different units.
ALIKE = 10.0
# If so many columns have the same minimum, they are counts, intensities or pixels of one kind.
MANY, SHARE = 16, 0.9
ROWS_LOOKED_AT = 5000  # enough rows for the choice
# The interquartile range of a normal distribution: "robust" and "standard" agree there.
QUARTILES_OF_NORMAL = 1.3489795


class Scale(NamedTuple):
    """The values to subtract and divide by (None: nothing), the kind of scale, and the reason."""

    kind: str
    reason: str
    center: np.ndarray | None = None
    spread: np.ndarray | None = None


class Summaries(NamedTuple):
    """How columns are summarized: by all values, or by those that are known."""

    mean: Callable[..., np.ndarray]
    std: Callable[..., np.ndarray]
    min: Callable[..., np.ndarray]
    max: Callable[..., np.ndarray]
    quantile: Callable[..., np.ndarray]


OF_ALL = Summaries(np.mean, np.std, np.min, np.max, np.quantile)
OF_KNOWN = Summaries(np.nanmean, np.nanstd, np.nanmin, np.nanmax, np.nanquantile)


def summaries_for(X: np.ndarray) -> Summaries:
    """Those of the known values, if there are missing ones; a pass of its own costs little."""
    return OF_ALL if all_finite(X) else OF_KNOWN


def choose_scale(X: Any, names: Sequence[str] | None) -> Scale:
    """ "standard" for a table whose units seem to differ, else "none".

    Sparse data and arrays without column names are not scaled. Columns of one kind are not scaled
    either: columns whose deviations differ by at most a factor of 10, and many columns with the
    same minimum (pixels, counts).
    """
    if is_sparse(X):
        return Scale("none", "the data are sparse")
    looked_at = X[:: max(1, len(X) // ROWS_LOOKED_AT)]
    least = summaries_for(looked_at).min(looked_at, axis=0)
    chosen = decided(_deviations(looked_at), least, names)
    return chosen if chosen.kind == "none" else standard_scale(X, chosen.reason)


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
        return Scale(
            "none",
            f"the columns have no names, so their units are not known; their deviations differ by "
            f"a factor of {ratio:.2g}",
        )
    values, counts = np.unique(least, return_counts=True)
    if len(least) >= MANY and counts.max() >= SHARE * len(least):
        floor = values[np.argmax(counts)]
        return Scale("none", f"the columns are of one kind: nearly all start at {floor:g}")
    return Scale(
        "standard",
        f"units seem to differ: deviations range from {deviations[small]:.2g} "
        f"({names[small]!r}) to {deviations[large]:.2g} ({names[large]!r})",
    )


def standard_scale(X: Any, reason: str) -> Scale:
    """Mean and deviation, with the divisor n, like scikit-learn's StandardScaler.

    Sparse data are not centered.
    """
    if is_sparse(X):
        X = X.astype(np.float64)
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        mean = np.asarray(X.mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        return Scale("standard", f"{reason}; not centered, to stay sparse", None, _no_zeros(spread))
    of = summaries_for(X)
    center = of.mean(X, axis=0, dtype=np.float64)
    return Scale("standard", reason, center, _no_zeros(_deviations(X)))


def robust_scale(X: Any, reason: str) -> Scale:
    """Median, and the interquartile range in units of that of a normal distribution.

    If more than half of a column is one value, its deviation replaces the interquartile range.
    """
    if is_sparse(X):
        return standard_scale(X, f"{reason} (sparse: deviations, not quartiles)")
    low, middle, high = summaries_for(X).quantile(X, [0.25, 0.5, 0.75], axis=0)
    spread = (high - low).astype(np.float64) / QUARTILES_OF_NORMAL
    spread = np.where(spread > 0, spread, _deviations(X))
    return Scale("robust", reason, middle.astype(np.float64), _no_zeros(spread))


def _deviations(X: np.ndarray) -> np.ndarray:
    """Deviation of each column; exactly 0 for a constant one."""
    of = summaries_for(X)
    deviations = of.std(X, axis=0, dtype=np.float64)
    deviations[of.min(X, axis=0) == of.max(X, axis=0)] = 0.0
    return deviations


def _no_zeros(spread: np.ndarray) -> np.ndarray:
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
        if step == "log1p":
            X = _log1p(X)
        else:
            X = _scaled_rows(X, _sums(X) / MILLION if step == "cpm" else _lengths(X))
    return X, n_empty


def _nonzero_rows(X: Any) -> np.ndarray:
    if is_sparse(X):
        stored = X.data != 0
        return np.diff(np.concatenate([[0], np.cumsum(stored)])[X.indptr]) > 0
    return (X != 0).any(axis=1)


def _refuse_negative(X: Any, step: str, names: np.ndarray | None) -> None:
    values = X.data if is_sparse(X) else X
    if not values.size or values.min() >= 0:
        return
    place = int(np.argmax(values.ravel() < 0))
    if is_sparse(X):
        row = int(np.searchsorted(X.indptr, place, side="right")) - 1
        column, value = int(X.indices[place]), values[place]
    else:
        row, column = divmod(place, X.shape[1])
        value = X[row, column]
    raise DataError(
        f"normalize: {step!r} is for counts, but {column_label(names, column)} has "
        f"{shown(float(value))} in row {row}; leave {step!r} out, or drop the column."
    )


def _log1p(X: Any) -> Any:
    if not is_sparse(X):
        return np.log1p(X)
    out = X.copy()
    out.data = np.log1p(out.data)
    return out


def _sums(X: Any) -> np.ndarray:
    """Sum of each row; one order of summation, whatever the other rows are."""
    if is_sparse(X):
        return _row_reduced(X, X.data.astype(np.float64))
    return np.ascontiguousarray(X).sum(axis=1, dtype=np.float64)


def _lengths(X: Any) -> np.ndarray:
    """Length of each row, whose largest entry is the unit: squares stay in range."""
    if is_sparse(X):
        values = np.abs(X.data.astype(np.float64))
        unit = _no_zeros(_row_reduced(X, values, np.maximum))
        values /= np.repeat(unit, np.diff(X.indptr))
        return unit * np.sqrt(_row_reduced(X, values * values))
    values = np.ascontiguousarray(X, dtype=np.float64)
    unit = _no_zeros(np.abs(values).max(axis=1))
    values = values / unit[:, None]
    return unit * np.sqrt((values * values).sum(axis=1))


def _row_reduced(X: Any, values: np.ndarray, reduce: np.ufunc = np.add) -> np.ndarray:
    """Sums, or another reduction, of the stored values of each row of a CSR matrix."""
    found = np.zeros(X.shape[0])
    filled = np.flatnonzero(np.diff(X.indptr))
    if len(filled):
        found[filled] = reduce.reduceat(values, X.indptr[filled])
    return found


def _scaled_rows(X: Any, divisors: np.ndarray) -> Any:
    divisors = _no_zeros(divisors)
    if not is_sparse(X):
        return (X / divisors[:, None]).astype(X.dtype, copy=False)
    out = X.copy()
    out.data = (out.data / np.repeat(divisors, np.diff(X.indptr))).astype(X.dtype, copy=False)
    return out
