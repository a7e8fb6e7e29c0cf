"""One side of a comparison, the data or the map: neighbors, ranks and distances of its rows."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError
from lowland._base.monitor import Monitor
from lowland._base.validation import is_sparse
from lowland._engines.distances import neighbor_ranks
from lowland._engines.distances.distance_rows import DistanceRows, blocks_of, distance_rows
from lowland._engines.distances.filter_space import FULL_COLUMNS
from lowland._engines.distances.metrics import from_products
from lowland._engines.neighbors.graph import NeighborGraph, refuse_own_neighbors
from lowland._engines.neighbors.search import PRUNED_COLUMNS, neighbor_graph, neighbor_query

# How many rows a measure takes by default: all of them, or as many as its budget pays for.
#
# Each measure has a budget of ``SECONDS + SECONDS_PER_ROW n`` seconds of one core, times a share
# of its own. The second term grows like the time of a t-SNE map (about 3e-4 n seconds of one
# core), so that all measures of :func:`lowland.metrics.quality` together stay below a third of it
# at any size. Where it is known how long the map takes, t seconds, all measures together get 0.9
# (t / 2 + 1) seconds of one core instead, at most ``MOST_SECONDS``, with which the standard errors
# are small enough. A measured row is compared with all n rows, so m rows cost ``m n`` times the
# cost of one pair:
#
#     m = min(n, budget(n) / (n c)),    at least ``FEWEST`` rows
#
# where c depends on the number of columns, or of stored numbers per row, and on the metric. The
# cost min(n^2 c, budget(n)) is continuous in n and never falls. The constants were measured on
# one core of a server of 2020; another machine changes the sample only if its *ratios* of costs
# differ.


SECONDS, SECONDS_PER_ROW = 0.1, 3e-6
MOST_SECONDS = 20.0  # standard errors of the neighborhoods are below 0.01 then
SHARES = 16  # of the budget, that all measures of ``quality`` take together
FEWEST = 100  # rows; with fewer, the standard errors themselves become uncertain
KEPT_BYTES = 96_000_000  # for whole rows of distances that several measures share
KEPT_PAIR = 12  # bytes: a distance (float64) and a rank (int32)
PACKED_BYTES = 60_000_000  # for each copy of the table in the layout of the kernels

# Seconds per pair of rows.
SORT = 1.7e-8  # its rank in a sorted row of distances
MAP = 2e-9  # its distance in a map of few dimensions
COUNT = 3e-9  # whether it is nearer than another pair, counted in a tile of distances


class Work(NamedTuple):
    """What measures of n rows cost.

    Attributes
    ----------
    n : int
    pair : float
        Seconds for one distance between rows of the data.
    search : float
        Seconds per pair for neighbors and their ranks, where these are found without whole rows of
        distances.
    whole : bool
        Whether neighbors and ranks are read from whole rows of distances instead: for wide and
        sparse tables, for metrics without a kernel and for tables too large to be packed.
    budget : float
        Seconds of one core for a measure with the share 1.
    """

    n: int
    pair: float
    search: float
    whole: bool
    budget: float

    @classmethod
    def of(cls, X: Any, metric: Any, map_seconds: float | None = None) -> Work:
        """The costs for a checked table, dense or CSR, or a matrix of distances."""
        n, p = X.shape
        packable = p <= FULL_COLUMNS and 4 * n * p <= PACKED_BYTES
        whole = is_sparse(X) or not (from_products(metric) and packable)
        pair, search = _distance_seconds(X, metric), COUNT + 3e-11 * p
        return cls(n, pair, search, whole, _budget(n, map_seconds))

    @classmethod
    def of_graph(cls, n: int, map_seconds: float | None = None) -> Work:
        """The costs for the neighbor graph of n rows, whose distances are known."""
        return cls(n, 0.0, 0.0, False, _budget(n, map_seconds))

    def neighborhoods(self) -> int:
        """Rows for measures of neighborhoods: trustworthiness, continuity, recall and others."""
        if not self.whole:
            return self._rows(5, self.search + COUNT)
        kept = max(FEWEST, KEPT_BYTES // (KEPT_PAIR * self.n))
        return min(self._rows(5, self.pair + SORT + COUNT), kept)

    def baselines(self) -> int:
        """Rows for the neighborhoods of a map that is only there to compare with."""
        if not self.whole:
            return self._rows(1, self.search + COUNT)
        return self._rows(1, COUNT if self.keeps(FEWEST) else self.pair + SORT + COUNT)

    def ranks(self) -> int:
        """Rows for measures that sort all distances of a row: R_NX."""
        return self._rows(2, self._again(self.pair + SORT) + MAP + SORT)

    def sums(self) -> int:
        """Rows for sums over all distances of a row: stress, Pearson's correlation."""
        return self._rows(1, self._again(self.pair) + 2 * MAP)

    def keeps(self, m: int) -> bool:
        """Whether the distances and ranks of m rows are kept once they are known."""
        return self.whole and KEPT_PAIR * m * self.n <= KEPT_BYTES

    def _again(self, seconds: float) -> float:
        """The cost of distances in the data, which is 0 if they are kept."""
        return 0.0 if self.keeps(FEWEST) else seconds

    def _rows(self, share: float, per_pair: float) -> int:
        return min(self.n, max(FEWEST, int(share * self.budget / (self.n * per_pair))))


def _budget(n: int, map_seconds: float | None) -> float:
    """Seconds of one core for a measure with the share 1."""
    if map_seconds is None:
        return SECONDS + SECONDS_PER_ROW * n
    return min(0.9 * (map_seconds / 2 + 1), MOST_SECONDS) / SHARES


def _distance_seconds(X: Any, metric: Any) -> float:
    """Seconds for one distance; a sparse row costs by its stored numbers."""
    n, p = X.shape
    if is_sparse(X):
        return 6e-8 + 1e-9 * X.nnz / n
    if metric == "precomputed":
        return 2e-9
    if from_products(metric):
        return 2e-9 + 1.7e-10 * p
    return 5e-6 if callable(metric) else 2e-9 + 2e-9 * p


# Whole rows of distances and ranks that are computed once and kept.
#
# They are used for tables in which computing a distance again costs more than keeping it.


class KeptRows:
    """Distances (float64) and ranks (int32) from m of the rows to all n: 12 m n bytes.

    It implements :class:`DistanceRows` for these rows.
    """

    def __init__(self, source: DistanceRows, rows: np.ndarray, threads: int) -> None:
        self.n, self.rows, self._source = source.n, rows, source
        self._place = np.full(self.n, -1)
        self._place[rows] = np.arange(len(rows))
        self._D = np.empty((len(rows), self.n))
        self._ranks = np.empty((len(rows), self.n), np.int32)
        for block in blocks_of(rows, self.n):
            places = self._place[block]
            self._D[places] = source.of(block)
            self._ranks[places] = neighbor_ranks.ranks_in(self._D[places], block, threads)

    def of(self, rows: np.ndarray, since: int = 0) -> np.ndarray:
        """Distances of kept rows to all rows from ``since`` on, a fresh array."""
        return np.ascontiguousarray(self._D[self._place[rows], since:])

    def ranks_of(self, rows: np.ndarray) -> np.ndarray:
        """Ranks of all rows seen from kept ones, a fresh (len(rows), n), 0 for the row itself."""
        return self._ranks[self._place[rows]]

    def nearest(self, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest other rows of kept ones, nearest first, and their distances."""
        places = self._place[rows]
        indices = np.empty((len(rows), k + 1), np.int64)
        for found, place in zip(indices, places, strict=True):
            near = np.flatnonzero(self._ranks[place] <= k)
            found[self._ranks[place, near]] = near
        indices = indices[:, 1:]  # without the row itself
        return indices, self._D[places[:, None], indices]

    def subset(self, rows: np.ndarray) -> DistanceRows:
        """Distances of the chosen rows among themselves."""
        return self._source.subset(rows)


class Near(NamedTuple):
    """Neighbors of the measured rows, nearest first, ties by row number: (m, k) each."""

    indices: np.ndarray
    distances: np.ndarray


@dataclasses.dataclass
class _Shared:
    """Distances that views of the same table from fewer rows share."""

    computed: DistanceRows | None = None
    kept: KeptRows | None = None


class View:
    """Neighbors, ranks and distances from the measured rows to all n rows of one table.

    Neighbor lists are found once, for the largest number asked for so far. ``rows`` is None when
    all rows are measured; ``kept_bytes`` bounds the memory for whole rows of distances that are
    kept, which is done for tables whose distances cost more than keeping them.
    """

    def __init__(
        self,
        X: Any,
        rows: np.ndarray | None,
        metric: Any,
        params: Any,
        threads: int,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self.X, self.n, self.threads = X, X.shape[0], threads
        self.sampled, self.rows = rows is not None, np.arange(self.n) if rows is None else rows
        self.metric, self.params = metric, params
        self.kept_bytes = kept_bytes
        self.whole = Work.of(X, metric).whole
        self.approximate = False  # whether neighbors of very many rows may be found approximately
        self._near: Near | None = None
        self._shared = _Shared()

    @property
    def table(self) -> Any:
        """The rows themselves."""
        return self.X

    def among(self, rows: np.ndarray) -> View:
        """The same side, seen from some of the measured rows."""
        other = copy.copy(self)
        other.rows, other.sampled = rows, len(rows) < self.n
        if self._near is not None:
            places = np.searchsorted(self.rows, rows)
            other._near = Near(self._near.indices[places], self._near.distances[places])
        return other

    def take_neighbors(self, graph: NeighborGraph) -> None:
        """Take over the neighbor lists of a graph of the same rows."""
        self._near = Near(graph.indices[self.rows], graph.distances[self.rows])

    def nearest(self, k: int, monitor: Monitor) -> Near:
        """The k nearest other rows of every measured row; exact unless ``approximate`` is set."""
        if self._near is None or self._near.indices.shape[1] < k:
            self._near = self._search(k, monitor)
        return Near(self._near.indices[:, :k], self._near.distances[:, :k])

    @property
    def known_neighbors(self) -> np.ndarray:
        """As much of the neighbor lists as has been asked for, (m, k); k may be 0."""
        return np.empty((len(self.rows), 0), int) if self._near is None else self._near.indices

    def _search(self, k: int, monitor: Monitor) -> Near:
        kept = self._kept_rows()
        if kept is not None:
            return Near(*kept.nearest(self.rows, k))
        if self.sampled and self.whole:
            return self._search_rows(k, monitor)
        known: dict[str, Any] = {"metric": self.metric, "metric_params": self.params}
        known |= {"threads": self.threads, "monitor": monitor}
        if not self.sampled:
            # "auto" is approximate for very many rows, unless there are few enough columns for
            # a tree.
            any_way = self.approximate or self.X.shape[1] <= PRUNED_COLUMNS
            graph = neighbor_graph(self.X, k, method="auto" if any_way else "exact", **known)
            return Near(graph.indices, graph.distances)
        found = neighbor_query(self.X, self.X[self.rows], k + 1, **known)
        # Each row finds itself, except perhaps among more than k equal rows.
        own = found.indices == self.rows[:, None]
        own[~own.any(axis=1), -1] = True
        shape = (len(self.rows), k)
        return Near(found.indices[~own].reshape(shape), found.distances[~own].reshape(shape))

    def _search_rows(self, k: int, monitor: Monitor) -> Near:
        """The k nearest from whole rows of distances, which need no copy of the table."""
        parts = []
        with monitor.phase("neighbors", total=len(self.rows)) as phase:
            for block in blocks_of(self.rows, self.n):
                parts.append(KeptRows(self._computed_rows, block, self.threads).nearest(block, k))
                phase.advance(len(block))
        return Near(*map(np.concatenate, zip(*parts, strict=True)))

    def _kept_rows(self) -> KeptRows | None:
        """Whole rows of distances from the measured rows, if they are worth their memory."""
        if not self.whole or KEPT_PAIR * len(self.rows) * self.n > self.kept_bytes:
            return None
        kept = self._shared.kept
        if kept is None or len(kept.rows) < len(self.rows):  # as kept by a view of fewer rows
            kept = self._shared.kept = KeptRows(self._computed_rows, self.rows, self.threads)
        return kept

    @property
    def _computed_rows(self) -> DistanceRows:
        """Whole rows of distances, computed each time they are asked for."""
        if self._shared.computed is None:
            known = (self.X, self.metric, self.params, self.threads)
            self._shared.computed = distance_rows(*known, PACKED_BYTES if self.sampled else None)
        return self._shared.computed

    @property
    def source(self) -> DistanceRows:
        """Whole rows of distances."""
        return self._kept_rows() or self._computed_rows

    def distances_among(self, rows: np.ndarray) -> DistanceRows:
        """Whole rows of distances of some rows among themselves."""
        return self._computed_rows.subset(rows)

    def pairs_of(self, rows: np.ndarray) -> np.ndarray:
        """Distances of the pairs a < b of some rows, which need not be measured ones."""
        source = self.distances_among(rows)
        parts = []
        for block in blocks_of(np.arange(source.n), source.n):
            D = source.of(block, int(block[0]))
            parts += [D[i, i + 1 :] for i in range(len(block))]
        return np.concatenate(parts)

    def ranks(self, partners: np.ndarray, asked: np.ndarray, monitor: Monitor) -> np.ndarray:
        """Ranks of the partners (m, k) of the measured rows; only those ``asked`` for, in order."""
        counts = asked.sum(axis=1)
        some = np.flatnonzero(counts)
        starts = np.append(0, np.cumsum(counts[some]))
        found = (self.source, self.rows[some], starts, partners[asked], self.threads, monitor)
        return neighbor_ranks.partner_ranks(*found, by_sorting=self.sampled and self.whole)

    def all_ranks(self, rows: np.ndarray) -> np.ndarray:
        """Ranks of all rows seen from a block of them, 0 for the row itself."""
        return neighbor_ranks.full_ranks(self.source, rows, self.threads)


class GraphView(View):
    """A neighbor graph in place of data: it has the nearest rows of every row only."""

    def __init__(self, graph: NeighborGraph, rows: np.ndarray | None, threads: int) -> None:
        super().__init__(np.empty((len(graph), 1)), rows, graph.metric, None, threads)
        self.graph = graph
        if graph.n_points != len(graph):
            raise DataError(
                f"X: this graph has the neighbors of {len(graph)} queries among {graph.n_points} "
                "rows; a graph of the rows among themselves is needed, as knn_graph makes it."
            )
        refuse_own_neighbors(graph, "X")

    def _search(self, k: int, monitor: Monitor) -> Near:
        if k > self.graph.n_neighbors:
            raise ParameterError(
                f"n_neighbors={k} is more than the {self.graph.n_neighbors} neighbors that the "
                "graph given as X has; make a larger graph or ask for fewer."
            )
        found = Near(self.graph.indices[self.rows], self.graph.distances[self.rows])
        if found.indices[:, :k].min(initial=0) < 0:
            place = int((found.indices[:, :k] < 0).any(axis=1).argmax())
            raise DataError(
                f"X: row {int(np.arange(len(self.graph))[self.rows][place])} of the graph has "
                f"fewer than the {k} neighbors that are compared; ask for fewer, or give the data."
            )
        return found

    @property
    def table(self) -> Any:
        raise DataError("X is a neighbor graph; this measure needs the data.")

    @property
    def _computed_rows(self) -> DistanceRows:
        raise DataError(
            "X is a neighbor graph, which has neither the distances nor the ranks of rows that are "
            "not neighbors; this measure needs the data or a matrix of distances."
        )
