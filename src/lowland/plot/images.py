"""Eigen-images (Sirovich & Kirby 1987), reconstructions from them, and recognition by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError, ParameterError
from lowland.neighbors import knn_query
from lowland.plot._figure import check_table, check_vector, new_figure, one_each, one_line
from lowland.plot._style import INK, TEXT
from lowland.plot.colors import is_missing
from lowland.plot.decoding import as_image, check_shape, image_limits

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
    its own scale, symmetric around zero.

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
    mean, components, shape = _check_axes(mean, components, image_shape)
    if n_images < 0:
        raise ParameterError(f"n_images={n_images} must be 0 or more.")
    components = components[:n_images]
    percent = [""] * len(components)
    if shares is not None:
        percent = [f" ({s:.1%})" for s in check_vector(shares, "shares")[: len(components)]]
        if len(percent) < len(components):
            raise DataError(f"there are {len(components)} components, but {len(percent)} shares.")
    n = 1 + len(components)
    columns = min(n, max(5, int(np.ceil(np.sqrt(1.6 * n)))))
    rows = -(-n // columns)
    inches = TILE * columns + 0.2, (TILE + 0.25) * rows + 0.2
    figure, grid = _tiles(rows, columns, inches, title)
    tiles = grid.ravel()
    for unused in tiles[n:]:
        unused.set_axis_off()
    show_image(tiles[0], mean, shape, "mean")
    for i, component in enumerate(components):
        reach = float(np.abs(component).max()) or 1.0
        name = f"{i + 1}{percent[i]}"
        colors = {"limits": (-reach, reach), "color_map": DIVERGING}
        show_image(tiles[i + 1], component, shape, name, **colors)
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
    mean, components, shape = _check_axes(mean, components, image_shape)
    X = _pictures(X, "X", mean)
    gram = components @ components.T
    if np.abs(gram - np.eye(len(gram))).max() > 1e-3:
        raise DataError("the rows of components must be orthonormal, as those of PCA are.")
    if any(count < 0 for count in counts):
        raise ParameterError(f"counts={tuple(counts)} must be 0 or more.")
    sizes = [*sorted({int(count) for count in counts if count < len(gram)}), len(gram)]
    names = ["original", *map(str, sizes[:-1]), f"all {sizes[-1]}"]
    scores = (X - mean) @ components.T
    inches = TILE * len(names) + 0.2, TILE * len(X) * shape[0] / shape[1] + 0.1 * len(X) + 0.3
    figure, grid = _tiles(len(X), len(names), inches, title)
    for row, (original, own) in enumerate(zip(X, scores, strict=True)):
        rebuilt = [mean + own[:k] @ components[:k] for k in sizes]
        limits = image_limits(original, None)
        for axes, pixels, name in zip(grid[row], [original, *rebuilt], names, strict=True):
            show_image(axes, pixels, shape, name if row == 0 else "", limits)
    return figure


def _check_axes(
    mean: Any, components: Any, image_shape: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Mean, components and shape of images, if they fit each other."""
    mean, components = check_vector(mean, "mean"), check_table(components, "components")
    shape = check_shape(image_shape)
    if mean.size != np.prod(shape) or components.shape[1] != mean.size:
        found = f"the mean has {mean.size} and the components have {components.shape[1]}"
        raise DataError(f"image_shape={shape} has {np.prod(shape)} pixels, but {found}.")
    return mean, components, shape


def _tiles(
    rows: int, columns: int, inches: tuple[float, float], title: str | None
) -> tuple[Figure, np.ndarray]:
    """A figure of this size without its title, and axes with little room between them."""
    figure = new_figure(inches[0], inches[1] + 0.3 * bool(title), title)
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.04, h_pad=0.04, wspace=0.0, hspace=0.0)
    return figure, figure.subplots(rows, columns, squeeze=False)


def show_image(
    axes: Axes,
    pixels: np.ndarray,
    shape: tuple[int, ...],
    name: str,
    limits: tuple[float, float] | None = None,
    color_map: str = "gray",
) -> None:
    """Draw one image with its name above it; ``limits`` are black and white."""
    low, high = image_limits(pixels, limits)
    axes.imshow(as_image(pixels, shape, low, high), cmap=color_map, vmin=low, vmax=high)
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
        The persons in the pictures; None or NaN: an unknown person. If both are given, the name
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
    mean, components, shape = _check_axes(mean, components, image_shape)
    X, known = _pictures(X, "X", mean), _pictures(known, "known", mean)
    names = _names(labels, len(X), "pictures")
    known_names = _names(known_labels, len(known), "known pictures")
    scores = (X - mean) @ components.T
    rebuilt = mean + scores @ components
    errors = np.sqrt(((X - rebuilt) ** 2).mean(axis=1)) / (float(np.ptp(known)) or 1.0)
    nearest = knn_query((known - mean) @ components.T, scores, 1).indices[:, 0]
    inches = TILE * len(X) + 0.4, (TILE * shape[0] / shape[1] + 0.25) * len(ROWS)
    figure, grid = _tiles(len(ROWS), len(X), inches, title)
    for column, picture in enumerate(X):
        own, found = names[column], known_names[nearest[column]]
        limits = image_limits(picture, None)
        show_image(grid[0, column], picture, shape, own, limits)
        show_image(grid[1, column], rebuilt[column], shape, f"error {errors[column]:.1%}", limits)
        show_image(grid[2, column], known[nearest[column]], shape, found)
        if labels is not None and known_labels is not None:
            grid[2, column].title.set_color(RIGHT if own == found else WRONG)
    for axes, row in zip(grid[:, 0], ROWS, strict=True):
        axes.set_ylabel(row, color=INK, fontsize=9, **TEXT)
    return figure


def _pictures(X: Any, name: str, mean: np.ndarray) -> np.ndarray:
    X = check_table(X, name)
    if X.shape[1] != mean.size:
        raise DataError(f"{name} has {X.shape[1]} columns, but the mean has {mean.size} pixels.")
    return X


def _names(labels: Any, n: int, whose: str) -> list[str]:
    if labels is not None:
        labels = ["nobody" if is_missing(label) else one_line(str(label), 16) for label in labels]
    return one_each(labels, [""] * n, "labels", whose)
