"""A regular grid of places over a map."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland.plot._figure import check_table

REACH = 1.5  # distance to the nearest row, in units of the mean distance of evenly spread rows
OUTSIDE = 0.01  # share of the rows at each end of an axis that do not set the grid
MARGIN = 0.1  # of the box around the other rows, as a share of its width


class Grid(NamedTuple):
    """Places (n_places, 1 or 2) near rows, and the width and height of a cell around each."""

    places: np.ndarray
    step: tuple[float, float]


def grid_over(Y: np.ndarray, n_along: int, *, aspect: float = 1.0) -> Grid:
    """Places of a regular grid over a map, without those that are far from all rows.

    There are ``n_along`` places along the longer side of the map and in proportion along the other
    side. The grid covers the central 98 % of the rows along each axis, and what is near to them. A
    place is near rows if a row is in a cell beside its own, or nearer than rows usually are to each
    other.

    Parameters
    ----------
    Y : array of shape (n_rows, 1 or 2)
        Coordinates of the rows.
    n_along : int
        Places along the longer side.
    aspect : float, default=1.0
        Height of a cell divided by its width.

    Returns
    -------
    Grid

    Examples
    --------
    >>> import numpy as np
    >>> corners = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]])
    >>> grid_over(np.repeat(corners, 50, axis=0), 8).places.tolist()
    [[0.25, 0.25], [3.75, 0.25], [0.25, 1.75], [3.75, 1.75]]
    """
    from scipy.spatial import cKDTree

    Y = check_table(Y, "the map")
    low, high = _central_box(Y)
    middle, width = low / 2 + high / 2, high - low
    proportions = np.array([1.0, aspect])[: Y.shape[1]]
    unit = float((width / proportions).max()) / n_along
    step = proportions * (unit if unit > 0 else 1.0)
    numbers = np.clip(np.round(width / step).astype(int), 1, n_along)
    axes = [(np.arange(k) - (k - 1) / 2) * s for k, s in zip(numbers, step, strict=True)]
    # the first axis runs fastest, from the lower left corner
    offsets = np.stack(np.meshgrid(*axes[::-1], indexing="ij")[::-1], axis=-1)
    places = middle + offsets.reshape(-1, Y.shape[1])
    usual = float(np.prod(np.maximum(width / step, 1.0)) / len(Y)) ** (1 / Y.shape[1])
    apart, _ = cKDTree(Y / step).query(places / step)  # in cells
    near = apart <= max(1.0, REACH * usual)
    return Grid(places[near], (float(step[0]), float(step[-1])))


def _central_box(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The central part of each axis and a margin, but not more than the range."""
    low, bottom, top, high = np.quantile(Y, [0.0, OUTSIDE, 1 - OUTSIDE, 1.0], axis=0)
    margin = MARGIN * (top - bottom)
    return np.maximum(low, bottom - margin), np.minimum(high, top + margin)
