"""Where the data neighbors of a point lie in the map: its home."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._core.units import exponent_for, in_unit, largest_value
from lowland._engines.linalg.blocks import row_blocks
from lowland.metrics._options import ComparisonKeywords
from lowland.metrics._rows import spread
from lowland.metrics.pointwise.missing import (
    NEIGHBORS,
    Neighborhoods,
    map_distances,
    missing_p_values,
)

KINDS = ("fine", "misplaced", "torn", "pressed")
NOT_MEASURED = -1
MISPLACED, TORN, PRESSED = 0.8, 0.5, 0.5  # of missing, missing, strangers
WIDE = 2.0  # spreads beyond so many medians are not one place
OUTSIDE = 2.0  # a misplaced point is so many spreads away from its home, or farther
BLOCK_ROWS = 4096


class PointHome(NamedTuple):
    """Missing neighbors, strangers and home of every point; NaN and kind -1 where not measured."""

    missing: np.ndarray  # (n,) share of the data's k nearest not among the map's K nearest
    strangers: np.ndarray  # (n,) share of the map's k nearest not among the data's K nearest
    home: np.ndarray  # (n, q) medoid of the map positions of the k data neighbors
    spread: np.ndarray  # (n,) median distance of these positions to it
    kind: np.ndarray  # (n,) index into KINDS, -1 for a row that is not measured
    chance: float  # mean of missing, and of strangers, in a random map
    n_neighbors: int  # k
    reach: int  # K

    def counts(self) -> dict[str, int]:
        """The number of points of each kind."""
        return {kind: int((self.kind == code).sum()) for code, kind in enumerate(KINDS)}

    def p_values(self) -> np.ndarray:
        """The probability that a random map keeps as many neighbors of a point, or more."""
        return missing_p_values(self.missing, len(self.missing), self.n_neighbors, self.reach)


def point_home(
    X: Any,
    Y: Any = None,
    n_neighbors: int = NEIGHBORS,
    reach: int | None = None,
    **options: Unpack[ComparisonKeywords],
) -> PointHome:
    """h_i = medoid of the map positions of the k nearest of i in the data, and what kind i is.

    With the missing neighbors m_i, the strangers s_i and the spread r_i, the median distance of
    the k positions to their medoid, a point is

    - *misplaced*: m_i >= 0.8, but its neighbors lie together, r_i <= 2 median(r), and it lies
      outside of them, |y_i - h_i| > 2 r_i. Its home is where it belongs.
    - *torn*: m_i >= 0.5 otherwise. Its neighbors are in several places.
    - *pressed*: s_i >= 0.5. It lies among rows that are unlike it.
    - *fine* otherwise.

    Parameters and cost as of :func:`missing_neighbors`, then O(n k^2) for the medoids.

    Returns
    -------
    PointHome
        ``missing``, ``strangers``, ``home``, ``spread`` and ``kind`` of every point.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> Y = X[:, 2:].copy()
    >>> Y[[0, 149]] = Y[[149, 0]]                  # two points are swapped
    >>> found = point_home(X, Y)
    >>> [KINDS[code] for code in found.kind[[0, 149]]]
    ['misplaced', 'misplaced']
    >>> bool(abs(found.home[0] - X[0, 2:]).max() < 0.3)
    True
    """
    return homes(Neighborhoods.of(X, Y, n_neighbors, reach, options))


def homes(near: Neighborhoods) -> PointHome:
    """The home of every point from neighbor lists that are known."""
    compared = near.compared
    Y = np.asarray(compared.map.table, dtype=np.float64)
    e = exponent_for(largest_value(Y))  # squares of extreme values would overflow
    Y = in_unit(Y, e)
    missing, strange = near.missing(), near.strangers()
    home, width = medoids(Y, near.in_data.indices[:, : near.k])
    away = np.linalg.norm(Y[compared.rows] - home, axis=1)
    together = width <= WIDE * np.median(width)
    misplaced = (missing >= MISPLACED) & together & (away > OUTSIDE * width)
    kind = np.zeros(len(missing), np.int8)
    kind[strange >= PRESSED] = KINDS.index("pressed")
    kind[missing >= TORN] = KINDS.index("torn")
    kind[misplaced] = KINDS.index("misplaced")
    everyone = np.full(compared.n, NOT_MEASURED, np.int8)
    everyone[compared.rows] = kind
    return PointHome(
        spread(compared, missing),
        spread(compared, strange),
        np.stack([spread(compared, along) for along in in_unit(home, -e).T], axis=1),
        spread(compared, in_unit(width, -e)),
        everyone,
        near.chance,
        near.k,
        near.reach,
    )


def medoids(Y: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The partner with the least sum of distances to the others, and the median distance to it."""
    home, width = np.empty((len(ids), Y.shape[1])), np.empty(len(ids))
    for block in row_blocks(len(ids), BLOCK_ROWS):
        members = ids[block]
        apart = np.zeros((*members.shape, members.shape[1]))
        for axis in range(Y.shape[1]):
            along = Y[members, axis]
            apart += (along[:, :, None] - along[:, None, :]) ** 2
        best = np.sqrt(apart).sum(axis=2).argmin(axis=1)
        center = members[np.arange(len(members)), best]
        home[block] = Y[center]
        width[block] = np.median(map_distances(Y, center, members), axis=1)
    return home, width
