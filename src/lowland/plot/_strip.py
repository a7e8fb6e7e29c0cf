"""A map of one dimension: a strip of points, a line per category."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lowland.plot._figure import PANEL, TEXT
from lowland.plot._points import draw_points, frame
from lowland.plot.colors import Categories, Coloring

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_strip", "strip_height"]


def strip_height(coloring: Coloring) -> float:
    """Height in inches, by the number of lines."""
    lines = len(coloring.present()) if isinstance(coloring, Categories) else 2
    return max(2.0, 0.9 + 0.4 * lines)


def draw_strip(
    axes: Axes, x: np.ndarray, coloring: Coloring, *, density: bool | None = None
) -> None:
    """Draw the points; their height within a line is random, so that equal points are visible."""
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
