"""Rows as images: checks, and many images in one frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError, ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = "#cfe3f5"  # a pixel without a value, which no grey value resembles


def check_shape(image_shape: Sequence[int]) -> tuple[int, ...]:
    """Height and width, and 3 for colors."""
    shape = tuple(int(side) for side in image_shape)
    if len(shape) not in (2, 3) or min(shape) < 1 or (len(shape) == 3 and shape[2] != 3):
        raise ParameterError(f"image_shape={shape} must be (height, width) or (height, width, 3).")
    return shape


def check_images(values: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """One row of pixels per image, as float64; what is not finite is NaN."""
    try:
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} holds something that is not a number: {error}.") from None
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"{name} must have rows and columns, but has shape {values.shape}.")
    if values.shape[1] != np.prod(shape):
        raise DataError(
            f"image_shape={shape} has {np.prod(shape)} pixels, but {name} has "
            f"{values.shape[1]} columns."
        )
    return np.where(np.isfinite(values), values, np.nan)


def image_limits(images: np.ndarray, limits: tuple[float, float] | None) -> tuple[float, float]:
    """Black and white: as given, else the lowest and the highest value."""
    if limits is None:
        known = images[np.isfinite(images)]
        limits = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    low, high = limits
    return (low, high) if low < high else (low, low + 1.0)


def draw_image(
    axes: Axes,
    pixels: np.ndarray,
    shape: tuple[int, ...],
    box: tuple[float, float, float, float],
    limits: tuple[float, float],
) -> None:
    """Draw one image into a box (left, right, bottom, top) of axes that hold many.

    A missing grey value is transparent, and a missing color is grey.
    """
    low, high = limits
    image = pixels.reshape(shape)
    if len(shape) == 3:
        image = np.nan_to_num(image, nan=low / 2 + high / 2)
        image = np.clip((image - low) / (high - low), 0.0, 1.0)
    drawn = axes.imshow(image, cmap="gray", vmin=low, vmax=high, extent=box, zorder=2)
    drawn.set_in_layout(False)  # the layout of hundreds of images would take seconds
