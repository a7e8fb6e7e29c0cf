"""Eigen-images (Sirovich & Kirby 1987), reconstructions, recognition; maps on a torus as tiles."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError, ParameterError
from lowland.neighbors import knn_query
from lowland.plot._figure import (
    INK,
    PANEL,
    TEXT,
    check_table,
    check_vector,
    name_axes,
    new_figure,
    one_line,
    write_title,
)
from lowland.plot._legend import add_legend, legend_size
from lowland.plot._points import point_style, scatter_in_random_order
from lowland.plot.colors import encode_labels, of_rows
from lowland.plot.decoding import check_shape
from lowland.plot.maps import axis_labels, write_row_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TILE = 1.3  # inches
DIVERGING = "RdBu_r"  # white in the middle: pixels with weight 0 are not visible


def eigen_images(
    mean: np.ndarray,
    components: np.ndarray,
    image_shape: Sequence[int],
    *,
    n_images: int = 15,
    shares: Sequence[float] | np.ndarray | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the mean image and the first components as images.

    Red pixels grow with the score, blue ones fall, white ones do not take part; each component has
    a scale of its own, symmetric around zero.

    Parameters
    ----------
    mean : array of shape (n_pixels,)
        As ``PCA.mean_``.
    components : array of shape (n_components, n_pixels)
        As ``PCA.components_``.
    image_shape : (height, width) or (height, width, 3)
        Pixels are in rows, then columns, then colors. Components of colored images are drawn
        around grey.
    n_images : int, default=15
        How many components.
    shares : array of shape (n_components,), optional
        Shares of the variance, written above the components.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland import PCA
    >>> from lowland.datasets import digits
    >>> pca = PCA(7).fit(digits().X)
    >>> figure = eigen_images(pca.mean_, pca.components_, (8, 8))
    >>> [axes.get_title() for axes in figure.axes[:3]]
    ['mean', '1', '2']
    """
    mean, components, shape = check_axes(mean, components, image_shape)
    if n_images < 0:
        raise ParameterError(f"n_images={n_images} must be 0 or more.")
    components = components[:n_images]
    percent = [""] * len(components)
    if shares is not None:
        percent = [f" ({s:.1%})" for s in check_vector(shares, "shares")[: len(components)]]
        if len(percent) < len(components):
            raise DataError(f"there are {len(components)} components, but {len(percent)} shares.")
    figure, tiles = _tiles(1 + len(components), title)
    show_image(tiles[0], mean, shape, "mean", (float(mean.min()), float(mean.max())))
    for i, component in enumerate(components):
        reach = float(np.abs(component).max()) or 1.0
        name = f"{i + 1}{percent[i]}"
        if len(shape) == 3:
            show_image(tiles[i + 1], 0.5 + component / (2 * reach), shape, name, (0.0, 1.0))
        else:
            show_image(tiles[i + 1], component, shape, name, (-reach, reach), DIVERGING)
    return figure


def reconstruction_strip(
    X: np.ndarray,
    mean: np.ndarray,
    components: np.ndarray,
    image_shape: Sequence[int],
    *,
    counts: Sequence[int] = (10, 50),
    title: str | None = None,
) -> Figure:
    """Draw images, and their reconstructions from few, from more and from all components.

    A row per image: the original, then m + C_k^T C_k (x - m) with the first k components, in the
    brightness of the original.

    Parameters
    ----------
    X : array of shape (n_images, n_pixels)
        The images to show, a handful.
    mean, components, image_shape
        See :func:`eigen_images`; the rows of ``components`` must be orthonormal.
    counts : sequence of int, default=(10, 50)
        Numbers of components, besides all of them.
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
    >>> pca = PCA(40).fit(X)
    >>> figure = reconstruction_strip(X[:2], pca.mean_, pca.components_, (8, 8))
    >>> [axes.get_title() for axes in figure.axes[:3]]
    ['original', '10', 'all 40']
    """
    mean, components, shape = check_axes(mean, components, image_shape)
    X = check_table(X, "X")
    if X.shape[1] != mean.size:
        raise DataError(f"X has {X.shape[1]} columns, but the mean has {mean.size} pixels.")
    gram = components @ components.T
    if np.abs(gram - np.eye(len(gram))).max() > 1e-3:
        raise DataError("the rows of components must be orthonormal, as those of PCA are.")
    if any(count < 0 for count in counts):
        raise ParameterError(f"counts={tuple(counts)} must be 0 or more.")
    sizes = [*sorted({int(count) for count in counts if count < len(gram)}), len(gram)]
    names = ["original", *map(str, sizes[:-1]), f"all {sizes[-1]}"]
    scores = (X - mean) @ components.T
    figure = new_figure(TILE * len(names) + 0.2, _height(len(X), shape, title))
    tighten(figure)
    grid = figure.subplots(len(X), len(names), squeeze=False)
    for row, (original, own) in enumerate(zip(X, scores, strict=True)):
        rebuilt = [mean + own[:k] @ components[:k] for k in sizes]
        limits = float(original.min()), float(original.max())
        for axes, pixels, name in zip(grid[row], [original, *rebuilt], names, strict=True):
            show_image(axes, pixels, shape, name if row == 0 else "", limits)
    write_title(figure, title)
    return figure


def check_axes(
    mean: Any, components: Any, image_shape: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Mean, components and shape of images, if they fit each other."""
    mean, components = check_vector(mean, "mean"), check_table(components, "components")
    shape = check_shape(image_shape)
    if mean.size != np.prod(shape) or components.shape[1] != mean.size:
        raise DataError(
            f"image_shape={shape} has {np.prod(shape)} pixels, but the mean has {mean.size} and "
            f"the components have {components.shape[1]}."
        )
    return mean, components, shape


def _tiles(n: int, title: str | None) -> tuple[Figure, list[Axes]]:
    columns = min(n, max(5, int(np.ceil(np.sqrt(1.6 * n)))))
    rows = -(-n // columns)
    figure = new_figure(TILE * columns + 0.2, (TILE + 0.25) * rows + 0.2 + 0.3 * bool(title))
    tiles = list(figure.subplots(rows, columns, squeeze=False).ravel())
    tighten(figure)
    for unused in tiles[n:]:
        unused.set_axis_off()
    write_title(figure, title)
    return figure, tiles


def tighten(figure: Figure) -> None:
    """Leave little room between images."""
    engine: Any = figure.get_layout_engine()
    if engine is not None:
        engine.set(w_pad=0.04, h_pad=0.04, wspace=0.0, hspace=0.0)


def _height(rows: int, shape: tuple[int, ...], title: str | None) -> float:
    return TILE * rows * shape[0] / shape[1] + 0.1 * rows + 0.3 + 0.3 * bool(title)


def show_image(
    axes: Axes,
    pixels: np.ndarray,
    shape: tuple[int, ...],
    name: str,
    limits: tuple[float, float],
    color_map: str = "gray",
) -> None:
    """Draw one image with its name above it; ``limits`` are black and white."""
    low, high = limits
    image = pixels.reshape(shape)
    if len(shape) == 3:
        image = np.clip((image - low) / ((high - low) or 1.0), 0.0, 1.0)
    axes.imshow(image, cmap=color_map, vmin=low, vmax=high if high > low else low + 1.0)
    axes.set(xticks=[], yticks=[])
    axes.set_title(name, fontsize=9, pad=3, **TEXT)
    axes.spines[:].set_color("#d0d0d0")


# Recognition by eigen-images (Turk & Pentland 1991): the nearest known picture of each.


ROWS = ("picture", "rebuilt", "nearest known")
RIGHT, WRONG = "#117733", "#cc3311"


def recognition_strip(
    X: np.ndarray,
    known: np.ndarray,
    mean: np.ndarray,
    components: np.ndarray,
    image_shape: Sequence[int],
    *,
    labels: Sequence[Any] | np.ndarray | None = None,
    known_labels: Sequence[Any] | np.ndarray | None = None,
    title: str | None = None,
) -> Figure:
    """Draw pictures, their reconstructions, and the nearest known picture of each.

    A column per picture: x itself; its reconstruction m + C^T C (x - m), with its error, the root
    of the mean squared difference of the pixels in percent of the range of the known pictures; and
    the known picture whose scores C (x - m) are nearest. A picture of another kind than the known
    ones has a large error, although some known picture is nearest to it, too.

    Parameters
    ----------
    X : array of shape (n_images, n_pixels)
        The pictures to recognize, a handful.
    known : array of shape (n_known, n_pixels)
        The pictures to choose from.
    mean, components, image_shape, title
        See :func:`reconstruction_strip`.
    labels, known_labels : arrays of shape (n_images,) and (n_known,), optional
        Who is in the pictures; None or NaN: nobody that is known. If both are given, the name
        below is green where the nearest picture shows the same and red where it does not.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    Turk & Pentland (1991), Eigenfaces for recognition, J. Cognitive Neuroscience 3.

    Examples
    --------
    >>> from lowland import PCA
    >>> from lowland.datasets import drawn_faces
    >>> faces = drawn_faces(5, 6, random_state=0)
    >>> pca = PCA(8).fit(faces.X[6:])
    >>> figure = recognition_strip(
    ...     faces.X[:2], faces.X[6:], pca.mean_, pca.components_, (32, 32)
    ... )
    >>> len(figure.axes)
    6
    """
    mean, components, shape = check_axes(mean, components, image_shape)
    X, known = _pictures(X, "X", mean), _pictures(known, "known", mean)
    names, known_names = _names(labels, len(X), "labels"), _names(known_labels, len(known), "known")
    scores = (X - mean) @ components.T
    rebuilt = mean + scores @ components
    errors = np.sqrt(((X - rebuilt) ** 2).mean(axis=1)) / (float(np.ptp(known)) or 1.0)
    nearest = knn_query((known - mean) @ components.T, scores, 1).indices[:, 0]
    tall = TILE * shape[0] / shape[1]
    figure = new_figure(TILE * len(X) + 0.4, (tall + 0.25) * len(ROWS) + 0.3 * bool(title))
    tighten(figure)
    grid = figure.subplots(len(ROWS), len(X), squeeze=False)
    for column in range(len(X)):
        own, found = names[column], known_names[nearest[column]]
        limits = float(X[column].min()), float(X[column].max())
        show_image(grid[0, column], X[column], shape, own, limits)
        error = f"error {errors[column]:.1%}"
        show_image(grid[1, column], rebuilt[column], shape, error, limits)
        other = known[nearest[column]]
        show_image(grid[2, column], other, shape, found, (float(other.min()), float(other.max())))
        if labels is not None and known_labels is not None:
            grid[2, column].title.set_color(RIGHT if own == found else WRONG)
    for axes, row in zip(grid[:, 0], ROWS, strict=True):
        axes.set_ylabel(row, color=INK, fontsize=9, **TEXT)
    write_title(figure, title)
    return figure


def _pictures(X: Any, name: str, mean: np.ndarray) -> np.ndarray:
    X = check_table(X, name)
    if X.shape[1] != mean.size:
        raise DataError(f"{name} has {X.shape[1]} columns, but the mean has {mean.size} pixels.")
    return X


def _names(labels: Any, n: int, name: str) -> list[str]:
    if labels is None:
        return [""] * n
    labels = list(labels)
    if len(labels) != n:
        raise DataError(f"{name}: there are {len(labels)} labels for {n} pictures.")
    return ["nobody" if _is_missing(label) else one_line(str(label), 16) for label in labels]


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and np.isnan(label))


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
        raise DataError(f"sides are {sides.tolist()}, but must be greater than 0.")
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
    style = point_style(len(Y), PANEL / (1 + 2 * margin))
    places, rows = _copies(Y, sides, margin)
    if rows.size:
        faded = {**style, "alpha": FADED * style["alpha"]}
        scatter_in_random_order(axes, tuple(places.T), of_rows(coloring, rows), faded)
    scatter_in_random_order(axes, tuple(Y.T), coloring, style)
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
