"""Text as numbers: one 0/1 column per value, one for yes and no, equal steps for ordered values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError, listing, unknown_name

if TYPE_CHECKING:
    import polars as pl

MISSING = "missing"  # the level of a missing value
# Pairs of values that mean no and yes, in this order.
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
        what = "has values that were not in the fitted table; they have 0 in all of its columns"
        warnings.warn(f"column {column.name!r} {what}: {listing(unknown)}", stacklevel=2)
    out[np.flatnonzero(known), codes[known]] = 1.0


def switch_in(column: pl.Series) -> tuple[str, str] | None:
    """The values that mean no and yes, in lower case; None if the column has others or gaps."""
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
        what = f"has values that are neither {no!r} nor {yes!r}, which lie halfway between them"
        warnings.warn(f"column {column.name!r} {what}: {listing(unknown)}", stacklevel=2)
    return found


def steps_in(column: pl.Series, order: Sequence[str]) -> np.ndarray:
    """0, 1, 2, ... for the values in their order; NaN where missing. Others are refused."""
    import polars as pl

    values = as_text(column).str.strip_chars()
    unknown = sorted({*values.drop_nulls().unique().to_list()} - {*order})
    if unknown:
        what = f"values that its order does not name: {listing(unknown)}"
        raise DataError(f"column {column.name!r}: {what}; the order is {listing(list(order), 20)}.")
    steps = {value: float(step) for step, value in enumerate(order)}
    found = values.replace_strict(steps, default=None, return_dtype=pl.Float64)
    return found.fill_null(np.nan).to_numpy()


# Values that mean "missing", such as -999, as the user lists them: ``-999``, ``?``, ``age=-1``.


class Code(NamedTuple):
    """A value that means "missing", in one column or in all of them (None)."""

    column: str | None
    text: str
    number: float | None  # None if the text is not a finite number

    def applies(self, column: str) -> bool:
        """Whether it means the values of this column."""
        return self.column is None or self.column == column


def parse_codes(texts: Sequence[str] | None) -> list[Code]:
    """The codes of a list of ``value`` or ``column=value``; the last "=" separates."""
    found = []
    for text in texts or ():
        column, equals, value = text.rpartition("=")
        if not value.strip() or (equals and not column.strip()):
            expected = "expected a value such as -999, or column=value"
            raise ParameterError(f"missing_values: {text!r} is not allowed; {expected}.")
        found.append(Code(column.strip() if equals else None, value.strip(), _number(value)))
    return found


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def check_columns_of_codes(codes: Sequence[Code], names: Sequence[str]) -> None:
    """Refuse a code for a column that does not exist."""
    known = set(names)
    for code in codes:
        if code.column is not None and code.column not in known:
            message = unknown_name("column", code.column, list(names))
            raise ParameterError(f"missing_values: {message}")


def without_codes(
    X: np.ndarray, names: Sequence[str] | None, codes: Sequence[Code]
) -> tuple[np.ndarray, int]:
    """X with NaN in place of the codes, and how many there were; X itself if there were none.

    A column without a name is called by its number, from 0.
    """
    wanted = [code for code in codes if code.number is not None]
    if not wanted:
        return X, 0
    places = names if names is not None else [str(i) for i in range(X.shape[1])]
    check_columns_of_codes(wanted, places)
    is_code = np.zeros(X.shape, bool)
    for code in wanted:
        # 0.1 of float32 is not 0.1
        number = X.dtype.type(code.number) if X.dtype.kind == "f" else code.number
        if code.column is None:
            is_code |= number == X
        else:
            place = list(places).index(code.column)
            is_code[:, place] |= X[:, place] == number
    n_found = int(is_code.sum())
    if not n_found:
        return X, 0
    dtype = X.dtype if X.dtype.kind == "f" else np.dtype(np.float64)
    return np.where(is_code, dtype.type(np.nan), X).astype(dtype, copy=False), n_found
