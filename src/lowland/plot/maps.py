"""The map as a scatter plot."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland.plot.colors import GREY, PALETTE, Categories, Continuum, encode_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["save_figure", "scatter_map"]

COLOR_MAP = "viridis"
PANEL = 5.0  # inches


def scatter_map(
    Y: np.ndarray,
    labels: Sequence[Any] | np.ndarray | None = None,
    *,
    title: str | None = None,
    label_name: str | None = None,
    axis_names: Sequence[str] | None = None,
) -> Figure:
    """Draw a map, one point per row.

    Two dimensions give one picture with equal scales. Three or more give the three views of the
    first three axes. One dimension gives a strip, a line per category where there are categories.

    Parameters
    ----------
    Y : array of shape (n_rows, n_components)
        Coordinates.
    labels : array of shape (n_rows,), optional
        Categories, or numbers; many different numbers give a continuous color scale. Of more than
        20 categories the rarest are grey.
    title : str, optional
        Written above the picture.
    label_name : str, optional
        What the labels are, for the legend.
    axis_names : sequence of str, optional
        One per component, for example with the share of variance.

    Returns
    -------
    matplotlib.figure.Figure
        With an Agg canvas; pyplot is not involved.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> data = iris()
    >>> figure = scatter_map(data.X[:, :2], data.labels, label_name="species")
    >>> len(figure.axes)
    1
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    Y = _checked(Y)
    n, dimensions = Y.shape
    colors = None if labels is None else encode_labels(labels, n)
    if isinstance(colors, Continuum) and not np.isfinite(colors.values).any():
        colors = None
    names = list(axis_names or [f"axis {i + 1}" for i in range(dimensions)])
    if dimensions == 1:
        Y, names, views = _strip(Y, colors), [*names, ""], [(0, 1)]
    else:
        views = [(0, 1)] if dimensions == 2 else [(0, 1), (0, 2), (1, 2)]
    figure = Figure(figsize=_size(dimensions, len(views), colors))
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
    FigureCanvasAgg(figure)
    panels = np.atleast_1d(figure.subplots(1, len(views)))
    for axes, (i, j) in zip(panels, views, strict=True):
        mappable = _draw(axes, Y[:, i], Y[:, j], colors)
        _frame(axes, Y[:, [i, j]], _plain(names[i]), _plain(names[j]), equal=dimensions > 1)
    if isinstance(colors, Categories):
        _legend(figure, colors, label_name)
    elif isinstance(colors, Continuum):
        bar = figure.colorbar(mappable, ax=list(panels), shrink=0.7, label=_plain(label_name or ""))
        bar.outline.set_visible(False)
        bar.solids.set_alpha(1.0)
    if title:
        figure.suptitle(_plain(title))
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: int = 150) -> None:
    """Write the picture; the suffix of ``path`` names the format."""
    with warnings.catch_warnings():
        # Names in a script the font lacks are drawn as boxes; that is no reason to complain.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(path, dpi=dpi)


def _checked(Y: np.ndarray) -> np.ndarray:
    Y = np.asarray(Y, dtype=np.float64)
    if Y.ndim != 2 or 0 in Y.shape:
        raise DataError(f"a map has rows and columns, but Y has shape {Y.shape}.")
    if not np.isfinite(Y).all():
        row = int(np.flatnonzero(~np.isfinite(Y).all(axis=1))[0])
        raise DataError(f"the map holds NaN or infinity, first in row {row}.")
    reach = np.abs(Y).max()
    # There are no ticks, so extreme units may be changed; matplotlib widens limits near its own.
    return Y if reach == 0 or 1e-9 < reach < 1e30 else Y / reach


def _size(
    dimensions: int, views: int, colors: Categories | Continuum | None
) -> tuple[float, float]:
    """Inches; larger by what the legend needs, so that the map keeps its size."""
    height = PANEL if dimensions > 1 else PANEL / 2
    if isinstance(colors, Categories):
        entries = (*colors.names, colors.rest or "")
        beside = 0.8 + 0.085 * max(len(name) for name in entries)
        return views * PANEL + beside, max(height, 0.6 + 0.21 * len(entries))
    return views * PANEL + (1.2 if isinstance(colors, Continuum) else 0.3), height


def _strip(Y: np.ndarray, colors: Categories | Continuum | None) -> np.ndarray:
    """A second coordinate that only spreads the points: a line per category, then jitter."""
    jitter = np.random.default_rng(0).uniform(-0.35, 0.35, len(Y))
    line = -colors.codes if isinstance(colors, Categories) else 0
    return np.column_stack([Y[:, 0], line + jitter])


def _draw(axes: Axes, x: np.ndarray, y: np.ndarray, colors: Categories | Continuum | None) -> Any:
    n = x.size
    # From single points that can be seen to a million that shade each other.
    look = {
        "s": float(np.clip(12000.0 / n, 1.0, 36.0)),
        "alpha": float(np.clip(60.0 / np.sqrt(n), 0.15, 0.9)),
        "linewidths": 0,
        "rasterized": True,
    }
    # In random order no category hides the others just because it comes last.
    order = np.random.default_rng(0).permutation(n)
    if isinstance(colors, Continuum):
        missing = np.isnan(colors.values)
        axes.scatter(x[missing], y[missing], c=GREY, **look)
        order = order[~missing[order]]
        return axes.scatter(x[order], y[order], c=colors.values[order], cmap=COLOR_MAP, **look)
    if colors is None:
        return axes.scatter(x, y, c=PALETTE[0], **look)
    styles = [colors.style(code) for code in range(-1, len(colors.names))]
    palette = np.array([color for color, _ in styles])
    markers = np.array([marker for _, marker in styles])
    for rest in (True, False):  # the grey rest lies below
        for marker in np.unique(markers):
            codes = colors.codes[order]
            chosen = order[((codes < 0) == rest) & (markers[codes + 1] == marker)]
            axes.scatter(
                x[chosen], y[chosen], c=palette[colors.codes[chosen] + 1], marker=marker, **look
            )
    return None


def _frame(axes: Axes, Y: np.ndarray, x_name: str, y_name: str, *, equal: bool) -> None:
    low, high = Y.min(axis=0), Y.max(axis=0)
    # A constant axis gets a width of its own; relative, so that huge numbers keep distinct limits.
    width = np.where(high > low, high - low, np.maximum(1.0, np.abs(high) * 1e-3))
    middle = low / 2 + high / 2
    if equal:
        width[:] = width.max()
    axes.set_xlim(middle[0] - 0.54 * width[0], middle[0] + 0.54 * width[0])
    axes.set_ylim(middle[1] - 0.54 * width[1], middle[1] + 0.54 * width[1])
    if equal:
        axes.set_aspect("equal")
    axes.set(xticks=[], yticks=[], xlabel=x_name, ylabel=y_name)
    axes.spines[:].set_color("#d0d0d0")


def _legend(figure: Figure, colors: Categories, label_name: str | None) -> None:
    from matplotlib.lines import Line2D

    entries = [(name, *colors.style(code)) for code, name in enumerate(colors.names)]
    if colors.rest:
        entries.append((colors.rest, *colors.style(-1)))
    handles = [
        Line2D([], [], linestyle="", marker=marker, markersize=6, markeredgewidth=0, color=color)
        for _, color, marker in entries
    ]
    figure.legend(
        handles,
        [_plain(name) for name, *_ in entries],
        title=_plain(label_name) if label_name else None,
        loc="outside right center",
        frameon=False,
        ncols=1 if len(entries) <= 21 else 2,
        handletextpad=0.2,
    )


def _plain(text: str) -> str:
    """Text for matplotlib: no formulas between dollars, and no underscore that hides an entry."""
    text = text.replace("$", r"\$")
    return f"\u2009{text}" if text.startswith("_") else text
