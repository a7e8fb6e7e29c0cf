"""The map: one point per row, colored by a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland.plot._background import draw_background
from lowland.plot._centers import category_centers
from lowland.plot._figure import PANEL, check_map, clean, name_axes, new_figure, write_title
from lowland.plot._legend import add_legend, legend_size
from lowland.plot._placement import write_names
from lowland.plot._points import draw_points, frame
from lowland.plot._strip import draw_strip, strip_height
from lowland.plot.colors import Categories, Coloring, encode_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
        written = [clean(str(name), NAME_LENGTH) for name in names]
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
