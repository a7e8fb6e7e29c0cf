"""The home of each point: where its neighbors in the data lie in the map."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._base.constraints import Integer, check_argument
from lowland._base.errors import DataError
from lowland._base.threads import limit_blas, resolve_n_jobs
from lowland._base.validation import check_matrix, with_room
from lowland._engines.linalg.products import row_blocks
from lowland._engines.neighbors.search import neighbor_graph
from lowland.metrics._comparison import of_all, positions
from lowland.metrics._options import MapKeywords
from lowland.metrics.missing import NEIGHBORS, Neighborhoods, map_distances, missing_p_values, slack

KINDS = ("fine", "misplaced", "torn", "pressed")
NOT_MEASURED = -1
POINTWISE = ("missing", "strangers", "home", "spread")  # numbers of each point
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

    def of_all(self, rows: np.ndarray, n: int) -> PointHome:
        """The same for n rows, of which these are some."""
        numbers: dict[str, Any] = {name: of_all(getattr(self, name), rows, n) for name in POINTWISE}
        return self._replace(**numbers, kind=of_all(self.kind, rows, n, NOT_MEASURED))

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
    **options: Unpack[MapKeywords],
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
    missing, strange = near.missing(), near.strangers()
    home, width = medoids(Y, near.in_data.indices[:, : near.k])
    away = np.linalg.norm(Y[compared.rows] - home, axis=1)
    together = width <= WIDE * np.median(width)
    misplaced = (missing >= MISPLACED) & together & (away > OUTSIDE * width)
    kind = np.zeros(len(missing), np.int8)
    kind[strange >= PRESSED] = KINDS.index("pressed")
    kind[missing >= TORN] = KINDS.index("torn")
    kind[misplaced] = KINDS.index("misplaced")
    measured = PointHome(missing, strange, home, width, kind, near.chance, near.k, near.reach)
    return measured.of_all(compared.rows, compared.n)


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


# Whether two maps of the same rows show the same neighbors.


class MapAgreement(NamedTuple):
    """The share of common neighbors at each point, its mean, and that of unrelated maps."""

    points: np.ndarray
    mean: float
    chance: float


def map_agreement(
    Y1: Any, Y2: Any, n_neighbors: int = NEIGHBORS, *, n_jobs: int | None = None
) -> MapAgreement:
    """a_i = share of the k nearest of i in one map that are among its k nearest in the other.

    Maps need not be aligned: the measure does not change if a map is turned, mirrored, moved or
    scaled. Two unrelated maps of n rows agree by k / (n - 1). A point counts as near if it is as
    near as the k-th neighbor, so that points at the same place do not disagree.

    Parameters
    ----------
    Y1, Y2 : arrays of shape (n, q1) and (n, q2)
        Two maps of the same rows in the same order.
    n_neighbors : int, default=15
        k; at most a quarter of the other rows are taken.
    n_jobs : int or None, default=None
        Threads.

    Returns
    -------
    MapAgreement

    Examples
    --------
    >>> Y = np.random.default_rng(0).normal(size=(100, 2))
    >>> turned = 3 * Y[:, ::-1] + 7
    >>> map_agreement(Y, turned).mean
    1.0
    """
    threads = resolve_n_jobs(n_jobs)
    rules: dict[str, Any] = {"owner": "map_agreement", "min_rows": 3, "threads": threads}
    named = (("Y1", Y1), ("Y2", Y2))
    maps = [with_room(check_matrix(Y, argument=name, **rules)) for name, Y in named]
    n = len(maps[0])
    if len(maps[1]) != n:
        raise DataError(f"Y2 has {len(maps[1])} rows, but Y1 has {n}; give maps of the same rows.")
    check_argument("n_neighbors", n_neighbors, Integer(1))
    k = min(int(n_neighbors), max(1, (n - 1) // 4))
    with limit_blas(1):
        graphs = [neighbor_graph(Y, k, threads=threads) for Y in maps]
    rows, common = np.arange(n), np.zeros(n)
    for near, other, Y in ((0, 1, maps[1]), (1, 0, maps[0])):
        ids, seen = graphs[near].indices, graphs[other]
        hit = positions(ids, seen.indices) < k
        hit |= map_distances(Y, rows, ids) <= seen.distances[:, -1:] * slack(Y)
        common = np.maximum(common, hit.sum(axis=1))
    points = common / k
    return MapAgreement(points, float(points.mean()), k / (n - 1))
