"""What the tests of islands share: checks of arguments, rows as points, neighboring islands."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from lowland._base.errors import DataError
from lowland._base.validation import as_array, is_sparse
from lowland._engines.distances.metrics import Directions
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import largest_eigenpairs
from lowland._engines.linalg.principal_axes import PrincipalAxes, leading_axes
from lowland._engines.linalg.products import double_center
from lowland._engines.neighbors.graph import NeighborGraph
from lowland.metrics._options import Options
from lowland.metrics._views import View


def checked_islands(
    islands: Any, n: int | None = None, argument: str = "islands", least: int = 0
) -> np.ndarray:
    """Islands as integers from ``least`` on, one for each of n rows."""
    codes = as_array(islands, argument)
    if codes.ndim != 1 or codes.dtype.kind not in "iub" or len(codes) != (n or len(codes)):
        rows = "row" if n is None else f"of {n} rows"
        raise DataError(
            f"{argument} has shape {codes.shape} and type {codes.dtype}; give one integer for each "
            f"{rows}, as lowland.metrics.islands does."
        )
    low, high = int(codes.min(initial=0)), int(codes.max(initial=0))
    if low < least:
        missing = "" if least == 0 else ", -1 for rows that a map does not have"
        raise DataError(f"{argument} holds {low}; give 0 for rows of no island{missing}.")
    # Numbers beyond the number of rows would be mostly empty islands.
    if high > len(codes):
        raise DataError(f"{argument} holds {high} for {len(codes)} rows; number them 1, 2, ...")
    return codes.astype(np.int64)


# Rows of any table as points with Euclidean distances, for tests on a few of them.


MOST_COLUMNS = 100  # more are reduced by PCA
AXES = 50
DIRECTED = ("cosine", "correlation")
AXES_ROWS = 5_000  # of which the principal axes are computed


class Cloud:
    """Points whose distances are those of the rows: ``of(rows)`` gives coordinates of some rows.

    Dense rows are taken as they are; with more than 100 columns, and if they are sparse, their
    scores on the 50 leading principal axes. Cosine and correlation are Euclidean distances of
    directions. Any other metric is measured among the rows asked for, and classical scaling gives
    up to 50 coordinates.
    """

    def __init__(self, X: Any, options: Options) -> None:
        if isinstance(X, NeighborGraph):
            raise DataError("X is a neighbor graph; this measure needs the data.")
        self.X = options.checked(X, "X")
        self.n = self.X.shape[0]
        self.options, self.metric = options, options.metric
        self._axes: PrincipalAxes | None = None
        dense, columns = not is_sparse(self.X), ("euclidean", "sqeuclidean")
        self._by_columns = self.metric in (*columns, *DIRECTED) if dense else self.metric in columns
        if self._by_columns and (not dense or self.X.shape[1] > MOST_COLUMNS):
            rng = np.random.default_rng(0)
            some = np.sort(rng.choice(self.n, min(self.n, AXES_ROWS), replace=False))
            rows = self._taken(some)
            with options.working() as monitor:
                n_axes = min(AXES, *rows.shape)
                self._axes = leading_axes(rows, n_axes, options.threads, rng, monitor)

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Coordinates of some rows, (m, p) in float64."""
        if not self._by_columns:
            return self._scaled(rows)
        if self._axes is None:
            return np.ascontiguousarray(self._taken(rows), dtype=np.float64)
        threads = self.options.threads
        mean, axes = self._axes.mean, self._axes.axes
        scores = products.times(self._taken(rows), mean, np.ascontiguousarray(axes.T), threads)
        return np.asarray(scores, dtype=np.float64)

    def _taken(self, rows: np.ndarray) -> Any:
        taken = self.X[rows]
        return Directions.of(taken, self.metric).rows if self.metric in DIRECTED else taken

    def _scaled(self, rows: np.ndarray) -> np.ndarray:
        """Classical scaling of the distances among some rows."""
        options = self.options
        view = View(self.X, None, options.metric, options.metric_params, options.threads)
        D = view.distances_among(rows).of(np.arange(len(rows)))
        B = D**2
        B = (B + B.T) / 2  # given distances may differ in the last bit
        double_center(B, -0.5)
        found = largest_eigenpairs(B, min(AXES, len(rows) - 1))
        return found.vectors * np.sqrt(np.maximum(found.values, 0))


# Which islands are neighbors: in the map, and in the data.


POINTS = 4000  # of all islands together, between which distances are measured
MOST_POINTS = 200  # of one island
LINKS = 3  # islands that are linked most to one
LEAST_LINK = 0.02  # share of the edges of the smaller island


def neighboring_pairs(Y: np.ndarray, codes: np.ndarray) -> list[tuple[int, int]]:
    """Islands A, B with no third C that lies between: d(A, B)^2 <= d(A, C)^2 + d(B, C)^2.

    d is the smallest distance between points of two islands (of a sample). This is the Gabriel
    graph of the islands; it holds for maps of any dimension.
    """
    m = int(codes.max(initial=0))
    each = max(4, min(MOST_POINTS, POINTS // max(m, 1)))
    rng = np.random.default_rng(0)
    samples = []
    for number in range(1, m + 1):
        rows = np.flatnonzero(codes == number)
        samples.append(Y[np.sort(rng.choice(rows, min(each, len(rows)), replace=False))])
    D2, pairs = np.zeros((m, m)), list(itertools.combinations(range(m), 2))
    for one, other in pairs:
        apart = samples[one][:, None] - samples[other][None]
        D2[one, other] = D2[other, one] = (apart**2).sum(axis=2).min(initial=np.inf)
    found = []
    for one, other in pairs:
        around = np.delete(D2[one] + D2[other], [one, other])
        if D2[one, other] <= around.min(initial=np.inf):
            found.append((one + 1, other + 1))
    return found


def linked_pairs(ids: np.ndarray, codes: np.ndarray) -> list[tuple[int, int]]:
    """For each island, the others to which most of its neighbor edges in the data lead."""
    m = int(codes.max(initial=0))
    known = ids >= 0
    start = np.repeat(codes, ids.shape[1]).reshape(ids.shape)
    end = codes[np.where(known, ids, 0)]
    crossing = known & (start != end) & (start > 0) & (end > 0)
    edges = np.bincount(start[crossing] * (m + 1) + end[crossing], minlength=(m + 1) ** 2)
    edges = edges.reshape(m + 1, m + 1)
    edges = edges + edges.T
    sizes = np.bincount(codes, minlength=m + 1)
    links = edges / np.maximum(2 * ids.shape[1] * np.minimum(sizes[:, None], sizes), 1)
    most = np.argsort(-links, axis=1, kind="stable")[:, :LINKS].tolist()
    linked = [(one, other) for one in range(1, m + 1) for other in most[one]]
    return sorted({tuple(sorted(pair)) for pair in linked if links[pair] >= LEAST_LINK})
