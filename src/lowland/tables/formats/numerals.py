"""How numbers are written in text: decimal commas, thousands marks, percent, currencies, units.

A column of text holds numbers if *all* of its values are numbers that are written alike. What is no
measurement stays text: dates, times, versions, addresses, telephone numbers, and codes with leading
zeros.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lowland._base.errors import listing
from lowland.tables.columns.guessing import is_text
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
COUNTED = (
    "metre metres meter meters kilometers kilometres inch inches feet foot pound pounds ounce "
    "ounces gram grams kilogram kilograms ton tons tonnes liter liters litre litres second "
    "seconds minute minutes hour hours week weeks month months degree degrees percent pct people "
    "person persons pieces pcs items units points times rooms seats doors beds copies pages steps "
    "cells counts acres volt volts watt watts ohm cd N J W V A K C F L T m² m³ km² Mio Mrd "
    "million billion thousand kn knots hp PS Jahre Tage Stunden Personen Stück Euro Dollar "
    "dollars euros a per"
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
    known = KNOWN if attached else KNOWN | {*COUNTED.split()}
    parts = [part for part in re.split(r"[/·* ]", text) if part]
    return all(part in known or POWER.sub("", part) in known for part in parts)


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
        text = self.text
        for mark in self.grouping(decimal):
            text = text.str.replace_all(mark, "", literal=True)
        if decimal == "," and "," in self.marks:
            text = text.str.replace(",", ".", literal=True)
        return text.cast(float)

    def grouping(self, decimal: str) -> str:
        """The thousands marks that occur, if ``decimal`` is the decimal mark."""
        return "".join(mark for mark in self.marks if mark in THOUSANDS[decimal])


def without_marks(text: pl.Series) -> pl.Series:
    """Text without blanks around it, and null where it means a missing value."""
    text = text.str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(MISSING), None)


def understood(frame: pl.DataFrame, skip: Sequence[str]) -> tuple[dict[str, Numerals], list[str]]:
    """The columns of text that hold numbers, and notes about those that nearly do."""
    found, notes = {}, []
    for column in frame.iter_columns() if frame.height else ():
        if not is_text(column.dtype) or column.name in skip:
            continue
        what = told(column)
        if isinstance(what, Numerals):
            found[column.name] = what
        elif what:
            notes.append(what)
    return found, notes


def told(column: pl.Series) -> Numerals | str:
    """How the numbers of a column are written, or why it stays text: "" if it is mere text."""
    text = without_marks(column)
    known = text.is_not_null()
    if not known.any():
        return ""
    odd = known & text.cast(float, strict=False).is_null()
    if not odd.any():
        padded = _having(text, PADDED)
        if padded.any():
            return _kept(text, padded, "its numbers begin with 0, as codes do")
        dotted = text.filter(_having(text, "[.]"))
        if not len(dotted) or not _having(dotted, TWO_WAYS).all():
            return Numerals(text, "." if len(dotted) else NEITHER)
    # Signs that look alike are made equal.
    alike = text.str.replace_all("[\\s\u00a0\u202f\u2009]+", " ")
    alike = alike.str.replace_all("\u2212", "-", literal=True)
    alike = alike.str.replace_all("\u2019", "'", literal=True)
    head = alike.drop_nulls().head(FIRST)
    if CODES.fullmatch(column.name) or 2 * _having(head, VALUE).sum() < len(head):
        return _mostly(text, odd)
    return _with_unit(alike, text)


def _having(text: pl.Series, pattern: str) -> pl.Series:
    """Where a pattern is found; a missing value is false."""
    return text.str.contains(pattern).fill_null(False)


def _with_unit(alike: pl.Series, text: pl.Series) -> Numerals | str:
    """The same for numbers with marks and units; ``text`` is as they were written."""
    known = alike.is_not_null()
    parts = alike.str.extract_groups(VALUE).struct.unnest()
    number, sign, minus, after = (parts[key] for key in ("number", "sign", "minus", "after"))
    written = {mark: _having(number, pattern) for mark, pattern in WRITTEN.items()}
    bad = known & ~((written["."] | written[","]) & ((sign == "") | minus.is_null()))
    if (bad := bad.fill_null(True)).any():
        return _mostly(text, bad)
    unit = parts["before"].fill_null("") + after.fill_null("")
    units = unit.filter(known).unique(maintain_order=True).to_list()
    if len(units) > FEW_UNITS or any(map(NO_UNIT.fullmatch, units)):
        return ""
    if len(units) > 1:
        shown = listing([unit or "none" for unit in units], SHOWN, quote=False)
        return _kept(text, known & (unit != units[0]), f"its units differ ({shown})")
    attached = ((parts["gap"] == "") & after.is_not_null()).any()
    if not is_unit(units[0], attached=bool(attached)):
        return _kept(text, known, f"{units[0]!r} is not a known unit")
    phone = (sign == "+") & _having(number, " ")
    if phone.any() or _having(number, ADDRESS).sum() == known.sum():
        return ""
    ways = [mark for mark in WRITTEN if (written[mark] | ~known).all()]
    if not ways:
        both = "points and commas both are decimal marks in it"
        return _kept(text, known & ~written["."], both)
    found = "".join(mark for mark in MARKS if number.str.contains(mark, literal=True).any())
    either = EITHER if {*found} & {*",."} else NEITHER
    values = sign.replace("+", "") + minus.fill_null("") + number
    return Numerals(values.alias(text.name), ways[0] if len(ways) == 1 else either, found, units[0])


def _mostly(text: pl.Series, odd: pl.Series) -> str:
    """A note if more than half of the values are numbers."""
    most = odd.any() and text.count() > 2 * int(odd.sum())
    return _kept(text, odd, "not all of it is numbers") if most else ""


def _kept(text: pl.Series, where: pl.Series, why: str) -> str:
    row = where.arg_true()[0]
    return f"column {text.name!r} is kept as a label because {why}: row {row} holds {text[row]!r}"
