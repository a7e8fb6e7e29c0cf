"""The quality of a map: R_NX curves, the Shepard diagram, distortion, cost of approximations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError
from lowland.plot._figure import (
    check_map,
    check_vector,
    new_figure,
    one_line,
    open_frame,
    write,
    write_legend,
)
from lowland.plot._style import INK, OKABE_ITO, category_colors
from lowland.plot.colors import continuum, robust_limits
from lowland.plot.maps import Captions, draw_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = ("-", "--", ":", "-.")
MOST_POINTS = 1000


def rnx_plot(
    curves: Mapping[str, Sequence[float] | np.ndarray],
    *,
    errors: Mapping[str, Sequence[float] | np.ndarray] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw R_NX of several maps over the size K of the neighborhood, on a logarithmic scale.

    1 is a perfect map and 0 a random one. The left end of a curve is about the nearest neighbors,
    the right end about the large-scale layout. The legend gives the area under each curve,
    sum R_NX(K)/K / sum 1/K, best first.

    Parameters
    ----------
    curves : dict from name to array of shape (n_rows - 2,)
        R_NX for K = 1, 2, ..., as ``values`` of :func:`lowland.metrics.rnx_curve`.
    errors : dict from name to array, optional
        Standard errors of curves measured on a sample; two of them are shaded on each side.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.metrics import rnx_curve
    >>> X = iris().X
    >>> figure = rnx_plot({"petals": rnx_curve(X, X[:, 2:]).values})
    >>> figure.axes[0].get_legend().get_texts()[0].get_text()
    'petals (0.48)'
    """
    if not isinstance(curves, Mapping):
        raise DataError("curves must be a dict from names to curves.")
    if not curves:
        raise DataError("there are no curves to draw.")
    checked = {name: check_vector(curve, f"the curve {name!r}") for name, curve in curves.items()}
    areas, lines = {}, {}
    figure = new_figure(6.6, 4.2, title)
    axes = figure.subplots()
    palette = category_colors(min(len(checked), 10))
    for i, (name, curve) in enumerate(checked.items()):
        areas[name] = float(np.average(curve, weights=1.0 / np.arange(1, curve.size + 1)))
        color, line = palette[i % 10], LINES[i // 10 % len(LINES)]
        shown = _drawn_positions(curve.size)
        style: dict[str, Any] = {"linewidth": 1.6, "color": color, "linestyle": line}
        (lines[name],) = axes.plot(shown + 1, curve[shown], **style)
        if errors is not None and name in errors:
            error = check_vector(errors[name], f"the errors of {name!r}", curve.size)[shown]
            band = curve[shown] - 2 * error, curve[shown] + 2 * error
            axes.fill_between(shown + 1, *band, color=color, alpha=0.2, linewidth=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    values = np.concatenate(list(checked.values()))
    lowest, highest = float(values.min()), float(values.max())
    axes.set_ylim(min(0.0, 1.05 * lowest), min(1.0, 1.08 * max(highest, 0.1)))
    axes.set_xlim(1, max(2, *(curve.size for curve in checked.values())))
    open_frame(axes, "size K of the neighborhood", "R_NX(K)")
    best_first = sorted(checked, key=lambda name: -areas[name])
    names = [f"{one_line(name, 24)} ({areas[name]:.2f})" for name in best_first]
    beside = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "title": "map (area)"}
    write_legend(axes, [lines[name] for name in best_first], names, **beside)
    return figure


def _drawn_positions(n: int) -> np.ndarray:
    """Positions that are dense enough for a logarithmic scale: all at first, then fewer."""
    steps = np.unique(np.round(np.geomspace(1, n, MOST_POINTS)).astype(np.int64))
    return (steps if n > MOST_POINTS else np.arange(1, n + 1)) - 1


# The Shepard diagram: distances in the map against distances in the data.


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
    import matplotlib
    from matplotlib.colors import ListedColormap, LogNorm, Normalize

    data = check_vector(data, "data")
    map_ = check_vector(map_, "map_", data.size)
    for name, values in (("data", data), ("map_", map_)):
        if values.min() < 0:
            raise DataError(f"{name} holds {values.min():g}; distances are not negative.")
    figure = new_figure(5.6, 4.6, title)
    axes = figure.subplots()
    n_bins = int(np.clip(np.sqrt(data.size) / 1.5, 10, 120))
    box = [[0.0, float(values.max()) or 1.0] for values in (data, map_)]
    counts, x_edges, y_edges = np.histogram2d(data, map_, n_bins, box)
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
    if fit is not None:
        fit = check_vector(fit, "fit", data.size)
        order = np.argsort(data, kind="stable")
        axes.plot(data[order], fit[order], color=OKABE_ITO[3], linewidth=1.5, label="monotone fit")
        axes.legend(loc="upper left", frameon=False)
    axes.set(xlim=box[0], ylim=box[1])
    open_frame(axes, "distance in the data", "distance in the map")
    return figure


# A map colored by how well each point is placed.


def distortion_map(
    Y: np.ndarray,
    values: Sequence[float] | np.ndarray,
    *,
    measure: str = "trust",
    best: float = 1.0,
    title: str | None = None,
    axis_names: Sequence[str] | None = None,
    density: bool | None = None,
) -> Figure:
    """Draw a map colored by a number per point, such as its trustworthiness.

    Well placed points are bright and badly placed ones dark. The scale ends at ``best``, and begins
    at the worst value or, where a few are far worse than all others, at the worst 0.5 %.

    Parameters
    ----------
    Y : array of shape (n_rows, n_components)
        Coordinates.
    values : array of shape (n_rows,)
        For example of :func:`lowland.metrics.point_trust` or :func:`point_continuity`; NaN where
        a point was not measured.
    measure : str, default="trust"
        What the values are, for the color bar.
    best : float, default=1.0
        The value of a perfectly placed point; 0 for errors such as
        :func:`lowland.metrics.point_stress`.
    title, axis_names, density
        See :func:`scatter_map`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.metrics import point_trust
    >>> X = iris().X
    >>> figure = distortion_map(X[:, :2], point_trust(X, X[:, :2]))
    >>> figure.axes[1].get_ylabel()
    'trust'
    """
    Y = check_map(Y)
    values = check_vector(values, "values", len(Y), may_be_missing=True)
    finite = values[np.isfinite(values)]
    coloring: Any = continuum(values)
    if finite.size:
        errors = best <= finite.min() and best < finite.max()
        low, high = robust_limits(finite)
        limits = (best, high) if errors else (low if low < best else best - 1.0, best)
        coloring = continuum(values, limits=limits, color_map="plasma_r" if errors else "plasma")
    return draw_map(Y, coloring, Captions(title, measure, axis_names), density=density)


# Time and error of an approximation, by the parameter that trades one for the other.


def opening_angle_plot(
    angles: Sequence[float] | np.ndarray,
    seconds: Sequence[float] | np.ndarray,
    errors: Sequence[float] | np.ndarray,
    exact_seconds: float | None = None,
    *,
    usual: float = 0.5,
    title: str | None = None,
) -> Figure:
    """Draw the time and the error of Barnes and Hut's approximation, by its opening angle.

    Parameters
    ----------
    angles, seconds, errors : arrays of shape (n_angles,)
        As :func:`lowland.metrics.barnes_hut_cost` measures them.
    exact_seconds : float, optional
        Time of the exact computation, drawn as a line.
    usual : float, default=0.5
        The angle in general use, which is marked.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = opening_angle_plot([0.2, 0.5, 1.0], [0.1, 0.04, 0.02], [0.001, 0.01, 0.05], 0.5)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['milliseconds per step', 'error of the forces, %']
    """
    angles = check_vector(angles, "angles")
    seconds = check_vector(seconds, "seconds", angles.size)
    errors = check_vector(errors, "errors", angles.size)
    if (seconds < 0).any() or (errors < 0).any():
        raise DataError("seconds and errors must be 0 or more.")
    order = np.argsort(angles, kind="stable")
    figure = new_figure(9.0, 3.6, title)
    left, right = figure.subplots(1, 2)
    for axes, values, color in ((left, 1e3 * seconds, 0), (right, 100 * errors, 3)):
        axes.plot(angles[order], values[order], "o-", color=OKABE_ITO[color], markersize=4)
        axes.axvline(usual, color="#b0b0b0", linewidth=0.8, linestyle=":", zorder=0)
        axes.set_ylim(0, 1.08 * (float(values.max()) or 1.0))
    if exact_seconds is not None:
        exact, top = 1e3 * float(exact_seconds), left.get_ylim()[1]
        drawn = exact <= 3 * top  # a line far above would press the curve to the bottom
        if drawn:
            left.axhline(exact, color=INK, linewidth=1.0, linestyle="--")
            left.set_ylim(0, max(top, 1.15 * exact))
        text = f"all pairs: {exact:.3g} ms" + " (above the picture)" * (not drawn)
        height = exact / left.get_ylim()[1] + 0.02 if drawn else 0.94
        at = {"transform": left.transAxes, "ha": "right", "va": "baseline"}
        write(left, 0.98, height, text, 9, **at)
    open_frame(left, "opening angle", "milliseconds per step")
    open_frame(right, "opening angle", "error of the forces, %")
    return figure
