"""Components of images as images (eigen-images, Sirovich & Kirby 1987), and reconstructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland.plot._figure import TEXT, check_table, check_vector, new_figure, write_title
from lowland.plot.decoding._images import check_shape

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
    close_up(figure)
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
    close_up(figure)
    for unused in tiles[n:]:
        unused.set_axis_off()
    write_title(figure, title)
    return figure, tiles


def close_up(figure: Figure) -> None:
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
