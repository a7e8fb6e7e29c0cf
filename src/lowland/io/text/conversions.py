"""Columns of text that become numbers, and the note that says so.

What each column means is decided from all of its values; a column such as ``1,234 5,678`` that can
be read in two ways is decided by the other columns of the file, then by the separator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lowland._core.wording import listing
from lowland.io.text.numerals import EITHER, SHOWN, Numerals, understood

if TYPE_CHECKING:
    import polars as pl


def numbers_in_text(
    frame: pl.DataFrame,
    skip: Sequence[str] = (),
    *,
    separator: str = ",",
    decimal_comma: bool = False,
    as_text: Callable[[list[str]], pl.DataFrame] | None = None,
) -> tuple[pl.DataFrame, list[str]]:
    """The frame with numbers in the place of text, and notes about what was converted.

    Parameters
    ----------
    frame : polars.DataFrame
        As the parser returned it: columns of numbers, and columns of text.
    skip : sequence of str
        Columns that stay text.
    separator, decimal_comma
        Of the file, for columns that can be read in two ways.
    as_text : function, optional
        Reads columns again as text. If columns of text have decimal commas, then numbers such as
        1.234 in other columns may be thousands.
    """
    native = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    found, notes = understood(frame, skip)
    has_commas = any(what.decimal == "," for what in found.values())
    if has_commas and not decimal_comma and native and as_text is not None:
        frame, native = frame.with_columns(as_text(native)), []
        found, notes = understood(frame, skip)
    if not found and not (decimal_comma and native):
        return frame, notes
    votes = len(native) * (1 if decimal_comma else -1)
    votes += sum({",": 1, ".": -1}.get(what.decimal, 0) for what in found.values())
    if votes == 0:
        votes = 1 if separator == ";" else -1
    usual = "," if votes > 0 else "."
    marks = {
        name: what.decimal if what.decimal in (".", ",") else usual for name, what in found.items()
    }
    numbers = {name: what.values(marks[name]) for name, what in found.items()}
    frame = frame.with_columns(list(numbers.values()))
    commas = native if decimal_comma else []
    said = _conversions(found, marks, numbers, commas)
    return frame, [f"numbers in text: {'; '.join(said)}", *notes] if said else notes


def _conversions(
    found: dict[str, Numerals],
    marks: dict[str, str],
    numbers: dict[str, pl.Series],
    commas: list[str],
) -> list[str]:
    """What was converted, in short: decimal commas, thousands marks, units."""

    def columns(names: list[str]) -> str:
        return listing(names, SHOWN, quote=False)

    commas = [*commas, *(name for name in found if marks[name] == "," in found[name].marks)]
    said = [f"decimal commas in {columns(commas)}"] if commas else []
    grouped = [name for name in found if found[name].grouping(marks[name])]
    if grouped:
        first = found[grouped[0]]
        mark = first.grouping(marks[grouped[0]])[0]
        row = int(first.text.str.contains(mark, literal=True).fill_null(False).arg_true()[0])
        example = f"{first.text[row]!r} is {numbers[grouped[0]][row]:.15g}"
        said.append(f"thousands marks removed in {columns(grouped)} ({example})")
    # A point in a file of decimal points is no matter of doubt.
    doubtful = [
        name
        for name, what in found.items()
        if what.decimal == EITHER and (marks[name] == "," or "," in what.marks)
    ]
    if doubtful:
        kind = "a decimal comma" if marks[doubtful[0]] == "," else "a decimal point"
        said.append(f"{columns(doubtful)} can be read in two ways, and the file has {kind}")
    units: dict[str, list[str]] = {}
    for name, what in found.items():
        units.setdefault(what.unit, []).append(name)
    for unit, names in units.items():
        if unit:
            said.append(f"unit {unit} removed from {columns(names)}")
    return said
