"""The data of the page: typed arrays in base64, labels as codes and a list of names."""

from __future__ import annotations

import base64
import datetime
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland.metrics import islands
from lowland.report.summary import Map, Summary

# Arrays of the page as base64 text, in as few bytes as keep what can be seen.


FINEST = 2**24 - 1  # steps of a coordinate: 0.13 pixels at zoom 2000 in a panel of 1000 pixels
LARGEST_EXACT = 2**24  # whole numbers up to here are exact in float32
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
STEPS = 2**16 - 2  # of compact numbers; code 0 is missing
OWN_ELEMENT = 2**16  # characters; longer arrays get an element of their own in the page


class Packed(str):
    """Bytes in base64: a text without any character that means something in HTML."""


def pack_array(values: np.ndarray, dtype: str) -> Packed:
    """Little-endian bytes in base64."""
    raw = np.ascontiguousarray(values, dtype=dtype).data
    return Packed(base64.b64encode(raw).decode("ascii"))


def unpack_array(packed: str, dtype: str) -> np.ndarray:
    """The array that :func:`pack_array` packed."""
    return np.frombuffer(base64.b64decode(packed), dtype=dtype)


def pack_places(places: np.ndarray) -> Packed:
    """Coordinates from -1 to 1 in three bytes each.

    As precise as float32 near 1 in three quarters of its bytes. Two bytes would be too coarse:
    from zoom 65 on, the points of a dense region would lie on a visible lattice.
    """
    steps = np.round((np.clip(places, -1.0, 1.0) + 1.0) * (FINEST / 2)).astype("<u4")
    return pack_array(steps.reshape(-1, 1).view("u1")[:, :3], "u1")


def pack_values(values: np.ndarray, *, compact: bool = False) -> dict[str, Any]:
    """Numbers, NaN where missing, exactly as float32 or whole numbers have them.

    Whole numbers in a small range are codes c from 1 for offset + (c - 1) step, 0 for missing. So
    are all finite numbers if they may be ``compact``: two bytes, 65 534 steps from the least to
    the largest. Everything else is float32, or float64 if large whole numbers need it.
    """
    values = np.asarray(values, dtype=np.float64)
    is_missing = np.isnan(values)
    known = values[~is_missing]
    if known.size and np.isfinite(known).all():
        low, high = float(known.min()), float(known.max())
        with np.errstate(over="ignore"):
            span = high - low
        is_whole = bool((known == np.round(known)).all()) and max(-low, high) < 2**53
        size = np.min_scalar_type(int(span) + 1).itemsize if is_whole else 4
        is_small = size < 4 or (size == 4 and max(-low, high) > LARGEST_EXACT)
        if is_whole and is_small:
            return _codes(values, is_missing, low, 1.0, size)
        if compact and 0 < span < np.inf:
            return _codes(values, is_missing, low, span / STEPS, 2)
    finite = np.abs(known[np.isfinite(known)])
    largest = float(finite.max(initial=0.0))
    is_whole = bool((finite == np.round(finite)).all())
    needs_more = largest > LARGEST_FLOAT32 or (is_whole and largest > LARGEST_EXACT)
    size = 8 if needs_more else 4
    return {"values": pack_array(values, f"<f{size}"), "bytes": size}


def _codes(
    values: np.ndarray, is_missing: np.ndarray, offset: float, step: float, size: int
) -> dict[str, Any]:
    steps = np.where(is_missing, -1.0, np.round((values - offset) / step))
    codes = pack_array((steps + 1.0).astype(np.int64), f"<u{size}")
    return {"codes": codes, "bytes": size, "offset": offset, "step": step}


def separate(data: Any) -> tuple[Any, list[Packed]]:
    """The data with long arrays replaced by ``#0``, ``#1``, ..., and these arrays.

    The browser then reads each as it is needed, and the JSON stays small.
    """
    arrays: list[Packed] = []

    def visit(part: Any) -> Any:
        if isinstance(part, Packed) and len(part) > OWN_ELEMENT:
            arrays.append(part)
            return f"#{len(arrays) - 1}"
        if isinstance(part, dict):
            return {key: visit(value) for key, value in part.items()}
        # Lists of plain text, which may have a million entries, hold no arrays.
        if isinstance(part, list) and part and type(part[0]) is not str:
            return [visit(entry) for entry in part]
        return part

    return visit(data), arrays


# Labels that are dates or times, as milliseconds since 1970.


DATE = re.compile(r"\d{4}-\d\d-\d\d(?:$|[T ]\d\d:\d\d)")
TIME_STEPS = (86_400_000, 1000, 1)  # milliseconds: a day, a second, a millisecond


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
    step = next(step for step in TIME_STEPS if not (known % step).any())
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
    distinct = [text for text in dict.fromkeys(texts) if text is not None]
    if not all(map(DATE.match, distinct)):
        return None
    try:
        made = {text: datetime.datetime.fromisoformat(text) for text in distinct}
    except ValueError:
        return None
    return _from_dates([made.get(text) for text in texts])


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


MOST_POINTS = 1_000_000  # a browser still moves this many smoothly
MANY_POINTS = 100_000  # with more, measures get two bytes instead of four
MOST_ID_TEXT = 40_000_000  # characters of all ids: a million of 36 and what separates them
MOST_NAME_TEXT = 40_000_000  # characters of the different labels of a column; beyond, all are cut
SHOWN_DIMENSIONS = 3
TILED_DIMENSIONS = 2  # in space, copies beyond the edges would hide the map
MOST_CATEGORIES = 20  # whole numbers with more distinct values get a continuous scale
FEW_CATEGORIES = 10  # the same for other numbers
LONGEST_TEXT = 200  # characters of a label; ids are never shortened
MOST_IN_NATURAL_ORDER = 1000  # categories; more are sorted as plain text


def pack(summary: Summary) -> dict[str, Any]:
    """Everything that the script on the page reads."""
    n = len(summary["ids"])
    rows = display_rows(n)
    columns = [pack_column(name, values, rows) for name, values in summary["labels"].items()]
    return {
        "points": len(rows),
        "ids": pack_ids(summary["ids"], rows),
        "columns": columns,
        "color": summary.get("color"),
        "maps": [pack_map(entry, rows) for entry in summary["maps"]],
    }


def display_rows(n: int) -> np.ndarray:
    """The rows to show, ascending: all of them, or a random sample of ``MOST_POINTS``."""
    return some_rows(n, MOST_POINTS)


def some_rows(n: int, most: int) -> np.ndarray:
    """The numbers of all n rows, or of a random sample of them, ascending."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False, shuffle=False))


def frame_of(Y: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """The middle of a map and the largest coordinate from there, which is 1 on the page.

    Centered before the conversion to float32, so that a map far from the origin stays precise.
    """
    Y = np.asarray(Y, dtype=np.float64)[:, :SHOWN_DIMENSIONS]
    middle = Y.min(axis=0) / 2 + Y.max(axis=0) / 2
    reach = float(np.abs(Y[rows] - middle).max())
    return middle, reach if reach > 0 else 1.0


def pack_map(entry: Map, rows: np.ndarray) -> dict[str, Any]:
    """Coordinates, measures of each point, and islands."""
    Y = np.asarray(entry["coordinates"], dtype=np.float64)[:, :SHOWN_DIMENSIONS]
    middle, reach = frame_of(Y, rows)
    sides = entry.get("sides")
    torus = None
    if sides is not None and Y.shape[1] <= TILED_DIMENSIONS:
        torus = {
            "low": [float(low) for low in -middle / reach],
            "sides": [float(side / reach) for side in sides],
        }
    codes = islands(Y)
    names = [f"island {number}" for number in range(1, int(codes.max()) + 1)]
    return {
        "title": entry["title"],
        "dimensions": Y.shape[1],
        "coordinates": pack_places((Y[rows] - middle) / reach),
        "origin": [float(value) for value in middle],
        "reach": float(reach),
        "torus": torus,
        "measures": [
            pack_numbers(
                name, np.asarray(values, dtype=np.float64)[rows], compact=len(rows) > MANY_POINTS
            )
            for name, values in entry["per_point"].items()
        ],
        "clusters": pack_codes("island", codes[rows], names, missing="sparse"),
    }


def pack_ids(ids: Sequence[Any] | np.ndarray, rows: np.ndarray) -> dict[str, Any]:
    """Whole numbers as numbers, everything else as text; numbers of rows if that is too much."""
    numbers = whole_numbers(ids)
    if numbers is not None:
        return pack_row_numbers(numbers[rows])
    texts = [str(ids[row]) for row in rows.tolist()]
    # Two quotes and a comma stand around each text.
    if sum(map(len, texts)) + 3 * len(texts) > MOST_ID_TEXT:
        return {**pack_row_numbers(rows), "omitted": True}
    return {"texts": texts}


def whole_numbers(ids: Sequence[Any] | np.ndarray) -> np.ndarray | None:
    """The ids as numbers that are exact in float64; None if any is something else."""
    if not isinstance(ids, np.ndarray):
        if {type(entry) for entry in ids} != {int}:
            return None
        try:
            ids = np.array(ids, dtype=np.int64)
        except OverflowError:
            return None
    if ids.dtype.kind not in "iu" or not (np.abs(ids.astype(np.float64)) < 2**53).all():
        return None
    return ids


def pack_row_numbers(numbers: np.ndarray) -> dict[str, Any]:
    """The first is enough where each is one more than the number before."""
    if len(numbers) and (np.diff(numbers.astype(np.int64)) == 1).all():
        return {"first": int(numbers[0])}
    return {"numbers": pack_values(numbers)}


def pick(values: Sequence[Any] | np.ndarray, rows: np.ndarray) -> Any:
    """The values of some rows: an array of an array, a list of anything else."""
    return (
        values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows.tolist()]
    )


def pack_column(
    name: str, values: Sequence[Any] | np.ndarray, rows: np.ndarray | None = None
) -> dict[str, Any]:
    """A label column: a continuous scale for many different numbers or times, else categories."""
    chosen = pick(values, np.arange(len(values)) if rows is None else rows)
    numbers = as_numbers(chosen)
    if numbers is not None and is_continuum(numbers):
        return pack_numbers(name, numbers)
    times = None if numbers is not None else as_times(chosen)
    if times is not None and np.unique(times.milliseconds).size > FEW_CATEGORIES:
        return pack_times(name, times)
    return pack_categories(name, chosen)


def is_continuum(numbers: np.ndarray) -> bool:
    """Whether numbers have so many different values that they need a continuous scale."""
    distinct = np.unique(numbers[np.isfinite(numbers)])
    whole = bool((distinct == np.round(distinct)).all())
    return distinct.size > (MOST_CATEGORIES if whole else FEW_CATEGORIES)


def as_numbers(values: Any) -> np.ndarray | None:
    """The values as float64, NaN where missing; None unless all are numbers exact in float64."""
    if isinstance(values, list) or values.dtype.kind == "O":
        kinds = {type(value) for value in values} - {type(None)}
        is_number = [issubclass(kind, float | int) and kind is not bool for kind in kinds]
        if not kinds or not all(is_number):
            return None
        values = np.array([np.nan if value is None else value for value in values])
    if values.dtype.kind not in "iuf":
        return None
    numbers = values.astype(np.float64)
    exact = values.dtype.kind == "f" or (np.abs(numbers) < 2**53).all()
    return numbers if exact else None


def pack_numbers(name: str, values: np.ndarray, *, compact: bool = False) -> dict[str, Any]:
    """Numbers with the range of the color scale; values beyond it get the color of its end."""
    low, high = color_range(values[np.isfinite(values)])
    packed = pack_values(values, compact=compact)
    return {"name": name, "kind": "number", **packed, "low": low, "high": high}


def color_range(finite: np.ndarray) -> tuple[float, float]:
    """Quantiles that are the ends of a color scale."""
    if not finite.size:
        return 0.0, 1.0
    largest = float(np.abs(finite).max())
    unit = largest if largest > LARGEST_FLOAT32 else 1.0  # differences of huge numbers overflow
    low, high = np.quantile(finite / unit, [0.02, 0.98])
    return float(unit * low), float(unit * high)


def pack_categories(name: str, values: Any) -> dict[str, Any]:
    """Categories in natural order (``type 2`` before ``type 10``); code 0 is missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = values.astype("datetime64[us]")  # nanoseconds would become numbers
    listed = values if isinstance(values, list) else values.tolist()
    # Only distinct values become text. A value and its type are the key, because 1 == True == 1.0.
    keys = list(zip(map(type, listed), listed, strict=True))
    text_of = {key: label_text(key[1]) for key in dict.fromkeys(keys)}
    distinct = {text for text in text_of.values() if text is not None}
    names = sorted(distinct, key=natural_key if len(distinct) <= MOST_IN_NATURAL_ORDER else None)
    code_of: dict[str | None, int] = {text: code for code, text in enumerate(names, start=1)}
    code_of[None] = 0
    code = {key: code_of[text] for key, text in text_of.items()}
    codes = np.fromiter(map(code.__getitem__, keys), dtype=np.int64, count=len(keys))
    if sum(map(len, names)) > MOST_NAME_TEXT:  # all are cut to one length; their number stays
        longest = max(MOST_NAME_TEXT // len(names), 1)
        names = [text if len(text) <= longest else text[: longest - 1] + "…" for text in names]
    return pack_codes(name, codes, names)


def pack_codes(
    name: str, codes: np.ndarray, names: list[str], missing: str = "missing"
) -> dict[str, Any]:
    """Codes from 1 refer to ``names``; code 0 is called ``missing``."""
    size = np.min_scalar_type(len(names)).itemsize
    return {
        "name": name,
        "kind": "category",
        "names": names,
        "missing": missing,
        "codes": pack_array(codes, f"<u{size}"),
        "bytes": size,
    }


def unpack_codes(column: Mapping[str, Any]) -> np.ndarray:
    """The codes that :func:`pack_codes` packed."""
    return unpack_array(column["codes"], f"<u{column['bytes']}")


def label_text(value: Any) -> str | None:
    """The label as text; None if it is missing."""
    if value is None or value != value:  # NaN and NaT differ from themselves
        return None
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def natural_key(text: str) -> list[tuple[int, float, str]]:
    """Sort key: numbers first, by value; digits inside a text are compared as numbers."""
    try:
        return [(0, float(text), "")]
    except ValueError:
        parts = [part for part in re.split(r"(\d+)", text) if part]
    digits = [part.lstrip("0") if part.isdecimal() else None for part in parts]
    return [
        (2, 0, part) if number is None else (1, len(number), number)
        for part, number in zip(parts, digits, strict=True)
    ]


def to_json(data: Mapping[str, Any]) -> str:
    """JSON that is safe inside a script element, because no text in it can end the element."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # ensure_ascii has escaped U+2028 and U+2029, which old engines read as line ends.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
