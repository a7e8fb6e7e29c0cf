"""Selection of columns: their scores, and how well a model predicts from the best of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland.plot._figure import (
    TEXT,
    bare,
    check_vector,
    clean,
    name_axes,
    new_figure,
    write_title,
)
from lowland.plot.palettes import OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    names = [f"column {i}" for i in range(scores.size)] if names is None else list(names)
    if len(names) != scores.size:
        raise DataError(f"there are {len(names)} names for {scores.size} scores.")
    if n_columns < 1:
        raise ParameterError(f"n_columns={n_columns} must be at least 1.")
    best = np.argsort(-scores, kind="stable")[:n_columns]
    figure = new_figure(10.0, max(3.6, 0.9 + 0.25 * len(best)))
    bars, lines = figure.subplots(1, 2, width_ratios=[1.0, 1.15])
    place = np.arange(len(best))
    bars.barh(place, scores[best], color=OKABE_ITO[0], height=0.75)
    bars.set_yticks(place)
    bars.set_yticklabels([clean(names[i], 28) for i in best], fontsize=8, **TEXT)
    bars.set_ylim(len(best) - 0.4, -0.6)  # the best on top
    bars.tick_params(axis="y", length=0)
    name_axes(bars, score_name, "")
    for number, (name, curve) in enumerate(curves.items()):
        _draw_curve(lines, name, curve, number)
    name_axes(lines, "number of columns", curve_name)
    lines.xaxis.get_major_locator().set_params(integer=True)
    if curves:
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": len(curves)}
        legend = lines.legend(frameon=False, fontsize=9, **above)
        for text, name in zip(legend.get_texts(), curves, strict=True):
            text.set(text=clean(str(name), 40), **TEXT)
    for axes in (bars, lines):
        bare(axes)
    write_title(figure, title)
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
