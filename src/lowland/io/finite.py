"""Features are finite numbers; a hole is refused with its column, row and number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lowland._core.errors import DataError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["finite_array", "float_frame", "listing"]


def float_frame(source: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of numbers as float32 if all were, else float64; none missing or infinite."""
    import polars as pl

    single = all(dtype == pl.Float32 for dtype in frame.dtypes)
    frame = frame.cast(pl.Float32 if single else pl.Float64)
    _refuse(source, "missing values (NaN or empty)", frame, pl.all().is_null() | pl.all().is_nan())
    _refuse(source, "infinite values", frame, pl.all().is_infinite())
    return frame


def finite_array(
    source: str, matrix: np.ndarray, columns: Sequence[str] | None
) -> pl.DataFrame | np.ndarray:
    """A bare array of finite numbers; a data frame once its columns are given names."""
    import polars as pl

    if columns is not None:
        if len(columns) != matrix.shape[1]:
            raise DataError(
                f"{source}: has {matrix.shape[1]} columns where {len(columns)} are needed."
            )
        return float_frame(source, pl.from_numpy(matrix, schema=list(columns), orient="row"))
    if not np.isfinite(matrix).all():
        bad = np.flatnonzero(~np.isfinite(matrix).all(axis=0))
        shown = pl.from_numpy(matrix[:, bad], schema=[f"column_{i}" for i in bad], orient="row")
        float_frame(source, shown)
    return matrix


def _refuse(source: str, what: str, frame: pl.DataFrame, is_bad: pl.Expr) -> None:
    flags = frame.select(is_bad)
    bad = [
        f"{column.name!r} ({column.sum()}, first in row {column.arg_true()[0]})"
        for column in flags
        if column.any()
    ]
    if bad:
        raise DataError(
            f"{source}: {what} in {_count(len(bad), 'column')}: {listing(bad, quote=False)}; "
            "fill them, or drop these rows or columns."
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listing(names: Sequence[str], most: int = 8, *, quote: bool = True) -> str:
    """The first few names, and how many more there are."""
    shown = [repr(name) if quote else name for name in names[:most]]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown) + more
