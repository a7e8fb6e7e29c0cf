"""How many rows a measure takes by default: all of them, or as many as its budget pays for.

Each measure has a budget of ``SECONDS + SECONDS_PER_ROW n`` seconds of one core, times a share of
its own. The second term grows like the time of a t-SNE map (about 3e-4 n seconds of one core), so
that all measures of :func:`lowland.metrics.quality` together stay below a third of it at any size.
Where it is known how long the map takes, t seconds, all measures together get 0.9 (t / 2 + 1)
seconds of one core instead, at most ``MOST_SECONDS``: a fast map is measured fast, and a slow one
not more exactly than anybody needs.
A measured row is compared with all n rows, so that m rows cost ``m n`` times the cost of one pair:

    m = min(n, budget(n) / (n c)),    at least ``FEWEST`` rows

where c depends on the number of columns, or of stored numbers per row, and on the metric. The cost
min(n^2 c, budget(n)) is continuous in n and never falls. The constants were measured on one core
of a server of 2020; another machine changes the sample only if its *ratios* of costs differ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lowland._core.validation import is_sparse
from lowland._engines.distances.filter_space import FULL_COLUMNS
from lowland._engines.distances.metrics import from_products

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
        dense = not is_sparse(X)
        packable = p <= FULL_COLUMNS and 4 * n * p <= PACKED_BYTES
        whole = not (dense and from_products(metric) and packable)
        budget = _budget(n, map_seconds)
        return cls(n, _distance_seconds(X, metric), COUNT + 3e-11 * p, whole, budget)

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
