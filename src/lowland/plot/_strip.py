"""A map of one dimension: a strip of points, a line per category, and a histogram above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lowland.plot._distribution import draw_distribution
from lowland.plot._figure import PANEL, TEXT, bare, name_axes
from lowland.plot._points import draw_points, frame
from lowland.plot.colors import Categories, Coloring

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HISTOGRAM = 1.6  # inches


def strip_height(coloring: Coloring) -> float:
    """Height in inches of the picture, by the number of lines."""
    return HISTOGRAM + _lines_height(coloring)


def draw_strip(
    figure: Figure, x: np.ndarray, coloring: Coloring, *, density: bool | None = None
) -> list[Axes]:
    """The axes of the strip and of the histogram above it.

    The height of a point within its line is random, so that equal points are visible.
    """
    grid = figure.add_gridspec(2, 1, height_ratios=[HISTOGRAM, _lines_height(coloring)])
    axes, above = figure.add_subplot(grid[1]), figure.add_subplot(grid[0])
    lines = coloring.present() if isinstance(coloring, Categories) else [0]
    line_of = np.zeros(max(lines) + 3)
    for line, code in enumerate(lines):
        line_of[code + 2] = -line
    height = line_of[coloring.codes + 2] if isinstance(coloring, Categories) else np.zeros(x.size)
    height += np.random.default_rng(0).uniform(-0.35, 0.35, x.size)
    Y = np.column_stack([x, height])
    frame(axes, Y, equal=False)
    axes.set_ylim(0.5 - len(lines), 0.5)
    draw_points(axes, Y, coloring, PANEL, density=density)
    if isinstance(coloring, Categories):
        axes.set_yticks([-line for line in range(len(lines))])
        axes.set_yticklabels([coloring.name(code) for code in lines], **TEXT)
        axes.tick_params(length=0)
    above.set_xlim(axes.get_xlim())
    draw_distribution(above, x, coloring, filled=True)
    above.set(xticks=[], yticks=[])
    name_axes(above, "", "share")
    bare(above)
    return [axes, above]


def _lines_height(coloring: Coloring) -> float:
    lines = len(coloring.present()) if isinstance(coloring, Categories) else 2
    return max(1.6, 0.9 + 0.4 * lines)
