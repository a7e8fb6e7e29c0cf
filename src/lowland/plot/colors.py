"""From one label per row to one color per row, with what a legend or a color bar needs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland._core.errors import DataError

__all__ = ["Categories", "Continuum", "encode_labels"]

# Chosen among the palettes of Okabe & Ito, Tol and Petroff: the ten whose smallest difference, to
# normal and to color-blind eyes alike, is largest. Beyond ten categories the marker changes too.
PALETTE = (
    "#4477aa",
    "#ffa90e",
    "#009e73",
    "#bd1f01",
    "#33bbee",
    "#832db6",
    "#e76300",
    "#332288",
    "#882255",
    "#000000",
)
MARKERS = ("o", "^")
GREY = "#c8c8c8"
MOST_CATEGORIES = len(PALETTE) * len(MARKERS)


@dataclasses.dataclass(frozen=True, eq=False)
class Categories:
    """``codes[i]`` is the category of row i, or -1 for the grey rest."""

    codes: np.ndarray
    names: tuple[str, ...]
    rest: str | None

    def style(self, code: int) -> tuple[str, str]:
        """Color and marker of a category."""
        if code < 0:
            return GREY, "o"
        return PALETTE[code % len(PALETTE)], MARKERS[code // len(PALETTE)]


@dataclasses.dataclass(frozen=True, eq=False)
class Continuum:
    """Numbers with many values; NaN where the value is missing."""

    values: np.ndarray


def encode_labels(labels: Sequence[Any] | np.ndarray, n: int) -> Categories | Continuum:
    """Categories for names and for a few distinct numbers, a continuum for many numbers."""
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise DataError(f"labels have shape {labels.shape}, but the map has {n} rows.")
    numeric = labels.dtype.kind in "iuf"
    if numeric and not np.isinf(labels.astype(np.float64)).any():
        values = labels.astype(np.float64)
        distinct = np.unique(values[~np.isnan(values)])
        whole = bool((distinct == np.round(distinct)).all())
        if distinct.size > MOST_CATEGORIES or (distinct.size > len(PALETTE) and not whole):
            return Continuum(values)
    return _categories(labels)


def _categories(labels: np.ndarray) -> Categories:
    missing = np.array([_is_missing(value) for value in labels], dtype=bool)
    present = labels[~missing]
    if present.dtype.kind == "O":
        present = present.astype(str)
    values, inverse, counts = np.unique(present, return_inverse=True, return_counts=True)
    kept = np.arange(values.size)
    if values.size > MOST_CATEGORIES:
        kept = np.argsort(-counts, kind="stable")[: MOST_CATEGORIES - 1]
    kept = np.array(sorted(kept, key=lambda i: _natural(values[i])), dtype=int)
    code_of = np.full(values.size, -1)
    code_of[kept] = np.arange(kept.size)
    codes = np.full(labels.size, -1)
    codes[~missing] = code_of[inverse]
    rest = []
    if kept.size < values.size:
        rest.append(f"other ({values.size - kept.size})")
    if missing.any():
        rest.append("missing")
    return Categories(codes, tuple(_name(values[i]) for i in kept), ", ".join(rest) or None)


def _is_missing(value: Any) -> bool:
    # NaN and NaT are the values that differ from themselves
    return value is None or bool(value != value)


def _natural(value: Any) -> Any:
    """A sort key that puts ``type 2`` before ``type 10``."""
    if not isinstance(value, str):
        return value
    parts = re.split(r"(\d+)", value)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _name(value: Any, most: int = 24) -> str:
    text = f"{value:g}" if isinstance(value, np.floating) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
