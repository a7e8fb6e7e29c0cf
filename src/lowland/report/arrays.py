"""Arrays of the page as base64 text, in as few bytes as keep what can be seen."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

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
        size = _code_size(span) if is_whole else 4
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


def _code_size(span: float) -> int:
    """Bytes of the codes 0 to span + 1; 8 if there are none."""
    return next((size for size in (1, 2, 4) if span + 1 < 2 ** (8 * size)), 8)


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
