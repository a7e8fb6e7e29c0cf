"""The biplot (Gabriel 1971): rows as points, variables as arrows, in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError
from lowland.plot._figure import (
    INK,
    PANEL,
    check_map,
    check_vector,
    name_axes,
    new_figure,
    one_line,
    write_title,
)
from lowland.plot._legend import add_legend, legend_size
from lowland.plot._placement import write_names
from lowland.plot._points import draw_points, frame
from lowland.plot.colors import encode_labels
from lowland.plot.maps import axis_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def biplot(
    scores: np.ndarray,
    loadings: np.ndarray,
    names: Sequence[str] | None = None,
    labels: Sequence[Any] | np.ndarray | None = None,
    *,
    n_arrows: int = 12,
    shares: Sequence[float] | np.ndarray | None = None,
    title: str | None = None,
    label_name: str | None = None,
    axis_names: Sequence[str] | None = None,
    density: bool | None = None,
) -> Figure:
    """Draw the first two scores of each row, and how the strongest variables point among them.

    An arrow points to where its variable grows; the longer, the more the two axes know of it. All
    arrows are scaled by one number, so that the longest ends inside the cloud's frame.

    Parameters
    ----------
    scores : array of shape (n_rows, n_components)
        At least two columns.
    loadings : array of shape (n_variables, n_components)
        For :class:`lowland.PCA` ``components_.T * sqrt(explained_variance_)``, covariances with
        unit scores, or ``components_.T``.
    names : sequence of str, optional
        One per variable.
    labels, title, label_name, axis_names, density
        See :func:`scatter_map`.
    n_arrows : int, default=12
        How many variables to draw, the longest first.
    shares : array of shape (n_components,), optional
        Shares of the variance, as ``PCA.explained_variance_ratio_``, written beside the axes
        unless these have ``axis_names``.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    Gabriel (1971), The biplot graphic display of matrices with application to principal component
    analysis, Biometrika 58.

    Examples
    --------
    >>> from lowland import PCA
    >>> from lowland.datasets import iris
    >>> data = iris()
    >>> pca = PCA(2).fit(data.X)
    >>> shares = pca.explained_variance_ratio_
    >>> figure = biplot(
    ...     pca.transform(data.X), pca.components_.T, data.feature_names, data.labels, shares=shares
    ... )
    >>> figure.axes[0].get_xlabel()
    'component 1: 92.5 % of the variance'
    """
    from matplotlib.patches import FancyArrowPatch

    Y, L = _plane(scores, "scores"), _plane(loadings, "loadings")
    names = [f"variable {i + 1}" for i in range(len(L))] if names is None else list(names)
    if len(names) != len(L):
        raise DataError(
            f"there are {len(names)} names but loadings of {len(L)} variables; "
            "loadings have one row per variable, components_ must be transposed."
        )
    coloring = None if labels is None else encode_labels(labels, len(Y))
    beside, height = legend_size(coloring, label_name)
    figure = new_figure(PANEL + 0.6 + beside, max(PANEL + 0.6, height))
    axes = figure.subplots()
    length = np.hypot(*L.T)
    strongest = np.argsort(-length, kind="stable")[: max(n_arrows, 0)]
    strongest = strongest[length[strongest] > 0]
    reach = float(np.abs(Y).max()) or 1.0
    tips = L[strongest] * (0.75 * reach / (float(length.max()) or 1.0))
    frame(axes, np.vstack([Y, 1.4 * tips, [[0.0, 0.0]]]))  # with room for names
    draw_points(axes, Y, coloring, PANEL, density=density)
    axes.axhline(0, color="#d0d0d0", linewidth=0.6, zorder=0)
    axes.axvline(0, color="#d0d0d0", linewidth=0.6, zorder=0)
    for tip in tips:
        arrow = FancyArrowPatch(
            (0.0, 0.0),
            tip,
            arrowstyle="-|>",
            mutation_scale=10,
            shrinkA=0,
            shrinkB=0,
            color=INK,
            zorder=3,
        )
        arrow.set_in_layout(False)
        axes.add_patch(arrow)
    if shares is not None and axis_names is None:
        axis_names = _shared(shares, np.shape(scores)[1])
    name_axes(axes, *axis_labels(axis_names, np.shape(scores)[1])[:2])
    add_legend(figure, [axes], coloring, label_name)
    write_title(figure, title)
    outward = tips / np.maximum(np.hypot(*tips.T), np.finfo(float).tiny)[:, None]
    along = np.linspace(0.0, 1.0, 40)[:, None, None] * tips  # names must not cover arrows
    written = [one_line(names[i], 24) for i in strongest]
    write_names(axes, written, tips, outward=outward, avoid=along.reshape(-1, 2))
    return figure


def _shared(shares: Any, n: int) -> list[str]:
    """Names of the axes with their shares of the variance."""
    shares = check_vector(shares, "shares", n)
    return [
        f"component {i + 1}: {share:.1%} of the variance".replace("%", " %")
        for i, share in enumerate(shares)
    ]


def _plane(values: np.ndarray, name: str) -> np.ndarray:
    values = check_map(values, name)
    if values.shape[1] < 2:
        raise DataError(f"a biplot has two axes, but {name} have {values.shape[1]} column.")
    return values[:, :2]
