"""Intermediate results that measures share: neighbors, ranks, sums and pairs of distances."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.monitor import Monitor
from lowland._base.validation import check_matrix, with_room
from lowland._engines.distances.distance_rows import blocks_of, distance_rows
from lowland._engines.neighbors.graph import NeighborGraph, refuse_own_neighbors
from lowland._engines.stress.objective import stable_order
from lowland.metrics._options import MapKeywords, Options
from lowland.metrics._views import View

# Checks of a neighbor graph that is given together with the data.


CHECKED_ROWS = 8
ROUNDING = 1e-3  # relative; distances found in float32 differ by far less, other data by more


def check_graph_rows(graph: Any, n: int) -> None:
    """Refuse what is not a graph of n rows among themselves."""
    if not isinstance(graph, NeighborGraph):
        raise ParameterError(
            f"graph={type(graph).__name__} is not allowed; expected a NeighborGraph or None."
        )
    if len(graph) != n or graph.n_points != n:
        raise DataError(
            f"graph has {len(graph)} rows and their neighbors among {graph.n_points}, but X has "
            f"{n} rows; give a graph of the rows of X."
        )


def check_graph(graph: Any, X: Any, metric: Any, metric_params: dict[str, Any] | None) -> bool:
    """Whether the graph can stand for the neighbors of X; an error if it belongs to other data.

    Approximate graphs and rows with missing neighbors cannot. The distances of a few rows are
    computed again, which finds a graph of other columns, rows or units.
    """
    if isinstance(X, NeighborGraph):
        raise ParameterError("graph: X is a neighbor graph already; leave one of them out.")
    check_graph_rows(graph, X.shape[0])
    refuse_own_neighbors(graph, "graph")
    if graph.recall_ is not None or graph.indices.min(initial=0) < 0:
        return False
    name = metric if isinstance(metric, str) else "callable"
    if graph.metric != name:
        raise DataError(
            f"graph has distances in the metric {graph.metric!r}, but X is measured in {name!r}; "
            "give a graph in the same metric."
        )
    for row in np.unique(np.linspace(0, len(graph) - 1, CHECKED_ROWS).astype(int)):
        last = int(graph.indices[row, -1])
        pair = [int(row), last]
        some = X[np.ix_(pair, pair)] if metric == "precomputed" else X[pair]
        true = float(distance_rows(some, metric, metric_params, 1).of(np.array([0]))[0, 1])
        given = float(graph.distances[row, -1])
        if abs(true - given) > ROUNDING * max(true, given):
            raise DataError(
                f"graph: rows {row} and {last} are at distance {given:.6g}, but at {true:.6g} in "
                "X; give a graph of the same columns as X, or none."
            )
    return True


# The order of many values: mid-ranks, and means over all values beyond each.


class Order(NamedTuple):
    """Values in ascending order, in groups of equal ones."""

    order: np.ndarray
    group: np.ndarray  # of each value in the given order
    starts: np.ndarray  # of the groups in ascending order, and the number of values

    @classmethod
    def of(cls, values: np.ndarray, threads: int) -> Order:
        order = stable_order(values, threads)
        ordered = values[order]
        new = np.append(True, ordered[1:] != ordered[:-1])
        group = np.empty(len(values), np.int64)
        group[order] = np.cumsum(new) - 1
        return cls(order, group, np.append(np.flatnonzero(new), len(values)))

    def shares(self) -> np.ndarray:
        """Mid-ranks from 0 on, (rank + 1/2) / count - 1/2, so that their mean is 0."""
        middle = (self.starts[:-1] + self.starts[1:] - 1) / 2
        return ((middle + 0.5) / len(self.order) - 0.5)[self.group]

    def means_beyond(self, others: np.ndarray) -> np.ndarray:
        """E[others' 1(value' >= value)] for each value; ties count by half, as in mid-ranks."""
        tail = np.append(np.cumsum(others[self.order][::-1])[::-1], 0.0)
        mean = (tail[self.starts[:-1]] + tail[self.starts[1:]]) / 2 / len(self.order)
        return mean[self.group]


PAIR_ROWS = 2_000  # of which all pairs are taken by default
PAIR_BYTES = 96  # for all that a measure of pairs keeps of each


class DistanceSums(NamedTuple):
    """Per measured row, sums over all other rows; delta in the data, d in the map, c a scale."""

    delta: np.ndarray
    d: np.ndarray
    delta2: np.ndarray
    d2: np.ndarray
    delta_d: np.ndarray
    gap2: np.ndarray  # (delta - c d)^2
    relative_gap2: np.ndarray  # (delta - c d)^2 / delta, where delta > 0


class DataPairs:
    """Distances in the data of all pairs a < b of some rows, and their order once it is known."""

    def __init__(self, rows: np.ndarray, delta: np.ndarray) -> None:
        self.rows, self.delta = rows, delta
        self._order: Order | None = None

    def order(self, threads: int) -> Order:
        if self._order is None:
            self._order = Order.of(self.delta, threads)
        return self._order


class Pairs(NamedTuple):
    """Distances of all pairs a < b of m rows, in the data and in the map."""

    data: DataPairs
    d: np.ndarray

    def per_row(self, values: np.ndarray) -> np.ndarray:
        """The mean of the pairs' values over the pairs of each row."""
        m = len(self.data.rows)
        first, second = np.triu_indices(m, 1)
        return (np.bincount(first, values, m) + np.bincount(second, values, m)) / (m - 1)


class Comparison:
    """A map and the data it was made from, with the intermediate results that measures share.

    Every measure creates a comparison, or takes one in place of ``X`` and ``Y``. In the second case
    what two measures need (neighbor lists, ranks, sums of distances) is computed once.

    Parameters
    ----------
    X : array, data frame or CSR matrix of shape (n, d), or NeighborGraph
        The data; with ``metric="precomputed"`` an n x n matrix of distances. A graph (of
        :func:`lowland.neighbors.knn_graph`) suffices for measures that need only the neighbors in
        the data.
    Y : array of shape (n, q)
        The map, made by any tool; its distances are Euclidean.
    metric, metric_params
        The distance of the data, as in :func:`lowland.neighbors.knn_graph`.
    sample : int, None or "auto", default="auto"
        How many rows to measure, drawn without replacement: each is compared with *all* others,
        and the numbers have a standard error. None: all rows. "auto": each measure takes all rows
        if this is cheap, else as many as a bounded share of a map's time allows. In tables of up
        to 50 columns, measures of neighborhoods take all of up to about 10 000 rows, R_NX and sums
        of distances all of up to about 2 000.
    random_state : int, Generator or None, default=0
        For drawing the sample.
    n_jobs : int or None, default=None
        Threads; the results do not depend on their number.
    verbose : bool, default=False
        Show progress.
    graph : NeighborGraph or None, default=None
        Neighbors in the data that are known already, for example from a fit: of all rows of X, in
        the same order and metric, and in the same columns (a graph of principal components is not
        one of X; it is refused). An approximate graph is ignored, because measures are exact.
    map_seconds : float or None, default=None
        Seconds that the map took, or was estimated to take. With ``sample="auto"`` the measures of
        :func:`quality` then take about half as long, plus one second. None: like a t-SNE map.

    Notes
    -----
    Ranks count from 1 for the nearest other row; rows at equal distances are ordered by their
    number. With ``sample="auto"`` the memory beyond the data stays below 300 MB; otherwise it is
    O(n (d + k)). There is no n x n array, except in measures whose documentation states it.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.metrics import Comparison, continuity, trustworthiness
    >>> X = iris().X
    >>> both = Comparison(X, X[:, :2])
    >>> round(trustworthiness(both), 4), round(continuity(both), 4)
    (0.9175, 0.9693)
    """

    def __init__(
        self,
        X: Any,
        Y: Any,
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        sample: int | str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
        graph: NeighborGraph | None = None,
        map_seconds: float | None = None,
    ) -> None:
        options = Options(metric, metric_params, sample, random_state, n_jobs, verbose, map_seconds)
        X = options.checked(X, "X")
        self.options, self.work = options, options.work(X)
        self.n = self.work.n
        self.data = options.view_from(X, options.draw(self.n, self.work.neighborhoods()))
        if graph is not None and check_graph(graph, X, metric, metric_params):
            self.data.take_neighbors(graph)
        self.map = self._view_of_map(Y)
        self.rows = self.data.rows
        self._pair_rows = options.draw(self.n, PAIR_ROWS) if options.automatic else self.rows
        self._data_pairs: dict[int, DataPairs] = {}
        self._forget()

    @classmethod
    def of(cls, X: Any, Y: Any, **options: Any) -> Comparison:
        """X itself if it is a comparison, else a new one."""
        if not isinstance(X, Comparison):
            if Y is None:
                raise ParameterError("Y=None is not allowed; give the map, or a Comparison as X.")
            return cls(X, Y, **options)
        if Y is not None or options:
            given = "Y" if Y is not None else next(iter(options))
            raise ParameterError(
                f"{given}: X is a Comparison, which has a map and options already; give them to "
                "Comparison(X, Y, ...)."
            )
        return X

    def with_map(self, Y: Any) -> Comparison:
        """The same data and rows with another map; results about the data alone are reused."""
        other = copy.copy(self)
        other.map = other._view_of_map(Y)
        other._forget()
        return other

    def fewer(self, m: int) -> Comparison:
        """The same on at most m of the measured rows, if the sample was left to the measures.

        For measures that cost more per row than those of neighborhoods.
        """
        if len(self.rows) <= m or not self.options.automatic:
            return self
        other = copy.copy(self)
        other.rows = self.rows[_positions_drawn(len(self.rows), m)]
        other.data, other.map = self.data.among(other.rows), self.map.among(other.rows)
        other._forget()
        return other

    def _view_of_map(self, Y: Any) -> View:
        threads = self.options.threads
        Y = with_room(check_matrix(Y, owner="lowland.metrics", argument="Y", threads=threads))
        if len(Y) != self.n:
            raise DataError(
                f"Y has {len(Y)} rows, but X has {self.n}; a map needs one row for each row of the "
                "data, in the same order."
            )
        rows = self.data.rows if self.data.sampled else None
        return View(Y, rows, "euclidean", None, threads)

    def _forget(self) -> None:
        self._data_ranks = self._map_ranks = np.empty((len(self.rows), 0), np.int32)
        self._sums: DistanceSums | None = None
        self._pairs: dict[int, Pairs] = {}

    # --- neighborhoods --------------------------------------------------------------------

    def data_neighbors(self, k: int) -> np.ndarray:
        """The k nearest of each measured row in the data, (m, k)."""
        with self.options.working() as monitor:
            return self.data.nearest(k, monitor).indices

    def map_neighbors(self, k: int) -> np.ndarray:
        """The k nearest of each measured row in the map, (m, k)."""
        with self.options.working() as monitor:
            return self.map.nearest(k, monitor).indices

    def data_ranks(self, k: int) -> np.ndarray:
        """Ranks in the data of the k nearest in the map, (m, k)."""
        if self._data_ranks.shape[1] < k:
            with self.options.working() as monitor:
                self._data_ranks = _ranks_of(self.map, self.data, k, monitor)
        return self._data_ranks[:, :k]

    def map_ranks(self, k: int) -> np.ndarray:
        """Ranks in the map of the k nearest in the data, (m, k)."""
        if self._map_ranks.shape[1] < k:
            with self.options.working() as monitor:
                self._map_ranks = _ranks_of(self.data, self.map, k, monitor)
        return self._map_ranks[:, :k]

    def overlaps(self, k: int) -> np.ndarray:
        """For K = 1 .. k, how many of a row's K nearest are the same in data and map, (m, k)."""
        there = positions(self.map_neighbors(k), self.data_neighbors(k))
        # A common neighbor counts from the smallest K at which it is in both lists.
        meets = np.maximum(there, np.arange(k))
        hits = np.zeros((len(self.rows), k + 1), np.int64)
        np.add.at(hits, (np.arange(len(self.rows))[:, None], np.minimum(meets, k)), 1)
        return np.cumsum(hits[:, :k], axis=1)

    # --- distances ------------------------------------------------------------------------

    def distance_sums(self, scale: float = 1.0) -> DistanceSums:
        """Sums over all pairs of a measured row and another; O(m n d) time, O(m) memory."""
        if scale == 1.0 and self._sums is not None:
            return self._sums
        m, done, threads = len(self.rows), 0, self.options.threads
        sums = np.zeros((m, _native.DISTANCE_SUMS))
        with self.options.working() as monitor, monitor.phase("distances", total=m) as phase:
            for block in blocks_of(self.rows, self.n):
                # If all rows are measured, each pair is computed once and added to both rows.
                since = 0 if self.data.sampled else done
                delta, d = (side.source.of(block, since) for side in (self.data, self.map))
                own = (block - since).astype(np.int32)
                part = np.empty((len(block), _native.DISTANCE_SUMS))
                _native.distance_sums(delta, d, own, scale, part, threads)
                sums[done : done + len(block)] += part
                done += len(block)
                if not self.data.sampled:
                    _native.add_column_sums(delta, d, len(block), scale, sums[done:], threads)
                phase.advance(len(block))
        found = DistanceSums(*sums.T)
        if scale == 1.0:
            self._sums = found
        return found

    def pairs(self, most: int = PAIR_ROWS) -> Pairs:
        """All pairs of the measured rows; with ``sample="auto"`` of at most ``most`` rows.

        Such measures cost little per column but much memory, so that they draw their own rows.
        """
        rows = np.arange(self.n) if self._pair_rows is None else self._pair_rows
        if self.options.automatic and len(rows) > most:
            rows = rows[_positions_drawn(len(rows), most)]
        m = len(rows)
        if m in self._pairs:
            return self._pairs[m]
        task = f"a measure of all pairs of {m} rows"
        alternative = f"measure a sample, sample={PAIR_ROWS}"
        require_memory(m * (m - 1) // 2 * PAIR_BYTES, task=task, alternative=alternative)
        with self.options.working():
            if m not in self._data_pairs:
                self._data_pairs[m] = DataPairs(rows, self.data.pairs_of(rows))
            self._pairs[m] = Pairs(self._data_pairs[m], self.map.pairs_of(rows))
        return self._pairs[m]


def _positions_drawn(n: int, m: int) -> np.ndarray:
    """m of the numbers below n, ascending, the same at every call."""
    return np.sort(np.random.default_rng(0).choice(n, m, replace=False))


def positions(lists: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The position of each entry of a row of ``lists`` in the same row of ``others``, else k."""
    k = others.shape[1]
    found = np.full(lists.shape, k, np.int32)
    for place in range(k):
        found[lists == others[:, place, None]] = place
    return found


def _ranks_of(near: View, seen_in: View, k: int, monitor: Monitor) -> np.ndarray:
    """Ranks in one view of the k nearest in another, read from its neighbor lists if possible."""
    partners = near.nearest(k, monitor).indices
    known = seen_in.known_neighbors
    ranks = positions(partners, known) + 1
    strangers = ranks > known.shape[1]
    if strangers.any():
        ranks[strangers] = seen_in.ranks(partners, strangers, monitor)
    return ranks


# Which rows a measure takes, and where the values of its rows go.


def all_rows(X: Any, Y: Any, options: MapKeywords) -> Comparison:
    """A comparison that measures all rows by default, whatever their number."""
    if not isinstance(X, Comparison):
        options.setdefault("sample", None)
    return Comparison.of(X, Y, **options)


def summable(X: Any, Y: Any, options: MapKeywords) -> Comparison:
    """A comparison on as many rows as sums over all their distances are affordable for."""
    compared = Comparison.of(X, Y, **options)
    return compared.fewer(compared.work.sums())


def spread(compared: Comparison, values: np.ndarray) -> np.ndarray:
    """Values of the measured rows in an array for all; NaN elsewhere."""
    return of_all(values, compared.rows, compared.n)


def of_all(values: np.ndarray, rows: np.ndarray, n: int, elsewhere: Any = np.nan) -> np.ndarray:
    """Values of some of n rows in an array for all."""
    everyone = np.full((n, *values.shape[1:]), elsewhere, values.dtype)
    everyone[rows] = values
    return everyone
