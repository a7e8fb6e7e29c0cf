"""The points of a map inside a frame: single ones, or shades of their density."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland.plot._figure import note
from lowland.plot._style import GREY, OKABE_ITO
from lowland.plot.colors import MISSING, OTHER, Categories, Coloring, Continuum, of_rows, row_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A picture of very many points: count them per cell, and shade by the count.


DENSE = 100_000  # more points than this are shaded
FEWEST_CELLS, MOST_CELLS = 150, 600  # along a map of five inches


class Cells(NamedTuple):
    """How many cells hold points, and the number of the cell of every point among them."""

    n: int
    member: np.ndarray


def density_image(
    x: np.ndarray,
    y: np.ndarray,
    coloring: Coloring,
    box: tuple[float, float, float, float],
    n_cells: int,
    background: np.ndarray,
) -> np.ndarray:
    """RGB of n_cells x n_cells, first row lowest.

    The hue of a cell is that of the category most of its points have (a named one before the grey
    rest; of equals the first), or of their mean value. The more points, the stronger it is.
    """
    column = ((x - box[0]) * (n_cells / (box[1] - box[0]))).astype(np.int64)
    row = ((y - box[2]) * (n_cells / (box[3] - box[2]))).astype(np.int64)
    cell = np.clip(row, 0, n_cells - 1) * n_cells + np.clip(column, 0, n_cells - 1)
    counts = np.bincount(cell, minlength=n_cells * n_cells)
    occupied = np.flatnonzero(counts)
    position = np.cumsum(counts > 0) - 1  # of a cell among those that hold points
    cells = Cells(occupied.size, position[cell])
    strength = shades(counts[occupied])
    of_cells: Coloring
    if isinstance(coloring, Categories):
        of_cells = _winners(cells, coloring)
        strength = 0.3 + 0.7 * strength
    elif isinstance(coloring, Continuum):
        of_cells = _means(cells, coloring)
        strength = 0.55 + 0.45 * strength  # a faint color is hard to compare with a color bar
    else:
        of_cells = Continuum(0.35 + 0.65 * strength, 0.0, 1.0, "Blues")
        strength = np.ones_like(strength)
    image = np.tile(background, (n_cells * n_cells, 1))
    image[occupied] += strength[:, None] * (row_colors(of_cells)[:, :3] - background)
    return image.reshape(n_cells, n_cells, 3)


def shades(counts: np.ndarray) -> np.ndarray:
    """From 0 for the least to 1 for all but the fullest cells, on a logarithmic scale."""
    top = float(np.quantile(counts, 0.995))
    if top <= 1.0:
        return np.ones(counts.size)
    return np.minimum(np.log(counts) / np.log(top), 1.0)


def _winners(cells: Cells, categories: Categories) -> Categories:
    """The category of each cell."""
    m = len(categories.names) + 2  # codes begin at -2
    table = np.bincount(cells.member * m + categories.codes + 2, minlength=cells.n * m)
    table = table.reshape(-1, m)
    codes = np.where(table[:, 1] > 0, OTHER, MISSING)  # missing: only where there is nothing else
    if m > 2:
        named = table[:, 2:]
        codes = np.where(named.any(axis=1), named.argmax(axis=1), codes)
    return dataclasses.replace(categories, codes=codes)


def _means(cells: Cells, continuum: Continuum) -> Continuum:
    """The mean of each cell, as a share of the scale; NaN if nothing is known."""
    known = ~continuum.missing()
    values = np.clip(continuum.values[known], continuum.low, continuum.high)
    share = (values - continuum.low) / (continuum.high - continuum.low)
    sums = np.bincount(cells.member[known], weights=share, minlength=cells.n)
    counts = np.bincount(cells.member[known], minlength=cells.n)
    means = np.where(counts, sums / np.maximum(counts, 1), np.nan)
    return Continuum(means, 0.0, 1.0, continuum.color_map)


def is_dense(n: int, density: bool | None) -> bool:
    """Whether to shade by density: as the user chose, else by the number of points."""
    return n > DENSE if density is None else density


def frame(axes: Axes, Y: np.ndarray, *, equal: bool = True) -> None:
    """Limits around two coordinates, with equal scales where distances are to be read."""
    low, high = Y.min(axis=0), Y.max(axis=0)
    # A constant axis gets a relative width, so that limits of huge numbers stay distinct.
    width = np.where(high > low, high - low, np.maximum(1.0, np.abs(high) * 1e-3))
    middle = low / 2 + high / 2
    if equal:
        if (high > low).any():  # the width of a constant axis must not set the scale
            width[:] = (high - low).max()
        axes.set_aspect("equal")
        width[:] = width.max()
    low, high = middle - 0.54 * width, middle + 0.54 * width
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
    axes.spines[:].set_color("#d0d0d0")


def draw_points(
    axes: Axes,
    Y: np.ndarray,
    coloring: Coloring,
    inches: float,
    *,
    density: bool | None = None,
    remark: bool = True,
) -> None:
    """Draw two coordinates into a frame of so many inches whose limits are set."""
    from matplotlib.colors import to_rgb

    x, y = Y.T
    if not is_dense(x.size, density):
        scatter_in_random_order(axes, (x, y), coloring, point_style(x.size, inches))
        return
    # As many cells as the points can fill, and not more than there are pixels.
    n_cells = int(np.clip(np.sqrt(x.size), FEWEST_CELLS, MOST_CELLS) * min(inches / 5.0, 1.0))
    box = (*axes.get_xlim(), *axes.get_ylim())
    image = density_image(x, y, coloring, box, n_cells, np.array(to_rgb(axes.get_facecolor())))
    axes.imshow(image, extent=box, origin="lower", aspect=axes.get_aspect(), zorder=1)
    if remark:
        note(axes, f"{x.size:,} points, shaded by density")


# How the user wants the points of every picture of a map, whichever function draws it.
_ASKED: contextvars.ContextVar[Mapping[str, Any] | None] = contextvars.ContextVar("asked")


@contextlib.contextmanager
def asked_look(look: Mapping[str, Any]) -> Iterator[None]:
    """While the block runs, points are drawn with this look instead of the usual one."""
    token = _ASKED.set(look)
    try:
        yield
    finally:
        _ASKED.reset(token)


def point_style(n: int, inches: float) -> dict[str, Any]:
    """Size and opacity of the points: the more points, the smaller and the fainter."""
    smaller = (inches / 5.0) ** 2
    return {
        "s": float(np.clip(14000.0 * smaller / n, 1.0, 36.0 * max(smaller, 0.4))),
        "alpha": float(np.clip(60.0 / np.sqrt(n), 0.3, 0.9)),
        "linewidths": 0,
        "rasterized": True,
        **(_ASKED.get(None) or {}),
    }


def scatter_in_random_order(
    axes: Any, coordinates: Sequence[np.ndarray], coloring: Coloring, style: dict[str, Any]
) -> None:
    """One call per marker; the order is random, so that the last category does not hide others."""
    if coloring is None:
        axes.scatter(*coordinates, c=OKABE_ITO[0], **style)
        return
    order = np.random.default_rng(0).permutation(coordinates[0].size)
    grey = coloring.missing() if isinstance(coloring, Continuum) else coloring.codes < 0
    for rows in (order[grey[order]], order[~grey[order]]):  # grey points are drawn first
        if rows.size:
            for chosen, look in _alike(of_rows(coloring, rows)):
                axes.scatter(*[x[rows[chosen]] for x in coordinates], **look, **style)


def _alike(coloring: Coloring) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Points that one call can draw, and their colors and marker."""
    if isinstance(coloring, Categories):
        markers = np.array([coloring.marker(code) for code in range(-2, len(coloring.names))])
        of_points, colors = markers[coloring.codes + 2], row_colors(coloring)
        for marker in np.unique(of_points):
            same = of_points == marker
            yield same, {"c": colors[same], "marker": marker}
    elif coloring is not None and coloring.missing().all():
        yield slice(None), {"c": GREY}
    elif coloring is not None:
        low, high = coloring.low, coloring.high
        scale = {"vmin": low, "vmax": high, "cmap": coloring.color_map}
        yield slice(None), {"c": np.clip(coloring.values, low, high), **scale}
