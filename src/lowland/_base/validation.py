"""The one place where data are checked: shape, type, finiteness, names of columns.

The messages keep scikit-learn's key phrases (its users and its test-suite look for them) and add
what it leaves out: which column, which row, which value, what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lowland import _native
from lowland._base.errors import DataError, DataTypeError, shown
from lowland._base.memory import require_memory
from lowland._base.sparse_input import as_csr, well_formed

DENSE_NUMBERS = 2**23  # up to so many, stored zeros cost less than sparse arithmetic

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))

LEAST, MOST = 1e-75, 1e75  # the largest value of a table: fourth powers still fit into a double
USUAL = (1e-9, 1e9)  # where fourth powers of float32 neither overflow nor vanish


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy sparse matrix or array; imports scipy only if somebody else has."""
    import sys

    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(X)


def check_matrix(
    X: Any,
    *,
    owner: str,
    argument: str = "X",
    accept_sparse: bool = False,
    min_rows: int = 1,
    finite: bool = True,
    allow_nan: bool = False,
    threads: int = 1,
    part: bool = False,
) -> Any:
    """X as a finite (n, d) array of float32 or float64 (or CSR of the same), never a needless copy.

    float32 stays float32; every other number becomes float64. X itself is never written to. The
    largest absolute value is 0 or between ``LEAST`` and ``MOST``.
    ``finite=False`` leaves the values to a later :func:`check_finite`; ``allow_nan=True`` takes NaN
    in dense rows that have other values. Of a ``part`` of a table, or new rows, all values may be
    small.
    """
    names = column_names(X)
    if is_sparse(X):
        if not accept_sparse:
            raise DataTypeError(
                f"Sparse data was passed as {argument}, but {owner} needs dense data; "
                f"use {argument}.toarray() if that fits in memory."
            )
        X = _sparse_floats(X, argument)
    else:
        X = _dense_floats(X, argument, names)
    _check_shape(X, owner, argument, min_rows)
    if finite:
        check_finite(X, names, argument=argument, allow_nan=allow_nan, threads=threads, part=part)
    return X


def _sparse_floats(X: Any, argument: str) -> Any:
    if np.iscomplexobj(X):
        raise DataError(f"Complex data not supported: {argument} is {X.dtype}; pass real numbers.")
    well_formed(X, argument)
    # converted before entries are summed, because sums of small integers overflow
    return as_csr(X if X.dtype in FLOATS else X.astype(np.float64))


def canonical(X: Any) -> Any:
    """CSR with sorted columns, each entry stored once; X itself if it is so already."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _dense_floats(X: Any, argument: str, names: np.ndarray | None) -> np.ndarray:
    array = as_array(X, argument)
    if np.iscomplexobj(array):
        raise DataError(
            f"Complex data not supported: {argument} is {array.dtype}; pass real numbers."
        )
    if array.ndim != 2:
        raise DataError(
            f"Expected 2D array, got {array.ndim}D array instead: {argument} has shape "
            f"{array.shape}. Reshape your data: {argument}.reshape(-1, 1) if it is one column, "
            f"{argument}.reshape(1, -1) if it is one row."
        )
    if array.dtype in FLOATS:
        return array
    if array.dtype.kind in "mM":
        raise DataTypeError(
            f"{argument} holds times ({array.dtype}), which are not numbers; subtract a first time "
            "and divide by a unit, as in (t - t[0]) / np.timedelta64(1, 's')."
        )
    try:
        with np.errstate(over="ignore"):  # a longdouble beyond float64 is refused as infinity
            return _without_holes(array).astype(np.float64)
    except MemoryError:
        raise
    except Exception as error:  # cells are objects, which raise what they like
        raise _not_a_number(array, argument, names, error) from error


def _without_holes(array: np.ndarray) -> np.ndarray:
    """An array of objects with NaN where a value is missing: None, NA or NaT of pandas."""
    if array.dtype != object:
        return array
    holes = np.frompyfunc(_is_hole, 1, 1)(array).astype(bool)
    return np.where(holes, np.nan, array) if holes.any() else array


def _is_hole(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def as_array(values: Any, argument: str) -> np.ndarray:
    """``np.asarray`` in our words: no masked values, no ragged lists, no failures of others."""
    if hasattr(values, "collect_schema") and hasattr(values, "collect"):  # of polars
        raise DataError(f"{argument} is a lazy data frame; give {argument}.collect().")
    parts = values if isinstance(values, list | tuple) else ()
    if _is_masked(values) or any(map(_is_masked, parts)):
        raise DataError(
            f"{argument} is a masked array with masked values, which would be used as if they were "
            f"data; fill them, as in {argument}.filled(np.nan), and impute or drop what is missing."
        )
    try:
        return np.asarray(values)
    except MemoryError:
        raise
    except Exception as error:  # what an array-like raises is up to its author
        ragged = "inhomogeneous" in str(error)
        reason = "its rows have different lengths" if ragged else str(error).removesuffix(".")
        raise DataError(
            f"{argument} cannot be read as an array ({reason}); give an array, a data frame or a "
            "list of rows of one length."
        ) from error


def _is_masked(values: Any) -> bool:
    """Whether values are hidden; an array of pandas has a mask, too, and gives NA for them."""
    return isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)


def _not_a_number(
    array: np.ndarray, argument: str, names: np.ndarray | None, error: Exception
) -> Exception:
    kind = DataTypeError if isinstance(error, TypeError) else DataError
    for column in range(array.shape[1]):
        for row, value in enumerate(array[:, column]):
            try:
                float(value)
            except Exception as reason:
                return kind(
                    f"{argument}, {column_label(names, column)}, row {row}: {shown(value)} is not "
                    f"a number of float64 ({reason}); drop the column or encode it as numbers."
                )
    return kind(f"{argument} cannot be read as numbers: {error}.")


def _check_shape(X: Any, owner: str, argument: str, min_rows: int) -> None:
    rows, columns = X.shape
    if rows < min_rows:
        raise DataError(
            f"Found array with {rows} sample(s) (n_samples={rows}) while a minimum of {min_rows} "
            f"is required by {owner}; {argument} has shape {X.shape}."
        )
    if columns < 1:
        raise DataError(
            f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required "
            f"by {owner}."
        )


def dense_if_small(X: Any) -> Any:
    """Sparse rows that are faster as a dense table become one; all else stays what it is."""
    small = is_sparse(X) and X.shape[0] * X.shape[1] <= DENSE_NUMBERS
    return X.toarray() if small else X


def as_dense(X: Any, owner: str) -> np.ndarray:
    """Rows as a dense table, if there is memory for it."""
    if not is_sparse(X):
        return X
    m, p = X.shape
    require_memory(
        m * p * X.dtype.itemsize,
        task=f"{owner}: a dense table of {m} rows and {p} columns",
        alternative="fewer rows at a time, or PCA first",
    )
    return X.toarray()


def all_finite(values: np.ndarray, threads: int = 1) -> bool:
    """Whether there is neither NaN nor infinity; fast where the values lie in one piece."""
    values = values.T if values.flags.f_contiguous else values
    if values.flags.c_contiguous and values.dtype in FLOATS:
        return bool(_native.all_finite(values, threads))
    return bool(np.isfinite(values).all())


def largest(values: np.ndarray) -> float:
    """The largest absolute value, without a copy of the values."""
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def largest_value(X: Any) -> float:
    """The largest known absolute value of rows, sparse rows, distances or a neighbor graph.

    NaN (unknown) and infinity (a missing neighbor) do not count.
    """
    values = values_of(X)
    found = largest(values)
    return found if np.isfinite(found) else largest(values[np.isfinite(values)])


def values_of(X: Any) -> np.ndarray:
    """The numbers of rows, sparse rows, distances or a neighbor graph."""
    if is_sparse(X):
        return X.data
    return X if isinstance(X, np.ndarray) else X.distances  # of a NeighborGraph


def is_usual(greatest: float) -> bool:
    """Whether float32 holds fourth powers of a table with this largest value."""
    return greatest == 0 or USUAL[0] <= greatest <= USUAL[1]


def check_size(greatest: float, argument: str = "X", *, part: bool = False) -> None:
    """Refuse a table whose largest absolute value is too large or too small to compute with.

    A ``part`` of a table may be as small as it likes.
    """
    if greatest > MOST or (0 < greatest < LEAST and not part):
        raise DataError(
            f"The largest value of {argument} is {greatest:g}, and products of such values are "
            f"beyond the range of float64; divide {argument} by 1e{_exponent(greatest)}."
        )


def with_room(X: Any) -> Any:
    """X in float64 if it is of float32 that cannot hold its fourth powers, else X itself."""
    return X if values_of(X).dtype != np.float32 or is_usual(largest_value(X)) else in_float64(X)


def in_float64(X: Any) -> Any:
    """Rows, sparse rows, distances or a neighbor graph with numbers of float64."""
    if hasattr(X, "with_distances"):
        return X.with_distances(X.distances.astype(np.float64, copy=False))
    return X.astype(np.float64, copy=False)


def beyond(owner: str, X: Any, what: str, dtype: Any) -> DataError:
    """The error for results that their data type cannot hold."""
    greatest = largest_value(X)
    float64 = ", or give it as float64" if dtype == np.float32 else ""
    return DataError(
        f"{owner}: the largest value of X is {greatest:g}, and {what} is beyond what {dtype} can "
        f"hold; divide X by 1e{_exponent(greatest)} before fitting{float64}."
    )


def _exponent(greatest: float) -> int:
    """The power of ten to divide by, itself a number of float64."""
    return max(int(np.floor(np.log10(greatest))), -300) if greatest else 0


def check_finite(
    X: Any,
    names: np.ndarray | None,
    *,
    argument: str = "X",
    allow_nan: bool = False,
    threads: int = 1,
    part: bool = False,
) -> None:
    """Refuse NaN and infinity, with the column and the row of the first, and extreme values.

    ``allow_nan`` refuses only infinity, dense rows without any value, and NaN in sparse rows. Of a
    ``part`` of a table all values may be small.
    """
    values = X.data if is_sparse(X) else X
    if all_finite(values, threads):
        check_size(largest_value(X), argument, part=part)
        return
    if allow_nan and not is_sparse(X):
        missing = np.isnan(X)
        if not np.isinf(X).any():
            _check_rows_have_values(missing, argument)
            check_size(largest_value(X), argument, part=part)
            return
        X = values = np.where(missing, 0.0, X)
    bad = ~np.isfinite(values)
    if is_sparse(X):
        place = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(X.indptr, place, side="right")) - 1
        column, count = int(X.indices[place]), 1
        value = values[place]
    else:
        counts = bad.sum(axis=0)
        column = int(np.flatnonzero(counts)[0])
        row = int(np.flatnonzero(bad[:, column])[0])
        value, count = X[row, column], int((counts > 0).sum())
    what, which = ("NaN", "missing ") if np.isnan(value) else ("infinity", "")
    others = f" and in {count - 1} more columns" if count > 1 else ""
    raise DataError(
        f"Input {argument} contains {what}: {column_label(names, column)}, first in row {row}"
        f"{others}. Drop or impute these {which}values first."
    )


def _check_rows_have_values(missing: np.ndarray, argument: str) -> None:
    empty = np.flatnonzero(missing.all(axis=1))
    if len(empty):
        others = f" and in {len(empty) - 1} more rows" if len(empty) > 1 else ""
        raise DataError(
            f"Input {argument} contains NaN only in row {empty[0]}{others}; a row needs at least "
            "one value. Drop such rows."
        )


# Rows for Gower's distance: columns in units of their range, which the fitted rows decide.
#
# Gower's distance of two rows of numbers is the mean over the columns of |x - y| / range. It is the
# Manhattan distance of rows whose columns are divided by their range and by their number. A model
# keeps the ranges of the rows that it was fitted to, so that new rows do not change any distance.


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
    ranges = greatest.astype(np.float64) - least
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


# The columns of a table: their names, their number, and whether they have values.


def column_names(X: Any) -> np.ndarray | None:
    """Names of a data frame's columns as an object array; None when there are none.

    Like scikit-learn, names count only when all are strings; a mixture is refused.
    """
    columns = getattr(X, "columns", None) if hasattr(X, "shape") else None
    if columns is None or not isinstance(columns, Iterable):
        return None
    names = np.asarray(list(columns), dtype=object)
    strings = [isinstance(name, str) for name in names]
    if not names.size or not any(strings):
        return None
    if not all(strings):
        odd = next(name for name, fine in zip(names, strings, strict=True) if not fine)
        raise DataTypeError(
            "Feature names are only supported if all input features have string names, but the "
            f"column {odd!r} is of type {type(odd).__name__}; rename it, for example with "
            "X.columns = X.columns.astype(str)."
        )
    return names


def column_label(names: np.ndarray | None, column: int) -> str:
    """How a message calls a column: its name where it has one, else its number."""
    return f"column {names[column]!r}" if names is not None else f"column {column}"


def check_columns_have_values(X: Any, names: np.ndarray | None) -> None:
    """Refuse columns of NaN only: nothing can be learned from them."""
    if not isinstance(X, np.ndarray) or not np.isnan(X[0]).any():
        return
    refuse_empty_columns(np.asarray(np.isnan(X).all(axis=0)), names)


def refuse_empty_columns(empty_columns: np.ndarray, names: np.ndarray | None) -> None:
    """The error for columns that are marked as without any value."""
    empty = np.flatnonzero(empty_columns)
    if len(empty):
        others = f" and {len(empty) - 1} more columns" if len(empty) > 1 else ""
        raise DataError(
            f"Input X contains NaN only in {column_label(names, empty[0])}{others}. Leave such "
            "columns out."
        )


def check_columns(X: Any, n_features: int, *, owner: str) -> None:
    """Refuse new data with another number of columns than the fitted data had."""
    if X.shape[1] != n_features:
        raise DataError(
            f"X has {X.shape[1]} features, but {owner} is expecting {n_features} features as "
            "input: the columns it was fitted on."
        )


def check_same_columns(names: np.ndarray | None, fitted: np.ndarray | None, *, owner: str) -> None:
    """Refuse, or warn about, column names that differ from those of the fitted data."""
    import warnings

    if names is None and fitted is None:
        return
    if fitted is None:
        warnings.warn(
            f"X has feature names, but {owner} was fitted without feature names", stacklevel=4
        )
        return
    if names is None:
        warnings.warn(
            f"X does not have valid feature names, but {owner} was fitted with feature names",
            stacklevel=4,
        )
        return
    if len(names) == len(fitted) and (names == fitted).all():
        return
    message = "The feature names should match those that were passed during fit.\n"
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    if unseen:
        message += "Feature names unseen at fit time:\n" + _bullets(unseen)
    if missing:
        message += "Feature names seen at fit time, yet now missing:\n" + _bullets(missing)
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise DataError(message)


def _bullets(names: list[str], most: int = 5) -> str:
    shown = [f"- {name}\n" for name in names[:most]]
    return "".join(shown) + ("- ...\n" if len(names) > most else "")
