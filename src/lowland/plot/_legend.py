"""The legend or the color bar beside a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland.plot._figure import GREY, OKABE_ITO, TEXT, one_line
from lowland.plot.colors import Categories, Coloring, Continuum

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
    longest = max(len(name) for name in [*entries, one_line(label_name or "", 24)])
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
        title=one_line(title, 24) if title else None,
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
    bar.set_label(one_line(label_name or ""), **TEXT)
    bar.outline.set_visible(False)
    return bar.ax


# How the points lie along one axis: a histogram per category.


FILLED = 4  # with more categories, areas on top of each other cannot be told apart


def draw_distribution(
    axes: Axes, x: np.ndarray, coloring: Coloring, *, filled: bool = False
) -> None:
    """Shares of the points of each category, all with the same area, in a frame with x limits.

    ``filled`` shades the areas of a few categories.
    """
    groups = {OKABE_ITO[0]: np.ones(x.size, bool)}
    if isinstance(coloring, Categories):
        groups = {coloring.color(code): coloring.codes == code for code in coloring.present()}
    n_bins = int(np.clip(5 + np.sqrt(x.size / len(groups)), 8, 30))
    edges = np.linspace(*axes.get_xlim(), n_bins + 1)
    highest = 0.0
    for color, members in groups.items():
        share = np.histogram(x[members], edges)[0] / members.sum()
        if filled and 1 < len(groups) <= FILLED:
            axes.stairs(share, edges, color=color, fill=True, alpha=0.3, linewidth=0)
        axes.stairs(share, edges, color=color, fill=len(groups) == 1, linewidth=1.2)
        highest = max(highest, float(share.max()))
    axes.set_ylim(0, 1.1 * highest)
