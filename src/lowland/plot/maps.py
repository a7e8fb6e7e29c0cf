"""The map: one point per row, colored by a label, in one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError
from lowland.plot._figure import (
    PANEL,
    TEXT,
    check_map,
    hide_upper_spines,
    name_axes,
    new_figure,
    note,
    one_line,
    write_title,
)
from lowland.plot._legend import add_legend, draw_distribution, legend_size
from lowland.plot._placement import write_names
from lowland.plot._points import DENSE, draw_points, frame, point_style, scatter_in_random_order
from lowland.plot.colors import Categories, Coloring, Continuum, encode_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Shades of gray behind the points of a map: a number for each place of the plane.


CELLS = 96  # along a side of the frame
DARKEST = 0.62  # of the highest number; black would hide the points


def draw_background(axes: Axes, shade: Callable[[np.ndarray], np.ndarray], name: str) -> None:
    """Fill the frame, whose limits are set: white where ``shade`` is lowest, gray where highest.

    Nothing is drawn where all numbers are equal, or one of them is not finite.
    """
    box = (*axes.get_xlim(), *axes.get_ylim())
    across, up = (_centers(*box[:2]), _centers(*box[2:]))
    places = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    values = np.asarray(shade(places), dtype=np.float64).reshape(CELLS, CELLS)
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all() or high <= low:
        return
    gray = 1 - (1 - DARKEST) * (values - low) / (high - low)
    image = np.repeat(gray[:, :, None], 3, axis=2)
    aspect = axes.get_aspect()
    axes.imshow(image, extent=box, origin="lower", interpolation="bilinear", zorder=0)
    axes.set_aspect(aspect)
    axes.set(xlim=box[:2], ylim=box[2:])
    note(axes, f"gray: {name}, from {low:.3g} (white) to {high:.3g}")


def _centers(low: float, high: float) -> np.ndarray:
    return low + (np.arange(CELLS) + 0.5) / CELLS * (high - low)


# The center of the densest part of each category, for its name.


COUNT_CELLS = 32


def category_centers(Y: np.ndarray, categories: Categories) -> np.ndarray:
    """One place per named category, in the units of Y.

    The mean of a ring or of two groups may lie where the category has no points. Therefore the
    points of a category are counted on a coarse grid, the counts are smoothed, and the center is
    the mean of the points around the fullest cell.
    """
    low = Y.min(axis=0)
    width = max(float(np.ptp(Y, axis=0).max()), np.finfo(float).tiny)
    cells = np.minimum(((Y - low) * (COUNT_CELLS / width)).astype(np.int64), COUNT_CELLS - 1)
    order = np.argsort(categories.codes, kind="stable")
    starts = np.searchsorted(categories.codes[order], np.arange(len(categories.names) + 1))
    centers = np.empty((len(categories.names), 2))
    for code in range(len(categories.names)):
        rows = order[starts[code] : starts[code + 1]]
        column, line = cells[rows].T
        counts = np.bincount(column * COUNT_CELLS + line, minlength=COUNT_CELLS * COUNT_CELLS)
        full = np.unravel_index(
            _blurred(counts.reshape(COUNT_CELLS, COUNT_CELLS)).argmax(), (COUNT_CELLS, COUNT_CELLS)
        )
        near = (np.abs(cells[rows] - full) <= 2).all(axis=1)
        centers[code] = Y[rows[near]].mean(axis=0)
    return centers


def _blurred(counts: np.ndarray, steps: int = 2) -> np.ndarray:
    """Repeated means over three cells along each axis."""
    blurred = counts.astype(np.float64)
    for _ in range(steps):
        for axis in (0, 1):
            padded = np.pad(blurred, [(1, 1) if axis == a else (0, 0) for a in (0, 1)])
            thirds = [np.take(padded, range(k, k + COUNT_CELLS), axis) for k in range(3)]
            blurred = np.mean(thirds, axis=0)
    return blurred * (counts > 0)


# A map of one dimension: a strip of points, a line per category, and a histogram above it.


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
    hide_upper_spines(above)
    return [axes, above]


def _lines_height(coloring: Coloring) -> float:
    lines = len(coloring.present()) if isinstance(coloring, Categories) else 2
    return max(1.6, 0.9 + 0.4 * lines)


NAME_LENGTH = 24
POINT = 8.0  # width in pixels of a point of a small map


def scatter_map(
    Y: np.ndarray,
    labels: Sequence[Any] | np.ndarray | None = None,
    *,
    title: str | None = None,
    label_name: str | None = None,
    axis_names: Sequence[str] | None = None,
    center: float | None = None,
    center_labels: bool = False,
    density: bool | None = None,
    names: Sequence[str] | None = None,
    background: Callable[[np.ndarray], np.ndarray] | None = None,
    background_name: str = "uncertainty",
) -> Figure:
    """Draw a map, one point per row.

    Two dimensions give one picture with equal scales. Three or more give the three views of the
    first three axes. One dimension gives a histogram above a strip of points, both by category.
    More than 100 000 points are shaded by density: a place has the color of the category most of
    its points have, or of their mean value, the stronger the more points there are.

    Parameters
    ----------
    Y : array of shape (n_rows, n_components)
        Coordinates.
    labels : array of shape (n_rows,), optional
        Categories, or numbers; many different numbers give a continuous color scale. Of more than
        30 categories the rarest are grey. None and NaN are missing, and light grey.
    title : str, optional
        Written above the picture.
    label_name : str, optional
        What the labels are, for the legend.
    axis_names : sequence of str, optional
        One per component, for example with the share of variance.
    center : float, optional
        For numbers: a special value, such as 0, where two palettes meet.
    center_labels : bool, default=False
        Write the names of the categories into the map, where each is densest, not beside it.
    density : bool, optional
        Shade by density, or draw all points one by one. None shades more than 100 000 points.
    names : sequence of str, optional
        One per row, written beside the points of a map of two dimensions; for some dozen rows.
    background : function, optional
        Of places (m, 2), giving a number for each: the plane of a map of two dimensions is gray
        where it is high, such as the ``uncertainty`` of a :class:`lowland.GPLVM`.
    background_name : str, default="uncertainty"
        What the numbers are, for a remark.

    Returns
    -------
    matplotlib.figure.Figure
        With an Agg canvas; pyplot is not involved.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> data = iris()
    >>> figure = scatter_map(data.X[:, :2], data.labels, label_name="species")
    >>> len(figure.axes)
    1
    """
    given, Y = Y, check_map(Y)
    coloring = None if labels is None else encode_labels(labels, len(Y), center)
    figure = draw_map(
        Y,
        coloring,
        title=title,
        label_name=label_name,
        axis_names=axis_names,
        center_labels=center_labels,
        density=density,
    )
    if background is not None and Y.shape[1] == 2:
        unit = float(np.abs(given).max() / (np.abs(Y).max() or 1.0)) or 1.0  # 1 for most maps
        draw_background(figure.axes[0], lambda places: background(places * unit), background_name)
    if names is not None:
        write_row_names(figure.axes[0], names, Y)
    return figure


def write_row_names(axes: Axes, names: Sequence[str], Y: np.ndarray) -> None:
    """Write the name of each row beside its point; only maps of two dimensions have room."""
    if len(names) != len(Y):
        raise DataError(f"names has {len(names)} entries, but the map has {len(Y)} rows.")
    if Y.shape[1] == 2:
        written = [one_line(str(name), NAME_LENGTH) for name in names]
        write_names(axes, written, Y, size=8.0, beside=POINT)


def draw_map(
    Y: np.ndarray,
    coloring: Coloring,
    *,
    title: str | None,
    label_name: str | None,
    axis_names: Sequence[str] | None,
    center_labels: bool = False,
    density: bool | None = None,
) -> Figure:
    """:func:`scatter_map` of checked coordinates and encoded labels."""
    dimensions = Y.shape[1]
    names = axis_labels(axis_names, dimensions)
    views = {1: [(0, 0)], 2: [(0, 1)]}.get(dimensions, [(0, 1), (0, 2), (1, 2)])
    named_inside = isinstance(coloring, Categories) and (center_labels or dimensions == 1)
    beside, legend_height = legend_size(coloring, label_name)
    if isinstance(coloring, Categories) and named_inside:
        beside, legend_height = 1.3 if min(coloring.present()) < 0 else 0.3, 0.0
    height = strip_height(coloring) if dimensions == 1 else PANEL
    figure = new_figure(len(views) * PANEL + beside, max(height, legend_height))
    if dimensions == 1:
        panels = np.array(draw_strip(figure, Y[:, 0], coloring, density=density))
        name_axes(panels[0], names[0], (label_name or "") if named_inside else "")
        views = []
    else:
        panels = np.atleast_1d(figure.subplots(1, len(views)))
    for axes, (i, j) in zip(panels, views, strict=False):
        frame(axes, Y[:, [i, j]])
        remark = axes is panels[-1]
        draw_points(axes, Y[:, [i, j]], coloring, PANEL, density=density, remark=remark)
        name_axes(axes, names[i], names[j])
    write_title(figure, title)
    if not named_inside:
        add_legend(figure, list(panels), coloring, label_name)
    elif dimensions > 1 and isinstance(coloring, Categories):
        add_legend(figure, [], coloring, None, [c for c in coloring.present() if c < 0])
        for axes, (i, j) in zip(panels, views, strict=True):
            centers = category_centers(Y[:, [i, j]], coloring)
            size = float(np.clip(110.0 / max(len(centers), 1), 6.5, 11.0))
            write_names(axes, coloring.names, centers, size=size)
    return figure


def axis_labels(axis_names: Sequence[str] | None, n: int) -> list[str]:
    """The names given, one per axis, or numbers."""
    if axis_names is None:
        return [f"axis {i + 1}" for i in range(n)]
    if len(axis_names) != n:
        raise DataError(f"axis_names has {len(axis_names)} names, but there are {n} axes.")
    return [str(name) for name in axis_names]


# A map of three dimensions, seen from one side.


SIZE = 6.0  # inches


def scatter_map_3d(
    Y: np.ndarray,
    labels: Sequence[Any] | np.ndarray | None = None,
    *,
    title: str | None = None,
    label_name: str | None = None,
    axis_names: Sequence[str] | None = None,
    center: float | None = None,
    elevation: float = 22.0,
    azimuth: float = -58.0,
) -> Figure:
    """Draw the first three axes of a map in space, with equal scales; near points are stronger.

    Of more than 100 000 points a sample of 100 000 is drawn, and the picture says so.

    Parameters
    ----------
    Y : array of shape (n_rows, n_components)
        Coordinates, at least three per row.
    labels, title, label_name, axis_names, center
        See :func:`scatter_map`.
    elevation, azimuth : float
        Where the eye stands, in degrees.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> roll = swiss_roll(300, random_state=0)
    >>> scatter_map_3d(roll.X, roll.truth[:, 0]).axes[0].name
    '3d'
    """
    Y = check_map(Y)
    if Y.shape[1] < 3:
        raise DataError(f"a map in space has three columns, but Y has {Y.shape[1]}.")
    coloring = None if labels is None else encode_labels(labels, len(Y), center)
    names = axis_labels(axis_names, Y.shape[1])
    beside, height = legend_size(coloring, label_name)
    figure = new_figure(SIZE + beside, max(SIZE, height))
    axes: Any = figure.add_subplot(projection="3d", elev=elevation, azim=azimuth)
    drawn = _sample(len(Y))
    _frame(axes, Y[:, :3], names)
    scatter_in_random_order(
        axes,
        tuple(Y[drawn, :3].T),
        _of_rows(coloring, drawn),
        _style_3d(drawn.size),
    )
    if drawn.size < len(Y):
        note(axes, f"{drawn.size:,} of {len(Y):,} points")
    add_legend(figure, [axes], coloring, label_name)
    write_title(figure, title)
    return figure


def _sample(n: int) -> np.ndarray:
    if n <= DENSE:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, DENSE, replace=False))


def _style_3d(n: int) -> dict[str, Any]:
    style = point_style(n, SIZE)
    # With depth shading, the far ones of many points would not be visible at all.
    return {**style, "alpha": max(style["alpha"], 0.4), "depthshade": n <= 20_000}


def _of_rows(coloring: Coloring, rows: np.ndarray) -> Coloring:
    if isinstance(coloring, Categories):
        return Categories(coloring.codes[rows], coloring.names, coloring.n_others)
    if isinstance(coloring, Continuum):
        return Continuum(coloring.values[rows], coloring.low, coloring.high, coloring.color_map)
    return None


def _frame(axes: Any, Y: np.ndarray, names: list[str]) -> None:
    low, high = Y.min(axis=0), Y.max(axis=0)
    # A box with the proportions of the cloud, but no side so short that names overlap.
    width = high - low
    width = np.maximum(width, max(float(width.max()), np.abs(Y).max() * 1e-3, 1e-12) * 0.3)
    middle = low / 2 + high / 2
    for k, axis in enumerate("xyz"):
        getattr(axes, f"set_{axis}lim")(middle[k] - 0.52 * width[k], middle[k] + 0.52 * width[k])
        getattr(axes, f"set_{axis}ticks")([])
        getattr(axes, f"set_{axis}label")(one_line(names[k]), labelpad=-6, **TEXT)
        getattr(axes, f"{axis}axis").pane.set(facecolor="#f6f6f6", edgecolor="#d0d0d0")
    aspect = width / width.max()
    # matplotlib enlarges flat boxes until their names are outside of the picture.
    axes.set_box_aspect(aspect, zoom=1.1 * (float(np.linalg.norm(aspect)) / np.sqrt(3.0)) ** 0.7)
