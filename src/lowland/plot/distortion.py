"""A map colored by how well each point is placed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland.plot._figure import check_map, check_vector
from lowland.plot.colors import continuum, robust_limits
from lowland.plot.maps import draw_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    """Draw a map colored by a number per point that says how far to believe it.

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
    return draw_map(
        Y, coloring, title=title, label_name=measure, axis_names=axis_names, density=density
    )
