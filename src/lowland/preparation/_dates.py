"""Dates and times as numbers: seconds, read from typed columns or from text of a known form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.constraints import PERIODS
from lowland._base.errors import DataError, listing

if TYPE_CHECKING:
    import polars as pl

TYPED = ""  # instead of a format: the fitted column had a type of dates or times
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y")
_CLOCKS = ("%H:%M:%S%.f", "%H:%M")
# The forms of text that are read as dates. A fraction of a second may be left out.
FORMATS = (
    *_DAYS,
    *(f"{day} {clock}" for day in _DAYS for clock in _CLOCKS),
    *(f"%Y-%m-%dT{clock}{zone}" for clock in _CLOCKS for zone in ("", "Z")),
    *_CLOCKS,
)
ISO = tuple(form for form in FORMATS if form.startswith(("%Y-%m-%d", "%H")))
# Only the order of day and month differs; a day above 12 shows which one it is.
_TWINS = {"%m/%d/%Y": "%d/%m/%Y", "%d/%m/%Y": "%m/%d/%Y"}
LOOKED_AT = 100  # values, before the whole column is read

_UNITS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}


def unit_of(span: float) -> float:
    """Seconds of the unit in which a span of time is a convenient number."""
    return next((seconds for seconds in _UNITS.values() if span >= 2 * seconds), 1.0)


def unit_name(unit: float) -> str:
    """``days`` for a unit of 86400 seconds."""
    return next((name for name, length in _UNITS.items() if length == unit), f"{unit:g} seconds")


def period_name(seconds: float) -> str:
    """``week`` for a period of 604800 seconds."""
    known = (name for name, length in PERIODS.items() if length == seconds)
    return next(known, f"{seconds:g} seconds")


def looks_like_dates(column: pl.Series) -> bool:
    """Whether a column has a type of dates or times, or text that can be read as such."""
    return column.dtype.is_temporal() or bool(_formats_of(column))


def date_format(column: pl.Series) -> str:
    """The form of the dates in a column: TYPED, or one of FORMATS; else it is refused."""
    if column.dtype.is_temporal():
        return TYPED
    found = _formats_of(column)
    if not found:
        values = column.drop_nulls()
        first = values[0] if len(values) else "no value"
        what = f"its values are not dates or times of one form, such as {first!r}"
        raise DataError(f"column {column.name!r}: {what}; write them as 2020-12-31 23:59:59.")
    if len(found) > 1:
        what = f"{column.drop_nulls()[0]!r} may be day/month or month/day, and no value shows which"
        raise DataError(f"column {column.name!r}: {what}; write dates as 2020-12-31.")
    return found[0]


def seconds_in(column: pl.Series, form: str) -> np.ndarray:
    """Seconds since 1970 in local time, since midnight, or of a duration; NaN where missing.

    Text is read in the given form (ISO dates where it is TYPED); other text is refused.
    """
    import polars as pl

    if not column.dtype.is_temporal():
        column = _read(column, form)
    kind = column.dtype
    if kind == pl.Duration:
        numbers = column.dt.total_microseconds() / 1e6
    elif kind == pl.Time:
        numbers = column.cast(pl.Int64) / 1e9
    elif kind == pl.Date:
        numbers = column.cast(pl.Int64) * 86400.0
    else:  # the time of the clock, whatever its zone
        numbers = column.dt.replace_time_zone(None).dt.timestamp("us") / 1e6
    return numbers.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _read(column: pl.Series, form: str) -> pl.Series:
    texts = column.cast(str).str.strip_chars()
    for tried in (form,) if form != TYPED else ISO:
        found = _parsed(texts, tried)
        if found.null_count() == texts.null_count():
            return found
    wrong = texts.filter(found.is_null() & texts.is_not_null()).unique(maintain_order=True)
    what = f"not dates or times in the form of the fitted rows: {listing(wrong.to_list(), 4)}"
    raise DataError(f"column {column.name!r}: {what}.")


def _formats_of(column: pl.Series) -> list[str]:
    """The forms in which all values can be read; two if day and month cannot be told apart."""
    import polars as pl

    if column.dtype != pl.String:
        return []
    first = next((text for text in column.head(LOOKED_AT).to_list() if text), "")
    if not first.strip()[:1].isdigit():  # most text ends here, without a query
        return []
    texts = column.drop_nulls().str.strip_chars()
    head = texts.head(LOOKED_AT)
    if not len(head) or not head.str.contains(r"^\d").all():
        return []
    tried = [form for form in FORMATS if not _parsed(head, form).has_nulls()]
    if len(texts) > LOOKED_AT:
        tried = [form for form in tried if not _parsed(texts, form).has_nulls()]
    found = tried[:1]
    if found and (day := found[0].split(" ")[0]) in _TWINS:
        found += [form for form in tried[1:] if form.split(" ")[0] == _TWINS[day]]
    return found[:2]


def telling_dates(column: pl.Series) -> pl.Series:
    """A few values of a column, from which :func:`date_format` and the span are the same as of all.

    For each form: the first value that cannot be read in it, else the first and the last date.
    """
    import polars as pl

    if column.dtype != pl.String:
        return column.head(1)
    texts = column.drop_nulls()
    stripped = texts.str.strip_chars()
    kept: set[int] = set()
    for form in FORMATS if len(texts) else ():
        found = _parsed(stripped, form)
        if found.has_nulls():
            kept.add(int(found.is_null().arg_max() or 0))
        else:
            kept |= {int(found.arg_min() or 0), int(found.arg_max() or 0)}
    return texts[sorted(kept)]


def _parsed(texts: pl.Series, form: str) -> Any:
    if form.startswith("%H"):
        return texts.str.to_time(form, strict=False)
    return texts.str.to_datetime(form, strict=False, time_unit="us")
