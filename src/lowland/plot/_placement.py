"""Names inside a picture, moved apart until none overlaps another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland.plot._figure import TEXT, quiet
from lowland.plot.palettes import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["separate", "write_names"]

GAP = 3.0  # pixels between two names
SLACK = 0.25  # pixels more than needed, so that a row of boxes converges


def write_names(
    axes: Axes,
    names: Sequence[str],
    anchors: np.ndarray,
    *,
    outward: np.ndarray | None = None,
    size: float = 9.0,
    beside: float = 0.0,
) -> list[Any]:
    """Names on white boxes at the anchors, or beside them on the ``outward`` side.

    A thin line connects a name with its anchor if it was moved away. ``beside`` is the width in
    pixels of points at the anchors, which names must not cover; such names have no boxes.
    """
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "linewidth": 0}
    box["alpha"] = 0.0 if beside else 0.65
    texts = [
        axes.text(x, y, name, ha="center", va="center", fontsize=size, bbox=box, zorder=5, **TEXT)
        for name, (x, y) in zip(names, anchors, strict=True)
    ]
    for text in texts:
        text.set_in_layout(False)
    if not texts:
        return texts
    figure: Any = axes.figure
    with quiet():
        figure.draw_without_rendering()  # computes the sizes of the texts and of the frame
        extents = [text.get_window_extent() for text in texts]
    sizes = np.array([[extent.width, extent.height] for extent in extents]) + GAP
    tied = axes.transData.transform(anchors)
    wanted = tied.copy()
    if outward is not None:
        # Far enough for the box to touch the anchor with an edge or a corner.
        wanted += outward / np.abs(outward).max(axis=1)[:, None] * ((sizes + beside) / 2 + GAP)
    inside = axes.get_window_extent()
    bounds = np.array([[inside.x0, inside.y0], [inside.x1, inside.y1]])
    points = np.full(tied.shape, beside)
    placed = separate(wanted, sizes, bounds, (tied, points) if beside else None)
    to_data = axes.transData.inverted().transform
    edges = np.clip(tied, placed - sizes / 2, placed + sizes / 2)
    moved = np.hypot(*(placed - wanted).T) > 0.6 * sizes[:, 1]
    moved &= np.hypot(*(edges - tied).T) > beside
    for text, start, edge, place, far in zip(texts, tied, edges, placed, moved, strict=True):
        text.set_position(tuple(to_data(place)))
        if far:
            ends = to_data(np.array([start, edge]))
            (line,) = axes.plot(*ends.T, color=INK, linewidth=0.5, zorder=4)
            line.set_in_layout(False)
    return texts


def separate(
    centers: np.ndarray,
    sizes: np.ndarray,
    bounds: np.ndarray,
    fixed: tuple[np.ndarray, np.ndarray] | None = None,
    rounds: int = 500,
) -> np.ndarray:
    """Move boxes apart, each pair along the axis on which they overlap least, within the bounds.

    ``fixed`` are centers and sizes of boxes that do not move. If there is no room for all, the last
    state is returned.
    """
    n = len(centers)
    if fixed is not None:
        centers, sizes = np.vstack([centers, fixed[0]]), np.vstack([sizes, fixed[1]])
    low, high = bounds[0] + sizes / 2, bounds[1] - sizes / 2
    low = np.minimum(low, (bounds[0] + bounds[1]) / 2)  # a box wider than the bounds is centered
    high = np.maximum(high, low)
    low[n:] = high[n:] = centers[n:]
    places = np.clip(centers, low, high)
    number = np.arange(len(places))
    first = np.sign(number[:, None] - number[None])
    share = np.where(number < n, 0.5, 1.0)  # a fixed box leaves the whole way to the other
    for turn in range(rounds):
        away = places[:, None] - places[None]
        overlap = (sizes[:, None] + sizes[None]) / 2 - np.abs(away)
        touching = (overlap > 1e-6).all(axis=2) & (first != 0)
        if not touching[:n].any():
            break
        # Wedged boxes may push each other in circles; in the second half they move only vertically.
        least = overlap.argmin(axis=2) if turn < rounds // 2 else np.ones_like(first)
        push = np.zeros_like(places)
        for axis in (0, 1):
            mine = touching & (least == axis)
            side = np.where(away[:, :, axis] == 0, first, np.sign(away[:, :, axis]))
            push[:, axis] = (mine * side * (overlap[:, :, axis] * share + SLACK)).sum(axis=1)
        places = np.clip(places + push, low, high)
    return places[:n]
