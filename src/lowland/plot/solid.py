"""A map of three dimensions, seen from one side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError
from lowland.plot._figure import TEXT, check_map, clean, new_figure, note, write_title
from lowland.plot._legend import add_legend, legend_size
from lowland.plot._points import DENSE, point_look, scatter_in_random_order
from lowland.plot.colors import Categories, Coloring, Continuum, encode_labels
from lowland.plot.maps import axis_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        _look(drawn.size),
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


def _look(n: int) -> dict[str, Any]:
    look = point_look(n, SIZE)
    # With depth shading, the far ones of many points would not be visible at all.
    return {**look, "alpha": max(look["alpha"], 0.4), "depthshade": n <= 20_000}


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
        getattr(axes, f"set_{axis}label")(clean(names[k]), labelpad=-6, **TEXT)
        getattr(axes, f"{axis}axis").pane.set(facecolor="#f6f6f6", edgecolor="#d0d0d0")
    aspect = width / width.max()
    # matplotlib enlarges flat boxes until their names are outside of the picture.
    axes.set_box_aspect(aspect, zoom=1.1 * (float(np.linalg.norm(aspect)) / np.sqrt(3.0)) ** 0.7)
