"""Pictures of a self-organizing map and of other grids: cells, component planes, U-matrix, hits."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError, listing, unknown_name
from lowland.plot._figure import check_table, check_vector, new_figure, note, one_each, one_line
from lowland.plot._legend import add_legend, figure_beside_legend
from lowland.plot._style import GREY, INK, OKABE_ITO, PANEL, SEQUENTIAL, TEXT
from lowland.plot.colors import (
    MISSING,
    Categories,
    Coloring,
    Continuum,
    continuum,
    encode_labels,
    of_rows,
    row_colors,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The units of a grid as cells: hexagons or squares that touch.


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
        found = f"places have {places.shape[1]}"
        raise DataError(f"the pictures of a grid have 2 dimensions, but {found}.")
    if places.shape[1] == 1:
        places = np.hstack([places, np.zeros_like(places)])
    step = _step(places)
    in_a_row = bool((places[:, 1] == places[0, 1]).all())  # then hexagons are no better
    if kind == "hexagon" and not in_a_row:
        # With a corner above, as the neighbors lie left and right.
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
    margin = 0.01 * (high - low)
    (left, bottom), (right, top) = low - margin, high + margin
    axes.set(xlim=(left, right), ylim=(bottom, top))
    if np.isclose((right - left) / (top - bottom), inches[0] / inches[1]):
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


# Component planes: each column of a codebook as a small picture on the grid.


MOST_PLANES = 16
PLANE = 2.0  # inches of the longer side of a small picture
NAMED = 8  # columns that a remark names
MOST_POINTS = 500  # rows that are drawn over a small picture


def component_planes(
    places: np.ndarray,
    codebook: np.ndarray,
    names: Sequence[str] | None = None,
    kind: str = "hexagon",
    *,
    most: int = MOST_PLANES,
    variation: np.ndarray | None = None,
    rows: np.ndarray | None = None,
    title: str | None = None,
) -> Figure:
    """Draw one small picture per column: its value in each unit.

    Columns whose pictures look alike vary together. Each picture has its own scale, from the
    lowest to the highest value in any unit, which is written above it.

    Parameters
    ----------
    places : array of shape (n_units, 2)
        Places of the units on the grid.
    codebook : array of shape (n_units, n_columns)
        Values of the units, as ``codebook_`` of a :class:`lowland.SOM`. NaN is grey.
    names : sequence of str, optional
        One per column.
    kind : {"hexagon", "rectangle"}, default="hexagon"
        Kind of grid.
    most : int, default=16
        With more columns than this, those that vary most are drawn, and a remark names others.
    variation : array of shape (n_columns,), optional
        How much each column varies, if their units differ; the deviation over units by default.
    rows : array of shape (n_rows, 2), optional
        Places of the rows, drawn as points over the cells; of many rows, a sample.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> places = np.indices((4, 3)).reshape(2, -1).T
    >>> figure = component_planes(places, places * [1.0, 2.0], ["length", "width"], "rectangle")
    >>> [axes.get_title().split()[0] for axes in figure.axes[:2]]
    ['length', 'width']
    """
    from matplotlib.cm import ScalarMappable

    cells = cells_at(places, kind)
    values = check_table(codebook, "codebook", may_be_missing=True)
    if len(values) != len(cells.centers):
        n = len(cells.centers)
        raise DataError(f"codebook has shape {values.shape}, but there are {n} places of units.")
    numbered = [f"column {i}" for i in range(values.shape[1])]
    names = one_each(names, numbered, "names", "columns of the codebook")
    if most < 1:
        raise ParameterError(f"most={most!r} is not allowed; expected at least 1.")
    rows = None if rows is None else _points(rows, np.shape(places)[1], cells.step[1])
    shown, left_out = _most_varying(values, variation, most)
    width, height = cells.panel(PLANE)
    # Together about one and a half times as wide as high.
    across = round(np.sqrt(1.5 * len(shown) * (height + 0.45) / width))
    n_rows = -(-len(shown) // min(len(shown), max(1, across), 6))
    n_columns = -(-len(shown) // n_rows)
    width = max(width, 1.7)  # for the name
    inches = [n_columns * (width + 0.1) + 0.9, n_rows * (height + 0.45) + 0.2]
    inches = np.maximum(inches, [4.0, 2.0] if title else 0.0)  # so that the title has room
    figure = new_figure(*inches, title)
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes, column in zip(panels, shown, strict=False):
        _draw_plane(axes, cells, values[:, column], names[column])
        if rows is not None:
            _draw_rows(axes, rows)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    scale = ScalarMappable(cmap=SEQUENTIAL)
    shrunk = min(1.0, 3.0 / (n_rows * height))
    bar = figure.colorbar(scale, ax=list(panels), shrink=shrunk, aspect=25, ticks=[0, 1])
    bar.ax.set_yticklabels(["lowest", "highest"], fontsize=8)
    bar.outline.set_visible(False)
    if left_out:
        named = listing([one_line(names[column], 24) for column in left_out], NAMED, quote=False)
        text = f"Not shown, because they vary less: {named}"
        lines = textwrap.wrap(text, int(figure.get_size_inches()[0] * 16))
        figure.supxlabel("\n".join(lines), fontsize=7, color=INK, **TEXT)
    return figure


def _most_varying(values: np.ndarray, variation: Any, most: int) -> tuple[list[int], list[int]]:
    """Columns to draw, and those left out, the most varying first."""
    p = values.shape[1]
    if variation is not None:
        variation = check_vector(variation, "variation", p, may_be_missing=True)
    if p <= most:
        return list(range(p)), []
    if variation is None:
        scale = np.nanmax(np.abs(values), initial=0.0) or 1.0  # squares must not overflow
        centered = values / scale
        known = np.maximum((~np.isnan(values)).sum(axis=0), 1)
        centered = centered - np.nansum(centered, axis=0) / known
        variation = np.sqrt(np.nansum(centered**2, axis=0) / known)
    order = np.argsort(-np.nan_to_num(variation), kind="stable").tolist()
    return order[:most], order[most:]


def _draw_plane(axes: Axes, cells: Cells, values: np.ndarray, name: str) -> None:
    frame_cells(axes, cells, cells.panel(PLANE))
    axes.set_title(one_line(name, 24), fontsize=9, pad=11, **TEXT)
    finite = values[np.isfinite(values)]
    if not finite.size:
        draw_cells(axes, cells, GREY)
        return
    limits = float(finite.min()), float(finite.max())
    coloring = continuum(values, limits=limits)
    draw_cells(axes, cells, row_colors(coloring))
    place = {"xy": (0.5, 1.0), "xytext": (0, 2), "textcoords": "offset points", "ha": "center"}
    axes.annotate(_range(*limits), xycoords="axes fraction", fontsize=7, color=INK, **place, **TEXT)


def _points(rows: Any, n_axes: int, height: float) -> np.ndarray:
    """Some of the rows in two dimensions; those on a line are spread over the height of a cell."""
    rows, rng = check_table(rows, "rows"), np.random.default_rng(0)
    if rows.shape[1] != n_axes:
        raise DataError(f"rows have {rows.shape[1]} coordinates, but places have {n_axes}.")
    if len(rows) > MOST_POINTS:
        rows = rows[rng.choice(len(rows), MOST_POINTS, replace=False)]
    if n_axes > 1:
        return rows
    return np.hstack([rows, height * rng.uniform(-0.4, 0.4, (len(rows), 1))])


def _draw_rows(axes: Axes, rows: np.ndarray) -> None:
    """Points with a light edge, which are visible on dark and on light cells."""
    limits = {"xlim": axes.get_xlim(), "ylim": axes.get_ylim()}
    size = float(np.clip(900.0 / len(rows), 0.6, 6.0))
    look = {"c": "black", "edgecolors": "white", "linewidths": 0.25, "alpha": 0.6}
    axes.scatter(*rows.T, s=size, rasterized=True, **look)
    axes.set(**limits)


def _range(low: float, high: float) -> str:
    """From the lowest to the highest value, with three digits of the larger one."""
    if low == high:
        return f"{low:.3g}"
    larger = max(abs(low), abs(high))
    if not 1e-3 <= larger < 1e6:
        return f"{low:.2e} to {high:.2e}"
    decimals = max(0, 2 - int(np.floor(np.log10(larger))))
    ends = (round(end, decimals) + 0.0 for end in (low, high))  # a negative zero loses its sign
    return " to ".join(f"{end:.{decimals}f}" for end in ends)


# Pictures of a self-organizing map on its grid: one cell per unit (Kohonen 1982, Ultsch 1990).


DISTANCES = "viridis_r"  # dark where the distance is large, like a ridge on a relief map
FILLING = OKABE_ITO[0]
PALE_FILLING = "#9fd0f2"  # light enough for black numbers
BLANK = "#ffffff"  # a unit without a label
PALEST = 0.25  # share of color in a cell whose rows hardly agree


def u_matrix(
    places: np.ndarray, values: np.ndarray, kind: str = "hexagon", *, title: str | None = None
) -> Figure:
    """Draw the U-matrix: each cell has the mean distance of its unit to the neighboring units.

    Dark cells form ridges between groups of rows; light cells form valleys of similar rows.

    Parameters
    ----------
    places : array of shape (n_units, 2)
        Places of the units on the grid, as ``unit_places_`` of a :class:`lowland.SOM`.
    values : array of shape (n_units,)
        Mean distance of each unit to its neighbors, as ``u_matrix_``. NaN is grey.
    kind : {"hexagon", "rectangle"}, default="hexagon"
        Kind of grid: the cells are hexagons or squares.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure
        With an Agg canvas; pyplot is not involved.

    References
    ----------
    Ultsch & Siemon (1990), Kohonen's self-organizing feature maps for exploratory data analysis,
    International Neural Network Conference.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.indices((4, 3)).reshape(2, -1).T
    >>> figure = u_matrix(places, np.arange(12.0), "rectangle")
    >>> len(figure.axes[0].collections[0].get_paths())
    12
    """
    cells = cells_at(places, kind)
    values = check_vector(values, "values", len(cells.centers), may_be_missing=True)
    values = np.where(np.isfinite(values), values, np.nan)
    coloring = continuum(values, color_map=DISTANCES)
    figure, axes, _ = _panel(cells, coloring, title)
    draw_cells(axes, cells, row_colors(coloring, BLANK))
    add_legend(figure, [axes], coloring, "")
    if isinstance(coloring, Continuum):
        figure.axes[-1].set_ylabel("mean distance to neighbors\n(dark: far apart)", fontsize=9)
    return figure


def hits(
    places: np.ndarray, counts: np.ndarray, kind: str = "hexagon", *, title: str | None = None
) -> Figure:
    """Draw how many rows each unit has: the filled area of a cell is proportional to it.

    Parameters
    ----------
    places : array of shape (n_units, 2)
        Places of the units on the grid.
    counts : array of shape (n_units,)
        Rows of each unit, as ``hits_`` of a :class:`lowland.SOM`. NaN counts as 0.
    kind : {"hexagon", "rectangle"}, default="hexagon"
        Kind of grid.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> places = np.indices((4, 3)).reshape(2, -1).T
    >>> figure = hits(places, np.arange(12), "rectangle")
    >>> figure.axes[0].get_title(loc="right")
    'a full cell: 11 rows; 1 of 12 units is empty'
    """
    cells = cells_at(places, kind)
    counts = np.nan_to_num(check_vector(counts, "counts", len(cells.centers), may_be_missing=True))
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise DataError("counts hold a number below 0 or infinity.")
    figure, axes, inches = _panel(cells, None, title)
    largest = float(counts.max())
    draw_cells(axes, cells, outlined=True)
    written = [f"{count:g}" if count else "" for count in counts]
    size = text_size(cells, written, inches)
    sizes = np.sqrt(counts / largest if largest else counts)
    draw_cells(axes, cells, PALE_FILLING if size else FILLING, sizes=sizes)
    write_in(axes, cells, written, size)
    n_empty = int((counts == 0).sum())
    are = "is" if n_empty == 1 else "are"
    note(axes, f"a full cell: {largest:g} rows; {n_empty} of {counts.size} units {are} empty")
    return figure


def labeled_units(
    places: np.ndarray,
    labels: Sequence[Any] | np.ndarray,
    shares: np.ndarray | None = None,
    kind: str = "hexagon",
    *,
    classes: Sequence[Any] | np.ndarray | None = None,
    title: str | None = None,
    label_name: str | None = None,
) -> Figure:
    """Draw the label that most rows of each unit have.

    Parameters
    ----------
    places : array of shape (n_units, 2)
        Places of the units on the grid.
    labels : array of shape (n_units,)
        The label of each unit; None or NaN for an empty unit, which stays blank.
    shares : array of shape (n_units,), optional
        Share of the rows of a unit that have its label; the lower, the paler is the cell.
    kind : {"hexagon", "rectangle"}, default="hexagon"
        Kind of grid.
    classes : sequence, optional
        All labels of the rows, so that the colors are those of a map of these rows.
    title : str, optional
        Written above the picture.
    label_name : str, optional
        What the labels are, for the legend.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> places = np.indices((2, 2)).reshape(2, -1).T
    >>> figure = labeled_units(places, ["a", "b", None, "a"], [1.0, 0.6, np.nan, 1.0], "rectangle")
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['a', 'b', 'a']
    """
    cells = cells_at(places, kind)
    coloring = _unit_labels(labels, classes, len(cells.centers))
    pale = np.ones(len(cells.centers))
    if shares is not None:
        shares = check_vector(shares, "shares", len(pale), may_be_missing=True)
        pale = PALEST + (1 - PALEST) * np.clip(np.nan_to_num(shares, nan=1.0), 0.0, 1.0)
    figure, axes, inches = _panel(cells, coloring, title, label_name)
    colors = 1.0 - (1.0 - row_colors(coloring, BLANK)) * pale[:, None]  # mixed with white
    draw_cells(axes, cells, colors, outlined=True)
    listed = None
    if isinstance(coloring, Categories):
        written = [coloring.name(code) if code >= 0 else "" for code in coloring.codes.tolist()]
        write_in(axes, cells, written, text_size(cells, written, inches), colors)
        listed = [code for code in coloring.present() if code != MISSING]
    add_legend(figure, [axes], coloring, label_name, listed)
    if (pale < 1).any():
        note(axes, "paler cells: fewer rows of the unit have this label")
    return figure


# --- shared parts ---------------------------------------------------------------------------------


def _panel(
    cells: Cells, coloring: Coloring, title: str | None, label_name: str | None = None
) -> tuple[Figure, Axes, tuple[float, float]]:
    """A figure with room for the cells and a legend, its axes, and their size in inches."""
    inches = cells.panel(PANEL)
    least = 3.0 if isinstance(coloring, Continuum) else 0.0  # for the name of the color bar
    size = max(inches[0], 2.5), max(inches[1] + 0.8, least)
    figure = figure_beside_legend(coloring, label_name, title, *size)
    axes = figure.subplots()
    frame_cells(axes, cells, inches)
    return figure, axes, inches


def _unit_labels(labels: Any, classes: Any, n: int) -> Coloring:
    """Colors of the units, which are those of a map of rows with all these classes."""
    listed = [*labels, *([] if classes is None else classes)]
    values = np.empty(len(listed), dtype=object)
    values[:] = listed  # a plain array would turn None beside text into text
    n_classes = 0 if classes is None else len(listed) - len(labels)
    return of_rows(encode_labels(values, n + n_classes), np.arange(n))
