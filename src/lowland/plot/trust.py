"""Where a map can be believed, in one picture: points, arrows to their homes, gaps, islands."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.constraints import Integer
from lowland._base.errors import ParameterError, shown
from lowland.plot._figure import (
    add_arrow,
    check_table,
    drawable_unit,
    name_axes,
    new_figure,
    write,
    write_legend,
)
from lowland.plot._points import draw_points, frame, point_style, scatter_in_random_order
from lowland.plot._style import ARROW, DARK_GREY, INK, PANEL, TEXT
from lowland.plot.colors import MISSING, Categories, of_rows
from lowland.plot.maps import axis_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Two shares per point as one color: missing neighbors upward, strangers to the right.


SIDE = 5  # cells along an edge, as in the report
# Colors of the corners, by (missing, strangers); the report has the same.
CORNERS = {(0, 0): "#cdd5dd", (1, 0): "#1a66c9", (0, 1): "#e8860c", (1, 1): "#1c0f24"}
NOT_MEASURED = "#e9e9e9"  # paler than the first corner, from which it must differ
SLACK = 1e-9  # 3 of 15, as a number, may be less than one fifth


def bivariate_colors() -> np.ndarray:
    """RGB of all cells, (SIDE, SIDE, 3), by missing and strangers: bilinear between the corners."""
    from matplotlib.colors import to_rgb

    share = np.linspace(0, 1, SIDE)
    missing, strangers = np.meshgrid(share, share, indexing="ij")
    colors = np.zeros((SIDE, SIDE, 3))
    for (up, across), color in CORNERS.items():
        weight = np.abs(1 - up - missing) * np.abs(1 - across - strangers)
        colors += weight[:, :, None] * np.array(to_rgb(color))
    return colors


@dataclasses.dataclass(frozen=True, eq=False)
class BivariateCells(Categories):
    """``codes[i]`` is the cell of row i, SIDE * (row of missing) + (column of strangers)."""

    def marker(self, code: int) -> str:
        """One shape: only the color has a meaning."""
        return "o"

    def palette(self) -> tuple[str, ...]:
        """Colors of the codes -2 (not measured), -1, 0, 1, ..."""
        from matplotlib.colors import to_hex

        cells = bivariate_colors().reshape(-1, 3)
        return (NOT_MEASURED, DARK_GREY, *(to_hex(color) for color in cells))


def bivariate_cells(missing: np.ndarray, strangers: np.ndarray) -> BivariateCells:
    """The cell of each point; NaN is not measured."""
    known = np.isfinite(missing) & np.isfinite(strangers)
    steps = [
        np.clip(np.nan_to_num(share) * SIDE + SLACK, 0, SIDE - 1).astype(np.int64)
        for share in (missing, strangers)
    ]
    names = tuple(f"{up} {across}" for up in range(SIDE) for across in range(SIDE))
    return BivariateCells(np.where(known, SIDE * steps[0] + steps[1], MISSING), names)


def draw_bivariate_scale(axes: Axes) -> None:
    """The color scale: a grid of cells with its two axes."""
    cells = bivariate_colors()
    axes.imshow(cells, origin="lower", extent=(0, 1, 0, 1), interpolation="nearest", aspect="auto")
    ends: dict[str, Any] = {"fontsize": 7, "color": INK}
    axes.set_xticks([0, 1], ["0", "100 %"], **ends)
    axes.set_yticks([0, 1], ["0", "100 %"], **ends)
    for labels, along in ((axes.get_xticklabels(), "ha"), (axes.get_yticklabels(), "va")):
        first, last = ("left", "right") if along == "ha" else ("bottom", "top")
        labels[0].set(**{along: first})
        labels[1].set(**{along: last})
    axes.tick_params(length=0, pad=2)
    axes.set_xlabel("strangers", fontsize=8, labelpad=1, **TEXT)
    axes.set_ylabel("missing", fontsize=8, labelpad=-14, **TEXT)
    axes.spines[:].set_visible(False)


BESIDE = 1.6  # inches of the legend
SCALE = 1.0  # inches of the square of colors
STRIP = 2.4  # inches of the height of a map of one dimension
NODE = 0.55  # height of the islands of a strip, whose points lie between -0.35 and 0.35
VIEWS: dict[int, list[tuple[int, ...]]] = {1: [(0,)], 2: [(0, 1)], 3: [(0, 1), (0, 2), (1, 2)]}
SHORTEST = 0.01  # arrows of less than this share of the width would be heads only
MANY_ISLANDS = 30  # their numbers are smaller
# By verdict: line style and width. A real gap needs no line: it is seen.
LINES: dict[str, tuple[Any, float]] = {
    "bridged": ((0, (1, 2)), 1.4),
    "unclear": ((0, (5, 3)), 1.7),
    "not in the data": ("solid", 2.6),
}


def trust_map(
    trust: Any,
    *,
    title: str | None = None,
    axis_names: Sequence[str] | None = None,
    arrows: int = 50,
    density: bool | None = None,
) -> Figure:
    """Draw a map and its errors: missing neighbors, strangers, homes of misplaced points, gaps.

    The color of a point shows two shares at once: blue, neighbors of the data are missing around
    it; orange, strangers surround it; black, both; light grey, neither. Arrows lead from misplaced
    points to where their neighbors are. Islands have their numbers, with a second ring around those
    that hold two groups. A line joins two islands whose gap is not in the data; it is dashed where
    this is unclear and dotted where other islands connect the two.

    Two dimensions give one picture with equal scales, three or more the three views of the first
    three axes, one a strip of points with random heights.

    Parameters
    ----------
    trust : Trust
        What :func:`lowland.trust.trust` returns.
    title : str, optional
        Written above the picture.
    axis_names : sequence of str, optional
        One per component.
    arrows : int, default=50
        The largest number of arrows: those of the points farthest from home.
    density : bool, optional
        See :func:`scatter_map`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.trust import trust
    >>> X = iris().X
    >>> found = trust(X, X[:, 2:])
    >>> figure = trust_map(found, axis_names=["petal length", "petal width"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['1', '2']
    """
    if not all(hasattr(trust, name) for name in ("coordinates", "points", "islands", "gaps")):
        expected = "give what lowland.trust.trust(X, Y) returns"
        raise ParameterError(f"trust={shown(trust)} is not allowed; {expected}.")
    if not Integer(0).allows(arrows):
        raise ParameterError(f"arrows={shown(arrows)} is not allowed; give an integer >= 0.")
    dimensions = trust.coordinates.shape[1]
    names = axis_labels(axis_names, dimensions)
    views = VIEWS.get(dimensions, VIEWS[3])
    height = STRIP if dimensions == 1 else PANEL
    figure = new_figure(len(views) * PANEL + BESIDE, height, title)
    widths = [*[PANEL] * len(views), BESIDE]
    *panels, beside = figure.subplots(1, len(widths), width_ratios=widths)
    for axes, view in zip(panels, views, strict=True):
        draw_trust(axes, trust, view, PANEL, arrows=arrows, density=density)
        name_axes(axes, *[names[axis] for axis in view], *[""] * (2 - len(view)))
    draw_trust_legend(beside, trust, BESIDE, height, arrows=arrows)
    return figure


def draw_trust(
    axes: Axes,
    trust: Any,
    view: Sequence[int],
    inches: float,
    *,
    arrows: int = 50,
    density: bool | None = None,
) -> None:
    """Draw two axes of a map, or its only one, into a frame of so many inches."""
    Y, home, centers = _places(trust, view)
    frame(axes, Y, equal=len(view) == 2)
    if len(view) == 1:
        axes.set_ylim(-0.5, 1.25 if any(gap.verdict in LINES for gap in trust.gaps) else 0.8)
    coloring = bivariate_cells(trust.points.missing, trust.points.strangers)
    draw_points(axes, Y, coloring, inches, density=density)
    worst = trust.worst(arrows)
    _draw_arrows(axes, Y[worst], home[worst])
    # Once more: lines must not cover the points that they speak of.
    style = {**point_style(len(Y), inches), "alpha": 1.0, "zorder": 3.5}
    scatter_in_random_order(axes, Y[worst].T, of_rows(coloring, worst), style)
    _draw_gaps(axes, trust, centers, curved=len(view) == 1)
    _draw_islands(axes, trust, Y, centers, inches)


def _places(trust: Any, view: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, their homes and the centers of the islands, along two axes.

    In one dimension the heights of points are random, and an arrow keeps the height of its point.
    """
    given = check_table(trust.coordinates, "the map")
    unit = drawable_unit(given)
    Y, axes = given / unit, list(view)
    home = np.asarray(trust.points.home, np.float64)[:, axes] / unit
    centers = np.array([island.center for island in trust.islands]).reshape(-1, Y.shape[1])
    Y, centers = Y[:, axes], centers[:, axes] / unit
    if len(axes) == 2:
        return Y, home, centers
    height = np.random.default_rng(0).uniform(-0.35, 0.35, len(Y))
    above = np.full(len(centers), NODE)
    return tuple(np.column_stack(pair) for pair in ((Y, height), (home, height), (centers, above)))


def _draw_arrows(axes: Axes, starts: np.ndarray, homes: np.ndarray) -> None:
    widths = [float(np.ptp(limits)) for limits in (axes.get_xlim(), axes.get_ylim())]
    for start, home in zip(starts, homes, strict=True):
        if np.hypot(*((home - start) / widths)) >= SHORTEST:
            add_arrow(axes, start, home, path_effects=_halo(2.6))


def _draw_gaps(axes: Axes, trust: Any, centers: np.ndarray, *, curved: bool) -> None:
    """Lines between islands; on a strip they are arcs, or they would lie on each other."""
    from matplotlib.collections import LineCollection

    at = {island.number: center for island, center in zip(trust.islands, centers, strict=True)}
    step = np.linspace(0, 1, 41 if curved else 2)[:, None]
    for verdict, (style, width) in LINES.items():
        paths = []
        for gap in _gaps(trust, verdict):
            path = at[gap.one] + step * (at[gap.other] - at[gap.one])
            if curved:
                far = abs(at[gap.other][0] - at[gap.one][0]) / np.ptp(axes.get_xlim())
                path[:, 1] += 2.4 * step[:, 0] * (1 - step[:, 0]) * min(0.15 + far, 1.0)
            paths.append(path)
        if paths:
            lines = LineCollection(paths, linestyles=[style], linewidths=width, colors=INK)
            lines.set(zorder=2.5, label=verdict, path_effects=_halo(width + 1.6))
            axes.add_collection(lines, autolim=False)


def _draw_islands(
    axes: Axes, trust: Any, Y: np.ndarray, centers: np.ndarray, inches: float
) -> None:
    """Numbers in circles; that of an island which the circle would cover stands above it."""
    from matplotlib.transforms import ScaledTranslation

    radius = 5.0 if len(trust.islands) > MANY_ISLANDS else 7.0
    style = {"facecolors": (1.0, 1.0, 1.0, 0.8), "edgecolors": INK, "linewidths": 1.0, "zorder": 4}
    per_unit = 72 * inches / np.ptp(axes.get_xlim())
    figure: Any = axes.figure
    above = axes.transData + ScaledTranslation(0, (radius + 4) / 72, figure.dpi_scale_trans)
    for island, center in zip(trust.islands, centers, strict=True):
        away = np.linalg.norm(Y[trust.island_of == island.number] - center, axis=1)
        covered = away.size > 0 and np.median(away) * per_unit < radius
        place = above if covered else axes.transData
        for wider in (3.0, 0.0) if _is_double(island) else (0.0,):
            axes.scatter(*center, s=(2 * (radius + wider)) ** 2, transform=place, **style)
        look = {"va": "center_baseline", "zorder": 5, "transform": place}
        write(axes, *center, str(island.number), radius + 0.5, **look)


def draw_trust_legend(
    axes: Axes, trust: Any, width: float, height: float, *, arrows: int = 50
) -> None:
    """In a frame of so many inches: the square of colors, and what lines and rings mean."""
    from matplotlib.legend_handler import HandlerPatch
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyArrowPatch

    axes.set_axis_off()
    tall = SCALE / height
    draw_bivariate_scale(axes.inset_axes((0.3, 1 - tall, SCALE / width, tall)))
    entries: list[tuple[Any, str]] = []
    if len(trust.worst(arrows)):
        entries.append((FancyArrowPatch((0, 0), (1, 0), **ARROW), "to its neighbors"))
    for verdict in reversed(LINES):
        if _gaps(trust, verdict):
            style, thick = LINES[verdict]
            entries.append((Line2D([], [], linestyle=style, linewidth=thick, color=INK), verdict))
    ring = {"linestyle": "", "marker": "o", "markerfacecolor": "white", "markeredgecolor": INK}
    if any(map(_is_double, trust.islands)):
        rings = tuple(Line2D([], [], markersize=size, **ring) for size in (10, 6))
        entries.append((rings, "holds two groups"))
    if np.isnan(trust.points.missing).any():
        dot = {"linestyle": "", "marker": "o", "color": NOT_MEASURED}
        entries.append((Line2D([], [], markersize=6, markeredgewidth=0, **dot), "not measured"))
    if not entries:
        return
    arrow = HandlerPatch(patch_func=_arrow_in_legend)
    below = {"loc": "upper left", "bbox_to_anchor": (0.0, 1 - tall - 0.45 / height)}
    look = {"borderaxespad": 0, "fontsize": 8, "handlelength": 2.2}
    handles, texts = zip(*entries, strict=True)
    write_legend(axes, handles, texts, handler_map={FancyArrowPatch: arrow}, **below, **look)


def _arrow_in_legend(*, width: float, height: float, **_: Any) -> Any:
    from matplotlib.patches import FancyArrowPatch

    return FancyArrowPatch((0, height / 2), (width, height / 2), **ARROW)


def _gaps(trust: Any, verdict: str) -> list[Any]:
    return [gap for gap in trust.gaps if gap.verdict == verdict]


def _is_double(island: Any) -> bool:
    """Whether the data separate two groups in it."""
    return island.inner is not None and island.inner.verdict == "real"


def _halo(width: float) -> list[Any]:
    """A white rim that keeps a line apart from the points below it."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground="white")]
