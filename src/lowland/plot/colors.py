"""From one label per row to one color per row."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland._base.errors import DataError
from lowland.plot._figure import one_line
from lowland.plot._style import (
    DARK_GREY,
    DIVERGING,
    GREY,
    LONG_PALETTE,
    MARKERS,
    OKABE_ITO,
    SEQUENTIAL,
    category_colors,
)

MOST_CATEGORIES = len(LONG_PALETTE)
MOST_NUMBERS = 20  # up to this many different whole numbers are classes
OTHER, MISSING = -1, -2  # codes of the grey rows


@dataclasses.dataclass(frozen=True, eq=False)
class Categories:
    """``codes[i]`` is the category of row i, ``OTHER`` or ``MISSING``."""

    codes: np.ndarray
    names: tuple[str, ...]
    n_others: int = 0

    def present(self) -> list[int]:
        """The codes a legend lists, in its order."""
        missing = [MISSING] if (self.codes == MISSING).any() else []
        return [*range(len(self.names)), *([OTHER] if self.n_others else []), *missing]

    def name(self, code: int) -> str:
        """The name of a code in the legend."""
        if code >= 0:
            return self.names[code]
        return "missing" if code == MISSING else f"and {self.n_others} more"

    def marker(self, code: int) -> str:
        """The shape of its points."""
        few = len(self.names) <= len(OKABE_ITO)
        return MARKERS[0] if few else MARKERS[max(code, 0) // 10]

    def palette(self) -> tuple[str, ...]:
        """Colors of the codes -2, -1, 0, 1, ..."""
        return (GREY, DARK_GREY, *category_colors(len(self.names)))

    def color(self, code: int) -> str:
        """The color of a code."""
        return self.palette()[code + 2]


@dataclasses.dataclass(frozen=True, eq=False)
class Continuum:
    """Numbers with many values, NaN where missing; colors span ``low`` to ``high``."""

    values: np.ndarray
    low: float
    high: float
    color_map: str = SEQUENTIAL

    def missing(self) -> np.ndarray:
        """Which rows have no value."""
        return np.isnan(self.values)

    def extend(self) -> str:
        """On which sides values lie beyond the scale, as matplotlib's color bar calls it."""
        with np.errstate(invalid="ignore"):
            below, above = (self.values < self.low).any(), (self.values > self.high).any()
        return ("neither", "min", "max", "both")[below + 2 * above]


Coloring = Categories | Continuum | None


def encode_labels(
    labels: Sequence[Any] | np.ndarray | None, n: int, center: float | None = None
) -> Coloring:
    """Categories for names and for a few distinct numbers, a continuum for many numbers."""
    if labels is None:
        return None
    if isinstance(labels, np.ma.MaskedArray):
        objects = labels.data.astype(object)
        objects[np.ma.getmaskarray(labels)] = None
        labels = objects
    try:
        labels = np.asarray(labels)
    except ValueError:
        raise DataError("labels hold lists; there must be one label per row.") from None
    if labels.shape != (n,):
        raise DataError(f"labels have shape {labels.shape}, but the map has {n} rows.")
    if labels.dtype.kind == "O":
        labels = _as_numbers(labels)
    if labels.dtype.kind in "iuf":
        values = labels.astype(np.float64)
        distinct = np.unique(values[~np.isnan(values)])
        whole = bool((distinct == np.round(distinct)).all())
        if center is not None or distinct.size > (MOST_NUMBERS if whole else 10):
            return continuum(values, center=center)
    return _categories(labels)


def continuum(
    values: np.ndarray,
    *,
    center: float | None = None,
    limits: tuple[float, float] | None = None,
    color_map: str | None = None,
) -> Categories | Continuum:
    """Colors for numbers; a few far outliers do not set the scale.

    With a ``center``, the palette has two arms that meet there.
    """
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        missing = np.isnan(values)
        return Categories(np.where(missing, MISSING, 0), () if missing.all() else ("infinite",))
    low, high = limits or robust_limits(finite)
    if center is not None:
        reach = max(high - center, center - low)
        low, high = center - reach, center + reach
    if not low < high:  # a constant column
        low, high = low - 0.5, high + 0.5
    return Continuum(values, low, high, color_map or (SEQUENTIAL if center is None else DIVERGING))


def of_rows(coloring: Coloring, rows: np.ndarray) -> Coloring:
    """The colors of some rows."""
    if isinstance(coloring, Categories):
        return dataclasses.replace(coloring, codes=coloring.codes[rows])
    if isinstance(coloring, Continuum):
        return dataclasses.replace(coloring, values=coloring.values[rows])
    return None


def robust_limits(finite: np.ndarray) -> tuple[float, float]:
    """Minimum and maximum; if outliers are far away, the limits of the central 99 %."""
    low, bottom, top, high = np.quantile(finite, [0.0, 0.005, 0.995, 1.0])
    far = high / 2 - low / 2 > top - bottom > 0
    return (float(bottom), float(top)) if far else (float(low), float(high))


def _as_numbers(labels: np.ndarray) -> np.ndarray:
    """Objects as floats when all that are present are numbers, else as they are."""
    listed = labels.tolist()
    if str in set(map(type, listed)):  # the usual case, without inspecting each value
        return labels
    kinds = {type(value) for value in listed if not is_missing(value)}
    if not kinds or not all(issubclass(kind, int | float | np.number) for kind in kinds):
        return labels
    if any(issubclass(kind, bool | complex | np.complexfloating) for kind in kinds):
        return labels
    return np.array([np.nan if is_missing(v) else v for v in listed], dtype=np.float64)


def _categories(labels: np.ndarray) -> Categories:
    """Numbered in natural order; of too many categories, the rarest share one grey."""
    # A dictionary is faster than sorting a million names, and only distinct values are looked at.
    listed = list(labels) if labels.dtype.kind in "mM" else labels.tolist()
    code: dict[Any, int] = dict.fromkeys(listed, -1)
    values = [value for value in code if not is_missing(value)]
    code.update(zip(values, range(len(values)), strict=True))
    codes = np.fromiter(map(code.__getitem__, listed), dtype=np.int64, count=labels.size)
    counts = np.bincount(codes[codes >= 0], minlength=len(values))
    by_name = sorted(range(len(values)), key=lambda i: _natural(values[i]))
    kept = by_name
    if len(values) > MOST_CATEGORIES:
        frequent = set(sorted(by_name, key=lambda i: -counts[i])[:MOST_CATEGORIES])
        kept = [i for i in by_name if i in frequent]
    code_of = np.full(len(values) + 1, OTHER)
    code_of[kept] = np.arange(len(kept))
    code_of[-1] = MISSING
    names = tuple(_name(values[i]) for i in kept)
    return Categories(code_of[codes], names, len(values) - len(kept))


def is_missing(value: Any) -> bool:
    """Whether a label is missing."""
    # NaN and NaT differ from themselves; a comparison with pandas' NA has no truth value.
    if value is None or type(value).__name__ == "NAType":
        return True
    return bool(value != value) if isinstance(value, float | np.generic) else False


def _natural(value: Any) -> Any:
    """A sort key that puts ``2`` before ``10``, and ``type 2`` before ``type 10``."""
    if isinstance(value, int | float):
        return (0, value, [])
    parts = re.split(r"(\d+)", str(value))
    return (1, 0, [(int(p), "") if p.isdecimal() else (-1, p) for p in parts])


def _name(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return one_line(text, most=24) or "(empty)"


def row_colors(coloring: Coloring, missing: str | None = None) -> np.ndarray:
    """RGBA of each row; ``missing`` is the color of a missing category, if it is not grey."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba, to_rgba_array

    if isinstance(coloring, Categories):
        grey, *others = coloring.palette()
        return to_rgba_array([missing or grey, *others])[coloring.codes + 2]
    assert coloring is not None
    # Halves, because the difference of two large numbers may overflow.
    span = coloring.high / 2 - coloring.low / 2
    with np.errstate(invalid="ignore"):
        shares = np.clip((coloring.values / 2 - coloring.low / 2) / span, 0.0, 1.0)
    colors = colormaps[coloring.color_map](np.nan_to_num(shares))
    colors[coloring.missing()] = to_rgba(GREY)
    return colors
