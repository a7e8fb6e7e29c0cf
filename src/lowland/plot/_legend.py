"""The legend or the color bar beside a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lowland.plot._figure import TEXT, clean
from lowland.plot.colors import Categories, Coloring, Continuum
from lowland.plot.palettes import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENTRIES_PER_COLUMN = 21


def legend_size(coloring: Coloring, label_name: str | None = None) -> tuple[float, float]:
    """Inches to leave beside the map, and inches the legend is high."""
    if isinstance(coloring, Continuum):
        return 1.2, 0.0
    if coloring is None:
        return 0.3, 0.0
    entries = [coloring.name(code) for code in coloring.present()]
    columns = _columns(len(entries))
    longest = max(len(name) for name in [*entries, clean(label_name or "", 24)])
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
            _write(figure, entries, label_name, loc="outside right center")
    elif isinstance(coloring, Continuum):
        bar = _color_bar(figure, panels, coloring, label_name)
        if coloring.missing().any():
            below = {"loc": "upper left", "bbox_to_anchor": (-0.6, -0.04), "borderaxespad": 0}
            _write(bar, [("missing", GREY, "o")], None, **below)


def _columns(n_entries: int) -> int:
    return -(-n_entries // ENTRIES_PER_COLUMN)


def _write(
    owner: Figure | Axes, entries: list[tuple[str, str, str]], title: str | None, **place: Any
) -> None:
    from matplotlib.lines import Line2D

    handles: list[Any] = [
        Line2D([], [], linestyle="", marker=marker, markersize=6, markeredgewidth=0, color=color)
        for _, color, marker in entries
    ]
    legend = owner.legend(
        handles,
        ["name"] * len(entries),
        title=clean(title, 24) if title else None,
        frameon=False,
        ncols=_columns(len(entries)),
        handletextpad=0.2,
        columnspacing=1.0,
        **place,
    )
    # Written afterwards: matplotlib drops entries whose name begins with an underscore.
    for text, (name, *_) in zip(legend.get_texts(), entries, strict=True):
        text.set(text=name, **TEXT)
    legend.get_title().set(**TEXT)


def _color_bar(
    figure: Figure, panels: Sequence[Axes], coloring: Continuum, label_name: str | None
) -> Axes:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(coloring.low, coloring.high), coloring.color_map)
    bar = figure.colorbar(
        scale, ax=list(panels), shrink=0.7, aspect=25, extend=coloring.extend(), extendfrac=0.03
    )
    bar.set_label(clean(label_name or ""), **TEXT)
    bar.outline.set_visible(False)
    return bar.ax
