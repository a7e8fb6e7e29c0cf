"""Columns of a text as values: how each column is written is decided once, for all leaves.

The house reader of delimited text reads a sample, and here is found out by which rule each of its
columns became numbers. Leaves follow the rule. A value that does not fit is an error: a later leaf
must not be read in another way than the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lowland.io.text.numerals import EITHER, Numerals, understood, without_marks

if TYPE_CHECKING:
    import polars as pl

NUMBER, WHOLE, TRUTH, TEXT = "number", "whole number", "truth value", "text"


class Written(NamedTuple):
    """How a column is written."""

    kind: str  # one of the four above
    native: bool = True  # whether polars parses it; else as text, by the marks below
    decimal: str = "."
    unit: str = ""

    def dtype(self) -> pl.DataType:
        """The type of its values."""
        import polars as pl

        types = {NUMBER: pl.Float64(), WHOLE: pl.Int64(), TRUTH: pl.Boolean(), TEXT: pl.String()}
        return types[self.kind]


class MisfitError(Exception):
    """A value does not fit its column; ``row`` counts from the first row of the leaf."""

    def __init__(self, name: str, row: int, value: str, kind: str) -> None:
        super().__init__(name, row, value, kind)
        self.name, self.row, self.value, self.kind = name, row, value, kind


def decided(text: pl.Series, read: pl.Series, decimal_comma: bool) -> Written | None:
    """How a column is written, given its text and what the reader made of it; None if unclear."""
    import polars as pl

    if read.dtype == pl.Boolean:
        return Written(TRUTH)
    decimal = "," if decimal_comma else "."
    if read.dtype.is_integer() or (read.dtype.is_float() and read.dtype != pl.Float64):
        return Written(WHOLE if read.dtype.is_integer() else NUMBER, True, decimal)
    if read.dtype != pl.Float64:
        return Written(TEXT)
    plain = text.str.replace(",", ".", literal=True) if decimal_comma else text
    if plain.cast(pl.Float64, strict=False).equals(read):
        return Written(NUMBER, True, decimal)
    if without_marks(plain).cast(pl.Float64, strict=False).equals(read):
        return Written(NUMBER, False, decimal)
    what = understood(text.to_frame(), ())[0].get(text.name)
    for mark in (".", ","):
        if what is not None and _fits(what, mark) and what.values(mark).equals(read):
            return Written(NUMBER, False, mark, what.unit)
    return None


def converted(text: pl.Series, how: Written) -> pl.Series:
    """The values of a column that was read as text; raises MisfitError for what is none."""
    import polars as pl

    if how.kind == TEXT:
        return text
    bare = without_marks(text)
    if how.kind == TRUTH:
        low = bare.str.to_lowercase()
        _refuse(text, ~low.is_in(["true", "false"]).fill_null(True), how)
        return low == "true"
    values: pl.Series | None = _plain(bare, how)
    if values is None:
        what = understood(text.to_frame(), ())[0].get(text.name)
        if what is None or not _fits(what, how.decimal) or what.unit != how.unit:
            row = _first_misfit(bare, how)
            raise MisfitError(text.name, row, str(text[row]), how.kind)
        values = what.values(how.decimal)
    if how.kind != WHOLE:
        return values
    whole = values.cast(pl.Int64, strict=False)
    _refuse(text, (whole.cast(pl.Float64) != values).fill_null(values.is_not_null()), how)
    return whole


def _plain(bare: pl.Series, how: Written) -> pl.Series | None:
    """Numbers without units and thousands marks; None if there is something else."""
    import polars as pl

    if how.unit:
        return None if bare.count() else bare.cast(pl.Float64)
    if how.decimal == ",":
        if bare.str.contains(".", literal=True).any():
            return None
        bare = bare.str.replace(",", ".", literal=True)
    values = bare.cast(pl.Float64, strict=False)
    return values if values.null_count() == bare.null_count() else None


def _fits(what: Numerals, decimal: str) -> bool:
    return what.decimal in (decimal, EITHER, "")


def _first_misfit(bare: pl.Series, how: Written) -> int:
    """A row whose value is the reason, found by halves; the first row if only all together are."""
    first, last = 0, len(bare)
    while last - first > 1:
        middle = (first + last) // 2
        if not _readable(bare[first:middle], how):
            last = middle
        elif not _readable(bare[middle:last], how):
            first = middle
        else:
            break
    return first


def _readable(bare: pl.Series, how: Written) -> bool:
    if not bare.count() or _plain(bare, how) is not None:
        return True
    what = understood(bare.to_frame(), ())[0].get(bare.name)
    return what is not None and _fits(what, how.decimal) and what.unit == how.unit


def _refuse(text: pl.Series, bad: pl.Series, how: Written) -> None:
    if bad.any():
        row = int(bad.arg_true()[0])
        raise MisfitError(text.name, row, str(text[row]), how.kind)
