"""Whether two maps of the same rows show the same neighbors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.constraints import Integer
from lowland._core.errors import DataError, ParameterError
from lowland._core.threads import limit_blas, resolve_n_jobs
from lowland._core.validation import check_matrix
from lowland._core.wording import shown
from lowland._engines.linalg.magnitude import near_one
from lowland._engines.neighbors.search import neighbor_graph
from lowland.metrics._comparison import positions
from lowland.metrics.pointwise.missing import NEIGHBORS, map_distances, slack


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
    maps = [
        near_one(check_matrix(Y, owner="map_agreement", argument=name, min_rows=3, threads=threads))
        for name, Y in (("Y1", Y1), ("Y2", Y2))
    ]
    n = len(maps[0])
    if len(maps[1]) != n:
        raise DataError(f"Y2 has {len(maps[1])} rows, but Y1 has {n}; give maps of the same rows.")
    if not Integer(1).allows(n_neighbors):
        raise ParameterError(
            f"n_neighbors={shown(n_neighbors)} is not allowed; expected an integer >= 1."
        )
    k = min(int(n_neighbors), max(1, (n - 1) // 4))
    with limit_blas(1):
        graphs = [neighbor_graph(Y, k, threads=threads) for Y in maps]
    rows = np.arange(n)
    common = np.zeros(n)
    for near, other, Y in ((0, 1, maps[1]), (1, 0, maps[0])):
        ids, seen = graphs[near].indices, graphs[other]
        hit = positions(ids, seen.indices) < k
        hit |= map_distances(Y, rows, ids) <= seen.distances[:, -1:] * slack(Y)
        common = np.maximum(common, hit.sum(axis=1))
    points = common / k
    return MapAgreement(points, float(points.mean()), k / (n - 1))
