"""Numbers in text: decimal commas, thousands marks, percent, currencies and units.

A column of text becomes numbers if *all* of its values are numbers that are written alike. What
each column means is decided from all of its values; a column such as ``1,234 5,678`` that can be
read in two ways is decided by the other columns of the file, then by the separator. What is no
measurement stays text: dates, times, versions, addresses, telephone numbers, and codes with leading
zeros.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lowland._core.wording import listing
from lowland.io.records import MISSING
from lowland.io.units import CURRENCY, NO_UNIT, UNIT, is_unit

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Numerals", "numbers_in_text", "without_marks"]

FIRST = 200  # values of a column that decide whether the others are looked at
SHOWN = 4  # names of columns in a note
FEW_UNITS = 5  # a column with more of them is just text
NUMBER = r"[0-9.,][0-9.,' ]*?(?:[eE][+\-]?[0-9]+)?"
VALUE = (
    rf"^(?P<sign>[+\-]?) ?(?P<before>{CURRENCY})?(?: ?(?P<minus>-))? ?"
    rf"(?P<number>{NUMBER})(?P<gap> ?)(?P<after>{UNIT})?$"
)
EXPONENT = r"(?:[eE][+\-]?[0-9]+)?"
WHOLE = "(?:0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:(?:MARK[0-9]{3})+|(?: [0-9]{3})+|(?:'[0-9]{3})+))"
# The number with each of the two decimal marks.
WRITTEN = {
    ".": rf"^(?:{WHOLE.replace('MARK', ',')}(?:\.[0-9]*)?|\.[0-9]+){EXPONENT}$",
    ",": rf"^(?:{WHOLE.replace('MARK', '[.]')}(?:,[0-9]+)?|,[0-9]+){EXPONENT}$",
}
THOUSANDS = {".": "[,' ]", ",": "[.' ]"}
TWO_WAYS = r"^[+\-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+$"
PADDED = r"^[+\-]?0[0-9]"
ADDRESS = r"^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$"
CODES = re.compile(
    r"(?:.*[^a-z])?(?:tel|telephone|phone|fax|mobile|zip|zipcode|zip_code|plz|postcode|postal_?code|"
    r"iban|ssn|isbn|ean|ip|version)(?:[^a-z].*)?",
    re.IGNORECASE,
)
EITHER, NEITHER = "?", ""  # decimal marks of a column: it can be read in two ways, or has none


class Numerals(NamedTuple):
    """A column of text that holds numbers only."""

    text: pl.Series  # sign and number, without unit
    decimal: str  # ".", ",", EITHER or NEITHER
    unit: str = ""

    def values(self, decimal: str) -> pl.Series:
        """The numbers, if ``decimal`` is the decimal mark."""
        import polars as pl

        text = self.text
        if text.str.contains(THOUSANDS[decimal]).any():
            text = text.str.replace_all(THOUSANDS[decimal], "")
        if decimal == ",":
            text = text.str.replace(",", ".", literal=True)
        return text.cast(pl.Float64)


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
    found, notes = _understood(frame, skip)
    has_commas = any(what.decimal == "," for what in found.values())
    if has_commas and not decimal_comma and native and as_text is not None:
        frame, native = frame.with_columns(as_text(native)), []
        found, notes = _understood(frame, skip)
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


def without_marks(text: pl.Series) -> pl.Series:
    """Text without blanks around it, and null where it means a missing value."""
    text = text.str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(MISSING), None)


def _understood(frame: pl.DataFrame, skip: Sequence[str]) -> tuple[dict[str, Numerals], list[str]]:
    """The columns of text that hold numbers, and notes about those that nearly do."""
    import polars as pl

    found: dict[str, Numerals] = {}
    notes: list[str] = []
    for name, dtype in frame.schema.items():
        if dtype == pl.String and name not in skip:
            what = _column(name, frame[name])
            if isinstance(what, Numerals):
                found[name] = what
            elif what:
                notes.append(what)
    return found, notes


def _column(name: str, column: pl.Series) -> Numerals | str:
    """How the numbers of a column are written, or why it stays text ("" if it is just text)."""
    import polars as pl

    text = without_marks(column)
    if text.count() == 0:
        return ""
    odd = text.is_not_null() & text.cast(pl.Float64, strict=False).is_null()
    if not odd.any():
        padded = text.str.contains(PADDED)
        if padded.any():
            return _kept(name, text, padded, "its numbers begin with 0, as codes do")
        dotted = text.filter(text.str.contains(".", literal=True))
        if not dotted.count() or not dotted.str.contains(TWO_WAYS).all():
            return Numerals(text, "." if dotted.count() else NEITHER)
    # Signs that look alike are made equal.
    alike = text.str.replace_all("[\\s\u00a0\u202f\u2009]+", " ").str.replace_all("\u2212", "-")
    alike = alike.str.replace_all("\u2019", "'")
    if CODES.fullmatch(name) or alike.drop_nulls().head(FIRST).str.contains(VALUE).mean() < 0.5:
        return _mostly(name, text, odd)
    return _with_unit(name, text, alike.str.extract_groups(VALUE).struct.unnest())


def _with_unit(name: str, text: pl.Series, parts: pl.DataFrame) -> Numerals | str:
    import polars as pl

    number, is_plus = parts["number"], parts["sign"] == "+"
    written = {mark: number.str.contains(pattern) for mark, pattern in WRITTEN.items()}
    fits = (written["."] | written[","]) & ((parts["sign"] == "") | parts["minus"].is_null())
    bad = text.is_not_null() & ~fits.fill_null(False)
    if bad.any():
        return _mostly(name, text, bad)
    unit = parts.select(
        pl.concat_str(pl.col("before").fill_null(""), pl.col("after").fill_null(""))
    ).to_series()
    units = unit.filter(text.is_not_null()).unique(maintain_order=True).to_list()
    if len(units) > FEW_UNITS or any(map(NO_UNIT.fullmatch, units)):
        return ""
    if len(units) > 1:
        other = text.is_not_null() & (unit != units[0])
        what = f"its units differ ({listing([u or 'none' for u in units], SHOWN, quote=False)})"
        return _kept(name, text, other, what)
    attached = bool(((parts["gap"] == "") & parts["after"].is_not_null()).any())
    if not is_unit(units[0], attached=attached):
        known = text.is_not_null()
        return _kept(name, text, known, f"{units[0]!r} is no unit") if attached else ""
    is_phone = (is_plus & number.str.contains(" ")).any()
    if is_phone or number.drop_nulls().str.contains(ADDRESS).all():
        return ""
    ways = [mark for mark in WRITTEN if written[mark].drop_nulls().all()]
    if not ways:
        return _kept(name, text, ~written["."], "points and commas both are decimal marks in it")
    sign = pl.concat_str(pl.col("sign").replace("+", ""), pl.col("minus").fill_null(""), "number")
    marked = bool(number.str.contains("[.,]").any())
    decimal = ways[0] if len(ways) == 1 else EITHER if marked else NEITHER
    return Numerals(parts.select(sign.alias(name)).to_series(), decimal, units[0])


def _mostly(name: str, text: pl.Series, odd: pl.Series) -> str:
    """A note if more than half of the values are numbers."""
    n_odd = int(odd.sum())
    return _kept(name, text, odd, "not all of it is numbers") if text.count() > 2 * n_odd else ""


def _kept(name: str, text: pl.Series, where: pl.Series, why: str) -> str:
    row = int(where.fill_null(False).arg_true()[0])
    return f"column {name!r} is kept as a label because {why}: row {row} holds {text[row]!r}"


def _conversions(
    found: dict[str, Numerals],
    marks: dict[str, str],
    numbers: dict[str, pl.Series],
    commas: list[str],
) -> list[str]:
    """What was converted, in short: decimal commas, thousands marks, units."""

    def columns(names: list[str]) -> str:
        return listing(names, SHOWN, quote=False)

    commas = [
        *commas,
        *(name for name in found if marks[name] == "," and _has(found[name], ",")),
    ]
    said = [f"decimal commas in {columns(commas)}"] if commas else []
    grouped = [name for name in found if _has(found[name], THOUSANDS[marks[name]])]
    if grouped:
        first = found[grouped[0]].text
        row = int(first.str.contains(THOUSANDS[marks[grouped[0]]]).fill_null(False).arg_true()[0])
        example = f"{first[row]!r} is {numbers[grouped[0]][row]:.15g}"
        said.append(f"thousands marks removed in {columns(grouped)} ({example})")
    # A point in a file of decimal points is no matter of doubt.
    doubtful = [
        name
        for name, what in found.items()
        if what.decimal == EITHER and (marks[name] == "," or _has(what, ","))
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


def _has(what: Numerals, pattern: str) -> bool:
    return bool(what.text.str.contains(pattern).any())
