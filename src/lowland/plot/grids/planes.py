"""Component planes: each column of a codebook as a small picture on the grid."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland.plot._figure import (
    TEXT,
    check_table,
    check_vector,
    clean,
    new_figure,
    write_title,
)
from lowland.plot.colors import continuum
from lowland.plot.grids._cells import Cells, cells_at, draw_cells, frame_cells, value_colors
from lowland.plot.palettes import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PLANES = 16
PLANE = 2.0  # inches of the longer side of a small picture
NAMED = 8  # columns that a remark names
MOST_POINTS = 500  # rows that are drawn over a small picture


def component_planes(
    places: np.ndarray,
    codebook: np.ndarray,
    names: Sequence[str] | None = None,
    kind: str = "hexagon",
    *,
    most: int = MOST_PLANES,
    variation: np.ndarray | None = None,
    rows: np.ndarray | None = None,
    title: str | None = None,
) -> Figure:
    """Draw one small picture per column: its value in each unit.

    Columns whose pictures look alike vary together. Each picture has a scale of its own, from the
    lowest to the highest value in any unit, which is written above it.

    Parameters
    ----------
    places : array of shape (n_units, 2)
        Places of the units on the grid.
    codebook : array of shape (n_units, n_columns)
        Values of the units, as ``codebook_`` of a :class:`lowland.SOM`. NaN is grey.
    names : sequence of str, optional
        One per column.
    kind : {"hexagon", "rectangle"}, default="hexagon"
        Kind of grid.
    most : int, default=16
        With more columns than this, those that vary most are drawn, and a remark names others.
    variation : array of shape (n_columns,), optional
        How much each column varies, if their units differ; the deviation over units by default.
    rows : array of shape (n_rows, 2), optional
        Places of the rows, drawn as points over the cells; of many rows, a sample.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> places = np.indices((4, 3)).reshape(2, -1).T
    >>> figure = component_planes(places, places * [1.0, 2.0], ["length", "width"], "rectangle")
    >>> [axes.get_title().split()[0] for axes in figure.axes[:2]]
    ['length', 'width']
    """
    cells = cells_at(places, kind)
    values = _codebook(codebook, len(cells.centers))
    names = [f"column {i}" for i in range(values.shape[1])] if names is None else list(names)
    if len(names) != values.shape[1]:
        raise DataError(
            f"there are {len(names)} names, but the codebook has {values.shape[1]} columns."
        )
    if most < 1:
        raise ParameterError(f"most={most!r} is not allowed; expected at least 1.")
    rows = None if rows is None else _points(rows, np.shape(places)[1], cells.step[1])
    shown, left_out = _most_varying(values, variation, most)
    width, height = cells.panel(PLANE)
    n_columns, n_rows = _arranged(len(shown), width, height + 0.45)
    width = max(width, 1.7)  # for the name
    least = (4.0, 2.0) if title else (0.0, 0.0)  # inches, so that the title has room
    figure = new_figure(
        max(n_columns * (width + 0.1) + 0.9, least[0]),
        max(n_rows * (height + 0.45) + 0.2, least[1]),
    )
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes, column in zip(panels, shown, strict=False):
        _draw_plane(axes, cells, values[:, column], names[column])
        if rows is not None:
            _draw_rows(axes, rows)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    _common_bar(figure, list(panels), n_rows * height)
    if left_out:
        _remark(figure, [names[column] for column in left_out])
    write_title(figure, title)
    return figure


def _codebook(codebook: Any, n: int) -> np.ndarray:
    try:
        values = np.asarray(codebook, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"codebook holds something that is not a number: {error}.") from None
    if values.ndim != 2 or len(values) != n or values.shape[1] == 0:
        raise DataError(f"codebook has shape {values.shape}, but there are {n} places of units.")
    return np.where(np.isfinite(values), values, np.nan)


def _most_varying(values: np.ndarray, variation: Any, most: int) -> tuple[list[int], list[int]]:
    """Columns to draw, and those left out, the most varying first."""
    p = values.shape[1]
    if variation is not None:
        variation = check_vector(variation, "variation", p, may_be_missing=True)
    if p <= most:
        return list(range(p)), []
    if variation is None:
        scale = np.nanmax(np.abs(values), initial=0.0) or 1.0  # squares must not overflow
        centered = values / scale
        known = np.maximum((~np.isnan(values)).sum(axis=0), 1)
        centered = centered - np.nansum(centered, axis=0) / known
        variation = np.sqrt(np.nansum(centered**2, axis=0) / known)
    order = np.argsort(-np.nan_to_num(variation), kind="stable").tolist()
    return order[:most], order[most:]


def _arranged(n: int, width: float, height: float) -> tuple[int, int]:
    """Columns and rows of n small pictures, together about one and a half times as wide as high."""
    columns = min(n, max(1, round(np.sqrt(1.5 * n * height / width))), 6)
    rows = -(-n // columns)
    return -(-n // rows), rows


def _draw_plane(axes: Axes, cells: Cells, values: np.ndarray, name: str) -> None:
    frame_cells(axes, cells, cells.panel(PLANE))
    axes.set_title(clean(name, 24), fontsize=9, pad=11, **TEXT)
    finite = values[np.isfinite(values)]
    if not finite.size:
        draw_cells(axes, cells, GREY)
        return
    limits = float(finite.min()), float(finite.max())
    coloring = continuum(values, limits=limits)
    draw_cells(axes, cells, value_colors(coloring))
    place = {"xy": (0.5, 1.0), "xytext": (0, 2), "textcoords": "offset points", "ha": "center"}
    axes.annotate(_range(*limits), xycoords="axes fraction", fontsize=7, color=INK, **place, **TEXT)


def _points(rows: Any, n_axes: int, height: float) -> np.ndarray:
    """Some of the rows in two dimensions; those on a line are spread over the height of a cell."""
    rows, rng = check_table(rows, "rows"), np.random.default_rng(0)
    if rows.shape[1] != n_axes:
        raise DataError(f"rows have {rows.shape[1]} coordinates, but places have {n_axes}.")
    if len(rows) > MOST_POINTS:
        rows = rows[rng.choice(len(rows), MOST_POINTS, replace=False)]
    if n_axes > 1:
        return rows
    return np.hstack([rows, height * rng.uniform(-0.4, 0.4, (len(rows), 1))])


def _draw_rows(axes: Axes, rows: np.ndarray) -> None:
    """Points with a light edge, which are visible on dark and on light cells."""
    limits = axes.get_xlim(), axes.get_ylim()
    size = float(np.clip(900.0 / len(rows), 0.6, 6.0))
    axes.scatter(
        *rows.T, s=size, c="black", edgecolors="white", linewidths=0.25, alpha=0.6, rasterized=True
    )
    axes.set(xlim=limits[0], ylim=limits[1])


def _range(low: float, high: float) -> str:
    """From the lowest to the highest value, with three digits of the larger one."""
    if low == high:
        return f"{low:.3g}"
    larger = max(abs(low), abs(high))
    if not 1e-3 <= larger < 1e6:
        return f"{low:.2e} to {high:.2e}"
    decimals = max(0, 2 - int(np.floor(np.log10(larger))))
    ends = (round(end, decimals) + 0.0 for end in (low, high))  # a negative zero loses its sign
    return " to ".join(f"{end:.{decimals}f}" for end in ends)


def _common_bar(figure: Figure, panels: list[Axes], height: float) -> None:
    from matplotlib.cm import ScalarMappable

    scale = ScalarMappable(cmap=continuum(np.array([0.0, 1.0])).color_map)  # type: ignore[union-attr]
    bar = figure.colorbar(scale, ax=panels, shrink=min(1.0, 3.0 / height), aspect=25, ticks=[0, 1])
    bar.ax.set_yticklabels(["lowest", "highest"], fontsize=8)
    bar.outline.set_visible(False)


def _remark(figure: Figure, left_out: list[str]) -> None:
    """Which columns are not shown, below the picture."""
    named = ", ".join(clean(name, 24) for name in left_out[:NAMED])
    more = f" and {len(left_out) - NAMED} more" if len(left_out) > NAMED else ""
    text = f"Not shown, because they vary less: {named}{more}"
    lines = textwrap.wrap(text, int(figure.get_size_inches()[0] * 16))
    figure.supxlabel("\n".join(lines), fontsize=7, color=INK, **TEXT)
