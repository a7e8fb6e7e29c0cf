"""Rows in a plane, and what explains them: a curve, a grid, or the arrows of a biplot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError
from lowland.plot._figure import (
    add_arrow,
    check_map,
    check_table,
    check_vector,
    drawable_unit,
    name_axes,
    note,
    one_each,
    one_line,
    sample_rows,
)
from lowland.plot._legend import add_legend, figure_beside_legend
from lowland.plot._placement import write_names
from lowland.plot._points import draw_points, frame
from lowland.plot._style import DARK_GREY, PANEL
from lowland.plot.colors import encode_labels
from lowland.plot.maps import Captions, axis_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NET = "#202020"
N_LINES = 200  # rows whose projection is drawn; more lines would hide the points
MANY_EDGES = 3000  # of a grid, whose lines are then thinner


def curve_through_data(
    X: np.ndarray,
    curve: np.ndarray,
    projections: np.ndarray | None = None,
    labels: Sequence[Any] | np.ndarray | None = None,
    *,
    closed: bool = False,
    n_lines: int = N_LINES,
    title: str | None = None,
    label_name: str | None = None,
    axis_names: Sequence[str] | None = None,
    density: bool | None = None,
) -> Figure:
    """Draw a curve through rows, with lines from some rows to their nearest points of the curve.

    Parameters
    ----------
    X : array of shape (n_rows, 2)
        The rows in a plane, such as that of the first two principal axes.
    curve : array of shape (n_knots, 2)
        Points of the curve in the same plane, in their order along it.
    projections : array of shape (n_rows, 2), optional
        Where each row lies on the curve.
    labels : array of shape (n_rows,), optional
        Categories or numbers, as for :func:`scatter_map`.
    closed : bool, default=False
        Whether the last point is connected with the first one.
    n_lines : int, default=200
        How many rows get a line to their projection; they are drawn at random.
    title, label_name, axis_names, density
        See :func:`scatter_map`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> angle = np.linspace(0, 3, 50)
    >>> arc = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    >>> figure = curve_through_data(1.1 * arc, arc, arc)
    >>> len(figure.axes[0].collections)  # points, lines to projections, the curve
    3
    """
    from matplotlib.collections import LineCollection

    knots = _plane(curve, "curve")
    knots = np.vstack([knots, knots[:1]]) if closed else knots
    captions = Captions(title, label_name, axis_names)
    figure, knots = _drawn_rows(X, knots, projections, labels, n_lines, density, captions)
    axes = figure.axes[0]
    style = {"linewidths": 2.0, "capstyle": "round", "joinstyle": "round"}
    axes.add_collection(LineCollection([knots], colors=NET, zorder=3, **style), autolim=False)
    return figure


def grid_through_data(
    X: np.ndarray,
    nodes: np.ndarray,
    edges: np.ndarray,
    projections: np.ndarray | None = None,
    labels: Sequence[Any] | np.ndarray | None = None,
    *,
    n_lines: int = N_LINES,
    title: str | None = None,
    label_name: str | None = None,
    axis_names: Sequence[str] | None = None,
    density: bool | None = None,
) -> Figure:
    """Draw a grid through rows: its nodes, and a line between each two neighboring nodes.

    Parameters
    ----------
    X : array of shape (n_rows, 2)
        The rows in a plane, such as that of the first two principal axes.
    nodes : array of shape (n_nodes, 2)
        The nodes of the grid in the same plane.
    edges : integer array of shape (n_edges, 2)
        Pairs of neighboring nodes.
    projections, labels, n_lines, title, label_name, axis_names, density
        See :func:`curve_through_data`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    >>> sides = [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> figure = grid_through_data(np.random.default_rng(0).random((50, 2)), corners, sides)
    >>> len(figure.axes[0].collections)  # points, lines and nodes of the grid
    3
    """
    from matplotlib.collections import LineCollection

    nodes = _plane(nodes, "nodes")
    edges = np.asarray(edges)
    edges = edges.reshape(-1, 2) if edges.size == 0 else edges
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iuf":
        raise DataError(f"edges must be pairs of nodes, but have shape {edges.shape}.")
    if edges.size and not ((edges >= 0) & (edges < len(nodes))).all():
        raise DataError(f"edges name a node that does not exist; there are {len(nodes)} nodes.")
    captions = Captions(title, label_name, axis_names)
    figure, nodes = _drawn_rows(X, nodes, projections, labels, n_lines, density, captions)
    axes = figure.axes[0]
    width = 0.8 if len(edges) <= MANY_EDGES else 0.4
    lines = list(nodes[edges.astype(np.int64)])
    style = {"linewidths": width, "zorder": 3, "alpha": 0.7}
    axes.add_collection(LineCollection(lines, colors=NET, **style), autolim=False)
    size = float(np.clip(2500.0 / len(nodes), 1.0, 10.0))
    axes.scatter(*nodes.T, s=size, c=NET, linewidths=0, zorder=4)
    return figure


def _drawn_rows(
    X: Any,
    net: np.ndarray,
    projections: Any,
    labels: Any,
    n_lines: int,
    density: bool | None,
    captions: Captions,
) -> tuple[Figure, np.ndarray]:
    """A figure with the rows and their lines, and the net in the units of its axes."""
    from matplotlib.collections import LineCollection

    rows = _plane(X, "X")
    targets = rows[:0] if projections is None else _plane(projections, "projections")
    if projections is not None and len(targets) != len(rows):
        raise DataError(f"there are {len(targets)} projections of {len(rows)} rows.")
    unit = drawable_unit(np.vstack([rows, net, targets]))
    rows, net, targets = rows / unit, net / unit, targets / unit
    coloring = encode_labels(labels, len(rows))
    figure = figure_beside_legend(coloring, captions.label_name, captions.title)
    axes = figure.subplots()
    frame(axes, np.vstack([rows, net]))
    draw_points(axes, rows, coloring, PANEL, density=density)
    if len(targets) and n_lines > 0:
        chosen = sample_rows(len(rows), n_lines)
        pairs = np.stack([rows[chosen], targets[chosen]], axis=1)
        lines = LineCollection(list(pairs), colors=DARK_GREY, linewidths=0.5, zorder=2)
        axes.add_collection(lines, autolim=False)
        if len(chosen) < len(rows) and not axes.get_title(loc="right"):
            note(axes, f"lines from {len(chosen)} rows to their projections")
    name_axes(axes, *axis_labels(captions.axis_names, 2))
    add_legend(figure, [axes], coloring, captions.label_name)
    return figure, net


def _plane(values: Any, name: str) -> np.ndarray:
    values = check_table(values, name)
    if values.shape[1] != 2:
        raise DataError(f"the picture has two axes, but {name} has {values.shape[1]} columns.")
    return values


# The biplot (Gabriel 1971): rows as points, variables as arrows, in one picture.


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
        Shares of the variance, as ``PCA.explained_variance_ratio_``, written next to the axes
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
    Y, L = check_map(scores, "scores"), check_map(loadings, "loadings")
    n_axes = Y.shape[1]
    for name, values in (("scores", Y), ("loadings", L)):
        if values.shape[1] < 2:
            raise DataError(f"a biplot has two axes, but {name} have {values.shape[1]} column.")
    Y, L = Y[:, :2], L[:, :2]
    rows_of_loadings = "variables; loadings have one row each, components_ must be transposed"
    numbered = [f"variable {i + 1}" for i in range(len(L))]
    names = one_each(names, numbered, "names", rows_of_loadings)
    coloring = encode_labels(labels, len(Y))
    figure = figure_beside_legend(coloring, label_name, title, PANEL + 0.6, PANEL + 0.6)
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
        add_arrow(axes, (0.0, 0.0), tip, mutation_scale=10)
    if shares is not None and axis_names is None:
        percent = [f"{100 * share:.1f} %" for share in check_vector(shares, "shares", n_axes)]
        axis_names = [f"component {i + 1}: {p} of the variance" for i, p in enumerate(percent)]
    name_axes(axes, *axis_labels(axis_names, n_axes)[:2])
    add_legend(figure, [axes], coloring, label_name)
    outward = tips / np.maximum(np.hypot(*tips.T), np.finfo(float).tiny)[:, None]
    along = np.linspace(0.0, 1.0, 40)[:, None, None] * tips  # names must not cover arrows
    written = [one_line(names[i], 24) for i in strongest]
    write_names(axes, written, tips, outward=outward, avoid=along.reshape(-1, 2))
    return figure
