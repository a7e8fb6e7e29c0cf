"""The points of a map inside a frame: single ones, or shades of their density."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowland.plot._density import DENSE, draw_density
from lowland.plot._figure import note
from lowland.plot.colors import Categories, Coloring, Continuum
from lowland.plot.palettes import GREY, OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def is_dense(n: int, density: bool | None) -> bool:
    """Whether to shade by density: as the user says, else by the number of points."""
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
    axes.set_xlim(middle[0] - 0.54 * width[0], middle[0] + 0.54 * width[0])
    axes.set_ylim(middle[1] - 0.54 * width[1], middle[1] + 0.54 * width[1])
    axes.set(xticks=[], yticks=[])
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
    x, y = Y.T
    if is_dense(x.size, density):
        aspect = axes.get_aspect()
        draw_density(axes, x, y, coloring, inches)
        axes.set_aspect(aspect)
        if remark:
            note(axes, f"{x.size:,} points, shaded by density")
        return
    look = point_look(x.size, inches)
    scatter_in_random_order(axes, (x, y), coloring, look)


def point_look(n: int, inches: float) -> dict[str, Any]:
    """Size and opacity of the points: the more points, the smaller and the fainter."""
    smaller = (inches / 5.0) ** 2
    return {
        "s": float(np.clip(14000.0 * smaller / n, 1.0, 36.0 * max(smaller, 0.4))),
        "alpha": float(np.clip(60.0 / np.sqrt(n), 0.3, 0.9)),
        "linewidths": 0,
        "rasterized": True,
    }


def scatter_in_random_order(
    axes: Any, coordinates: tuple[np.ndarray, ...], coloring: Coloring, look: dict[str, Any]
) -> None:
    """One call per marker; the order is random, so that the last category does not hide others."""
    order = np.random.default_rng(0).permutation(coordinates[0].size)
    if coloring is None:
        axes.scatter(*coordinates, c=OKABE_ITO[0], **look)
        return
    grey = coloring.missing() if isinstance(coloring, Continuum) else coloring.codes < 0
    for chosen in (order[grey[order]], order[~grey[order]]):  # grey points are drawn first
        if not chosen.size:
            continue
        if isinstance(coloring, Continuum):
            _scatter_values(axes, coordinates, coloring, chosen, look)
        else:
            _scatter_categories(axes, coordinates, coloring, chosen, look)


def _scatter_values(
    axes: Any,
    coordinates: tuple[np.ndarray, ...],
    coloring: Continuum,
    chosen: np.ndarray,
    look: dict[str, Any],
) -> None:
    points = [x[chosen] for x in coordinates]
    if np.isnan(coloring.values[chosen[0]]):
        axes.scatter(*points, c=GREY, **look)
        return
    axes.scatter(
        *points,
        c=np.clip(coloring.values[chosen], coloring.low, coloring.high),
        vmin=coloring.low,
        vmax=coloring.high,
        cmap=coloring.color_map,
        **look,
    )


def _scatter_categories(
    axes: Any,
    coordinates: tuple[np.ndarray, ...],
    coloring: Categories,
    chosen: np.ndarray,
    look: dict[str, Any],
) -> None:
    from matplotlib.colors import to_rgba_array

    codes = coloring.codes[chosen]
    colors = to_rgba_array(coloring.palette())
    markers = np.array([coloring.marker(code) for code in range(-2, len(coloring.names))])
    of_rows = markers[codes + 2]
    for marker in np.unique(of_rows):
        same = of_rows == marker
        points = [x[chosen[same]] for x in coordinates]
        axes.scatter(*points, c=colors[codes[same] + 2], marker=marker, **look)
