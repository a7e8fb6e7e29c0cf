"""The units of a grid as cells: hexagons or squares that touch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError, ParameterError, unknown_name
from lowland.plot._figure import TEXT, check_table
from lowland.plot.colors import Continuum
from lowland.plot.palettes import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("hexagon", "rectangle")
THINNEST = 0.5  # inches that a panel measures at least; the cells of a long grid are stretched
OUTLINE = "#d9d9d9"
MANY = 600  # cells whose outlines are thinner
SMALLEST_TEXT, LARGEST_TEXT = 5.5, 9.0  # points
LUMINANCE = np.array([0.299, 0.587, 0.114])
LETTER = 0.62  # width of a letter, as a share of the height of the font


class Cells(NamedTuple):
    """Centers (n_units, 2) and corners (n_units, k, 2) of the cells, and the size of one."""

    centers: np.ndarray
    corners: np.ndarray
    step: tuple[float, float]  # width and height of a cell

    @property
    def extent(self) -> np.ndarray:
        """Lower left and upper right corner of all cells."""
        points = self.corners.reshape(-1, 2)
        return np.array([points.min(axis=0), points.max(axis=0)])

    def panel(self, most: float) -> tuple[float, float]:
        """Width and height in inches of a panel whose longer side is ``most``."""
        width, height = self.extent[1] - self.extent[0]
        longer = max(width, height)
        return max(most * width / longer, THINNEST), max(most * height / longer, THINNEST)


def cells_at(places: Any, kind: str) -> Cells:
    """The cells around the places (n_units, 1 or 2) of a regular grid of one step."""
    if kind not in KINDS:
        raise ParameterError(unknown_name("kind of grid", str(kind), list(KINDS)))
    places = check_table(places, "places")
    if places.shape[1] > 2:
        raise DataError(
            f"the pictures of a grid have 2 dimensions, but places have {places.shape[1]}."
        )
    if places.shape[1] == 1:
        places = np.hstack([places, np.zeros_like(places)])
    step = _step(places)
    in_a_row = bool((places[:, 1] == places[0, 1]).all())  # then hexagons are no better
    if (
        kind == "hexagon" and not in_a_row
    ):  # with a corner above, as the neighbors lie left and right
        angles = np.pi / 2 + np.arange(6) * np.pi / 3
        corners = np.stack([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(3)
        size = step, step * 2 / np.sqrt(3)
    else:
        corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
        size = step, step
    return Cells(places, places[:, None, :] + step * corners, size)


def _step(places: np.ndarray) -> float:
    """The distance of two neighboring units."""
    from scipy.spatial import cKDTree

    distinct = np.unique(places, axis=0)
    if len(distinct) == 1:
        return 1.0
    return float(cKDTree(distinct).query(distinct, k=2)[0][:, 1].min())


def frame_cells(axes: Axes, cells: Cells, inches: tuple[float, float]) -> None:
    """Limits around all cells, without ticks; equal scales unless the grid is very long."""
    low, high = cells.extent
    width, height = high - low
    axes.set_xlim(low[0] - 0.01 * width, high[0] + 0.01 * width)
    axes.set_ylim(low[1] - 0.01 * height, high[1] + 0.01 * height)
    if np.isclose(width / height, inches[0] / inches[1]):
        axes.set_aspect("equal")
    else:
        axes.set_box_aspect(inches[1] / inches[0])
    axes.set_axis_off()


def draw_cells(
    axes: Axes,
    cells: Cells,
    colors: Any = "none",
    *,
    sizes: np.ndarray | None = None,
    outlined: bool = False,
) -> None:
    """One polygon per unit; ``sizes`` shrink each around its center (1: the whole cell)."""
    from matplotlib.collections import PolyCollection

    corners = cells.corners
    if sizes is not None:
        middle = cells.centers[:, None, :]
        corners = middle + sizes[:, None, None] * (corners - middle)
    # Without an edge of the same color, thin light lines would show between neighboring cells.
    edge: dict[str, Any] = {"edgecolors": "face", "linewidths": 0.4 if sizes is None else 0.0}
    if outlined:
        edge = {"edgecolors": OUTLINE, "linewidths": 0.5 if len(corners) <= MANY else 0.2}
    axes.add_collection(PolyCollection(list(corners), facecolors=colors, **edge), autolim=False)


def value_colors(coloring: Continuum) -> np.ndarray:
    """The color of each value; grey where it is missing."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba

    # Halves, because the difference of two large numbers may overflow.
    span = coloring.high / 2 - coloring.low / 2
    with np.errstate(invalid="ignore"):
        shares = np.clip((coloring.values / 2 - coloring.low / 2) / span, 0.0, 1.0)
    colors = colormaps[coloring.color_map](np.nan_to_num(shares))
    colors[coloring.missing()] = to_rgba(GREY)
    return colors


def text_size(cells: Cells, texts: list[str], inches: tuple[float, float]) -> float:
    """The size in points at which all texts fit into their cells; 0 if that is too small."""
    extent = cells.extent[1] - cells.extent[0]
    width = 72 * 0.85 * cells.step[0] / extent[0] * inches[0]
    height = 72 * 0.6 * cells.step[1] / extent[1] * inches[1]
    longest = max((len(text) for text in texts), default=0)
    size = min(width / (LETTER * max(longest, 1)), height, LARGEST_TEXT)
    return size if size >= SMALLEST_TEXT else 0.0


def write_in(
    axes: Axes, cells: Cells, texts: list[str], size: float, colors: np.ndarray | None = None
) -> None:
    """Write a text into each cell, white on cells of a dark color; nothing at size 0."""
    if size == 0:
        return
    dark = np.zeros(len(texts), bool) if colors is None else colors[:, :3] @ LUMINANCE < 0.45
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size, **TEXT}
    for text, on_dark, (x, y) in zip(texts, dark.tolist(), cells.centers, strict=True):
        if text:
            color = "white" if on_dark else "black"
            axes.text(x, y, text, color=color, **style).set_in_layout(False)
