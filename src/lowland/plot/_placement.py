"""Names inside a picture, moved apart until none overlaps another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland.plot._figure import without_font_warnings
from lowland.plot._style import INK, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = 3.0  # pixels between two names
# Sides of a point, the best first: right, above, below, left, then the corners.
WAYS = np.array([(1, 0), (0, 1), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)], float)
SLACK = 0.25  # pixels more than needed, so that a row of boxes converges


def write_names(
    axes: Axes,
    names: Sequence[str],
    anchors: np.ndarray,
    *,
    outward: np.ndarray | None = None,
    avoid: np.ndarray | None = None,
    size: float = 9.0,
    beside: float = 0.0,
) -> list[Any]:
    """Names on white boxes at the anchors, or beside them on the ``outward`` side.

    A thin line connects a name with its anchor if it was moved away. ``beside`` is the width in
    pixels of points at the anchors, which names must not cover; such names have no boxes, and lie
    on the side of their point where they hide least. With ``outward``, that is the side nearest to
    this direction where they hide none of the places to ``avoid``.
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
    with without_font_warnings():
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
    if avoid is not None:
        hidden = axes.transData.transform(avoid)
        wanted = sides(tied, sizes, bounds, GAP, toward=outward, hidden=hidden)
    elif beside:
        wanted = sides(tied, sizes, bounds, beside / 2 + 1.0)
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


def sides(
    points: np.ndarray,
    sizes: np.ndarray,
    bounds: np.ndarray,
    radius: float,
    *,
    toward: np.ndarray | None = None,
    hidden: np.ndarray | None = None,
    rounds: int = 50,
) -> np.ndarray:
    """Centers of boxes beside their points, each on the one of eight sides that hides least.

    A side costs the area by which the box covers the ``hidden`` places (by default the points) and
    other boxes or leaves the bounds, and a little for how far it is from the best side: the right
    one, or the one nearest to ``toward``. Boxes take their best side in turns until none gains by
    a change (iterated conditional modes), first those that are most in the way.
    """
    n, hidden = len(points), points if hidden is None else hidden
    reach = sizes[:, None] / 2 + np.where(np.abs(WAYS).sum(axis=1) > 1, 0.5, 1.0)[:, None] * radius
    places = points[:, None] + WAYS * reach
    low, high = places - sizes[:, None] / 2, places + sizes[:, None] / 2
    area = sizes.prod(axis=1)
    outside = np.maximum(bounds[0] - low, 0) + np.maximum(high - bounds[1], 0)
    own = 4 * (outside / sizes[:, None]).sum(axis=2)
    if toward is None:
        own = own + 0.02 * np.arange(len(WAYS))
    else:
        along = toward @ (WAYS / np.hypot(*WAYS.T)[:, None]).T
        own = own + 0.1 * (1.0 - along / np.maximum(np.hypot(*toward.T), 1e-300)[:, None])
    spot = 1.4 * radius
    covered = _common_area(low[:, :, None], high[:, :, None], hidden - spot / 2, hidden + spot / 2)
    own = own + 2 * covered.sum(axis=2) / spot**2
    chosen = own.argmin(axis=1)
    order = np.argsort(-own.min(axis=1), kind="stable")
    for _ in range(rounds):
        before = chosen.copy()
        for i in order:
            others = np.arange(n) != i
            rest = np.flatnonzero(others), chosen[others]
            covered = _common_area(low[i][:, None], high[i][:, None], low[rest], high[rest])
            shares = covered / np.minimum(area[i], area[others])
            chosen[i] = (own[i] + 6 * shares.sum(axis=1) + 0.5 * (shares > 0).sum(axis=1)).argmin()
        if np.array_equal(before, chosen):
            break
    return places[np.arange(n), chosen]


def _common_area(
    low: np.ndarray, high: np.ndarray, other_low: np.ndarray, other_high: np.ndarray
) -> np.ndarray:
    """The area that two boxes share, by their corners."""
    common = np.minimum(high, other_high) - np.maximum(low, other_low)
    return np.maximum(common, 0.0).prod(axis=-1)
