"""The map: one point per row, colored by a label, in one, two or three dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError
from lowland.plot._figure import (
    check_map,
    check_table,
    check_vector,
    drawable_unit,
    name_axes,
    new_figure,
    note,
    one_each,
    one_line,
    open_frame,
    sample_rows,
)
from lowland.plot._legend import add_legend, figure_beside_legend, legend_size
from lowland.plot._placement import write_names
from lowland.plot._points import DENSE, draw_points, frame, point_style, scatter_in_random_order
from lowland.plot._style import INK, OKABE_ITO, PANEL, TEXT
from lowland.plot.colors import Categories, Coloring, encode_labels, of_rows

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
    steps = (np.arange(CELLS) + 0.5) / CELLS
    across, up = (low + steps * (high - low) for low, high in (box[:2], box[2:]))
    places = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    values = np.asarray(shade(places), dtype=np.float64).reshape(CELLS, CELLS)
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all() or high <= low:
        return
    gray = 1 - (1 - DARKEST) * (values - low) / (high - low)
    image = np.repeat(gray[:, :, None], 3, axis=2)
    look = {"origin": "lower", "interpolation": "bilinear", "aspect": axes.get_aspect()}
    axes.imshow(image, extent=box, zorder=0, **look)
    axes.set(xlim=box[:2], ylim=box[2:])
    note(axes, f"gray: {name}, from {low:.3g} (white) to {high:.3g}")


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
        blurred = _blurred(counts.reshape(COUNT_CELLS, COUNT_CELLS))
        full = np.unravel_index(blurred.argmax(), blurred.shape)
        near = (np.abs(cells[rows] - full) <= 2).all(axis=1)
        centers[code] = Y[rows[near]].mean(axis=0)
    return centers


def _blurred(counts: np.ndarray, steps: int = 2) -> np.ndarray:
    """Repeated means over three cells along each axis."""
    blurred = counts
    for _ in range(steps):
        padded = np.pad(blurred, 1)
        padded = (padded[:-2] + padded[1:-1] + padded[2:]) / 3
        blurred = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3
    return blurred * (counts > 0)


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


# A map of one dimension: a strip of points, a line per category, and a histogram above it.


HISTOGRAM = 1.6  # inches


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
    open_frame(above, "", "share")
    return [axes, above]


def _lines_height(coloring: Coloring) -> float:
    """Height in inches of a strip, by the number of its lines."""
    lines = len(coloring.present()) if isinstance(coloring, Categories) else 2
    return max(1.6, 0.9 + 0.4 * lines)


class Captions(NamedTuple):
    """What is written around a map: its title, what its labels are, one name per axis."""

    title: str | None
    label_name: str | None
    axis_names: Sequence[str] | None


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
        Write the names of the categories into the map, where each is densest, not next to it.
    density : bool, optional
        Shade by density, or draw all points one by one. None shades more than 100 000 points.
    names : sequence of str, optional
        One per row, written next to the points of a map of two dimensions; for some dozen rows.
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
    given = check_table(Y, "the map")
    unit = drawable_unit(given)
    Y = given / unit
    coloring = encode_labels(labels, len(Y), center)
    captions = Captions(title, label_name, axis_names)
    figure = draw_map(Y, coloring, captions, center_labels=center_labels, density=density)
    if background is not None and Y.shape[1] == 2:
        draw_background(figure.axes[0], lambda places: background(places * unit), background_name)
    if names is not None:
        write_row_names(figure.axes[0], names, Y)
    return figure


def write_row_names(axes: Axes, names: Sequence[str], Y: np.ndarray) -> None:
    """Write the name of each row next to its point; only maps of two dimensions have room."""
    names = one_each(names, [""] * len(Y), "names", "rows of the map")
    if Y.shape[1] == 2:
        written = [one_line(name, NAME_LENGTH) for name in names]
        write_names(axes, written, Y, size=8.0, beside=POINT)


def draw_map(
    Y: np.ndarray,
    coloring: Coloring,
    captions: Captions,
    *,
    center_labels: bool = False,
    density: bool | None = None,
) -> Figure:
    """:func:`scatter_map` of checked coordinates and encoded labels."""
    dimensions = Y.shape[1]
    title, label_name, axis_names = captions
    names = axis_labels(axis_names, dimensions)
    views = {1: [(0, 0)], 2: [(0, 1)]}.get(dimensions, [(0, 1), (0, 2), (1, 2)])
    named_inside = isinstance(coloring, Categories) and (center_labels or dimensions == 1)
    beside, legend_height = legend_size(coloring, label_name)
    if isinstance(coloring, Categories) and named_inside:
        beside, legend_height = 1.3 if min(coloring.present()) < 0 else 0.3, 0.0
    height = HISTOGRAM + _lines_height(coloring) if dimensions == 1 else PANEL
    figure = new_figure(len(views) * PANEL + beside, max(height, legend_height), title)
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
    return one_each(axis_names, [f"axis {i + 1}" for i in range(n)], "axis_names", "axes")


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

    Of more than 100 000 points a sample of 100 000 is drawn, and the picture states it.

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
    coloring = encode_labels(labels, len(Y), center)
    names = axis_labels(axis_names, Y.shape[1])
    figure = figure_beside_legend(coloring, label_name, title, SIZE, SIZE)
    axes: Any = figure.add_subplot(projection="3d", elev=elevation, azim=azimuth)
    drawn = sample_rows(len(Y), DENSE)
    _frame(axes, Y[:, :3], names)
    style = point_style(drawn.size, SIZE)
    # With depth shading, the far ones of many points would not be visible at all.
    style |= {"alpha": max(style["alpha"], 0.4), "depthshade": drawn.size <= 20_000}
    scatter_in_random_order(axes, Y[drawn, :3].T, of_rows(coloring, drawn), style)
    if drawn.size < len(Y):
        note(axes, f"{drawn.size:,} of {len(Y):,} points")
    add_legend(figure, [axes], coloring, label_name)
    return figure


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


# A map on a torus: one period in a frame, and copies of its margins beyond the edges.


FADED = 0.3  # opacity of a copy relative to its point


def tiled_map(
    Y: np.ndarray,
    sides: Sequence[float] | np.ndarray,
    labels: Sequence[Any] | np.ndarray | None = None,
    *,
    margin: float = 0.25,
    title: str | None = None,
    label_name: str | None = None,
    axis_names: Sequence[str] | None = None,
    center: float | None = None,
    names: Sequence[str] | None = None,
) -> Figure:
    """Draw a map that is a torus, as :class:`~lowland.RelationalPerspectiveMap` makes it.

    The frame is one period: its left edge meets its right, and its bottom the top. Beyond the
    frame there are faded copies of the points at the opposite edge.

    Parameters
    ----------
    Y : array of shape (n_rows, 2)
        Coordinates; those beyond a period are moved into it.
    sides : array of shape (2,)
        Width and height of a period, such as ``sides_`` of the fitted method.
    labels : array of shape (n_rows,), optional
        Categories or numbers, as for :func:`scatter_map`.
    margin : float, default=0.25
        Width of the copied margins, as a share of the period. 1 gives 3 x 3 tiles.
    title : str, optional
        Written above the picture.
    label_name : str, optional
        What the labels are, for the legend.
    axis_names : sequence of str, optional
        One per component.
    center : float, optional
        For numbers: a special value, such as 0, where two palettes meet.
    names : sequence of str, optional
        One per row, written next to the points; for some dozen rows.

    Returns
    -------
    matplotlib.figure.Figure
        With an Agg canvas; pyplot is not involved.

    Examples
    --------
    >>> import numpy as np
    >>> figure = tiled_map(np.random.default_rng(0).random((50, 2)), (1.0, 1.0))
    >>> len(figure.axes)
    1
    """
    Y, sides = check_table(Y, "the map"), check_vector(sides, "sides")
    if Y.shape[1] != 2 or sides.size != 2:
        found = f"the map has {Y.shape[1]} and sides {sides.size}"
        raise DataError(f"a tiled map has 2 dimensions, but {found}.")
    if not (sides > 0).all():
        raise DataError(f"sides are {sides.tolist()}, but must be greater than 0.")
    if not 0 <= margin <= 1:
        raise ParameterError(f"margin={margin!r} is not allowed; expected a number in [0, 1].")
    coloring = encode_labels(labels, len(Y), center)
    figure = figure_beside_legend(coloring, label_name, title)
    axes = figure.subplots()
    low, high = -margin * sides, (1 + margin) * sides
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_color("#d0d0d0")
    Y = np.mod(Y, sides)
    style = point_style(len(Y), PANEL / (1 + 2 * margin))
    places, rows = _copies(Y, sides, margin)
    if rows.size:
        faded = {**style, "alpha": FADED * style["alpha"]}
        scatter_in_random_order(axes, places.T, of_rows(coloring, rows), faded)
    scatter_in_random_order(axes, Y.T, coloring, style)
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]) * sides
    axes.plot(*corners.T, color=INK, linewidth=0.8)
    name_axes(axes, *axis_labels(axis_names, 2))
    add_legend(figure, [axes], coloring, label_name)
    if names is not None:
        write_row_names(axes, names, Y)
    return figure


def _copies(Y: np.ndarray, sides: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Copies of the points that lie in the margins, and the rows that they are copies of."""
    shifts = [shift for shift in itertools.product((-1, 0, 1), repeat=2) if any(shift)]
    moved = np.concatenate([Y + np.array(shift) * sides for shift in shifts])
    rows = np.tile(np.arange(len(Y)), len(shifts))
    inside = ((moved >= -margin * sides) & (moved <= (1 + margin) * sides)).all(axis=1)
    return moved[inside], rows[inside]
