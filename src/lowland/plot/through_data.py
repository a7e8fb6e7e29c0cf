"""A curve or a grid drawn through the rows that it was fitted to, in a plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError
from lowland.plot._figure import (
    DARK_GREY,
    PANEL,
    check_table,
    name_axes,
    new_figure,
    note,
    write_title,
)
from lowland.plot._legend import add_legend, legend_size
from lowland.plot._points import draw_points, frame
from lowland.plot.colors import encode_labels
from lowland.plot.maps import axis_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
    said = {"title": title, "label_name": label_name, "axis_names": axis_names}
    drawn = _drawn_rows(X, knots, projections, labels, n_lines, density, **said)
    figure, axes, knots = drawn
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
    said = {"title": title, "label_name": label_name, "axis_names": axis_names}
    drawn = _drawn_rows(X, nodes, projections, labels, n_lines, density, **said)
    figure, axes, nodes = drawn
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
    *,
    title: str | None,
    label_name: str | None,
    axis_names: Sequence[str] | None,
) -> tuple[Figure, Axes, np.ndarray]:
    """A figure with the rows and their lines; its axes, and the net in the units of the axes."""
    from matplotlib.collections import LineCollection

    rows = _plane(X, "X")
    targets = None if projections is None else _plane(projections, "projections")
    if targets is not None and len(targets) != len(rows):
        raise DataError(f"there are {len(targets)} projections of {len(rows)} rows.")
    rows, net, targets = _drawable(rows, net, targets)
    coloring = None if labels is None else encode_labels(labels, len(rows))
    beside, legend_height = legend_size(coloring, label_name)
    figure = new_figure(PANEL + beside, max(PANEL, legend_height))
    axes = figure.subplots()
    frame(axes, np.vstack([rows, net]))
    draw_points(axes, rows, coloring, PANEL, density=density)
    if targets is not None and n_lines > 0:
        chosen = _sample(len(rows), n_lines)
        pairs = np.stack([rows[chosen], targets[chosen]], axis=1)
        lines = LineCollection(list(pairs), colors=DARK_GREY, linewidths=0.5, zorder=2)
        axes.add_collection(lines, autolim=False)
        if len(chosen) < len(rows) and not axes.get_title(loc="right"):
            note(axes, f"lines from {len(chosen)} rows to their projections")
    name_axes(axes, *axis_labels(axis_names, 2))
    write_title(figure, title)
    add_legend(figure, [axes], coloring, label_name)
    return figure, axes, net


def _plane(values: Any, name: str) -> np.ndarray:
    values = check_table(values, name)
    if values.shape[1] != 2:
        raise DataError(f"the picture has two axes, but {name} has {values.shape[1]} columns.")
    return values


def _drawable(rows: np.ndarray, nodes: np.ndarray, targets: np.ndarray | None) -> Any:
    """All of them divided by one number, if their units are too extreme for matplotlib."""
    reach = max(float(np.abs(part).max()) for part in (rows, nodes, targets) if part is not None)
    if reach == 0 or 1e-9 < reach < 1e30:
        return rows, nodes, targets
    return rows / reach, nodes / reach, None if targets is None else targets / reach


def _sample(n: int, most: int) -> np.ndarray:
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False, shuffle=False))
