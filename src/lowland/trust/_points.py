"""The points of a map that are judged: all, or a sample of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland.metrics import Comparison
from lowland.metrics._options import Options
from lowland.metrics.grouping._neighboring import linked_pairs, neighboring_pairs
from lowland.metrics.pointwise.home import NOT_MEASURED, PointHome, homes
from lowland.metrics.pointwise.missing import NEIGHBORS, Neighborhoods


class JudgedPoints(NamedTuple):
    """Values of all points, the lists of those that were judged, and the neighbors of all."""

    rows: np.ndarray | None  # that were judged; None: all
    near: Neighborhoods  # among these
    points: PointHome
    neighbors: np.ndarray  # (n, k) in the data, -1 for a row that was not judged

    def island_pairs(self, Y: np.ndarray, island_of: np.ndarray) -> list[tuple[int, int]]:
        """Islands whose gap is tested: neighbors in the map, and those that the data link."""
        ids = self.near.in_data.indices[:, :NEIGHBORS]
        codes = island_of.astype(np.int64)
        linked = linked_pairs(ids, codes if self.rows is None else codes[self.rows])
        return sorted({*neighboring_pairs(Y, codes), *linked})


def judged_points(
    compared: Comparison, options: Options, most: int | None, seed: int
) -> JudgedPoints:
    """Judge all points, or a sample of ``most`` by its own neighbors."""
    n = compared.n
    if most is None or most >= n:
        near = Neighborhoods.of(compared, None, NEIGHBORS, None, {})
        # a copy: a view would keep the longer lists
        return JudgedPoints(None, near, homes(near), near.in_data.indices[:, : near.k].copy())
    rows = np.sort(np.random.default_rng([seed, 3]).choice(n, most, replace=False))
    X = compared.data.X
    some = Comparison(
        X[np.ix_(rows, rows)] if options.metric == "precomputed" else X[rows],
        compared.map.table[rows],
        metric=options.metric,
        metric_params=options.metric_params,
        sample=None,
        n_jobs=options.n_jobs,
    )
    near = Neighborhoods.of(some, None, NEIGHBORS, None, {})
    neighbors = np.full((n, near.k), -1, np.int64)
    neighbors[rows] = rows[near.in_data.indices[:, : near.k]]
    return JudgedPoints(rows, near, _of_all(homes(near), rows, n), neighbors)


def _of_all(points: PointHome, rows: np.ndarray, n: int) -> PointHome:
    """Values of all n points: NaN, and the kind -1, for those that were not judged."""
    found: dict[str, Any] = {}
    for name in ("missing", "strangers", "home", "spread"):
        values = getattr(points, name)
        found[name] = np.full((n, *values.shape[1:]), np.nan)
        found[name][rows] = values
    kind = np.full(n, NOT_MEASURED, np.int8)
    kind[rows] = points.kind
    return points._replace(**found, kind=kind)
