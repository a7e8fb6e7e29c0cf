"""Several maps of the same rows side by side, rotated to resemble the first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError, ParameterError
from lowland._base.validation import as_array
from lowland._engines.linalg.eigen import thin_svd
from lowland._engines.linalg.procrustes import turned_like
from lowland.plot._figure import check_map, name_axes, note, one_each, one_line
from lowland.plot._legend import add_legend, figure_beside_legend
from lowland.plot._points import draw_points, frame, is_dense, point_style
from lowland.plot._style import PANEL, TEXT
from lowland.plot.colors import Categories, encode_labels
from lowland.plot.maps import Captions, axis_labels, draw_distribution, draw_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TILE = 3.2  # inches
MOST_BESIDE = 4  # maps side by side


def compare_maps(
    maps: Sequence[np.ndarray],
    titles: Sequence[str] | None = None,
    labels: Sequence[Any] | np.ndarray | None = None,
    *,
    aligned: bool = True,
    title: str | None = None,
    label_name: str | None = None,
    density: bool | None = None,
    notes: Sequence[str] | None = None,
) -> Figure:
    """Draw maps of the same rows in panels with one legend.

    A map may be turned, mirrored, moved and scaled without saying anything else. By default all are
    turned to match the first (Procrustes); each fills its panel, with equal scales on both axes. Of
    maps with more than two axes the first two are drawn, after turning. A map of one dimension is
    a histogram, by category where there are categories.

    Parameters
    ----------
    maps : sequence of arrays of shape (n_rows, n_components)
        The same rows in the same order; the number of components may differ.
    titles : sequence of str, optional
        One per map.
    labels : array of shape (n_rows,), optional
        As for :func:`scatter_map`.
    aligned : bool, default=True
        Turn all maps to match the first.
    title, label_name, density
        See :func:`scatter_map`.
    notes : sequence of str, optional
        A short line under each map, such as its quality.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> data = iris()
    >>> figure = compare_maps([data.X[:, :2], data.X[:, 2:]], ["sepals", "petals"], data.labels)
    >>> [axes.get_title() for axes in figure.axes]
    ['sepals', 'petals']
    """
    views = _views([check_map(Y, f"map {i}") for i, Y in enumerate(maps)], aligned)
    n = len(views[0])
    numbered = [f"map {i + 1}" for i in range(len(views))]
    titles = one_each(titles, numbered, "titles", "maps")
    below = one_each(notes, [""] * len(views), "notes", "maps")
    coloring = encode_labels(labels, n)
    rows = -(-len(views) // MOST_BESIDE)
    columns = -(-len(views) // rows)
    height = (TILE + 0.3 + 0.2 * bool(notes)) * rows + 0.35 * bool(title)
    figure = figure_beside_legend(coloring, label_name, title, TILE * columns, height)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, Y, name, remark in zip(panels, views, titles, below, strict=False):
        if Y.shape[1] == 1:
            frame(axes, np.column_stack([Y, Y]), equal=False)
            draw_distribution(axes, Y[:, 0], coloring, filled=True)
            axes.set_box_aspect(1)
            name_axes(axes, "the only axis", "share" if coloring is None else "share of the class")
        else:
            frame(axes, Y)
            draw_points(axes, Y, coloring, TILE, density=density, remark=False)
        axes.set_title(one_line(name, 40), fontsize=10, **TEXT)
        if remark:
            above = f"{axes.get_xlabel()}\n" if axes.get_xlabel() else ""
            axes.set_xlabel(above + one_line(remark, 60), fontsize=8, **TEXT)
    for unused in panels[len(views) :]:
        unused.set_visible(False)
    if is_dense(n, density):
        note(panels[columns - 1], f"{n:,} points")
    add_legend(figure, list(panels), coloring, label_name)
    return figure


def _views(maps: list[np.ndarray], aligned: bool) -> list[np.ndarray]:
    """Two columns of each map, or its only one, after rotation."""
    if not maps:
        raise DataError("there are no maps to compare.")
    for i, Y in enumerate(maps):
        if len(Y) != len(maps[0]):
            raise DataError(f"map {i} has {len(Y)} rows, but map 0 has {len(maps[0])}.")
    # The scale is not changed: each panel has its own limits.
    maps = [_on_a_line(Y) for Y in maps]
    others = [turned_like(maps[0][:, :2], Y) if aligned else Y for Y in maps[1:]]
    return [Y[:, :2] for Y in (maps[0], *others)]


def _on_a_line(Y: np.ndarray) -> np.ndarray:
    """One column if all points lie on a line, as those of a padded map of one dimension do."""
    centered = Y - Y.mean(axis=0)
    direction = thin_svd(np.einsum("ni,nj->ij", centered, centered)).right[:1]
    along = centered @ direction.T
    beside = np.abs(centered - along @ direction).max()
    return along if 1e9 * beside <= np.abs(along).max() > 0 else Y


# All pairs of the first axes of a map.


PAIR_TILE = 2.0  # inches


def pairs_plot(
    Y: np.ndarray,
    labels: Sequence[Any] | np.ndarray | None = None,
    *,
    n_axes: int = 5,
    title: str | None = None,
    label_name: str | None = None,
    axis_names: Sequence[str] | None = None,
    density: bool | None = None,
) -> Figure:
    """Draw every pair of the first axes of a map, such as those of PCA or LDA.

    Below the diagonal the pairs, on it the distribution along each axis, one line per category.
    Every axis fills its panel, so that scales differ.

    Parameters
    ----------
    Y : array of shape (n_rows, n_components)
        Coordinates.
    labels, title, label_name, axis_names, density
        See :func:`scatter_map`.
    n_axes : int, default=5
        At most so many axes.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> data = iris()
    >>> figure = pairs_plot(data.X, data.labels, axis_names=data.feature_names)
    >>> sum(axes.get_visible() for axes in figure.axes)
    10
    """
    Y = check_map(Y)
    if n_axes < 1:
        raise ParameterError(f"n_axes={n_axes} must be at least 1.")
    names = axis_labels(axis_names, Y.shape[1])[:n_axes]
    Y = Y[:, :n_axes]
    coloring = encode_labels(labels, len(Y))
    m = Y.shape[1]
    inches = PAIR_TILE * m
    figure = figure_beside_legend(coloring, label_name, title, inches + 0.2, inches)
    grid = figure.subplots(m, m, squeeze=False)
    for (row, column), axes in np.ndenumerate(grid):
        both = Y[:, [column, row]]
        if column > row:
            axes.set_visible(False)
            continue
        frame(axes, both, equal=False)
        if column == row:
            draw_distribution(axes, Y[:, row], coloring)
        else:
            draw_points(axes, both, coloring, PAIR_TILE, density=density, remark=False)
        name_axes(axes, names[column] if row == m - 1 else "", names[row] if column == 0 else "")
    add_legend(figure, list(grid.ravel()), coloring, label_name)
    return figure


# Several sets of rows in one map: a color for each, and lines between partners.


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
    from matplotlib.collections import LineCollection

    views = [check_map(Y, f"map {i}") for i, Y in enumerate(maps)]
    if not views:
        raise DataError("there are no maps to draw.")
    widths = {Y.shape[1] for Y in views}
    if len(widths) > 1:
        raise DataError(f"the maps have {sorted(widths)} columns; sets in one map have as many.")
    names = one_each(names, [f"set {i}" for i in range(len(views))], "names", "maps")
    Y = np.vstack(views)
    codes = np.repeat(np.arange(len(views)), [len(each) for each in views])
    coloring = Categories(codes, tuple(one_line(name, NAME_LENGTH) for name in names))
    lines = _lines(correspondence, views)
    figure = draw_map(Y, coloring, Captions(title, "set", axis_names))
    if Y.shape[1] == 2 and 0 < len(lines) <= MOST_LINES:
        look = {"colors": "#777777", "linewidths": 0.5, "alpha": 0.45}
        collection = LineCollection(list(lines), zorder=0.5, **look)  # below the points
        figure.axes[0].add_collection(collection, autolim=False)
    if Y.shape[1] == 2 and len(Y) <= MOST_RINGS:
        _draw_rings(figure, views, coloring)
    return figure


def _lines(correspondence: np.ndarray | None, views: list[np.ndarray]) -> np.ndarray:
    """Ends of the lines, from each row of an object to its row in the next set that has it."""
    if correspondence is None:
        return np.empty((0, 2, 2))
    rows = as_array(correspondence, "correspondence")
    if rows.ndim != 2 or rows.shape[1] != len(views) or rows.dtype.kind not in "iu":
        expected = f"whole numbers, one column for each of the {len(views)} sets"
        found = f"shape {rows.shape} and type {rows.dtype}"
        raise DataError(f"correspondence has {found}; expected {expected}.")
    if (rows < -1).any() or (rows >= [len(Y) for Y in views]).any():
        raise DataError("correspondence names a row that its set does not have.")
    segments = []
    for found in rows.tolist():
        ends = [Y[row, :2] for Y, row in zip(views, found, strict=True) if row >= 0]
        segments += [np.array(pair) for pair in pairwise(ends)]
        if len(segments) > MOST_LINES:
            break
    return np.array(segments) if segments else np.empty((0, 2, 2))


def _draw_rings(figure: Figure, views: list[np.ndarray], coloring: Categories) -> None:
    """Dots for the first set, and rings of growing width for the others, in place of the points."""
    from matplotlib.collections import PathCollection

    axes = figure.axes[0]
    for points in [each for each in axes.collections if isinstance(each, PathCollection)]:
        points.remove()
    style = point_style(sum(map(len, views)), PANEL)
    handles = figure.legends[0].legend_handles
    for code, (Y, handle) in enumerate(zip(views, handles, strict=True)):
        color = coloring.color(code)
        if not code:
            axes.scatter(*Y.T, c=color, **style)
            continue
        ring = {**style, "s": style["s"] * WIDER ** (2 * code), "linewidths": 1.0}
        axes.scatter(*Y.T, facecolors="none", edgecolors=color, **ring)
        handle.set(markerfacecolor="none", markeredgecolor=color, markeredgewidth=1.2, markersize=8)
