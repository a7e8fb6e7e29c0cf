"""All pairs of the first axes of a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import ParameterError
from lowland.plot._distribution import draw_distribution
from lowland.plot._figure import check_map, name_axes, new_figure, write_title
from lowland.plot._legend import add_legend, legend_size
from lowland.plot._points import draw_points, frame
from lowland.plot.colors import encode_labels
from lowland.plot.maps import axis_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TILE = 2.0  # inches


def pairs_plot(
    Y: np.ndarray,
    labels: Sequence[Any] | np.ndarray | None = None,
    *,
    n_axes: int = 5,
    title: str | None = None,
    label_name: str | None = None,
    axis_names: Sequence[str] | None = None,
    density: bool | None = None,
) -> Figure:
    """Draw every pair of the first axes of a map, such as those of PCA or LDA.

    Below the diagonal the pairs, on it the distribution along each axis, one line per category.
    Every axis fills its panel, so that scales differ.

    Parameters
    ----------
    Y : array of shape (n_rows, n_components)
        Coordinates.
    labels, title, label_name, axis_names, density
        See :func:`scatter_map`.
    n_axes : int, default=5
        At most so many axes.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> data = iris()
    >>> figure = pairs_plot(data.X, data.labels, axis_names=data.feature_names)
    >>> sum(axes.get_visible() for axes in figure.axes)
    10
    """
    Y = check_map(Y)
    if n_axes < 1:
        raise ParameterError(f"n_axes={n_axes} must be at least 1.")
    names = axis_labels(axis_names, Y.shape[1])[:n_axes]
    Y = Y[:, :n_axes]
    coloring = None if labels is None else encode_labels(labels, len(Y))
    m = Y.shape[1]
    beside, height = legend_size(coloring, label_name)
    figure = new_figure(TILE * m + beside + 0.2, max(TILE * m, height))
    grid = figure.subplots(m, m, squeeze=False)
    for row in range(m):
        for column in range(m):
            axes = grid[row, column]
            if column > row:
                axes.set_visible(False)
            elif column == row:
                frame(axes, Y[:, [row, row]], equal=False)
                draw_distribution(axes, Y[:, row], coloring)
            else:
                both = Y[:, [column, row]]
                frame(axes, both, equal=False)
                draw_points(axes, both, coloring, TILE, density=density, remark=False)
            name_axes(
                axes, names[column] if row == m - 1 else "", names[row] if column == 0 else ""
            )
    bars = [grid[row, column] for row in range(m) for column in range(m)]
    add_legend(figure, bars, coloring, label_name)
    write_title(figure, title)
    return figure
