"""What columns of a type hold: numbers, text, dates, nested values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lowland._base.errors import listing

if TYPE_CHECKING:
    import polars as pl


def is_text(dtype: pl.DataType) -> bool:
    """Whether a column of this type holds text."""
    import polars as pl

    return dtype == pl.String


def is_number(dtype: pl.DataType) -> bool:
    """Whether a column of this type holds numbers or truth values, which may be features."""
    import polars as pl

    return dtype.is_numeric() or dtype == pl.Boolean


def holds_no_values(dtype: pl.DataType) -> bool:
    """Whether a column of this type is left out: nested or binary values have no role."""
    import polars as pl

    return dtype.is_nested() or dtype in (pl.Binary, pl.Object)


def described(schema: Mapping[str, pl.DataType]) -> str:
    """The names and types of columns, for a message."""
    return listing([f"{name!r} ({dtype})" for name, dtype in schema.items()], quote=False)


def kind_of(dtype: Any) -> str:
    """What the values of a column are, in a word."""
    import polars as pl

    if dtype == pl.Null:
        return "nothing"
    if is_number(dtype):
        return "numbers"
    if dtype.is_nested():
        return "lists"
    return "dates" if dtype.is_temporal() else "text"
