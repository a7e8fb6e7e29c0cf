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
EXACT = 2**16  # smaller whole numbers are exact in float32, and so are their sums


def as_floats(matrix: np.ndarray) -> np.ndarray:
    """The array as float32 or float64; not copied if it is one already."""
    return matrix.astype(float_type(matrix), copy=False)


def float_type(numbers: np.ndarray) -> np.dtype[Any]:
    """The type that these numbers are converted to: float32 or float64."""
    native = numbers.dtype.newbyteorder("=")
    if native in (np.float32, np.float64):
        return native
    return np.dtype(np.float32 if _array_is_exact(numbers) else np.float64)


def _array_is_exact(matrix: np.ndarray) -> bool:
    if matrix.size < LARGE or matrix.dtype.kind not in "biu":
        return False
    narrow = matrix.dtype.kind == "b" or matrix.dtype.itemsize <= 2
    return narrow or (matrix.min() > -EXACT and matrix.max() < EXACT)


def float_frame(source: str, frame: pl.DataFrame, *, allow_missing: bool = False) -> pl.DataFrame:
    """Columns of numbers as floats, none infinite, none missing unless allowed (then NaN).

    The columns are contiguous in memory, so that an estimator sees the frame as an array without a
    copy.
    """
    import polars as pl

    dtype = pl.Float32 if fits_float32(frame) else pl.Float64
    if any(column.dtype != dtype or column.has_nulls() for column in frame.iter_columns()) or (
        not _is_contiguous(frame)
    ):
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
    import polars as pl

    if all(dtype == pl.Float32 for dtype in frame.dtypes):
        return True
    if (frame.height if n_rows is None else n_rows) * frame.width < LARGE:
        return False
    return all(_column_is_exact(column) for column in frame.iter_columns())


def _column_is_exact(column: pl.Series) -> bool:
    import polars as pl

    if column.dtype in (pl.Float32, pl.Boolean, pl.Int8, pl.Int16, pl.UInt8, pl.UInt16):
        return True
    if not column.dtype.is_integer():
        return False
    return column.count() == 0 or (column.min() > -EXACT and column.max() < EXACT)


def _is_contiguous(frame: pl.DataFrame) -> bool:
    """Whether the columns are contiguous in memory, one after another."""
    try:
        frame.to_numpy(allow_copy=False)
    except RuntimeError:
        return False
    return True


def finite_array(
    source: str,
    matrix: np.ndarray,
    columns: Sequence[str] | None,
    *,
    allow_missing: bool = False,
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
        shown = pl.from_numpy(
            np.asfortranarray(matrix[:, bad]), schema=[f"column_{i}" for i in bad], orient="row"
        )
        float_frame(source, shown, allow_missing=allow_missing)
    return matrix


def finite_sparse(
    source: str, matrix: Any, names: Sequence[str] | None, *, allow_missing: bool = False
) -> Any:
    """A sparse matrix whose stored entries are finite, or NaN where that is allowed."""
    bad = np.isinf(matrix.data) if allow_missing else ~np.isfinite(matrix.data)
    if bad.any():
        places = np.flatnonzero(bad)
        column = int(matrix.indices[places[0]])
        row = int(np.searchsorted(matrix.indptr, places[0], side="right")) - 1
        what = "a missing" if np.isnan(matrix.data[places[0]]) else "an infinite"
        name = names[column] if names is not None else f"column_{column}"
        raise DataError(
            f"{source}: {what} value in row {row}, column {name!r}, the first of {places.size}; "
            "fill them, or drop these rows or columns."
        )
    return matrix


def check_width(source: str, matrix: Any, columns: Sequence[str]) -> None:
    if len(columns) != matrix.shape[1]:
        raise DataError(f"{source}: has {matrix.shape[1]} columns where {len(columns)} are needed.")


def _refuse(source: str, what: str, frame: pl.DataFrame, is_bad: pl.Expr) -> None:
    flags = frame.select(is_bad)
    bad = [
        f"{column.name!r} ({column.sum()}, first in row {column.arg_true()[0]})"
        for column in flags
        if column.any()
    ]
    if bad:
        raise DataError(
            f"{source}: {what} in {count(len(bad), 'column')}: {listing(bad, quote=False)}; "
            "fill them, or drop these rows or columns."
        )
