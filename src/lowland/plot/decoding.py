"""The inverse of a method in pictures: rows decoded from places in the map, reconstructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError
from lowland.plot._figure import (
    check_table,
    drawable_unit,
    name_axes,
    new_figure,
    note,
    one_each,
    one_line,
    write,
)
from lowland.plot._legend import add_legend, figure_beside_legend
from lowland.plot._points import point_style, scatter_in_random_order
from lowland.plot._style import DARK_GREY
from lowland.plot.colors import Coloring, encode_labels, of_rows, row_colors
from lowland.plot.maps import axis_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Rows as images: checks, and many images in one frame.


# Behind an image: a pixel without a value has a color that no grey value resembles.
BEHIND: dict[str, Any] = {"facecolor": "#cfe3f5", "edgecolor": "#b0b0b0", "linewidth": 0.8}


def check_shape(image_shape: Sequence[int]) -> tuple[int, ...]:
    """Height and width, and 3 for colors."""
    shape = tuple(int(side) for side in image_shape)
    if len(shape) not in (2, 3) or min(shape) < 1 or (len(shape) == 3 and shape[2] != 3):
        raise ParameterError(f"image_shape={shape} must be (height, width) or (height, width, 3).")
    return shape


def check_images(values: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """One row of pixels per image, as float64; what is not finite is NaN."""
    values = check_table(values, name, may_be_missing=True)
    if values.shape[1] != np.prod(shape):
        found = f"{name} has {values.shape[1]} columns"
        raise DataError(f"image_shape={shape} has {np.prod(shape)} pixels, but {found}.")
    return values


def image_limits(images: np.ndarray, limits: tuple[float, float] | None) -> tuple[float, float]:
    """Black and white: as given, else the lowest and the highest value."""
    if limits is None:
        known = images[np.isfinite(images)]
        limits = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    low, high = limits
    return (low, high) if low < high else (low, low + 1.0)


def as_image(pixels: np.ndarray, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """Grey values as they are, where NaN is transparent; colors from 0 to 1, grey where missing."""
    image = pixels.reshape(shape)
    if len(shape) == 3:
        image = np.nan_to_num(image, nan=low / 2 + high / 2)
        image = np.clip((image - low) / (high - low), 0.0, 1.0)
    return image


def draw_image(
    axes: Axes,
    pixels: np.ndarray,
    shape: tuple[int, ...],
    box: tuple[float, float, float, float],
    limits: tuple[float, float],
) -> None:
    """Draw one image into a box (left, right, bottom, top) of axes that hold many."""
    low, high = limits
    image = as_image(pixels, shape, low, high)
    drawn = axes.imshow(image, cmap="gray", vmin=low, vmax=high, extent=box, zorder=2)
    drawn.set_in_layout(False)  # the layout of hundreds of images would take seconds


# Decoded places as images, each at its place over the map.


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
    """Draw the images that the inverse of a method gives for places in its map, each at its place.

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
    >>> from lowland.plot.decoding import grid_over
    >>> pca = PCA(2)
    >>> Y = pca.fit_transform(digits().X)
    >>> places, _ = grid_over(Y, 5)
    >>> figure = decoded_images(Y, places, pca.inverse_transform(places), (8, 8), digits().y)
    >>> len(figure.axes[0].images) == len(places)
    True
    """
    from matplotlib.collections import PolyCollection

    shape = check_shape(image_shape)
    images = check_images(images, "images", shape)
    stage = _Stage.of(Y, places, shape[0] / shape[1])
    if len(images) != len(stage.places):
        raise DataError(f"there are {len(stage.places)} places, but {len(images)} images.")
    coloring = encode_labels(labels, len(stage.rows))
    low, high = stage.corners()
    width, height = np.maximum(LONGEST * (high - low) / (high - low).max(), SHORTEST)
    height += 0.5 + 0.3 * bool(title)
    figure = figure_beside_legend(coloring, label_name, title, width + 0.4, height)
    axes = figure.subplots()
    axes.spines[:].set_color("#d0d0d0")
    _draw_rows(axes, stage.rows, coloring)
    limits = image_limits(images, limits)
    half = stage.size / 2
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * half * FRAME
    # White between a frame and its image: both may be black.
    look = {"facecolors": "w", "edgecolors": _nearest_colors(stage, coloring), "linewidths": 1.8}
    frames = PolyCollection(list(stage.places[:, None, :] + corners), **look)
    frames.set_in_layout(False)
    axes.add_collection(frames, autolim=False)
    half *= FILLED
    for (x, y), pixels in zip(stage.places.tolist(), images, strict=True):
        box = (x - half[0], x + half[0], y - half[1], y + half[1])
        draw_image(axes, pixels, shape, box, limits)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xticks=[], yticks=[])
    names = [*axis_labels(axis_names, 1 if stage.is_line else 2), ""]
    name_axes(axes, *names[:2])
    outside = int((~((low <= stage.rows) & (stage.rows <= high)).all(axis=1)).sum())
    if outside:
        note(axes, f"{outside:,} of {len(stage.rows):,} rows lie outside of the picture")
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
            found = f"the map has {rows.shape[1]} and the places have {places.shape[1]}"
            raise DataError(f"images are drawn over a map of 1 or 2 dimensions, but {found}.")
        unit = drawable_unit(places)
        rows, places = rows / unit, places / unit
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


def _smallest_gap(values: np.ndarray) -> float:
    """The step of a regular grid along one axis; infinite if all places are equal there."""
    gaps = np.diff(np.unique(values))
    gaps = gaps[gaps > 1e-6 * (np.ptp(values) or 1.0)]  # rounded places of one column
    return float(gaps.min()) if gaps.size else np.inf


def _draw_rows(axes: Axes, rows: np.ndarray, coloring: Coloring) -> None:
    chosen = np.arange(len(rows))
    if len(rows) > MOST_POINTS:
        chosen = np.random.default_rng(0).choice(len(rows), MOST_POINTS, replace=False)
    style = point_style(len(chosen), LONGEST)
    faint = {**style, "alpha": FAINT * style["alpha"]}
    scatter_in_random_order(axes, rows[chosen].T, of_rows(coloring, chosen), faint)


def _nearest_colors(stage: _Stage, coloring: Coloring) -> Any:
    """The color of the row nearest to each place."""
    from scipy.spatial import cKDTree

    if coloring is None:
        return DARK_GREY
    axes = 1 if stage.is_line else 2
    _, nearest = cKDTree(stage.rows[:, :axes]).query(stage.places[:, :axes])
    return row_colors(of_rows(coloring, nearest))


# Images above, and below them what a method rebuilds of their places in the map.


TILE = 0.85  # inches, as all sizes here
BETWEEN, ABOVE, BELOW = 0.06, 0.2, 0.22  # images, and for their texts
PER_BAND = 10  # images side by side
LONGEST_NAME = 14


def reconstruction_pairs(
    originals: np.ndarray,
    rebuilt: np.ndarray,
    image_shape: Sequence[int],
    *,
    names: Sequence[str] | None = None,
    notes: Sequence[str] | None = None,
    per_band: int = PER_BAND,
    title: str | None = None,
) -> Figure:
    """Draw images, and below each of them its reconstruction.

    Both have the brightness of the original: its lowest value is black, its highest is white.

    Parameters
    ----------
    originals : array of shape (n_images, n_pixels)
        The images, some dozen. NaN is a pixel without a value, and pale blue.
    rebuilt : array of shape (n_images, n_pixels)
        Their reconstructions, such as ``inverse_transform(transform(originals))``.
    image_shape : (height, width) or (height, width, 3)
        Pixels are in rows, then columns, then colors.
    names : sequence of str, optional
        One per image, written above it.
    notes : sequence of str, optional
        One per image, such as its error, written below its reconstruction.
    per_band : int, default=10
        Images side by side; more of them continue in a band below.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland import PCA
    >>> from lowland.datasets import digits
    >>> X = digits().X
    >>> pca = PCA(2).fit(X)
    >>> rebuilt = pca.inverse_transform(pca.transform(X[:3]))
    >>> figure = reconstruction_pairs(X[:3], rebuilt, (8, 8), names=["0", "1", "2"])
    >>> len(figure.axes[0].images)
    6
    """
    from matplotlib.patches import Rectangle

    shape = check_shape(image_shape)
    originals = check_images(originals, "originals", shape)
    rebuilt = check_images(rebuilt, "rebuilt", shape)
    n = len(originals)
    if len(rebuilt) != n:
        raise DataError(f"there are {n} originals, but {len(rebuilt)} reconstructions.")
    above, below = (
        [one_line(text, LONGEST_NAME) for text in one_each(given, [""] * n, what, "images")]
        for given, what in ((names, "names"), (notes, "notes"))
    )
    columns, tall = max(1, min(n, per_band)), TILE * min(shape[0] / shape[1], 4.0)
    band = 2 * tall + BETWEEN + ABOVE + BELOW  # height of a pair with its texts
    width, height = max(columns * (TILE + BETWEEN), 2.5), -(-n // columns) * band
    figure = new_figure(width + 0.45, height + 0.1 + 0.35 * bool(title), title)
    axes = figure.subplots()
    axes.set_facecolor("none")
    for i, (original, copy) in enumerate(zip(originals, rebuilt, strict=True)):
        limits = image_limits(original, None)
        left, top = i % columns * (TILE + BETWEEN), -(i // columns) * band - ABOVE
        tops = {"original": top, "rebuilt": top - tall - BETWEEN}
        for pixels, upper in zip((original, copy), tops.values(), strict=True):
            lower = upper - tall
            axes.add_patch(Rectangle((left, lower), TILE, tall, **BEHIND))
            draw_image(axes, pixels, shape, (left, left + TILE, lower, upper), limits)
        middle, foot = left + TILE / 2, top - 2 * tall - BETWEEN
        write(axes, middle, top + 0.04, above[i], 8, va="bottom")
        write(axes, middle, foot - 0.03, below[i], 7, va="top")
        if i % columns == 0:
            for word, y in tops.items():
                write(axes, -0.06, y - tall / 2, word, 8, ha="right", rotation=90)
    axes.set(xlim=(-0.25, width), ylim=(-height, 0), aspect="equal")
    axes.set_axis_off()
    return figure


# A regular grid of places over a map.


REACH = 1.5  # distance to the nearest row, in units of the mean distance of evenly spread rows
OUTSIDE = 0.01  # share of the rows at each end of an axis that do not set the grid
MARGIN = 0.1  # of the box around the other rows, as a share of its width


class Grid(NamedTuple):
    """Places (n_places, 1 or 2) near rows, and the width and height of a cell around each."""

    places: np.ndarray
    step: tuple[float, float]


def grid_over(Y: np.ndarray, n_along: int, *, aspect: float = 1.0) -> Grid:
    """Places of a regular grid over a map, without those that are far from all rows.

    There are ``n_along`` places along the longer side of the map and in proportion along the other
    side. The grid covers the central 98 % of the rows along each axis, and what is near to them. A
    place is near rows if a row is in a cell beside its own, or nearer than rows usually are to each
    other.

    Parameters
    ----------
    Y : array of shape (n_rows, 1 or 2)
        Coordinates of the rows.
    n_along : int
        Places along the longer side.
    aspect : float, default=1.0
        Height of a cell divided by its width.

    Returns
    -------
    Grid

    Examples
    --------
    >>> import numpy as np
    >>> corners = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]])
    >>> grid_over(np.repeat(corners, 50, axis=0), 8).places.tolist()
    [[0.25, 0.25], [3.75, 0.25], [0.25, 1.75], [3.75, 1.75]]
    """
    from scipy.spatial import cKDTree

    Y = check_table(Y, "the map")
    low, high = _central_box(Y)
    middle, width = low / 2 + high / 2, high - low
    proportions = np.array([1.0, aspect])[: Y.shape[1]]
    unit = float((width / proportions).max()) / n_along
    step = proportions * (unit if unit > 0 else 1.0)
    numbers = np.clip(np.round(width / step).astype(int), 1, n_along)
    axes = [(np.arange(k) - (k - 1) / 2) * s for k, s in zip(numbers, step, strict=True)]
    # the first axis runs fastest, from the lower left corner
    offsets = np.stack(np.meshgrid(*axes[::-1], indexing="ij")[::-1], axis=-1)
    places = middle + offsets.reshape(-1, Y.shape[1])
    usual = float(np.prod(np.maximum(width / step, 1.0)) / len(Y)) ** (1 / Y.shape[1])
    apart, _ = cKDTree(Y / step).query(places / step)  # in cells
    near = apart <= max(1.0, REACH * usual)
    return Grid(places[near], (float(step[0]), float(step[-1])))


def _central_box(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The central part of each axis and a margin, but not more than the range."""
    low, bottom, top, high = np.quantile(Y, [0.0, OUTSIDE, 1 - OUTSIDE, 1.0], axis=0)
    margin = MARGIN * (top - bottom)
    return np.maximum(low, bottom - margin), np.minimum(high, top + margin)
