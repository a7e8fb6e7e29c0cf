"""The data of the page: typed arrays in base64, labels as codes and a list of names."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowland.metrics import islands
from lowland.report.summary import Map, Summary

__all__ = ["MOST_POINTS", "SHOWN_DIMENSIONS", "display_rows", "pack", "to_json"]

MOST_POINTS = 100_000  # a browser still moves this many smoothly
SHOWN_DIMENSIONS = 3
TILED_DIMENSIONS = 2  # in space, copies beyond the edges would hide the map
MOST_CATEGORIES = 20  # whole numbers with more distinct values get a continuous scale
FEW_CATEGORIES = 10  # the same for other numbers
LONGEST_TEXT = 200  # characters of a label; ids are never shortened
MOST_IN_NATURAL_ORDER = 1000  # categories; more are sorted as plain text
LARGEST_EXACT = 2**24  # whole numbers up to here are exact in float32
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


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
    if n <= MOST_POINTS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, MOST_POINTS, replace=False, shuffle=False))


def pack_map(entry: Map, rows: np.ndarray) -> dict[str, Any]:
    """Coordinates, measures of each point, and clusters."""
    Y = np.asarray(entry["coordinates"], dtype=np.float64)[:, :SHOWN_DIMENSIONS]
    # Centered before the conversion to float32, so that a map far from the origin stays precise.
    middle = Y.min(axis=0) / 2 + Y.max(axis=0) / 2
    centered = Y[rows] - middle
    reach = np.abs(centered).max()
    reach = reach if reach > 0 else 1.0
    sides = entry.get("sides")
    torus = None
    if sides is not None and Y.shape[1] <= TILED_DIMENSIONS:
        torus = {
            "low": [float(low) for low in -middle / reach],
            "sides": [float(side / reach) for side in sides],
        }
    clusters = islands(Y)
    names = [f"cluster {number}" for number in range(1, int(clusters.max()) + 1)]
    return {
        "title": entry["title"],
        "dimensions": Y.shape[1],
        "coordinates": pack_array(centered / reach, "<f4"),
        "origin": [float(value) for value in middle],
        "reach": float(reach),
        "torus": torus,
        "measures": [
            pack_numbers(name, np.asarray(values, dtype=np.float64)[rows])
            for name, values in entry["per_point"].items()
        ],
        "clusters": pack_codes("cluster", clusters[rows], names, missing="sparse"),
    }


def pack_ids(ids: Sequence[Any] | np.ndarray, rows: np.ndarray) -> dict[str, Any]:
    """Whole numbers as numbers, everything else as text."""
    values = np.asarray(ids)
    if values.dtype.kind in "iu" and (np.abs(values.astype(np.float64)) < 2**53).all():
        return {"numbers": pack_array(values[rows], "<f8")}
    return {"texts": [str(ids[row]) for row in rows.tolist()]}


def pack_column(
    name: str, values: Sequence[Any] | np.ndarray, rows: np.ndarray | None = None
) -> dict[str, Any]:
    """A label column: a continuous scale for many different numbers, else categories."""
    if isinstance(values, np.ndarray):
        chosen = values if rows is None else values[rows]
    else:
        chosen = list(values) if rows is None else [values[row] for row in rows.tolist()]
    numbers = as_numbers(chosen)
    if numbers is not None and is_continuum(numbers):
        return pack_numbers(name, numbers)
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


def pack_numbers(name: str, values: np.ndarray) -> dict[str, Any]:
    """Numbers with the range of the color scale; values beyond it get the color of its end."""
    finite = values[np.isfinite(values)]
    low, high = color_range(finite)
    largest = float(np.abs(finite).max(initial=0.0))
    whole = bool((finite == np.round(finite)).all())
    exact = largest > LARGEST_FLOAT32 or (whole and largest > LARGEST_EXACT)
    packed = pack_array(values, "<f8" if exact else "<f4")
    return {
        "name": name,
        "kind": "number",
        "values": packed,
        "bytes": 8 if exact else 4,
        "low": low,
        "high": high,
    }


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
    return pack_codes(name, codes, names)


def pack_codes(
    name: str, codes: np.ndarray, names: list[str], missing: str = "missing"
) -> dict[str, Any]:
    """Codes from 1 refer to ``names``; code 0 is called ``missing``."""
    size = 1 if len(names) < 2**8 else 2 if len(names) < 2**16 else 4
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
    return np.frombuffer(base64.b64decode(column["codes"]), dtype=f"<u{column['bytes']}")


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


def pack_array(values: np.ndarray, dtype: str) -> str:
    """Little-endian bytes in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")


def to_json(data: Mapping[str, Any]) -> str:
    """JSON that is safe inside a script element, because no text in it can end the element."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # ensure_ascii has escaped U+2028 and U+2029, which old engines read as line ends.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
