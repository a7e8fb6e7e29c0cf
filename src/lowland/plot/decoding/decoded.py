"""Decoded places as images, each at its place over the map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland.plot._figure import check_table, name_axes, new_figure, note, write_title
from lowland.plot._legend import add_legend, legend_size
from lowland.plot._points import point_look, scatter_in_random_order
from lowland.plot.colors import Coloring, Continuum, encode_labels, of_rows
from lowland.plot.decoding._images import (
    check_images,
    check_shape,
    draw_image,
    image_limits,
)
from lowland.plot.grids._cells import value_colors
from lowland.plot.maps import axis_labels
from lowland.plot.palettes import DARK_GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONGEST, SHORTEST = 6.5, 1.0  # inches of the longer and at least of the shorter side
FILLED, FRAME = 0.8, 0.88  # widths of an image and of its frame, as shares of its cell
FAINT = 0.5  # opacity of a row relative to one of a map
MOST_POINTS = 20_000  # rows that are drawn behind the images


def decoded_images(
    Y: np.ndarray,
    places: np.ndarray,
    images: np.ndarray,
    image_shape: Sequence[int],
    labels: Sequence[Any] | np.ndarray | None = None,
    *,
    limits: tuple[float, float] | None = None,
    title: str | None = None,
    label_name: str | None = None,
    axis_names: Sequence[str] | None = None,
) -> Figure:
    """Draw what a method makes of places in its map: an image at each place.

    The rows of the map are faint points behind the images. The frame of an image has the color of
    the row nearest to its place. All images have one scale of brightness.

    Parameters
    ----------
    Y : array of shape (n_rows, 1 or 2)
        The map.
    places : array of shape (n_places, 1 or 2)
        A regular grid of places, with or without gaps.
    images : array of shape (n_places, n_pixels)
        What ``inverse_transform`` makes of the places. NaN is white.
    image_shape : (height, width) or (height, width, 3)
        Pixels are in rows, then columns, then colors.
    labels : array of shape (n_rows,), optional
        Categories or numbers, as for :func:`scatter_map`.
    limits : (float, float), optional
        Values that are black and white; by default the lowest and the highest of all images.
    title : str, optional
        Written above the picture.
    label_name : str, optional
        What the labels are, for the legend.
    axis_names : sequence of str, optional
        One per axis of the map.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland import PCA
    >>> from lowland.datasets import digits
    >>> from lowland.plot.decoding.places import grid_over
    >>> pca = PCA(2)
    >>> Y = pca.fit_transform(digits().X)
    >>> places, _ = grid_over(Y, 5)
    >>> figure = decoded_images(Y, places, pca.inverse_transform(places), (8, 8), digits().y)
    >>> len(figure.axes[0].images) == len(places)
    True
    """
    shape = check_shape(image_shape)
    images = check_images(images, "images", shape)
    stage = _Stage.of(Y, places, shape[0] / shape[1])
    if len(images) != len(stage.places):
        raise DataError(f"there are {len(stage.places)} places, but {len(images)} images.")
    coloring = None if labels is None else encode_labels(labels, len(stage.rows))
    beside, legend_height = legend_size(coloring, label_name)
    width, height = stage.inches()
    figure = new_figure(width + 0.4 + beside, max(height + 0.5 + 0.3 * bool(title), legend_height))
    axes = figure.subplots()
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color("#d0d0d0")
    low, high = stage.corners()
    _draw_rows(axes, stage.rows, coloring)
    limits = image_limits(images, limits)
    _draw_images(axes, stage, images, shape, limits, _nearest_colors(stage, coloring))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    given = check_table(Y, "the map").shape[1]
    names = axis_labels(axis_names, given)
    name_axes(axes, names[0], names[1] if given == 2 else "")
    outside = int((~((low <= stage.rows) & (stage.rows <= high)).all(axis=1)).sum())
    if outside:
        note(axes, f"{outside:,} of {len(stage.rows):,} rows lie outside of the picture")
    write_title(figure, title)
    add_legend(figure, [axes], coloring, label_name)
    return figure


class _Stage(NamedTuple):
    """Rows and places in the plane of the picture, and the width and height of an image.

    The images of a map of one dimension are in a row, and its rows are points below them.
    """

    rows: np.ndarray
    places: np.ndarray
    size: np.ndarray
    is_line: bool

    @classmethod
    def of(cls, Y: Any, places: Any, aspect: float) -> _Stage:
        rows, places = check_table(Y, "the map"), check_table(places, "places")
        if rows.shape[1] != places.shape[1] or rows.shape[1] > 2:
            raise DataError(
                "images are drawn over a map of 1 or 2 dimensions, but the map has "
                f"{rows.shape[1]} and the places have {places.shape[1]}."
            )
        reach = np.abs(places).max()
        if not 1e-9 < reach < 1e30 and reach > 0:  # units that matplotlib cannot draw
            rows, places = rows / reach, places / reach
        is_line = rows.shape[1] == 1
        if is_line:
            rows, places = (np.hstack([x, np.zeros_like(x)]) for x in (rows, places))
        across, upward = (_smallest_gap(axis) for axis in places.T)
        width = min(across, upward / aspect)
        size = np.array([width, width * aspect] if np.isfinite(width) else [1.0, aspect])
        if is_line:
            spread = np.random.default_rng(0).uniform(-0.2, 0.2, len(rows))
            rows[:, 1] = (spread - 0.85) * size[1]
        return cls(rows, places, size, is_line)

    def corners(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower left and upper right corner of the picture."""
        low, high = self.places.min(axis=0), self.places.max(axis=0)
        down = np.array([0.55, 1.15 if self.is_line else 0.55])
        return low - down * self.size, high + 0.55 * self.size

    def inches(self) -> tuple[float, float]:
        low, high = self.corners()
        width, height = np.maximum(LONGEST * (high - low) / (high - low).max(), SHORTEST)
        return float(width), float(height)


def _smallest_gap(values: np.ndarray) -> float:
    """The step of a regular grid along one axis; infinite if all places are equal there."""
    gaps = np.diff(np.unique(values))
    gaps = gaps[gaps > 1e-6 * (np.ptp(values) or 1.0)]  # rounded places of one column
    return float(gaps.min()) if gaps.size else np.inf


def _draw_rows(axes: Axes, rows: np.ndarray, coloring: Coloring) -> None:
    chosen = np.arange(len(rows))
    if len(rows) > MOST_POINTS:
        chosen = np.random.default_rng(0).choice(len(rows), MOST_POINTS, replace=False)
    look = point_look(len(chosen), LONGEST)
    faint = {**look, "alpha": FAINT * look["alpha"]}
    x, y = rows[chosen].T
    scatter_in_random_order(axes, (x, y), of_rows(coloring, chosen), faint)


def _draw_images(
    axes: Axes,
    stage: _Stage,
    images: np.ndarray,
    shape: tuple[int, ...],
    limits: tuple[float, float],
    colors: Any,
) -> None:
    from matplotlib.collections import PolyCollection

    half = FILLED * stage.size / 2
    square = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * half * FRAME / FILLED
    frames = PolyCollection(  # white between a frame and its image: both may be black
        list(stage.places[:, None, :] + square), facecolors="w", edgecolors=colors, linewidths=1.8
    )
    frames.set_in_layout(False)
    axes.add_collection(frames, autolim=False)
    for (x, y), pixels in zip(stage.places.tolist(), images, strict=True):
        box = (x - half[0], x + half[0], y - half[1], y + half[1])
        draw_image(axes, pixels, shape, box, limits)


def _nearest_colors(stage: _Stage, coloring: Coloring) -> Any:
    """The color of the row nearest to each place."""
    from matplotlib.colors import to_rgba_array
    from scipy.spatial import cKDTree

    if coloring is None:
        return DARK_GREY
    axes = 1 if stage.is_line else 2
    _, nearest = cKDTree(stage.rows[:, :axes]).query(stage.places[:, :axes])
    near = of_rows(coloring, nearest)
    if isinstance(near, Continuum):
        return value_colors(near)
    assert near is not None
    return to_rgba_array(near.palette())[near.codes + 2]
