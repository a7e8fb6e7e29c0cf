"""A map on a torus: one period in a frame, and copies of its margins beyond the edges."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland.plot._figure import (
    PANEL,
    check_table,
    check_vector,
    name_axes,
    new_figure,
    write_title,
)
from lowland.plot._legend import add_legend, legend_size
from lowland.plot._points import point_look, scatter_in_random_order
from lowland.plot.colors import encode_labels, of_rows
from lowland.plot.maps import axis_labels, write_row_names
from lowland.plot.palettes import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        One per row, written beside the points; for some dozen rows.

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
        raise DataError(
            f"a tiled map has 2 dimensions, but the map has {Y.shape[1]} and sides {sides.size}."
        )
    if not (sides > 0).all():
        raise DataError(f"sides are {sides.tolist()}, but a period is longer than 0.")
    if not 0 <= margin <= 1:
        raise ParameterError(f"margin={margin!r} is not allowed; expected a number in [0, 1].")
    coloring = None if labels is None else encode_labels(labels, len(Y), center)
    beside, legend_height = legend_size(coloring, label_name)
    figure = new_figure(PANEL + beside, max(PANEL, legend_height))
    axes = figure.subplots()
    axes.set_aspect("equal")
    axes.set(xticks=[], yticks=[])
    axes.set_xlim(-margin * sides[0], (1 + margin) * sides[0])
    axes.set_ylim(-margin * sides[1], (1 + margin) * sides[1])
    axes.spines[:].set_color("#d0d0d0")
    Y = np.mod(Y, sides)
    look = point_look(len(Y), PANEL / (1 + 2 * margin))
    places, rows = _copies(Y, sides, margin)
    if rows.size:
        faded = {**look, "alpha": FADED * look["alpha"]}
        scatter_in_random_order(axes, tuple(places.T), of_rows(coloring, rows), faded)
    scatter_in_random_order(axes, tuple(Y.T), coloring, look)
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]) * sides
    axes.plot(*corners.T, color=INK, linewidth=0.8)
    name_axes(axes, *axis_labels(axis_names, 2))
    write_title(figure, title)
    add_legend(figure, [axes], coloring, label_name)
    if names is not None:
        write_row_names(axes, names, Y)
    return figure


def _copies(Y: np.ndarray, sides: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Copies of the points that lie in the margins, and the rows that they are copies of."""
    places, rows = [np.empty((0, 2))], [np.empty(0, np.int64)]
    for shift in itertools.product((-1, 0, 1), repeat=2):
        if shift == (0, 0):
            continue
        moved = Y + np.array(shift) * sides
        inside = ((moved >= -margin * sides) & (moved <= (1 + margin) * sides)).all(axis=1)
        places.append(moved[inside])
        rows.append(np.flatnonzero(inside))
    return np.concatenate(places), np.concatenate(rows)
