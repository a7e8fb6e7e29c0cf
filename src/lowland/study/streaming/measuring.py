"""The quality of a map on some rows against all rows of a table that is read leaf by leaf.

The definitions are those of :mod:`lowland.metrics`: its measures take a :class:`SeenRows` in place
of a comparison in memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.memory import available_memory
from lowland._core.monitor import Monitor
from lowland._core.rows.fitting import Placing
from lowland._core.rows.sampling import sampled_rows
from lowland._core.rows.table import Rows
from lowland.linear.pca import PCA
from lowland.metrics import (
    Quality,
    continuity,
    mean_relative_rank_errors,
    neighbor_recall,
    trustworthiness,
)
from lowland.metrics._comparison import Comparison, DataPairs, Pairs
from lowland.metrics._cost import COUNT, FEWEST
from lowland.metrics._measured import Measured
from lowland.metrics._options import Options
from lowland.metrics._table import QualityRow
from lowland.metrics.shepard import spearman
from lowland.metrics.trust import point_scores
from lowland.report.measures import FEWEST_ROWS, NEIGHBORHOOD
from lowland.study.streaming.nearest import (
    Asked,
    Queries,
    nearer_rows,
    nearest_rows,
    partner_heights,
)
from lowland.study.streaming.roles import LOOK_SEED

MOST_MEASURED = 10_000  # rows
MOST_SECONDS = 600.0  # of one core
PARTNER_BYTES = 1 << 28  # of the rows whose ranks are asked for
BASELINE_SHARE = 5  # of the measured rows, one in so many is measured in the PCA map, too
PCA_COLUMNS = 5000  # of wider tables no PCA map is made for comparison
PAIR_ROWS = 1000  # whose pairs are ranked for the correlation of distances


class SeenRows(Comparison):
    """Measured rows whose neighbors and ranks among all n rows are known."""

    def __init__(
        self,
        n: int,
        numbers: np.ndarray,
        near: tuple[np.ndarray, np.ndarray],
        ranks: tuple[np.ndarray, np.ndarray],
        points: tuple[np.ndarray, np.ndarray],
        metric: str,
        n_jobs: int | None = None,
    ) -> None:
        self.n, self.rows, self._metric = n, numbers, metric
        self.options = Options(metric, None, None, 0, n_jobs, False, None)
        self._near, self._ranks, self._points = near, ranks, points

    def data_neighbors(self, k: int) -> np.ndarray:
        return self._near[0][:, :k]

    def map_neighbors(self, k: int) -> np.ndarray:
        return self._near[1][:, :k]

    def data_ranks(self, k: int) -> np.ndarray:
        return self._ranks[0][:, :k]

    def map_ranks(self, k: int) -> np.ndarray:
        return self._ranks[1][:, :k]

    def pairs(self, most: int = PAIR_ROWS) -> Pairs:
        """All pairs of at most ``most`` of the measured rows."""
        from scipy.spatial.distance import pdist

        some = slice(None, None, -(-len(self.rows) // most))
        metric = {"manhattan": "cityblock"}.get(self._metric, self._metric)
        X, Y = (np.asarray(points[some], np.float64) for points in self._points)
        return Pairs(DataPairs(self.rows[some], pdist(X, metric)), pdist(Y))


class MeasuredRows(NamedTuple):
    """The quality table, the numbers of the measured rows, and values for each of them."""

    table: Quality
    numbers: np.ndarray
    per_point: dict[str, np.ndarray]


def measured_numbers(
    n: int, p: int, map_seconds: float, seed: int, most: int = MOST_MEASURED
) -> np.ndarray:
    """The rows that are measured: as many as about half of the time of the map pays for.

    They are the first of those that :func:`look_at` takes, of which there are ``most``.
    """
    k = _neighborhood(n)
    pair = 2 * (COUNT + 3e-11 * p) + 2 * COUNT
    budget = min(map_seconds / 2 + 1, MOST_SECONDS)
    affordable = max(FEWEST, int(budget / (n * pair)))
    held = max(FEWEST, min(PARTNER_BYTES, available_memory() // 8) // (8 * p * max(1, k)))
    return sampled_rows(
        n, min(n, MOST_MEASURED, most, affordable, held), (seed + LOOK_SEED) % 2**63
    )


def measure_rows(
    data: Rows,
    map_rows: Rows,
    numbers: np.ndarray,
    *,
    metric: str = "euclidean",
    pca: Any = None,
    points: tuple[np.ndarray, np.ndarray] | None = None,
    n_jobs: int | None = None,
    monitor: Monitor | None = None,
) -> MeasuredRows | None:
    """Measure some rows of a map against all rows; a map of very few rows is not measured.

    Parameters
    ----------
    data, map_rows : Rows
        The rows that the map was made of, and their coordinates in it, in the same order.
    numbers : array of int
        Numbers of the rows to measure, ascending.
    metric : str, default="euclidean"
        Distance between rows of the data.
    pca : PCA, optional
        Principal axes of the data, whose map is measured, too, on fewer rows.
    points : pair of arrays, optional
        The measured rows in the data and in the map, if they are known already.

    Notes
    -----
    Three passes over the data (neighbors, the rows that are neighbors in the maps, ranks) and three
    over the coordinates. Cost O(m n p) for m measured rows; memory O(m k p) and that of a leaf.
    """
    n = len(data)
    if n < FEWEST_ROWS:
        return None
    k = _neighborhood(n)
    X, Y = points or (_points(data, numbers), _points(map_rows, numbers))
    sides = [Queries(X, numbers, metric)]
    if pca is not None and data.shape[1] <= PCA_COLUMNS:
        some = numbers[::BASELINE_SHARE] if len(numbers) > BASELINE_SHARE * FEWEST else numbers
        view = Projection(pca, Y.shape[1])
        sides.append(Queries(view(X[np.searchsorted(numbers, some)]), some, view=view))
    in_map = Queries(Y, numbers)
    (near_map,) = nearest_rows(map_rows, [in_map], k, n_jobs, monitor)
    near_data, *near_pca = nearest_rows(data, sides, k, n_jobs, monitor)

    # ranks in the data of what is near in the maps, and in the maps of what is near in the data
    pairs = [(sides[0], near_map)]
    for side, near in zip(sides[1:], near_pca, strict=True):
        places = np.searchsorted(numbers, side.numbers)
        pairs.append((sides[0]._replace(points=X[places], numbers=side.numbers), near))
        pairs.append((side, near_data[places]))
    data_ranks, *pca_ranks = nearer_rows(data, _asked(pairs, data, n_jobs), n_jobs, monitor)
    asked = _asked([(in_map, near_data)], map_rows, n_jobs)
    (map_ranks,) = nearer_rows(map_rows, asked, n_jobs, monitor)

    near, ranks = (near_data, near_map), (data_ranks, map_ranks)
    seen = SeenRows(n, numbers, near, ranks, (X, Y), metric, n_jobs)
    beside = None
    if near_pca:
        side = sides[1]
        places = np.searchsorted(numbers, side.numbers)
        beside = SeenRows(
            *(n, side.numbers),
            *((near_data[places], near_pca[0]), (pca_ranks[0], pca_ranks[1])),
            *((X[places], side.points), metric, n_jobs),
        )
    per_point = {
        "trustworthiness": point_scores(data_ranks, k, n),
        "continuity": point_scores(map_ranks, k, n),
    }
    return MeasuredRows(_table(seen, beside, k), numbers, per_point)


class Projection:
    """The step to the first coordinates on principal axes."""

    def __init__(self, pca: PCA, n_components: int) -> None:
        self.place, self.n_components = Placing(pca), n_components

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return self.place(np.asarray(X))[:, : self.n_components]


def _points(rows: Rows, numbers: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows.take(numbers).X)


def _asked(pairs: list[tuple[Queries, np.ndarray]], rows: Rows, n_jobs: int | None) -> list[Asked]:
    """The ranks of rows near to queries, whose distances are computed here; one pass over them."""
    wanted = np.unique(np.concatenate([near.ravel() for _, near in pairs]))
    taken = _points(rows, wanted)
    found = []
    for queries, near in pairs:
        points = queries.seen(taken[np.searchsorted(wanted, near.ravel())])
        found.append(Asked(queries, near, partner_heights(queries, points, n_jobs)))
    return found


def _neighborhood(n: int) -> int:
    return min(NEIGHBORHOOD, (n - 1) // 2)


def _table(seen: SeenRows, pca: SeenRows | None, k: int) -> Quality:
    n = seen.n
    maps = [seen] if pca is None else [seen, pca]
    rank_errors = [mean_relative_rank_errors(one, None, k) for one in maps]
    chance = chance_values(n, k)
    entries: list[tuple[str, Any, str, str]] = [
        (
            "trustworthiness",
            lambda one: trustworthiness(one, None, k),
            "higher",
            f"are a point's {k} neighbors in the map also near it in the data? 1 is best",
        ),
        (
            "continuity",
            lambda one: continuity(one, None, k),
            "higher",
            f"are a point's {k} neighbors in the data also near it in the map? 1 is best",
        ),
        (
            "neighbor_recall",
            lambda one: neighbor_recall(one, None, k),
            "higher",
            f"share of a point's {k} neighbors in the data that are its {k} neighbors in the map",
        ),
        (
            "false_rank_error",
            lambda one: rank_errors[one is pca].false,  # type: ignore[union-attr]
            "lower",
            f"how far ranks of a point's {k} neighbors in the map moved, relative to them: 0 is "
            "best",
        ),
        (
            "missing_rank_error",
            lambda one: rank_errors[one is pca].missing,  # type: ignore[union-attr]
            "lower",
            f"how far ranks of a point's {k} neighbors in the data moved, relative to them: 0 is "
            "best",
        ),
        (
            "shepard_correlation",
            lambda one: spearman(one, one.pairs(PAIR_ROWS)),
            "higher",
            "are rows that are far apart in the data far apart in the map? 1 is best",
        ),
    ]
    rows = []
    for name, measure, better, meaning in entries:
        beside = None if pca is None else measure(pca)
        rows.append(QualityRow(name, measure(seen), beside, chance[name], better, meaning))
    return Quality(rows, n, len(seen.rows), k)


def chance_values(n: int, k: int) -> dict[str, Measured]:
    """What the measures are on average for a map that has nothing to do with the data.

    The rank of a neighbor is then uniform among 1 .. n - 1.
    """
    beyond = (n - 1 - k) * (n - k) / (2 * (n - 1))  # the mean of max(0, rank - k)
    trust = 1 - 2 * beyond / (2 * n - 3 * k - 1)
    own = np.arange(1.0, k + 1)
    # the mean of |rank - own|
    moves = (own * (own - 1) + (n - 1 - own) * (n - own)) / (2 * (n - 1))
    error = float((moves / own).sum() / (np.abs(n - 2 * own + 1) / own).sum())
    values = {
        "trustworthiness": trust,
        "continuity": trust,
        "neighbor_recall": k / (n - 1),
        "false_rank_error": error,
        "missing_rank_error": error,
        "shepard_correlation": 0.0,
    }
    return {name: Measured(value) for name, value in values.items()}
