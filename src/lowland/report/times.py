"""Labels that are dates or times, as milliseconds since 1970."""

from __future__ import annotations

import datetime
import re
from typing import Any, NamedTuple

import numpy as np

from lowland.report.arrays import pack_array, pack_values

DATE = re.compile(r"\d{4}-\d\d-\d\d(?:$|[T ]\d\d:\d\d)")
STEPS = (86_400_000, 1000, 1)  # milliseconds: a day, a second, a millisecond


class Times(NamedTuple):
    """Milliseconds since 1970, NaN where missing; of the UTC clock if the labels name a zone."""

    milliseconds: np.ndarray
    has_zone: bool


def as_times(values: Any) -> Times | None:
    """Dates, times and ISO 8601 texts; None unless all values that are there are of one kind."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        return Times(_milliseconds(values), False)
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OU":
        return None
    listed = values if isinstance(values, list) else values.tolist()
    kinds = {type(value) for value in listed} - {type(None)}
    if kinds == {str}:
        return _from_texts(listed)
    if not kinds or not all(issubclass(kind, datetime.date) for kind in kinds):
        return None
    return _from_dates(listed)


def pack_times(name: str, times: Times) -> dict[str, Any]:
    """Whole days, seconds or milliseconds, whichever is exact, and the range of the colors."""
    values = times.milliseconds
    known = values[~np.isnan(values)]
    step = next(step for step in STEPS if not (known % step).any())
    packed = pack_values(values / step)
    if "codes" in packed:
        packed["offset"], packed["step"] = packed["offset"] * step, step
    else:
        packed = {"values": pack_array(values, "<f8"), "bytes": 8, "step": step}
    low, high = np.quantile(known, [0.02, 0.98])
    return {
        "name": name,
        "kind": "time",
        **packed,
        "zone": "UTC" if times.has_zone else "",
        "low": float(low),
        "high": float(high),
    }


def _from_texts(texts: list[Any]) -> Times | None:
    first = next(text for text in texts if text is not None)
    if not DATE.match(first):
        return None
    made: dict[Any, Any] = {None: None}
    try:
        for text in dict.fromkeys(texts):
            if text is not None:
                if not DATE.match(text):
                    return None
                made[text] = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return _from_dates([made[text] for text in texts])


def _from_dates(dates: list[Any]) -> Times | None:
    """Python's dates and times, of which either all or none may have a zone."""
    present = [None if date is None or date != date else date for date in dates]  # NaT differs
    zones = {getattr(date, "tzinfo", None) is not None for date in present if date is not None}
    if len(zones) != 1:
        return None
    (has_zone,) = zones
    if has_zone:
        utc = datetime.UTC
        present = [d if d is None else d.astimezone(utc).replace(tzinfo=None) for d in present]
    return Times(_milliseconds(np.array(present, dtype="datetime64[us]")), has_zone)


def _milliseconds(times: np.ndarray) -> np.ndarray:
    """Finer differences are not shown."""
    milliseconds = times.astype("datetime64[ms]")
    return np.where(np.isnat(milliseconds), np.nan, milliseconds.astype(np.int64))
