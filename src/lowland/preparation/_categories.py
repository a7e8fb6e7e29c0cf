"""Text as numbers: one 0/1 column per value, one for yes and no, equal steps for ordered values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lowland._core.errors import DataError
from lowland._core.wording import listing

if TYPE_CHECKING:
    import polars as pl

MISSING = "missing"  # the level of a missing value
# Pairs of values that say no and yes, in this order.
PAIRS = (("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t"), ("off", "on"), ("0", "1"))
HALFWAY = 0.5  # where a row lies that is neither yes nor no


def as_text(column: pl.Series) -> pl.Series:
    """Values as text; a whole number has no decimals, so that 1 and 1.0 are the same level."""
    import polars as pl

    if column.dtype == pl.String:
        return column
    if column.dtype.is_float():
        column = column.fill_nan(None)
        whole = column.cast(pl.Int64, strict=False)
        if (whole == column).all() and whole.null_count() == column.null_count():
            column = whole
    return column.cast(pl.String)


def _texts(column: pl.Series) -> list[str]:
    """Values as text. Lists, because many short columns would wait for the start of each query."""
    return [MISSING if value is None else value for value in as_text(column).to_list()]


def levels_in(column: pl.Series) -> list[str]:
    """The values of a column, sorted."""
    return sorted({*_texts(column)})


def mark_levels(column: pl.Series, levels: Sequence[str], out: np.ndarray) -> None:
    """Set 1 in the column of each row's level; ``out`` holds zeros, (n_rows, n_levels)."""
    values = _texts(column)
    places = {level: place for place, level in enumerate(levels)}
    codes = np.array([places.get(value, -1) for value in values])
    known = codes >= 0
    if not known.all():
        unknown = sorted({*values} - {*levels})
        warnings.warn(
            f"column {column.name!r} has values that the model does not know, which have 0 "
            f"in all of its columns: {listing(unknown)}",
            stacklevel=2,
        )
    out[np.flatnonzero(known), codes[known]] = 1.0


def switch_in(column: pl.Series) -> tuple[str, str] | None:
    """The values that say no and yes, in lower case; None if the column has others or gaps."""
    if column.has_nulls():
        return None
    values = {value.strip().casefold() for value in {*_texts(column)}}
    return next((pair for pair in PAIRS if values == {*pair}), None)


def switched(column: pl.Series, no: str, yes: str) -> np.ndarray:
    """0 for no, 1 for yes, and the middle for what is neither."""
    values = [value.strip().casefold() for value in _texts(column)]
    codes = {no: 0.0, yes: 1.0}
    found = np.array([codes.get(value, HALFWAY) for value in values])
    unknown = sorted({*values} - {no, yes})
    if unknown:
        warnings.warn(
            f"column {column.name!r} has values that are neither {no!r} nor {yes!r}, which lie "
            f"halfway between them: {listing(unknown)}",
            stacklevel=2,
        )
    return found


def steps_in(column: pl.Series, order: Sequence[str]) -> np.ndarray:
    """0, 1, 2, ... for the values in their order; NaN where missing. Others are refused."""
    import polars as pl

    values = as_text(column).str.strip_chars()
    unknown = sorted({*values.drop_nulls().unique().to_list()} - {*order})
    if unknown:
        raise DataError(
            f"column {column.name!r}: values that its order does not name: {listing(unknown)}; "
            f"the order is {listing(list(order), 20)}."
        )
    steps = {value: float(step) for step, value in enumerate(order)}
    found = values.replace_strict(steps, default=None, return_dtype=pl.Float64)
    return found.fill_null(np.nan).to_numpy()
