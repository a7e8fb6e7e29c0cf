"""The quality of a map on some rows against all rows of a table that is read in chunks.

The definitions are those of :mod:`lowland.metrics`: its measures take a :class:`SeenRows` in place
of a comparison in memory.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from lowland._base.memory import available_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block
from lowland._base.rows.fitting import Placing
from lowland._base.rows.folding import sampled_rows
from lowland._base.rows.table import Rows
from lowland._base.threads import resolve_n_jobs
from lowland._engines.distances.metrics import pair_distances
from lowland._engines.distances.neighbor_ranks import nearer_in_block, square_distances
from lowland._engines.linalg.products import row_blocks
from lowland._engines.neighbors.block_search import nearest_in_rows
from lowland._engines.neighbors.exact_search import ExactIndex
from lowland.chunks.graph import nearest_first
from lowland.metrics import Quality, mean_relative_rank_errors
from lowland.metrics._comparison import Comparison, DataPairs, Pairs
from lowland.metrics._measured import Measured, QualityRow
from lowland.metrics._options import Options
from lowland.metrics._views import COUNT, FEWEST
from lowland.metrics.coranking import point_scores
from lowland.metrics.quality import (
    FEWEST_ROWS,
    NEIGHBORHOOD,
    NOT_MEASURED,
    PAIR_ROWS,
    SHEPARD,
    Maps,
    MeasureEntry,
    Measures,
    neighborhood_entries,
)
from lowland.workflow.streaming.roles import LOOK_SEED

# The nearest rows of some queries among all rows of a table, in chunks, and exact ranks.
#
# Two passes over the table: the first merges the k nearest of each chunk, the second adds up how
# many rows are nearer than given ones. Ties are ordered by row number, as in
# :mod:`lowland.metrics`.


TILE = 1 << 22  # distances per block: 32 MB


class Queries(NamedTuple):
    """Some rows of a table and their numbers; ``view`` makes them of the blocks of the table."""

    points: np.ndarray  # (m, d)
    numbers: np.ndarray  # (m,), ascending
    metric: str = "euclidean"
    view: Any = None  # a step, such as the projection of a PCA; None: the columns as they are

    def seen(self, X: Any) -> np.ndarray:
        """The block as the queries see it."""
        found = X if self.view is None else self.view(X)
        return np.ascontiguousarray(found, self.points.dtype)


class Asked(NamedTuple):
    """Queries, rows (m, k) whose ranks are asked for, and their distances."""

    queries: Queries
    partners: np.ndarray
    heights: np.ndarray


def nearest_rows(
    rows: Rows, several: list[Queries], k: int, n_jobs: int | None, monitor: Monitor | None = None
) -> list[np.ndarray]:
    """The k nearest other rows (m, k) of several sets of queries, in one pass over the table."""
    search = functools.partial(_nearest_in_block, several, k, n_jobs)
    found = rows.total(search, functools.partial(_nearest_of_both, k), monitor, "neighbors")
    return [ids for ids, _ in found]


def nearer_rows(
    rows: Rows, several: list[Asked], n_jobs: int | None, monitor: Monitor | None = None
) -> list[np.ndarray]:
    """The ranks (m, k) of all partners, 1 for the nearest, in one pass over the table."""
    found = rows.total(
        functools.partial(_nearer_in_block, several, n_jobs), _sums, monitor, "ranks"
    )
    return [counts + 1 for counts in found]


def partner_heights(queries: Queries, partners: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Distances (m, k) of queries to partners (m k, d), squared if they are Euclidean."""
    m = len(queries.points)
    k = len(partners) // m
    if queries.metric == "euclidean":
        own = np.repeat(queries.points, k, axis=0)
        return square_distances(own, partners, resolve_n_jobs(n_jobs)).reshape(m, k)
    one_each = zip(queries.points[:, None], partners.reshape(m, k, -1), strict=True)
    return np.concatenate([pair_distances(x, Z, queries.metric, None) for x, Z in one_each])


Lists = tuple[np.ndarray, np.ndarray]  # numbers (m, k) and distances of the nearest rows so far


def _nearest_in_block(
    several: list[Queries], k: int, n_jobs: int | None, block: Block
) -> list[Lists]:
    found = []
    for queries in several:
        X = queries.seen(block.X)
        wanted = min(k + 1, len(X))  # each row finds itself
        if queries.metric == "euclidean":
            threads = resolve_n_jobs(n_jobs)
            ids, heights = ExactIndex(X, threads).query(queries.points, wanted, threads, Monitor())
        else:
            ids, heights = _in_tiles(X, queries, wanted)
        numbers = ids.astype(np.int64) + block.start
        heights = np.where(numbers == queries.numbers[:, None], np.inf, heights)
        found.append(nearest_first(numbers, heights, k))
    return found


def _nearest_of_both(k: int, a: list[Lists], b: list[Lists]) -> list[Lists]:
    return [
        nearest_first(np.hstack([x[0], y[0]]), np.hstack([x[1], y[1]]), k)
        for x, y in zip(a, b, strict=True)
    ]


def _in_tiles(X: np.ndarray, queries: Queries, k: int) -> Lists:
    m = len(queries.points)
    ids, heights = np.empty((m, k), np.int64), np.empty((m, k))
    for part in row_blocks(m, max(1, TILE // len(X))):
        D = pair_distances(queries.points[part], X, queries.metric, None)
        ids[part], heights[part] = nearest_in_rows(D, k)
    return ids, heights


def _nearer_in_block(several: list[Asked], n_jobs: int | None, block: Block) -> list[np.ndarray]:
    """How many rows of the block are nearer than the partners."""
    return [
        nearer_in_block(
            queries.seen(block.X),
            block.start,
            queries.points,
            queries.numbers,
            partners,
            heights,
            queries.metric,
            resolve_n_jobs(n_jobs),
        )
        for queries, partners, heights in several
    ]


def _sums(a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:
    return [x + y for x, y in zip(a, b, strict=True)]


MOST_MEASURED = 10_000  # rows
MOST_SECONDS = 600.0  # of one core
PARTNER_BYTES = 1 << 28  # of the rows whose ranks are asked for
BASELINE_SHARE = 5  # of the measured rows, one in so many is measured in the PCA map, too
PCA_COLUMNS = 5000  # of wider tables no PCA map is made for comparison


class Side(NamedTuple):
    """The measured rows in the data or in the map, and what is near to them there.

    ``ranks`` are those that the rows near on the other side have on this one.
    """

    points: np.ndarray
    near: np.ndarray
    ranks: np.ndarray


class SeenRows(Comparison):
    """Measured rows whose neighbors and ranks among all n rows are known."""

    def __init__(
        self, n: int, numbers: np.ndarray, sides: tuple[Side, Side], metric: str, n_jobs: int | None
    ) -> None:
        self.n, self.rows, self._metric = n, numbers, metric
        self.options = Options(metric, None, None, 0, n_jobs, False, None)
        self._in_data, self._in_map = sides

    def data_neighbors(self, k: int) -> np.ndarray:
        return self._in_data.near[:, :k]

    def map_neighbors(self, k: int) -> np.ndarray:
        return self._in_map.near[:, :k]

    def data_ranks(self, k: int) -> np.ndarray:
        return self._in_data.ranks[:, :k]

    def map_ranks(self, k: int) -> np.ndarray:
        return self._in_map.ranks[:, :k]

    def pairs(self, most: int = PAIR_ROWS) -> Pairs:
        """All pairs of at most ``most`` of the measured rows."""
        from scipy.spatial.distance import pdist

        some = slice(None, None, -(-len(self.rows) // most))
        metric = {"manhattan": "cityblock"}.get(self._metric, self._metric)
        X, Y = (np.asarray(s.points[some], np.float64) for s in (self._in_data, self._in_map))
        return Pairs(DataPairs(self.rows[some], pdist(X, metric)), pdist(Y))


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
) -> Measures:
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
    over the coordinates. Cost O(m n p) for m measured rows; memory O(m k p) and that of a chunk.
    """
    n = len(data)
    if n < FEWEST_ROWS:
        return NOT_MEASURED
    k = _neighborhood(n)
    X, Y = points or (_points(data, numbers), _points(map_rows, numbers))
    sides = [Queries(X, numbers, metric)]
    if pca is not None and data.shape[1] <= PCA_COLUMNS:
        some = numbers[::BASELINE_SHARE] if len(numbers) > BASELINE_SHARE * FEWEST else numbers
        view = functools.partial(_projected, Placing(pca), Y.shape[1])
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

    sides_of_map = Side(X, near_data, data_ranks), Side(Y, near_map, map_ranks)
    compared = [SeenRows(n, numbers, sides_of_map, metric, n_jobs)]
    for side, near in zip(sides[1:], near_pca, strict=True):
        places = np.searchsorted(numbers, side.numbers)
        in_data = Side(X[places], near_data[places], pca_ranks[0])
        in_pca = Side(side.points, near, pca_ranks[1])
        compared.append(SeenRows(n, side.numbers, (in_data, in_pca), metric, n_jobs))
    per_point = {
        "trustworthiness": point_scores(data_ranks, k, n),
        "continuity": point_scores(map_ranks, k, n),
    }
    return Measures(_table(compared, k), per_point)


def _projected(place: Placing, n_components: int, X: np.ndarray) -> np.ndarray:
    """The first coordinates on principal axes."""
    return place(np.asarray(X))[:, :n_components]


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


def _table(compared: list[SeenRows], k: int) -> Quality:
    """The lines of the quality table of the map, and of the PCA map if there is one."""
    n = compared[0].n
    errors = [mean_relative_rank_errors(one, None, k) for one in compared]
    moved = f"how far ranks of a point's {k} neighbors in the %s moved, relative to them: 0 is best"
    entries = [
        *neighborhood_entries(k),
        MeasureEntry(
            "false_rank_error", lambda _: [one.false for one in errors], "lower", moved % "map"
        ),
        MeasureEntry(
            "missing_rank_error", lambda _: [one.missing for one in errors], "lower", moved % "data"
        ),
        SHEPARD,
    ]
    maps, chance = Maps(compared, compared), chance_values(n, k)  # type: ignore[arg-type]
    rows = []
    for name, measure, better, meaning in entries:
        value, *beside = measure(maps)
        pca = beside[0] if beside else None
        rows.append(QualityRow(name, value, pca, chance[name], better, meaning))
    return Quality(rows, n, len(compared[0].rows), k)


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
