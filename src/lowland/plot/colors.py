"""From one label per row to one color per row, and the legend or color bar beside a map."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError
from lowland.plot._figure import (
    DARK_GREY,
    DIVERGING,
    GREY,
    LONG_PALETTE,
    MARKERS,
    OKABE_ITO,
    PANEL,
    SEQUENTIAL,
    TEXT,
    category_colors,
    new_figure,
    one_line,
    write_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


# The legend or the color bar beside a map.


ENTRIES_PER_COLUMN = 21
LONGEST_TITLE = 24


def figure_beside_legend(
    coloring: Coloring, label_name: str | None = None, width: float = PANEL, height: float = PANEL
) -> Figure:
    """An empty figure of this size in inches, and with room for the legend beside it."""
    beside, legend_height = legend_size(coloring, label_name)
    return new_figure(width + beside, max(height, legend_height))


def legend_size(coloring: Coloring, label_name: str | None = None) -> tuple[float, float]:
    """Inches to leave beside the map, and inches the legend is high."""
    if not isinstance(coloring, Categories):
        return 0.3 if coloring is None else 1.2, 0.0
    entries = [coloring.name(code) for code in coloring.present()]
    columns = _columns(len(entries))
    longest = max(len(name) for name in [*entries, one_line(label_name or "", LONGEST_TITLE)])
    rows = -(-len(entries) // columns) + bool(label_name)
    return 0.25 + columns * (0.35 + 0.095 * longest), 0.5 + 0.23 * rows


def add_legend(
    figure: Figure,
    panels: Sequence[Axes],
    coloring: Coloring,
    label_name: str | None = None,
    codes: list[int] | None = None,
) -> None:
    """Beside the panels, outside of them; ``codes`` limits it to some categories."""
    if isinstance(coloring, Categories):
        shown = coloring.present() if codes is None else codes
        entries = [(coloring.name(c), coloring.color(c), coloring.marker(c)) for c in shown]
        if entries:
            _write_dots(figure, entries, label_name, loc="outside right center")
    elif isinstance(coloring, Continuum):
        bar = _color_bar(figure, panels, coloring, label_name)
        if coloring.missing().any():
            below = {"loc": "upper left", "bbox_to_anchor": (-0.6, -0.04), "borderaxespad": 0}
            _write_dots(bar, [("missing", GREY, "o")], None, **below)


def _write_dots(
    owner: Any, entries: list[tuple[str, str, str]], title: str | None, **place: Any
) -> None:
    """A legend of names, colors and markers."""
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"linestyle": "", "markersize": 6, "markeredgewidth": 0}
    dots = [Line2D([], [], color=color, marker=marker, **dot) for _, color, marker in entries]
    look = {"handletextpad": 0.2, "columnspacing": 1.0, "ncols": _columns(len(entries))}
    look["title"] = one_line(title, LONGEST_TITLE) if title else None
    write_legend(owner, dots, [name for name, *_ in entries], **look, **place)


def _columns(n_entries: int) -> int:
    return -(-n_entries // ENTRIES_PER_COLUMN)


def _color_bar(
    figure: Figure, panels: Sequence[Axes], coloring: Continuum, label_name: str | None
) -> Axes:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(coloring.low, coloring.high), coloring.color_map)
    bar = figure.colorbar(
        scale, ax=list(panels), shrink=0.7, aspect=25, extend=coloring.extend(), extendfrac=0.03
    )
    bar.set_label(one_line(label_name or ""), **TEXT)
    bar.outline.set_visible(False)
    return bar.ax
