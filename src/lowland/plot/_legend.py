"""The legend or the color bar beside a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lowland.plot._figure import new_figure, one_line, write_legend
from lowland.plot._style import GREY, PANEL, TEXT
from lowland.plot.colors import Categories, Coloring

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENTRIES_PER_COLUMN = 21
LONGEST_TITLE = 24


def figure_beside_legend(
    coloring: Coloring,
    label_name: str | None,
    title: str | None,
    width: float = PANEL,
    height: float = PANEL,
) -> Figure:
    """An empty figure of this size in inches, and with room for the legend beside it."""
    beside, legend_height = legend_size(coloring, label_name)
    return new_figure(width + beside, max(height, legend_height), title)


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
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    if isinstance(coloring, Categories):
        shown = coloring.present() if codes is None else codes
        entries = [(coloring.name(c), coloring.color(c), coloring.marker(c)) for c in shown]
        if entries:
            _write_dots(figure, entries, label_name, loc="outside right center")
    elif coloring is not None:
        scale = ScalarMappable(Normalize(coloring.low, coloring.high), coloring.color_map)
        look = {"shrink": 0.7, "aspect": 25, "extend": coloring.extend(), "extendfrac": 0.03}
        bar = figure.colorbar(scale, ax=list(panels), **look)
        bar.set_label(one_line(label_name or ""), **TEXT)
        bar.outline.set_visible(False)
        if coloring.missing().any():
            below = {"loc": "upper left", "bbox_to_anchor": (-0.6, -0.04), "borderaxespad": 0}
            _write_dots(bar.ax, [("missing", GREY, "o")], None, **below)


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
