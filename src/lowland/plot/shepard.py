"""The Shepard diagram: distances in the map against distances in the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lowland._core.errors import DataError
from lowland.plot._figure import bare, check_vector, name_axes, new_figure, write_title
from lowland.plot.palettes import OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def shepard_plot(
    data: Sequence[float] | np.ndarray,
    map_: Sequence[float] | np.ndarray,
    fit: Sequence[float] | np.ndarray | None = None,
    *,
    title: str | None = None,
) -> Figure:
    """Draw how often each distance in the data became each distance in the map.

    A cloud around a straight line: distances can be read from the map. Around a rising curve: their
    order can. A wide cloud: neither.

    Parameters
    ----------
    data, map_ : arrays of shape (n_pairs,)
        Distances of the same pairs, as ``data`` and ``map`` of
        :func:`lowland.metrics.shepard_diagram`.
    fit : array of shape (n_pairs,), optional
        The monotone function through the cloud, at the same pairs.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.metrics import shepard_diagram
    >>> X = iris().X
    >>> figure = shepard_plot(*shepard_diagram(X, X[:, 2:]))
    >>> figure.axes[0].get_xlabel()
    'distance in the data'
    """
    data = check_vector(data, "data")
    map_ = check_vector(map_, "map_", data.size)
    for name, values in (("data", data), ("map_", map_)):
        if values.min() < 0:
            raise DataError(f"{name} holds {values.min():g}; distances are not negative.")
    figure = new_figure(5.6, 4.6)
    axes = figure.subplots()
    n_bins = int(np.clip(np.sqrt(data.size) / 1.5, 10, 120))
    box = [[0.0, float(values.max()) or 1.0] for values in (data, map_)]
    counts, x_edges, y_edges = np.histogram2d(data, map_, n_bins, box)
    _shade(figure, axes, x_edges, y_edges, counts)
    if fit is not None:
        fit = check_vector(fit, "fit", data.size)
        order = np.argsort(data, kind="stable")
        axes.plot(data[order], fit[order], color=OKABE_ITO[3], linewidth=1.5, label="monotone fit")
        axes.legend(loc="upper left", frameon=False)
    axes.set(xlim=box[0], ylim=box[1])
    bare(axes)
    name_axes(axes, "distance in the data", "distance in the map")
    write_title(figure, title)
    return figure


def _shade(
    figure: Figure, axes: Axes, x_edges: np.ndarray, y_edges: np.ndarray, counts: np.ndarray
) -> None:
    import matplotlib
    from matplotlib.colors import ListedColormap, LogNorm, Normalize

    top = counts.max()
    # the lightest blues do not stand out from white
    blues = ListedColormap(matplotlib.colormaps["Blues"](np.linspace(0.2, 1.0, 256)))
    norm = LogNorm(1, top) if top > 1 else Normalize(0, 1)
    shown = np.ma.masked_equal(counts.T, 0)
    image = axes.pcolormesh(x_edges, y_edges, shown, cmap=blues, norm=norm, rasterized=True)
    bar = figure.colorbar(image, ax=axes, shrink=0.7, aspect=25)
    bar.set_label("pairs")
    bar.outline.set_visible(False)
    bar.ax.minorticks_off()
    bar.ax.yaxis.set_major_formatter("{x:g}")
