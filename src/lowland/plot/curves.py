"""Curves: the loss over the steps, variances of components, scores of columns, many dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError, ParameterError
from lowland._engines.linalg.principal_axes import elbow
from lowland.plot._figure import (
    check_table,
    check_vector,
    new_figure,
    one_each,
    one_line,
    open_frame,
    write,
    write_legend,
)
from lowland.plot._style import INK, OKABE_ITO, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGE_FALL = 100.0  # from the highest to the lowest loss, for a logarithmic scale


def loss_plot(
    losses: Sequence[float] | np.ndarray,
    steps: Sequence[float] | np.ndarray | None = None,
    *,
    held_out: Sequence[float] | np.ndarray | None = None,
    exaggeration_end: float | None = None,
    loss_name: str = "loss",
    step_name: str = "step",
    title: str | None = None,
) -> Figure:
    """Draw the loss over the steps of the descent.

    The scale is logarithmic if the loss falls by a factor of more than 100.

    Parameters
    ----------
    losses : array of shape (n_looks,)
        As ``TSNE.loss_history_``.
    steps : array of shape (n_looks,), optional
        At which steps the loss was looked at; None numbers them.
    held_out : array of shape (n_looks,), optional
        The loss of rows that were held out of the training, at the same steps; its lowest value is
        marked.
    exaggeration_end : float, optional
        The step at which early exaggeration ended; it is marked, because losses before and after
        may not be of the same function.
    loss_name : str, default="loss"
        For the axis, for example "KL divergence".
    step_name : str, default="step"
        For the other axis, for example "epoch".
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = loss_plot([4.0, 2.0, 1.4, 1.2], [50, 100, 150, 200], exaggeration_end=100)
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['end of early exaggeration']
    """
    losses = check_vector(losses, "losses")
    if steps is None:
        steps = np.arange(1.0, losses.size + 1)
    else:
        steps = check_vector(steps, "steps", losses.size)
        if (np.diff(steps) < 0).any():
            raise DataError("steps must not go back.")
    curves = {"training": losses}
    if held_out is not None:
        curves["held out"] = check_vector(held_out, "held_out", losses.size)
    figure = new_figure(6.0, 3.8, title)
    axes = figure.subplots()
    marker = "o" if losses.size <= 60 else ""
    for color, (name, curve) in zip(OKABE_ITO, curves.items(), strict=False):
        axes.plot(steps, curve, color=color, marker=marker, markersize=3, label=name)
    if held_out is not None:
        best = int(np.argmin(curves["held out"]))
        ring: dict[str, Any] = {"marker": "o", "markersize": 8, "fillstyle": "none"}
        lowest = curves["held out"][best]
        axes.plot(steps[best], lowest, color=OKABE_ITO[1], label="lowest", linestyle="", **ring)
        write_legend(axes, fontsize=9)
    _choose_scale(axes, np.concatenate(list(curves.values())))
    open_frame(axes, step_name, loss_name)
    if exaggeration_end is not None:
        axes.axvline(exaggeration_end, color=INK, linewidth=0.8, linestyle=":")
        low, high = axes.get_xlim()
        late = exaggeration_end > low + 0.6 * (high - low)
        aside, side = (-4, "right") if late else (4, "left")
        place = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points"}
        look = {"ha": side, "va": "top", "fontsize": 8, "color": INK, **TEXT}
        end = (exaggeration_end, 1.0)
        axes.annotate("end of early exaggeration", end, (aside, -2), **place, **look)
    return figure


def _choose_scale(axes: Axes, losses: np.ndarray) -> None:
    low, high = float(losses.min()), float(losses.max())
    if 0 < LARGE_FALL * low < high:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")  # powers of ten as formulas need other fonts
        axes.yaxis.set_minor_formatter("")
    elif low >= 0:
        # The scale starts at zero unless that would flatten the curve.
        axes.set_ylim(bottom=0 if low < 0.7 * high else None)


# The variance of each component, and of the first k together.


def scree_plot(
    shares: Sequence[float] | np.ndarray,
    *,
    marks: Sequence[float] = (0.9, 0.95, 0.99),
    chance: Sequence[float] | np.ndarray | None = None,
    show_elbow: bool = False,
    title: str | None = None,
) -> Figure:
    """Draw the share of the variance of each component, and the share of the first k together.

    Parameters
    ----------
    shares : array of shape (n_components,)
        Shares of the whole variance, as in ``PCA.explained_variance_ratio_``; they need not add up
        to 1.
    marks : sequence of float, default=(0.9, 0.95, 0.99)
        For each that is reached, the number of components is written down.
    chance : array, optional
        Shares that the components would have by chance, as
        :func:`lowland.metrics.chance_shares` gives them, drawn as a line; the number of components
        before the first that chance would give as well is written down.
    show_elbow : bool, default=False
        Whether to mark the elbow: the component farthest below the line from the first to the
        last one, after which the shares fall slowly.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = scree_plot([0.6, 0.25, 0.1, 0.05])
    >>> [text.get_text() for text in figure.axes[1].texts]
    ['90 %: 3 components', '95 %: 3 components', '99 %: 4 components']
    """
    shares = check_vector(shares, "shares")
    if (shares < -1e-12).any() or shares.sum() > 1 + 1e-6:
        found = f"go from {shares.min():g} and add up to {shares.sum():g}"
        wanted = "at least 0 and add up to 1 at most"
        raise DataError(f"shares must be {wanted}, but {found}; divide by the whole variance.")
    figure = new_figure(9.0, 3.8, title)
    each, together = figure.subplots(1, 2)
    number = np.arange(1, shares.size + 1)
    if shares.size <= 60:
        each.bar(number, 100 * shares, color=OKABE_ITO[0], width=0.8)
    else:  # too many bars to tell apart
        each.plot(number, 100 * shares, color=OKABE_ITO[0])
        each.fill_between(number, 0, 100 * shares, color=OKABE_ITO[0], alpha=0.25, linewidth=0)
    each.set_ylim(bottom=0)
    if chance is not None:
        by_chance = check_vector(chance, "chance")[: shares.size]
        above = shares[: by_chance.size] > by_chance
        k = int(above.size if above.all() else np.argmin(above))
        look: dict[str, Any] = {"color": OKABE_ITO[1], "linewidth": 1.6}
        look["label"] = f"chance: {k} component{'s' * (k != 1)} above it"
        each.plot(number[: by_chance.size], 100 * by_chance, "--", **look)
    if show_elbow:
        k = elbow(shares)
        look = {"color": OKABE_ITO[3], "linewidth": 1}
        each.plot([1, shares.size], [100 * shares[0], 100 * shares[-1]], ":", **look)
        look |= {"markersize": 7, "label": f"elbow: component {k}", "zorder": 5}
        each.plot(k, 100 * shares[k - 1], "o", **look)
    if chance is not None or show_elbow:
        write_legend(each, fontsize=9)
    open_frame(each, "component", "% of the variance")
    _together(together, number, np.cumsum(shares), marks)
    for axes in (each, together):
        axes.set_xlim(0.4, shares.size + 0.6)
        axes.xaxis.get_major_locator().set_params(integer=True)
    return figure


def _together(
    axes: Axes, number: np.ndarray, cumulative: np.ndarray, marks: Sequence[float]
) -> None:
    few = number.size <= 60
    axes.plot(number, 100 * cumulative, color=OKABE_ITO[0], marker="o" if few else "", markersize=3)
    axes.set_ylim(0, 104)
    open_frame(axes, "components together", "% of the variance")
    for mark in marks:
        # A sum that misses the mark by rounding only reaches it.
        reached = np.flatnonzero(cumulative >= mark - 1e-9)
        if not reached.size:
            continue
        k = int(number[reached[0]])
        axes.plot([0, k, k], [100 * mark, 100 * mark, 0], color=INK, linewidth=0.6, linestyle=":")
        axes.plot(k, 100 * cumulative[k - 1], "o", color=OKABE_ITO[3], markersize=4)
        # One below another, in the part of the picture without the curve.
        line = len(axes.texts)
        text, height = f"{100 * mark:g} %: {k} component{'s' * (k > 1)}", 0.08 * (len(marks) - line)
        box = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.5}
        at = {"transform": axes.transAxes, "ha": "right", "va": "baseline"}
        write(axes, 0.97, height, text, 9, bbox=box, **at)


# Selection of columns: their scores, and how well a model predicts from the best of them.


MARKERS = "os^Dv"


def selection_plot(
    scores: Sequence[float] | np.ndarray,
    names: Sequence[str] | None,
    curves: Mapping[str, Any],
    *,
    n_columns: int = 12,
    title: str | None = None,
    score_name: str = "score",
    curve_name: str = "accuracy on held-out rows",
) -> Figure:
    """Draw the scores of the best columns, and accuracies by number of columns.

    Parameters
    ----------
    scores : array of shape (n_features,)
        Score of each column, the larger the better, as ``scores_`` of most filters.
    names : sequence of str, optional
        One per column.
    curves : mapping of str to (sizes, scores, errors)
        Curves to compare by name, as :func:`lowland.metrics.selection_curve` returns them;
        ``path_`` of a wrapper will do, too. Errors are drawn as bars.
    n_columns : int, default=12
        How many columns to show, the best ones.
    title : str, optional
        Written above the picture.
    score_name, curve_name : str, optional
        What the two parts measure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> curve = ([1, 2, 3], [0.8, 0.9, 0.95], [0.02, 0.01, 0.01])
    >>> figure = selection_plot([0.1, 0.7, 0.4], ["a", "b", "c"], {"filter": curve})
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['b', 'c', 'a']
    """
    scores = check_vector(scores, "scores")
    names = one_each(names, [f"column {i}" for i in range(scores.size)], "names", "scores")
    if n_columns < 1:
        raise ParameterError(f"n_columns={n_columns} must be at least 1.")
    best = np.argsort(-scores, kind="stable")[:n_columns]
    figure = new_figure(10.0, max(3.6, 0.9 + 0.25 * len(best)), title)
    bars, lines = figure.subplots(1, 2, width_ratios=[1.0, 1.15])
    place = np.arange(len(best))
    bars.barh(place, scores[best], color=OKABE_ITO[0], height=0.75)
    bars.set_yticks(place)
    bars.set_yticklabels([one_line(names[i], 28) for i in best], fontsize=8, **TEXT)
    bars.set_ylim(len(best) - 0.4, -0.6)  # the best on top
    bars.tick_params(axis="y", length=0)
    open_frame(bars, score_name, "")
    for number, (name, curve) in enumerate(curves.items()):
        _draw_curve(lines, name, curve, number)
    open_frame(lines, "number of columns", curve_name)
    lines.xaxis.get_major_locator().set_params(integer=True)
    if curves:
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": len(curves)}
        written = [one_line(str(name), 40) for name in curves]
        write_legend(lines, names=written, fontsize=9, **above)
    return figure


def _draw_curve(axes: Axes, name: str, curve: Any, number: int) -> None:
    sizes, scores, errors = (check_vector(part, name) for part in tuple(curve)[:3])
    if not sizes.size == scores.size == errors.size:
        raise DataError(f"{name}: sizes, scores and errors must have the same length.")
    axes.errorbar(
        sizes + 0.06 * number,  # bars at the same place would hide each other
        scores,
        errors,
        color=OKABE_ITO[number % len(OKABE_ITO)],
        marker=MARKERS[number % len(MARKERS)],
        markersize=4,
        capsize=2,
        elinewidth=0.8,
        label="curve",
    )


# The curse of dimensionality (Bellman 1961) in three pictures.


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
        A table, whose distances are drawn next to those of uniform random data of the same size.
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
    figure = new_figure(12.0, 3.6, title)
    edges, spheres, distances = figure.subplots(1, 3)
    _draw_edges(edges)
    _draw_spheres(spheres)
    _draw_distances(distances, tables)
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
    write_legend(axes, loc="lower right", fontsize=8)
    axes.set_title("edge of a cube with a share of the data", fontsize=10, **TEXT)
    open_frame(axes, "dimensions", "% of the whole edge")


def _draw_spheres(axes: Axes) -> None:
    dimensions = list(range(1, SPHERES + 1))
    shares = [100 * sphere_share(d) for d in dimensions]
    axes.bar(dimensions, shares, color=OKABE_ITO[0], width=0.8)
    for d, share in zip(dimensions, shares, strict=True):
        digits = 0 if d == 1 else 1 if share >= 1 else 2
        write(axes, d, share + 1.5, f"{share:.{digits}f}", 8, va="baseline")
    axes.set(ylim=(0, 109), xticks=dimensions)
    axes.set_title("sphere inside of a cube", fontsize=10, **TEXT)
    open_frame(axes, "dimensions", "% of the cube's volume")


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
    write_legend(axes, loc="upper right", fontsize=8)
    axes.set_title("distances between rows", fontsize=10, **TEXT)
    open_frame(axes, "distance / mean distance", "% of the pairs")
