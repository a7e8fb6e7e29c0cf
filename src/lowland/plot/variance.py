"""The variance of each component, and of the first k together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lowland._core.errors import DataError
from lowland._engines.linalg.scree import elbow
from lowland.plot._figure import TEXT, bare, check_vector, name_axes, new_figure, write_title
from lowland.plot.palettes import INK, OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
        raise DataError(
            f"shares must be at least 0 and add up to 1 at most, but go from {shares.min():g} and "
            f"add up to {shares.sum():g}; divide by the whole variance."
        )
    figure = new_figure(9.0, 3.8)
    each, together = figure.subplots(1, 2)
    number = np.arange(1, shares.size + 1)
    if shares.size <= 60:
        each.bar(number, 100 * shares, color=OKABE_ITO[0], width=0.8)
    else:  # too many bars to tell apart
        each.plot(number, 100 * shares, color=OKABE_ITO[0])
        each.fill_between(number, 0, 100 * shares, color=OKABE_ITO[0], alpha=0.25, linewidth=0)
    each.set_ylim(bottom=0)
    if chance is not None:
        _draw_chance(each, shares, check_vector(chance, "chance")[: shares.size])
    if show_elbow:
        _draw_elbow(each, shares)
    if each.get_legend_handles_labels()[0]:
        legend = each.legend(frameon=False, fontsize=9)
        for text in legend.get_texts():
            text.set(**TEXT)
    name_axes(each, "component", "% of the variance")
    _together(together, number, np.cumsum(shares), marks)
    for axes in (each, together):
        bare(axes)
        axes.set_xlim(0.4, shares.size + 0.6)
        axes.xaxis.get_major_locator().set_params(integer=True)
    write_title(figure, title)
    return figure


def _draw_chance(axes: Axes, shares: np.ndarray, chance: np.ndarray) -> None:
    above = shares[: chance.size] > chance
    k = int(above.size if above.all() else np.argmin(above))
    label = f"chance: {k} component{'s' * (k != 1)} above it"
    number = np.arange(1, chance.size + 1)
    axes.plot(number, 100 * chance, "--", color=OKABE_ITO[1], linewidth=1.6, label=label)


def _draw_elbow(axes: Axes, shares: np.ndarray) -> None:
    k = elbow(shares)
    color = OKABE_ITO[3]
    axes.plot([1, shares.size], [100 * shares[0], 100 * shares[-1]], ":", color=color, linewidth=1)
    label = f"elbow: component {k}"
    axes.plot(k, 100 * shares[k - 1], "o", color=color, markersize=7, label=label, zorder=5)


def _together(
    axes: Axes, number: np.ndarray, cumulative: np.ndarray, marks: Sequence[float]
) -> None:
    few = number.size <= 60
    axes.plot(number, 100 * cumulative, color=OKABE_ITO[0], marker="o" if few else "", markersize=3)
    axes.set_ylim(0, 104)
    name_axes(axes, "components together", "% of the variance")
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
        axes.text(
            0.97,
            0.08 + 0.08 * (len(marks) - 1 - line),
            f"{100 * mark:g} %: {k} component{'s' * (k > 1)}",
            transform=axes.transAxes,
            ha="right",
            fontsize=9,
            color=INK,
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.5},
            **TEXT,
        )
