"""Several maps of the same rows side by side, rotated to resemble the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland._engines.linalg.eigen import thin_svd
from lowland._engines.linalg.procrustes import turned_like
from lowland.plot._distribution import draw_distribution
from lowland.plot._figure import (
    TEXT,
    check_map,
    clean,
    name_axes,
    new_figure,
    note,
    write_title,
)
from lowland.plot._legend import add_legend, legend_size
from lowland.plot._points import draw_points, frame, is_dense
from lowland.plot.colors import encode_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TILE = 3.2  # inches


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
    titles = [f"map {i + 1}" for i in range(len(views))] if titles is None else list(titles)
    if len(titles) != len(views):
        raise DataError(f"there are {len(titles)} titles for {len(views)} maps.")
    if notes is not None and len(notes) != len(views):
        raise DataError(f"there are {len(notes)} notes for {len(views)} maps.")
    n = len(views[0])
    coloring = None if labels is None else encode_labels(labels, n)
    columns = len(views) if len(views) <= 4 else -(-len(views) // -(-len(views) // 4))
    rows = -(-len(views) // columns)
    beside, height = legend_size(coloring, label_name)
    figure = new_figure(
        TILE * columns + beside,
        max((TILE + 0.3 + 0.2 * bool(notes)) * rows + 0.35 * bool(title), height),
    )
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    under = [""] * len(views) if notes is None else notes
    for axes, Y, name, below in zip(panels, views, titles, under, strict=False):
        if Y.shape[1] == 1:
            frame(axes, np.column_stack([Y, Y]), equal=False)
            draw_distribution(axes, Y[:, 0], coloring, filled=True)
            axes.set_box_aspect(1)
            name_axes(axes, "the only axis", "share" if coloring is None else "share of the class")
        else:
            frame(axes, Y)
            draw_points(axes, Y, coloring, TILE, density=density, remark=False)
        axes.set_title(clean(name, 40), fontsize=10, **TEXT)
        if below:
            above = f"{axes.get_xlabel()}\n" if axes.get_xlabel() else ""
            axes.set_xlabel(above + clean(below, 60), fontsize=8, **TEXT)
    for unused in panels[len(views) :]:
        unused.set_visible(False)
    if is_dense(n, density):
        note(panels[columns - 1], f"{n:,} points")
    add_legend(figure, list(panels), coloring, label_name)
    write_title(figure, title)
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
