"""Features are finite numbers; a missing value is refused with its column, row and count.

float32 stays float32 and other numbers become float64, with one exception that saves memory:
a large table of whole numbers below 65536 and truth values, such as pixels or counts, becomes
float32, which holds them exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError, count, listing
from lowland._base.validation import all_finite

if TYPE_CHECKING:
    import polars as pl

LARGE = 2**24  # numbers; as float64 they take 134 MB
NARROW = {"float16", "float32", "int8", "int16", "uint8", "uint16", "bool", "boolean", "null"}
EXACT = 2**16  # smaller whole numbers are exact in float32, and so are their sums


def as_floats(matrix: np.ndarray) -> np.ndarray:
    """The array as float32 or float64; not copied if it is one already."""
    return matrix.astype(float_type(matrix), copy=False)


def float_type(numbers: np.ndarray) -> np.dtype[Any]:
    """The type that these numbers are converted to: float32 or float64."""
    native = numbers.dtype.newbyteorder("=")
    if native in (np.float32, np.float64):
        return native
    whole = numbers.size >= LARGE and numbers.dtype.kind in "biu"
    exact = whole and (is_narrow(native) or (numbers.min() > -EXACT and numbers.max() < EXACT))
    return np.dtype(np.float32 if exact else np.float64)


def is_narrow(dtype: Any) -> bool:
    """Whether float32 holds all values of a type of numpy or polars exactly."""
    name = dtype.name if isinstance(dtype, np.dtype) else str(dtype)
    return name.lower() in NARROW


def float_frame(source: str, frame: pl.DataFrame, *, allow_missing: bool = False) -> pl.DataFrame:
    """Columns of numbers as floats, none infinite, none missing unless allowed (then NaN).

    The columns are contiguous in memory, so that an estimator sees the frame as an array without a
    copy.
    """
    import polars as pl

    dtype = pl.Float32 if fits_float32(frame) else pl.Float64
    if not _is_one_block(frame, dtype):
        block = np.empty(frame.shape, np.float32 if dtype == pl.Float32 else np.float64, order="F")
        for i, column in enumerate(frame.iter_columns()):
            column = column.cast(dtype)
            block[:, i] = column.fill_null(np.nan) if column.has_nulls() else column
        frame = pl.from_numpy(block, schema=frame.columns, orient="row")
        if all_finite(block):  # polars would take 0.1 ms for each column
            return frame
    if not allow_missing:
        _refuse(source, "missing values (NaN or empty)", frame, pl.all().is_nan())
    _refuse(source, "infinite values", frame, pl.all().is_infinite())
    return frame


def fits_float32(frame: pl.DataFrame, n_rows: int | None = None) -> bool:
    """Whether columns of numbers become float32; the frame may be a part of ``n_rows`` rows."""
    if all(str(dtype) == "Float32" for dtype in frame.dtypes):
        return True
    if (frame.height if n_rows is None else n_rows) * frame.width < LARGE:
        return False
    wide = [column for column in frame.iter_columns() if not is_narrow(column.dtype)]
    if not all(column.dtype.is_integer() for column in wide):
        return False
    return all(c.count() == 0 or (c.min() > -EXACT and c.max() < EXACT) for c in wide)


def _is_one_block(frame: pl.DataFrame, dtype: Any) -> bool:
    """Whether the columns are of one type, contiguous in memory, one after another."""
    if any(column.dtype != dtype or column.has_nulls() for column in frame.iter_columns()):
        return False
    try:
        frame.to_numpy(allow_copy=False)
    except RuntimeError:
        return False
    return True


def finite_array(
    source: str, matrix: np.ndarray, columns: Sequence[str] | None, *, allow_missing: bool = False
) -> pl.DataFrame | np.ndarray:
    """An array of finite numbers; a data frame if its columns are given names."""
    import polars as pl

    if columns is not None:
        check_width(source, matrix, columns)
        frame = pl.from_numpy(np.asfortranarray(matrix), schema=list(columns), orient="row")
        return float_frame(source, frame, allow_missing=allow_missing)
    if all_finite(matrix):
        return matrix
    is_bad = np.isinf(matrix) if allow_missing else ~np.isfinite(matrix)
    if is_bad.any():
        bad = np.flatnonzero(is_bad.any(axis=0))
        shown, names = np.asfortranarray(matrix[:, bad]), [f"column_{i}" for i in bad]
        shown = pl.from_numpy(shown, schema=names, orient="row")
        float_frame(source, shown, allow_missing=allow_missing)
    return matrix


def finite_sparse(
    source: str, matrix: Any, names: Sequence[str] | None, *, allow_missing: bool = False
) -> Any:
    """A sparse matrix whose stored entries are finite, or NaN where that is allowed."""
    bad = np.isinf(matrix.data) if allow_missing else ~np.isfinite(matrix.data)
    if bad.any():
        place = int(np.argmax(bad))
        column = int(matrix.indices[place])
        row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
        what = "a missing" if np.isnan(matrix.data[place]) else "an infinite"
        name = names[column] if names is not None else f"column_{column}"
        where = f"{what} value in row {row}, column {name!r}, the first of {int(bad.sum())}"
        raise DataError(f"{source}: {where}; fill them, or drop these rows or columns.")
    return matrix


def check_width(source: str, matrix: Any, columns: Sequence[str]) -> None:
    if len(columns) != matrix.shape[1]:
        raise DataError(f"{source}: has {matrix.shape[1]} columns where {len(columns)} are needed.")


def _refuse(source: str, what: str, frame: pl.DataFrame, is_bad: pl.Expr) -> None:
    bad = [
        f"{column.name!r} ({column.sum()}, first in row {column.arg_true()[0]})"
        for column in frame.select(is_bad)
        if column.any()
    ]
    if bad:
        where = f"{what} in {count(len(bad), 'column')}: {listing(bad, quote=False)}"
        raise DataError(f"{source}: {where}; fill them, or drop these rows or columns.")
