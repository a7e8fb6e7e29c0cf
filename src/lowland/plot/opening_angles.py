"""Time and error of an approximation, by the parameter that trades one for the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lowland._core.errors import DataError
from lowland.plot._figure import TEXT, bare, check_vector, name_axes, new_figure, write_title
from lowland.plot.palettes import INK, OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    figure = new_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    for axes, values, color in ((left, 1e3 * seconds, 0), (right, 100 * errors, 3)):
        axes.plot(angles[order], values[order], "o-", color=OKABE_ITO[color], markersize=4)
        axes.axvline(usual, color="#b0b0b0", linewidth=0.8, linestyle=":", zorder=0)
        axes.set_ylim(0, 1.08 * (float(values.max()) or 1.0))
        bare(axes)
    if exact_seconds is not None:
        exact, top = 1e3 * float(exact_seconds), left.get_ylim()[1]
        drawn = exact <= 3 * top  # a line far above would press the curve to the bottom
        if drawn:
            left.axhline(exact, color=INK, linewidth=1.0, linestyle="--")
            left.set_ylim(0, max(top, 1.15 * exact))
        left.text(
            0.98,
            exact / left.get_ylim()[1] + 0.02 if drawn else 0.94,
            f"all pairs: {exact:.3g} ms" + " (above the picture)" * (not drawn),
            transform=left.transAxes,
            ha="right",
            fontsize=9,
            color=INK,
            **TEXT,
        )
    name_axes(left, "opening angle", "milliseconds per step")
    name_axes(right, "opening angle", "error of the forces, %")
    write_title(figure, title)
    return figure
