"""Units, currencies and other words behind or before a number in text."""

from __future__ import annotations

import re

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
