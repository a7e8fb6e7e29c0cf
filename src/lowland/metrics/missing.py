"""Missing neighbors and strangers: which neighbors the place of a point has lost and gained."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._base.constraints import Integer, Null, check_argument
from lowland._base.errors import DataError
from lowland._base.validation import as_array, is_sparse
from lowland._engines.distances.distance_rows import row_squares, true_distances, unit_rows
from lowland._engines.distances.metrics import Directions
from lowland._engines.linalg.products import row_blocks
from lowland._engines.neighbors.duplicates import equal_in_graph
from lowland._engines.neighbors.graph import NeighborGraph
from lowland.metrics._comparison import Comparison, all_rows, positions, spread
from lowland.metrics._options import MapKeywords
from lowland.metrics._views import GraphView, Near, View

BLOCK_VALUES = 1 << 21


def pair_distances(view: View, one: np.ndarray, other: np.ndarray) -> np.ndarray | None:
    """d(x_a, x_b) of pairs of rows of one table; None where this kind of distance has no formula.

    Euclidean, squared Euclidean, cosine and correlation distances of dense rows, the first of
    sparse rows, and given distances. O(pairs times columns), in blocks.
    """
    X, metric = view.X, view.metric
    if metric == "precomputed" and not is_sparse(X):
        return np.asarray(X[one, other], dtype=np.float64)
    by_columns = metric in ("euclidean", "sqeuclidean", "cosine", "correlation")
    if isinstance(view, GraphView) or not by_columns:
        return None
    found = np.empty(len(one))
    for part in row_blocks(len(one), max(1, BLOCK_VALUES // X.shape[1])):
        found[part] = _distances(X[one[part]], X[other[part]], metric)
    return found


def _distances(A: Any, B: Any, metric: str) -> np.ndarray:
    """d(a_i, b_i) of rows."""
    if is_sparse(A):
        if metric == "cosine":
            A, B = unit_rows(A), unit_rows(B)
        A, B = A.astype(np.float64), B.astype(np.float64)
        products = np.asarray(A.multiply(B).sum(axis=1)).ravel()
        squares = np.maximum(row_squares(A) + row_squares(B) - 2 * products, 0)
    else:
        if metric in ("cosine", "correlation"):
            A, B = Directions.of(A, metric)[0], Directions.of(B, metric)[0]
        apart = np.asarray(A, dtype=np.float64) - B
        squares = np.einsum("ij,ij->i", apart, apart)
    return true_distances(squares, metric)


# Missing neighbors and strangers: what the neighborhood of each point has lost and gained.


NEIGHBORS = 15  # k: the neighbors that are looked for
LISTED = 75  # length of the neighbor lists; a neighbor a little farther away is not an error
SHARE = 0.01  # of the rows: how far "near" reaches in a large table
BLOCK_ROWS = 16_384
# Of a radius: the same distance, rounded in another order, lies within it. More would call rows
# equally near that are not, where all distances are almost the same.
SLACK = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-9}


def missing_neighbors(
    X: Any,
    Y: Any = None,
    n_neighbors: int = NEIGHBORS,
    reach: int | None = None,
    **options: Unpack[MapKeywords],
) -> np.ndarray:
    """m_i = share of the k nearest of i in the data that are not among its K nearest in the map.

    High where a point was separated from its neighbors: it is misplaced, or its neighborhood is
    torn. The mean over a random map is 1 - K / (n - 1), see :func:`chance_of_missing`. Unlike
    :func:`point_continuity`, it needs only two neighbor lists, whatever the number of rows.

    Cost: that of the neighbors in the data and in the map, then O(n k).

    Parameters
    ----------
    X, Y : the data (or a NeighborGraph) and the map, or a :class:`Comparison` as X alone
    n_neighbors : int, default=15
        k; at most a quarter of the other rows are taken.
    reach : int or None, default=None
        K; None is 75, or 1 % of the rows if that is more: in a large map, the 75 nearest of a
        point are a spot that no eye resolves. At most a quarter of the other rows are taken, but
        at least k.
    **options
        ``metric``, ``graph`` and others, see :class:`Comparison`. All rows are measured unless
        ``sample`` limits them; rows that are not measured are NaN.

    Returns
    -------
    ndarray of shape (n,)
        0 is best.

    Notes
    -----
    Ties are not errors: of rows at equal distances any may be the k nearest, in the data and in the
    map, and the choice that is best for the map counts. Above 200 000 rows the neighbors in the
    data are found approximately. Lists have 75 neighbors; if K is larger, the radius of the K
    nearest is that of the 75 nearest times (K / 75)^(1/d), d being the dimension of the map, or
    that of the data near a point (the median over all rows).

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> Y = X[:, 2:].copy()
    >>> Y[[0, 149]] = Y[[149, 0]]                  # two points are swapped
    >>> found = missing_neighbors(X, Y)
    >>> found[[0, 149]], bool(found[1:149].mean() < 0.2)
    (array([1., 1.]), True)
    """
    near = Neighborhoods.of(X, Y, n_neighbors, reach, options)
    return spread(near.compared, near.missing())


def strangers(
    X: Any,
    Y: Any = None,
    n_neighbors: int = NEIGHBORS,
    reach: int | None = None,
    **options: Unpack[MapKeywords],
) -> np.ndarray:
    """s_i = share of the k nearest of i in the map that are not among its K nearest in the data.

    High where the map shows a point among rows that are unlike it: groups are laid over one
    another. The counterpart of :func:`missing_neighbors`, with the same parameters and cost.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> bool(strangers(X, X[:, 2:]).mean() < 0.2 < strangers(X, X[:, :1]).mean())
    True
    """
    near = Neighborhoods.of(X, Y, n_neighbors, reach, options)
    return spread(near.compared, near.strangers())


class Neighborhoods(NamedTuple):
    """The nearest of every measured row, in the data and in the map."""

    compared: Comparison
    k: int
    reach: int  # K; the lists are shorter if it is large
    in_data: Near
    in_map: Near
    equal: np.ndarray | None  # the group of equal rows of each row; None if all are different

    @classmethod
    def of(cls, X: Any, Y: Any, k: int, reach: int | None, options: MapKeywords) -> Neighborhoods:
        """Both lists; k and K are lowered to a quarter of the other rows."""
        compared = all_rows(X, Y, options)
        n = compared.n
        check_argument("n_neighbors", k, Integer(1))
        check_argument("reach", reach, Integer(1) | Null())
        quarter = max(1, (n - 1) // 4)
        k = min(int(k), quarter)
        reach = max(LISTED, int(SHARE * n)) if reach is None else int(reach)
        reach = max(k, min(reach, quarter))
        listed = max(k, min(reach, LISTED))
        compared.data.approximate = True
        with compared.options.working() as monitor:
            in_data = compared.data.nearest(listed, monitor)
            in_map = compared.map.nearest(listed, monitor)
        equal = None
        if not compared.data.sampled:
            groups = equal_in_graph(NeighborGraph(*in_data, n, "euclidean"))
            equal = None if groups is None else groups.group
        return cls(compared, k, reach, in_data, in_map, equal)

    @property
    def chance(self) -> float:
        """The mean of both measures in a random map."""
        return chance_of_missing(self.compared.n, self.reach)

    def missing(self) -> np.ndarray:
        """For each measured row, the share of data neighbors that are far away in the map."""
        rows, Y = self.compared.rows, self.compared.map.table
        radii = self.in_map.distances[:, -1] * self._wider(Y.shape[1]) * slack(Y)
        found = np.empty(len(rows))
        for block in row_blocks(len(rows), BLOCK_ROWS):
            ids = self._nearest(self.in_data, block)
            kept = map_distances(Y, rows[block], ids) <= radii[block, None]
            hits = self._hits(self.in_data, block, kept)
            if self.equal is not None:  # equal rows in the map, where those in the data are
                own = self.equal[rows[block]][:, None]
                same = (self.equal[self.in_map.indices[block]] == own).sum(axis=1)
                are_equal = self.in_data.distances[block, self.k - 1] == 0
                hits = np.maximum(hits, np.where(are_equal, same, 0))
            found[block] = 1 - np.minimum(hits, self.k) / self.k
        return found

    def strangers(self) -> np.ndarray:
        """For each measured row, the share of map neighbors that are far away in the data."""
        rows = self.compared.rows
        radii = self.in_data.distances[:, -1] * self._wider(self._data_dimension())
        radii = radii * slack(self.compared.data.X)
        found = np.empty(len(rows))
        for block in row_blocks(len(rows), BLOCK_ROWS):
            ids = self._nearest(self.in_map, block)
            listed = self.in_data.indices[block]
            known = positions(ids, listed) < listed.shape[1]
            if self.equal is not None:
                known |= self.equal[ids] == self.equal[rows[block]][:, None]
            # Partners within the radius, though not in the list. If K is larger than the list, many
            # are. Else these are rows that are exactly as near as the last of the list, which
            # happens where values recur: which of them are listed depends on the order of the rows.
            which, place = np.nonzero(~known)
            partners = ids[which, place]
            apart = pair_distances(self.compared.data, rows[block][which], partners)
            if apart is not None:
                known[which, place] = apart <= radii[block][which]
            found[block] = 1 - self._hits(self.in_map, block, known) / self.k
        return found

    def _nearest(self, near: Near, block: slice) -> np.ndarray:
        """The k nearest, and all that are listed at the distance of the last of them.

        Columns beyond the last such entry are left out: without ties these are all but k.
        """
        distances = near.distances[block]
        found = (distances <= distances[:, self.k - 1, None]).sum(axis=1)
        return near.indices[block, : int(found.max(initial=self.k))]

    def _hits(self, near: Near, block: slice, kept: np.ndarray) -> np.ndarray:
        """How many of k nearest are kept, for the best choice of those that are equally near."""
        distances = near.distances[block, : kept.shape[1]]
        last = near.distances[block, self.k - 1, None]
        nearer, tied = distances < last, distances == last
        free = self.k - nearer.sum(axis=1)
        return (kept & nearer).sum(axis=1) + np.minimum((kept & tied).sum(axis=1), free)

    def _wider(self, dimension: float) -> float:
        """The radius of the K nearest, relative to that of the listed."""
        return (self.reach / self.in_data.indices.shape[1]) ** (1 / dimension)

    def _data_dimension(self) -> float:
        """d of the data near a point: the number of rows within a radius r grows like r^d."""
        inner, outer = self.in_data.distances[:, self.k - 1], self.in_data.distances[:, -1]
        growing = (inner > 0) & (outer > inner)
        if not growing.any():
            return float("inf")
        ratio = self.in_data.indices.shape[1] / self.k
        slope = np.log(ratio) / np.log(outer[growing] / inner[growing])
        return max(1.0, float(np.median(slope)))


def slack(table: Any) -> float:
    """The factor of a radius of a table or a map within which distances are the same."""
    return 1 + SLACK[np.dtype(table.dtype)]


def map_distances(Y: np.ndarray, rows: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Distances in the map from each row to its partners (m, k)."""
    squares = np.zeros(ids.shape)
    for axis in range(Y.shape[1]):
        along = Y[:, axis].astype(np.float64)
        squares += (along[ids] - along[rows][:, None]) ** 2
    return np.sqrt(squares)


def chance_of_missing(n: int, reach: int) -> float:
    """1 - K / (n - 1): the mean of both measures in a random map of n rows.

    >>> chance_of_missing(1501, 75)
    0.95
    """
    check_argument("n", n, Integer(2))
    check_argument("reach", reach, Integer(1))
    return 1 - min(reach, n - 1) / (n - 1)


def missing_p_values(missing: np.ndarray, n: int, n_neighbors: int, reach: int) -> np.ndarray:
    """P(as few or fewer missing in a random map): the number kept is hypergeometric.

        P(H >= h) = sum_{j >= h} C(K, j) C(n - 1 - K, k - j) / C(n - 1, k),   h = k (1 - m_i)

    Small where a point keeps more of its neighbors than chance explains; NaN stays NaN.

    Examples
    --------
    >>> missing_p_values(np.array([1.0, 14 / 15, 0.0]), 1000, 15, 75).round(3)
    array([1.   , 0.692, 0.   ])
    """
    from scipy.special import gammaln

    shares = as_array(missing, "missing")
    if shares.dtype.kind not in "fiu":
        raise DataError(f"missing has the type {shares.dtype}; expected an array of numbers.")
    if not ((shares >= 0) & (shares <= 1) | np.isnan(shares)).all():
        raise DataError("missing must hold shares from 0 to 1, or NaN.")
    check_argument("n", n, Integer(2))
    check_argument("n_neighbors", n_neighbors, Integer(1, int(n) - 1))
    check_argument("reach", reach, Integer(1, int(n) - 1))
    n, n_neighbors, reach = int(n), int(n_neighbors), int(reach)

    def log_choose(a: Any, b: Any) -> Any:
        return gammaln(a + 1.0) - gammaln(b + 1.0) - gammaln(a - b + 1.0)

    hits = np.arange(n_neighbors + 1)
    possible = (hits <= reach) & (n_neighbors - hits <= n - 1 - reach)
    log = np.full(len(hits), -np.inf)
    j = hits[possible]
    log[possible] = (
        log_choose(reach, j)
        + log_choose(n - 1 - reach, n_neighbors - j)
        - log_choose(n - 1, n_neighbors)
    )
    tail = np.minimum(np.cumsum(np.exp(log)[::-1])[::-1], 1.0)
    known = np.isfinite(shares)
    kept = np.rint(n_neighbors * (1 - np.where(known, shares, 0.0))).astype(int)
    return np.where(known, tail[kept], np.nan)
