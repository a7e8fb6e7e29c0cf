"""How numbers are written in text: decimal commas, thousands marks, percent, currencies, units.

A column of text holds numbers if *all* of its values are numbers that are written alike. What is no
measurement stays text: dates, times, versions, addresses, telephone numbers, and codes with leading
zeros.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lowland._base.errors import listing
from lowland.tables.formats.dialect import MISSING

if TYPE_CHECKING:
    import polars as pl

# Units, currencies and other words behind or before a number in text.


CURRENCY = (
    r"(?:US|CA|AU|HK|NZ|R)?\$|[€£¥₹₽₩₺₪฿₫₴₦¢]|EUR|USD|GBP|CHF|JPY|CNY|RMB|INR|AUD|CAD|NZD|SEK|NOK|DKK|"
    r"ISK|PLN|CZK|HUF|RON|BGN|RUB|UAH|TRY|BRL|MXN|ZAR|KRW|SGD|HKD|ILS|THB|Fr\.|kr\.?|Kč|zł"
)
# Letters and signs, with powers such as m2 or s^-1, and up to two more words ("days a year").
UNIT = (
    rf"(?:{CURRENCY}|[\p{{L}}%‰°][\p{{L}}%°²³·*/.$€]{{0,15}}(?:\^?-?[1-3])?"
    r"(?:/\p{L}{1,6}[²³23]?)?(?: \p{L}{1,12}){0,2})"
)
# Words that make a number a date or a rank.
NO_UNIT = re.compile(
    r"(?:st|nd|rd|th|[ap]\.?m\.?|uhr|o'clock|jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec|january|"
    r"february|march|april|june|july|august|september|october|november|december)\.?(?: .*)?",
    re.IGNORECASE,
)
# What may follow a number without a blank; one capital letter may belong to a code such as 101B.
ATTACHED = (
    "% ‰ ° °C °F m km dm cm mm µm μm um nm pm mi mile miles ft in yd kg g mg µg μg ug ng t lb "
    "lbs oz s sec secs ms us ns min mins h hr hrs d day days w wk y yr yrs year years l ml mL "
    "dl dL cl uL gal mV kV mA mW kW MW GW Wh kWh MWh GWh kJ MJ eV keV MeV kN Pa hPa kPa MPa "
    "bar mbar psi Hz kHz MHz GHz kB KB MB GB TB KiB MiB GiB bit mol mmol mM uM nM ppm ppb dB "
    "dBm px pt mph kmh kph rpm bpm kcal cal cc ha sqm sqft rad deg k lm lx pc AU ly x "
)
KNOWN = frozenset(ATTACHED.split())
# What may follow a blank beside these. Other words may be part of a name, as in "2 town".
COUNTED = frozenset(
    [
        *("metre", "metres", "meter", "meters", "kilometers", "kilometres", "inch", "inches"),
        *("feet", "foot", "pound", "pounds", "ounce", "ounces", "gram", "grams", "kilogram"),
        *("kilograms", "ton", "tons", "tonnes", "liter", "liters", "litre", "litres", "second"),
        *("seconds", "minute", "minutes", "hour", "hours", "week", "weeks", "month", "months"),
        *("degree", "degrees", "percent", "pct", "people", "person", "persons", "pieces", "pcs"),
        *("items", "units", "points", "times", "rooms", "seats", "doors", "beds", "copies"),
        *("pages", "steps", "cells", "counts", "acres", "volt", "volts", "watt", "watts", "ohm"),
        *("cd", "N", "J", "W", "V", "A", "K", "C", "F", "L", "T", "m²", "m³", "km²", "Mio", "Mrd"),
        *("million", "billion", "thousand", "kn", "knots", "hp", "PS", "Jahre", "Tage", "Stunden"),
        *("Personen", "Stück", "Euro", "Dollar", "dollars", "euros", "a", "per"),
    ]
)
POWER = re.compile(r"(?:\^?-?[1-3]|[²³])$")


def is_unit(text: str, *, attached: bool) -> bool:
    """Whether what stands behind a number is a unit; ``attached`` means without a blank between.

    >>> is_unit("mg/dL", attached=True), is_unit("B4", attached=True), is_unit("pm", attached=False)
    (True, False, False)
    >>> is_unit("days a year", attached=False), is_unit("town", attached=False)
    (True, False)
    """
    if NO_UNIT.fullmatch(text):
        return False
    if not text or re.fullmatch(CURRENCY, text):
        return True
    known = KNOWN if attached else KNOWN | COUNTED
    parts = [part for part in re.split(r"[/·* ]", text) if part]
    return all(part in known or POWER.sub("", part) in known for part in parts)


FIRST = 200  # values of a column that decide whether the others are looked at
SHOWN = 4  # names of columns in a note
CELLS, TOGETHER = 1 << 22, 256  # values and columns that are looked at together
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
MARKS = ",.' "
THOUSANDS = {".": ",' ", ",": ".' "}
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
    marks: str = ""  # those of MARKS that occur
    unit: str = ""

    def values(self, decimal: str) -> pl.Series:
        """The numbers, if ``decimal`` is the decimal mark."""
        import polars as pl

        text = self.text
        for mark in self.grouping(decimal):
            text = text.str.replace_all(mark, "", literal=True)
        if decimal == "," and "," in self.marks:
            text = text.str.replace(",", ".", literal=True)
        return text.cast(pl.Float64)

    def grouping(self, decimal: str) -> str:
        """The thousands marks that occur, if ``decimal`` is the decimal mark."""
        return "".join(mark for mark in self.marks if mark in THOUSANDS[decimal])


def without_marks(text: pl.Series) -> pl.Series:
    """Text without blanks around it, and null where it means a missing value."""
    text = text.str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(MISSING), None)


def understood(frame: pl.DataFrame, skip: Sequence[str]) -> tuple[dict[str, Numerals], list[str]]:
    """The columns of text that hold numbers, and notes about those that nearly do."""
    import polars as pl

    names = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    names = [name for name in names if name not in skip] if frame.height else []
    found: dict[str, Numerals] = {}
    notes: list[str] = []
    step = min(TOGETHER, max(1, CELLS // max(frame.height, 1)))
    for start in range(0, len(names), step):
        some = names[start : start + step]
        told = _Columns.of([frame[name] for name in some]).told()
        for name in some:
            what = told.get(name, "")
            if isinstance(what, Numerals):
                found[name] = what
            elif what:
                notes.append(what)
    return found, notes


class _Columns(NamedTuple):
    """Columns of text one after another: a pattern is compiled once for many of them."""

    names: list[str]
    text: pl.Series  # of all columns

    @classmethod
    def of(cls, columns: list[pl.Series]) -> _Columns:
        import polars as pl

        joined = pl.concat([column.rename("") for column in columns]).rechunk()
        return cls([column.name for column in columns], without_marks(joined))

    @property
    def height(self) -> int:
        return len(self.text) // len(self.names)

    def column(self, place: int) -> pl.Series:
        return self.text.slice(place * self.height, self.height).rename(self.names[place])

    def some(self, places: np.ndarray) -> _Columns:
        import polars as pl

        parts = [self.column(int(place)).rename("") for place in places]
        return _Columns([self.names[place] for place in places], pl.concat(parts).rechunk())

    def flags(self, values: pl.Series) -> np.ndarray:
        """One row of truth values per column; a missing value is false."""
        return values.fill_null(False).to_numpy().reshape(len(self.names), -1)

    def having(self, pattern: str, *, literal: bool = False) -> np.ndarray:
        return self.flags(self.text.str.contains(pattern, literal=literal))

    def told(self) -> dict[str, Numerals | str]:
        """How the numbers of each column are written, or why it stays text; not of mere text."""
        import polars as pl

        known = self.flags(self.text.is_not_null())
        odd = known & ~self.flags(self.text.cast(pl.Float64, strict=False).is_not_null())
        padded, dotted = self.having(PADDED), self.having(".", literal=True)
        twofold = dotted.any(axis=1) & ~(dotted & ~self.having(TWO_WAYS)).any(axis=1)
        clean = known.any(axis=1) & ~odd.any(axis=1)
        told: dict[str, Numerals | str] = {}
        rest = []
        for i, name in enumerate(self.names):
            if clean[i] and padded[i].any():
                why = "its numbers begin with 0, as codes do"
                told[name] = _kept(name, self.column(i), padded[i], why)
            elif clean[i] and not twofold[i]:
                told[name] = Numerals(self.column(i), "." if dotted[i].any() else NEITHER)
            elif known[i].any():
                rest.append(i)
        if rest:
            places = np.array(rest)
            told.update(self.some(places)._with_marks(odd[places]))
        return told

    def _with_marks(self, odd: np.ndarray) -> dict[str, Numerals | str]:
        """Columns that are no plain numbers; ``odd`` are the values that are none."""
        # Signs that look alike are made equal.
        text = self.text.str.replace_all("[\\s\u00a0\u202f\u2009]+", " ")
        text = text.str.replace_all("\u2212", "-", literal=True)
        text = text.str.replace_all("\u2019", "'", literal=True)
        alike = _Columns(self.names, text)
        told: dict[str, Numerals | str] = {}
        rest = []
        for i, (name, share) in enumerate(zip(self.names, alike._shares(), strict=True)):
            if share < 0.5 or CODES.fullmatch(name):
                told[name] = _mostly(name, self.column(i), odd[i])
            else:
                rest.append(i)
        if rest:
            told.update(alike.some(np.array(rest))._with_units(self.some(np.array(rest))))
        return told

    def _shares(self) -> np.ndarray:
        """The share of numbers with any marks and units in the first values of each column."""
        import polars as pl

        heads = [self.column(i).drop_nulls().head(FIRST) for i in range(len(self.names))]
        places = np.repeat(np.arange(len(heads)), [len(head) for head in heads])
        fits = pl.concat([head.rename("") for head in heads]).str.contains(VALUE).to_numpy()
        counts = np.bincount(places, minlength=len(heads))
        return np.bincount(places, weights=fits, minlength=len(heads)) / np.maximum(counts, 1)

    def _with_units(self, as_written: _Columns) -> dict[str, Numerals | str]:
        import polars as pl

        parts = self.text.str.extract_groups(VALUE).struct.unnest()
        number = _Columns(self.names, parts["number"])
        joined = parts.select(
            text=pl.concat_str(
                pl.col("sign").replace("+", ""), pl.col("minus").fill_null(""), "number"
            ),
            unit=pl.concat_str(pl.col("before").fill_null(""), pl.col("after").fill_null("")),
            attached=(pl.col("gap") == "") & pl.col("after").is_not_null(),
            signs=(pl.col("sign") == "") | pl.col("minus").is_null(),
        )
        texts, units = _Columns(self.names, joined["text"]), _Columns(self.names, joined["unit"])
        written = {mark: number.having(pattern) for mark, pattern in WRITTEN.items()}
        known = self.flags(self.text.is_not_null())
        fits = (written["."] | written[","]) & self.flags(joined["signs"])
        attached = self.flags(joined["attached"])
        phone = self.flags(parts["sign"] == "+") & number.having(" ", literal=True)
        no_numbers = phone.any(axis=1) | ~(known & ~number.having(ADDRESS)).any(axis=1)
        marks = {mark: number.having(mark, literal=True).any(axis=1) for mark in MARKS}
        told: dict[str, Numerals | str] = {}
        for i, name in enumerate(self.names):
            text = as_written.column(i)
            bad = known[i] & ~fits[i]
            if bad.any():
                told[name] = _mostly(name, text, bad)
                continue
            why = _unit_trouble(name, text, units.column(i), known[i], bool(attached[i].any()))
            if why is not None or no_numbers[i]:
                told[name] = why or ""
                continue
            ways = [mark for mark in WRITTEN if not (known[i] & ~written[mark][i]).any()]
            if not ways:
                both = "points and commas both are decimal marks in it"
                told[name] = _kept(name, text, known[i] & ~written["."][i], both)
                continue
            found = "".join(mark for mark in MARKS if marks[mark][i])
            either = EITHER if set(found) & set(",.") else NEITHER
            decimal = ways[0] if len(ways) == 1 else either
            unit = units.column(i).filter(known[i])[0]
            told[name] = Numerals(texts.column(i), decimal, found, unit)
        return told


def _unit_trouble(
    name: str, text: pl.Series, unit: pl.Series, known: np.ndarray, attached: bool
) -> str | None:
    """Why the units of a column are none ("" if it is just text); None if all is well."""
    units = unit.filter(known).unique(maintain_order=True).to_list()
    if len(units) > FEW_UNITS or any(map(NO_UNIT.fullmatch, units)):
        return ""
    if len(units) > 1:
        shown = listing([unit or "none" for unit in units], SHOWN, quote=False)
        other = known & (unit != units[0]).to_numpy()
        return _kept(name, text, other, f"its units differ ({shown})")
    if not is_unit(units[0], attached=attached):
        is_rank = NO_UNIT.fullmatch(units[0]) and not attached
        return "" if is_rank else _kept(name, text, known, f"{units[0]!r} is no known unit")
    return None


def _mostly(name: str, text: pl.Series, odd: np.ndarray) -> str:
    """A note if more than half of the values are numbers."""
    most = odd.any() and text.count() > 2 * int(odd.sum())
    return _kept(name, text, odd, "not all of it is numbers") if most else ""


def _kept(name: str, text: pl.Series, where: np.ndarray, why: str) -> str:
    row = int(np.flatnonzero(where)[0])
    return f"column {name!r} is kept as a label because {why}: row {row} holds {text[row]!r}"
