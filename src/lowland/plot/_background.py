"""Shades of gray behind the points of a map: a number for each place of the plane."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lowland.plot._figure import note

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELLS = 96  # along a side of the frame
DARKEST = 0.62  # of the highest number; black would hide the points


def draw_background(axes: Axes, shade: Callable[[np.ndarray], np.ndarray], name: str) -> None:
    """Fill the frame, whose limits are set: white where ``shade`` is lowest, gray where highest.

    Nothing is drawn where all numbers are equal, or one of them is not finite.
    """
    box = (*axes.get_xlim(), *axes.get_ylim())
    across, up = (_centers(*box[:2]), _centers(*box[2:]))
    places = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    values = np.asarray(shade(places), dtype=np.float64).reshape(CELLS, CELLS)
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all() or high <= low:
        return
    gray = 1 - (1 - DARKEST) * (values - low) / (high - low)
    image = np.repeat(gray[:, :, None], 3, axis=2)
    aspect = axes.get_aspect()
    axes.imshow(image, extent=box, origin="lower", interpolation="bilinear", zorder=0)
    axes.set_aspect(aspect)
    axes.set(xlim=box[:2], ylim=box[2:])
    note(axes, f"gray: {name}, from {low:.3g} (white) to {high:.3g}")


def _centers(low: float, high: float) -> np.ndarray:
    return low + (np.arange(CELLS) + 0.5) / CELLS * (high - low)
