"""The loss of an iterative method over its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland.plot._figure import TEXT, bare, check_vector, name_axes, new_figure, write_title
from lowland.plot.palettes import INK, OKABE_ITO

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
    figure = new_figure(6.0, 3.8)
    axes = figure.subplots()
    marker = "o" if losses.size <= 60 else ""
    for color, (name, curve) in zip(OKABE_ITO, curves.items(), strict=False):
        axes.plot(steps, curve, color=color, marker=marker, markersize=3, label=name)
    if held_out is not None:
        _mark_lowest(axes, steps, curves["held out"])
    _choose_scale(axes, np.concatenate(list(curves.values())))
    bare(axes)
    name_axes(axes, step_name, loss_name)
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


def _mark_lowest(axes: Axes, steps: np.ndarray, held_out: np.ndarray) -> None:
    """A ring at the lowest loss of held-out rows, and a legend."""
    best = int(np.argmin(held_out))
    ring: dict[str, Any] = {"marker": "o", "markersize": 8, "fillstyle": "none", "linestyle": ""}
    axes.plot(steps[best], held_out[best], color=OKABE_ITO[1], label="lowest", **ring)
    axes.legend(frameon=False, fontsize=9)


def _choose_scale(axes: Axes, losses: np.ndarray) -> None:
    low, high = float(losses.min()), float(losses.max())
    if 0 < LARGE_FALL * low < high:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")  # powers of ten as formulas need other fonts
        axes.yaxis.set_minor_formatter("")
    elif low >= 0:
        # The scale starts at zero unless that would flatten the curve.
        axes.set_ylim(bottom=0 if low < 0.7 * high else None)
