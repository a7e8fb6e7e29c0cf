"""Pictures of a self-organizing map on its grid: one cell per unit (Kohonen 1982, Ultsch 1990)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland.plot._figure import PANEL, check_vector, new_figure, note, write_title
from lowland.plot._legend import add_legend, legend_size
from lowland.plot.colors import MISSING, Categories, Coloring, Continuum, continuum, encode_labels
from lowland.plot.grids._cells import (
    Cells,
    cells_at,
    draw_cells,
    frame_cells,
    text_size,
    value_colors,
    write_in,
)
from lowland.plot.palettes import OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DISTANCES = "viridis_r"  # dark where the distance is large, like a ridge on a relief map
FILLING = OKABE_ITO[0]
PALE_FILLING = "#9fd0f2"  # light enough for black numbers
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
    values = _values(values, "values", len(cells.centers))
    coloring = continuum(values, color_map=DISTANCES)
    figure, axes, _ = _panel(cells, coloring)
    draw_cells(axes, cells, _colors(coloring))
    add_legend(figure, [axes], coloring, "")
    if isinstance(coloring, Continuum):
        figure.axes[-1].set_ylabel("mean distance to neighbors\n(dark: far apart)", fontsize=9)
    write_title(figure, title)
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
    figure, axes, inches = _panel(cells, None)
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
    write_title(figure, title)
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
    figure, axes, inches = _panel(cells, coloring, label_name)
    colors = _mixed_with_white(_colors(coloring), pale)
    draw_cells(axes, cells, colors, outlined=True)
    if isinstance(coloring, Categories):
        codes = coloring.codes.tolist()
        written = [coloring.name(code) if code >= 0 else "" for code in codes]
        write_in(axes, cells, written, text_size(cells, written, inches), colors)
        add_legend(figure, [axes], coloring, label_name, _without_missing(coloring))
    else:
        add_legend(figure, [axes], coloring, label_name)
    if (pale < 1).any():
        note(axes, "paler cells: fewer rows of the unit have this label")
    write_title(figure, title)
    return figure


# --- shared parts ---------------------------------------------------------------------------------


def _panel(
    cells: Cells, coloring: Coloring, label_name: str | None = None
) -> tuple[Figure, Axes, tuple[float, float]]:
    """A figure with room for the cells and a legend, its axes, and their size in inches."""
    inches = cells.panel(PANEL)
    beside, legend_height = legend_size(coloring, label_name)
    least = 3.0 if isinstance(coloring, Continuum) else 0.0  # for the name of the color bar
    figure = new_figure(max(inches[0], 2.5) + beside, max(inches[1] + 0.8, legend_height, least))
    axes = figure.subplots()
    frame_cells(axes, cells, inches)
    return figure, axes, inches


def _values(values: Any, name: str, n: int) -> np.ndarray:
    """One number per unit; infinity is missing."""
    values = check_vector(values, name, n, may_be_missing=True)
    return np.where(np.isfinite(values), values, np.nan)


def _colors(coloring: Coloring) -> np.ndarray:
    """One color per unit; blank where it has no label."""
    from matplotlib.colors import to_rgba_array

    if isinstance(coloring, Continuum):
        return value_colors(coloring)
    assert coloring is not None
    return to_rgba_array(["#ffffff", *coloring.palette()[1:]])[coloring.codes + 2]


def _mixed_with_white(colors: np.ndarray, shares: np.ndarray) -> np.ndarray:
    return 1.0 - (1.0 - colors) * shares[:, None]


def _unit_labels(labels: Any, classes: Any, n: int) -> Categories | Continuum:
    listed = list(labels)
    if classes is None:
        return encode_labels(_objects(listed), n)
    known = list(classes)
    coloring = encode_labels(_objects([*listed, *known]), n + len(known))
    if isinstance(coloring, Continuum):
        return Continuum(coloring.values[:n], coloring.low, coloring.high, coloring.color_map)
    return Categories(coloring.codes[:n], coloring.names, coloring.n_others)


def _objects(values: list[Any]) -> np.ndarray:
    """Values as they are; a plain array would turn None beside text into text."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _without_missing(coloring: Categories) -> list[int]:
    return [code for code in coloring.present() if code != MISSING]
