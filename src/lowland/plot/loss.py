"""The loss of an iterative method over its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lowland._core.errors import DataError
from lowland.plot._figure import TEXT, bare, check_vector, name_axes, new_figure, write_title
from lowland.plot.palettes import INK, OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["loss_plot"]


def loss_plot(
    losses: Sequence[float] | np.ndarray,
    steps: Sequence[float] | np.ndarray | None = None,
    *,
    exaggeration_end: float | None = None,
    loss_name: str = "loss",
    title: str | None = None,
) -> Figure:
    """Draw the loss over the steps of the descent.

    Parameters
    ----------
    losses : array of shape (n_looks,)
        As ``TSNE.loss_history_``.
    steps : array of shape (n_looks,), optional
        At which steps the loss was looked at; None numbers them.
    exaggeration_end : float, optional
        The step at which early exaggeration ended; it is marked, because losses before and after
        may not be of the same function.
    loss_name : str, default="loss"
        For the axis, for example "KL divergence".
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
    figure = new_figure(6.0, 3.8)
    axes = figure.subplots()
    marker = "o" if losses.size <= 60 else ""
    axes.plot(steps, losses, color=OKABE_ITO[0], marker=marker, markersize=3)
    if losses.min() >= 0:
        # The scale starts at zero unless that would flatten the curve.
        axes.set_ylim(bottom=0 if losses.min() < 0.7 * losses.max() else None)
    bare(axes)
    name_axes(axes, "step", loss_name)
    if exaggeration_end is not None:
        axes.axvline(exaggeration_end, color=INK, linewidth=0.8, linestyle=":")
        low, high = axes.get_xlim()
        late = exaggeration_end > low + 0.6 * (high - low)
        axes.annotate(
            "end of early exaggeration",
            (exaggeration_end, 1.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-4 if late else 4, -2),
            textcoords="offset points",
            ha="right" if late else "left",
            va="top",
            fontsize=8,
            color=INK,
            **TEXT,
        )
    write_title(figure, title)
    return figure
