"""Several sets of rows in one map: a color for each, and lines between partners."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import as_array
from lowland.plot._figure import PANEL, check_map, clean
from lowland.plot._points import point_look
from lowland.plot.colors import Categories
from lowland.plot.maps import draw_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINES = 1000  # more would cover the points
MOST_RINGS = 400  # points; rings around more would flow together
WIDER = 1.6  # each ring than the one inside of it
NAME_LENGTH = 32


def alignment_map(
    maps: Sequence[np.ndarray],
    names: Sequence[str] | None = None,
    *,
    correspondence: np.ndarray | None = None,
    title: str | None = None,
    axis_names: Sequence[str] | None = None,
) -> Figure:
    """Draw the maps of several sets that lie in the same coordinates.

    Thin lines join rows that are the same object, if there are at most 1000 lines and the map has
    two dimensions: the shorter the lines, the better the sets agree. Up to 400 points, the first
    set has dots and each other one wider rings, so that partners in one place are all seen.

    Parameters
    ----------
    maps : sequence of arrays of shape (n_rows, n_components)
        One per set, as ``embeddings_`` of :class:`lowland.ManifoldAlignment`; each set has rows of
        its own.
    names : sequence of str, optional
        One per set.
    correspondence : array of int of shape (n_objects, n_sets), optional
        The row of each object in each set, -1 where a set lacks it.
    title, axis_names
        As for :func:`scatter_map`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> pairs = np.column_stack([np.arange(150), np.arange(150)])
    >>> figure = alignment_map([X[:, :2], X[:, :2] + 1], ["here", "there"], correspondence=pairs)
    >>> len(figure.axes[0].collections[0].get_segments())
    150
    """
    views = [check_map(Y, f"map {i}") for i, Y in enumerate(maps)]
    if not views:
        raise DataError("there are no maps to draw.")
    widths = {Y.shape[1] for Y in views}
    if len(widths) > 1:
        raise DataError(f"the maps have {sorted(widths)} columns; sets in one map have as many.")
    names = [f"set {i}" for i in range(len(views))] if names is None else list(names)
    if len(names) != len(views):
        raise DataError(f"there are {len(names)} names for {len(views)} maps.")
    sizes = [len(Y) for Y in views]
    Y = np.vstack(views)
    codes = np.repeat(np.arange(len(views)), sizes)
    coloring = Categories(codes, tuple(clean(str(name), NAME_LENGTH) for name in names))
    lines = _lines(correspondence, views)
    figure = draw_map(Y, coloring, title=title, label_name="set", axis_names=axis_names)
    if Y.shape[1] == 2 and 0 < len(lines) <= MOST_LINES:
        _draw_lines(figure, lines)
    if Y.shape[1] == 2 and len(Y) <= MOST_RINGS:
        _draw_rings(figure, views, coloring)
    return figure


def _lines(correspondence: np.ndarray | None, views: list[np.ndarray]) -> np.ndarray:
    """Ends of the lines, from each row of an object to its row in the next set that has it."""
    if correspondence is None:
        return np.empty((0, 2, 2))
    rows = as_array(correspondence, "correspondence")
    if rows.ndim != 2 or rows.shape[1] != len(views) or rows.dtype.kind not in "iu":
        raise DataError(
            f"correspondence has shape {rows.shape} and type {rows.dtype}; expected whole numbers, "
            f"one column for each of the {len(views)} sets."
        )
    if (rows < -1).any() or (rows >= [len(Y) for Y in views]).any():
        raise DataError("correspondence names a row that its set does not have.")
    segments = []
    for found in rows.tolist():
        ends = [Y[row, :2] for Y, row in zip(views, found, strict=True) if row >= 0]
        segments += [np.array(pair) for pair in pairwise(ends)]
        if len(segments) > MOST_LINES:
            break
    return np.array(segments) if segments else np.empty((0, 2, 2))


def _draw_lines(figure: Figure, lines: np.ndarray) -> None:
    from matplotlib.collections import LineCollection

    look = {"colors": "#777777", "linewidths": 0.5, "alpha": 0.45, "zorder": 0.5}
    # below the points, whose zorder is 1
    figure.axes[0].add_collection(LineCollection(list(lines), **look), autolim=False)


def _draw_rings(figure: Figure, views: list[np.ndarray], coloring: Categories) -> None:
    """Dots for the first set, and rings of growing width for the others, in place of the points."""
    from matplotlib.collections import PathCollection

    axes = figure.axes[0]
    for points in [each for each in axes.collections if isinstance(each, PathCollection)]:
        points.remove()
    look = point_look(sum(map(len, views)), PANEL)
    handles = figure.legends[0].legend_handles
    for code, (Y, handle) in enumerate(zip(views, handles, strict=True)):
        color = coloring.color(code)
        if not code:
            axes.scatter(*Y.T, c=color, **look)
            continue
        ring = {**look, "s": look["s"] * WIDER ** (2 * code), "linewidths": 1.0}
        axes.scatter(*Y.T, facecolors="none", edgecolors=color, **ring)
        handle.set(markerfacecolor="none", markeredgecolor=color, markeredgewidth=1.2, markersize=8)
