"""The curse of dimensionality (Bellman 1961) in three pictures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland.plot._figure import TEXT, bare, check_table, name_axes, new_figure, write_title
from lowland.plot.palettes import INK, OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_DIMENSIONS = 20  # of the edges
TOLD = 10  # dimensions for which the edges are written down
SPHERES = 10
SHARES = (0.01, 0.1, 0.5)
WITHOUT_DATA = (2, 10, 100)  # columns of the uniform tables
MOST_ROWS = 1000  # whose pairs are drawn
BINS = 60


def curse(X: Any = None, *, title: str | None = None, random_state: int = 0) -> Figure:
    """Draw what many dimensions do to neighborhoods, to volumes and to distances.

    Left, the edge r^(1/d) of a cube that holds the share r of evenly spread data: 1 % of the data
    in 10 dimensions reach over 63 % of every axis. In the middle, the volume of the sphere that
    fits into a cube, pi^(d/2) / (Gamma(d/2 + 1) 2^d): 78.5 % in 2 dimensions, 52.4 % in 3, so that
    nearly all of a cube lies in its corners. Right, all distances between rows, divided by their
    mean: the narrower the peak, the less near and far rows differ.

    Parameters
    ----------
    X : array or data frame of shape (n_rows, n_columns), optional
        A table, whose distances are drawn beside those of uniform random data of the same size.
        Columns count as they are; divide them by their deviations if their units differ. Of more
        than 1 000 rows a random sample is drawn. None draws uniform data of 2, 10 and 100 columns.
    title : str, optional
        Written above the picture.
    random_state : int, default=0
        Seed of the uniform data and of the sample.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    Bellman (1961), Adaptive Control Processes; Hastie, Tibshirani & Friedman (2009), The Elements
    of Statistical Learning, section 2.5; Beyer et al. (1999), ICDT.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> figure = curse(iris().X)
    >>> [text.get_text() for text in figure.axes[2].get_legend().get_texts()]
    ['this table: 150 x 4', 'uniform data: 150 x 4']
    """
    rng = np.random.default_rng(random_state)
    if X is None:
        tables = {f"{p} columns": rng.random((500, p)) for p in WITHOUT_DATA}
    else:
        X = check_table(np.asarray(X), "X")
        size = f"{X.shape[0]} x {X.shape[1]}"
        if len(X) > MOST_ROWS:
            X = X[np.sort(rng.choice(len(X), MOST_ROWS, replace=False))]
        tables = {f"this table: {size}": X, f"uniform data: {size}": rng.random(X.shape)}
    figure = new_figure(12.0, 3.6)
    edges, spheres, distances = figure.subplots(1, 3)
    _draw_edges(edges)
    _draw_spheres(spheres)
    _draw_distances(distances, tables)
    for axes in (edges, spheres, distances):
        bare(axes)
    write_title(figure, title)
    return figure


def edge_length(share: float, dimensions: Any) -> Any:
    """The edge of a cube that holds a share of the unit cube: share^(1/d)."""
    return share ** (1.0 / np.asarray(dimensions))


def sphere_share(dimensions: int) -> float:
    """The share of a cube that the sphere inside of it fills: pi^(d/2) / (Gamma(d/2 + 1) 2^d)."""
    half = dimensions / 2
    return math.exp(half * math.log(math.pi) - math.lgamma(half + 1) - dimensions * math.log(2))


def distance_spread(X: np.ndarray) -> np.ndarray:
    """All distances between different rows, each pair once, divided by their mean."""
    from scipy.spatial.distance import pdist

    # In units in which squares of differences do not overflow.
    distances = pdist(X / (float(np.abs(X).max()) or 1.0))
    mean = distances.mean() if distances.size else 0.0
    return distances / mean if mean > 0 else distances


def _draw_edges(axes: Axes) -> None:
    dimensions = np.arange(1, MOST_DIMENSIONS + 1)
    for color, share in reversed([*zip(OKABE_ITO, SHARES, strict=False)]):
        edge = 100 * edge_length(share, dimensions)
        label = f"{100 * share:g} % of the data: {edge[TOLD - 1]:.0f} % in {TOLD} dimensions"
        axes.plot(dimensions, edge, "o-", color=color, markersize=3, label=label)
    axes.axvline(TOLD, color="#d0d0d0", linewidth=0.8, zorder=0)
    axes.set(xlim=(0.5, MOST_DIMENSIONS + 0.5), ylim=(0, 104), xticks=[1, 5, 10, 15, 20])
    _write_legend(axes, "lower right")
    axes.set_title("edge of a cube with a share of the data", fontsize=10, **TEXT)
    name_axes(axes, "dimensions", "% of the whole edge")


def _draw_spheres(axes: Axes) -> None:
    dimensions = list(range(1, SPHERES + 1))
    shares = [100 * sphere_share(d) for d in dimensions]
    axes.bar(dimensions, shares, color=OKABE_ITO[0], width=0.8)
    for d, share in zip(dimensions, shares, strict=True):
        digits = 0 if d == 1 else 1 if share >= 1 else 2
        axes.text(d, share + 1.5, f"{share:.{digits}f}", ha="center", fontsize=8, color=INK, **TEXT)
    axes.set(ylim=(0, 109), xticks=dimensions)
    axes.set_title("sphere inside of a cube", fontsize=10, **TEXT)
    name_axes(axes, "dimensions", "% of the cube's volume")


def _draw_distances(axes: Axes, tables: dict[str, np.ndarray]) -> None:
    spreads = {name: distance_spread(X) for name, X in tables.items()}
    most = max(2.0, *(float(np.quantile(s, 0.995)) if s.size else 0.0 for s in spreads.values()))
    edges = np.linspace(0.0, most, BINS + 1)
    for color, (name, spread) in zip(OKABE_ITO, spreads.items(), strict=False):
        counts = np.histogram(spread, edges)[0]
        density = 100 * counts / max(spread.size, 1)
        axes.stairs(density, edges, color=color, linewidth=1.4, label=name)
        axes.stairs(density, edges, color=color, fill=True, alpha=0.15, linewidth=0)
    axes.set_xlim(0, most)
    axes.set_ylim(0, 1.3 * axes.get_ylim()[1])  # with room for the legend
    _write_legend(axes, "upper right")
    axes.set_title("distances between rows", fontsize=10, **TEXT)
    name_axes(axes, "distance / mean distance", "% of the pairs")


def _write_legend(axes: Axes, place: str) -> None:
    legend = axes.legend(loc=place, frameon=False, fontsize=8)
    for text in legend.get_texts():
        text.set(**TEXT)
