"""Images above, and below them what a method rebuilds of their places in the map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland.plot._figure import TEXT, clean, new_figure, write_title
from lowland.plot.decoding._images import (
    GAP,
    check_images,
    check_shape,
    draw_image,
    image_limits,
)
from lowland.plot.palettes import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    shape = check_shape(image_shape)
    originals = check_images(originals, "originals", shape)
    rebuilt = check_images(rebuilt, "rebuilt", shape)
    n = len(originals)
    if len(rebuilt) != n:
        raise DataError(f"there are {n} originals, but {len(rebuilt)} reconstructions.")
    above, below = _texts(names, "names", n), _texts(notes, "notes", n)
    page = _Page(max(1, min(n, per_band)), n, TILE * min(shape[0] / shape[1], 4.0))
    figure = new_figure(page.width + 0.45, page.height + 0.1 + 0.35 * bool(title))
    axes = figure.subplots()
    axes.set_facecolor("none")
    for i, (original, copy) in enumerate(zip(originals, rebuilt, strict=True)):
        limits = image_limits(original, None)
        left, top = page.corner(i)
        for pixels, upper in ((original, top), (copy, top - page.tile - BETWEEN)):
            box = (left, left + TILE, upper - page.tile, upper)
            axes.add_patch(_background(box))
            draw_image(axes, pixels, shape, box, limits)
        middle, foot = left + TILE / 2, top - 2 * page.tile - BETWEEN
        _write(axes, middle, top + 0.04, above[i], 8, va="bottom")
        _write(axes, middle, foot - 0.03, below[i], 7, va="top")
        if i % page.columns == 0:
            for word, y in (("original", top), ("rebuilt", top - page.tile - BETWEEN)):
                _write(axes, -0.06, y - page.tile / 2, word, 8, ha="right", rotation=90)
    axes.set(xlim=(-0.25, page.width), ylim=(-page.height, 0), aspect="equal")
    axes.set_axis_off()
    write_title(figure, title)
    return figure


class _Page(NamedTuple):
    """Where images are drawn, in inches from the upper left corner."""

    columns: int
    n: int
    tile: float  # height of an image

    @property
    def band(self) -> float:
        """Height of a pair with its texts."""
        return 2 * self.tile + BETWEEN + ABOVE + BELOW

    @property
    def width(self) -> float:
        return max(self.columns * (TILE + BETWEEN), 2.5)

    @property
    def height(self) -> float:
        return -(-self.n // self.columns) * self.band

    def corner(self, i: int) -> tuple[float, float]:
        """The upper left corner of the original number i."""
        band, column = divmod(i, self.columns)
        return column * (TILE + BETWEEN), -band * self.band - ABOVE


def _background(box: tuple[float, float, float, float]) -> Any:
    from matplotlib.patches import Rectangle

    left, right, bottom, top = box
    corner, width, height = (left, bottom), right - left, top - bottom
    return Rectangle(corner, width, height, facecolor=GAP, edgecolor="#b0b0b0", linewidth=0.8)


def _write(axes: Axes, x: float, y: float, text: str, size: float, **how: Any) -> None:
    if text:
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size, "color": INK}
        axes.text(x, y, text, **{**style, **how}, **TEXT)


def _texts(given: Sequence[str] | None, what: str, n: int) -> list[str]:
    if given is None:
        return [""] * n
    if len(given) != n:
        raise DataError(f"{what} has {len(given)} entries, but there are {n} images.")
    return [clean(str(text), LONGEST_NAME) for text in given]
