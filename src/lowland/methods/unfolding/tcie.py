"""Topologically constrained isometric embedding (Rosman, Bronstein, Bronstein & Kimmel 2010)."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._base.constraints import Function, Integer, Null, OneOf, Real, Several
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import some_of
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate
from lowland._engines.graphs import geodesics
from lowland._engines.graphs.components import connect
from lowland._engines.graphs.laplacian import graph_multigrid
from lowland._engines.graphs.weights import row_numbers
from lowland._engines.linalg.products import mirror, row_blocks
from lowland._engines.neighbors.duplicates import EqualRows, equal_in_graph
from lowland._engines.neighbors.search import neighbor_graph_cost
from lowland._engines.stress import initial_map
from lowland._engines.stress.classical_scaling import classical_scaling_cost
from lowland._engines.stress.majorization import Majorized, majorization_cost, majorize
from lowland._engines.stress.objective import FACTORED_ROWS, AllPairs, ListedPairs
from lowland._engines.stress.placement import equal_points, place_by_stress
from lowland.methods._bases.distances import random_landmarks
from lowland.methods._bases.graphs import DOUBLE_ROWS, NEW_ROWS, GeodesicEmbedding

# Rows on the boundary of a sampled surface, found from the neighbor graph alone.
#
# The neighbors of a row inside of a surface lie all around it; those of a row on the boundary lie
# on one side. With the unit vectors u_j from a row to its k nearest rows along the graph,
#
#     r^2 = |mean_j u_j|^2 = mean_jl cos(angle between j and l)
#
# is about 1/k inside. On the boundary of a q-dimensional surface the u_j fill half of a sphere,
# and r is about E|u_1| = Gamma(q/2) / (sqrt(pi) Gamma((q+1)/2)): 1, 2/pi and 1/2 for q = 1, 2, 3.
# The cosines follow from lengths of paths, so that no coordinates are needed.


PER_AXIS = 8  # neighbors for each axis and one more
LARGEST_SHARE = 4  # a neighborhood is at most this part of the rows: larger ones are never round


def half_sphere(q: int) -> float:
    """E|u_1| of a random unit vector in q dimensions: r of a row on a flat boundary."""
    return math.exp(math.lgamma(q / 2) - math.lgamma((q + 1) / 2)) / math.sqrt(math.pi)


def boundary_rows(
    graph: scipy.sparse.csr_matrix, q: int, k: int | None, threshold: float, run: FitContext
) -> np.ndarray:
    """Whether r exceeds the ``threshold`` share of its value on a boundary, for every row.

    ``k`` None takes 8 (q + 1) neighbors, and at most a quarter of the rows.
    """
    n = graph.shape[0]
    if k is None:
        k = max(q + 1, min(PER_AXIS * (q + 1), n // LARGEST_SHARE))
    if n <= q + 1:
        return np.zeros(n, bool)  # so few rows have no inside
    starts, ends = graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
    squares, lengths = np.empty(n), graph.data.astype(np.float64)
    with run.monitor.phase("boundary"):
        _native.mean_cosines(starts, ends, lengths, min(k, n - 1), squares, run.threads)
    return np.sqrt(np.maximum(squares, 0.0)) > threshold * half_sphere(q)


# Places of rows of which few distances are known: Newton's method from several starts.
#
# The stress of a few distances to points near each other is a long flat valley. Steps of
# majorization become short there long before the minimum; Newton's method (with Levenberg's
# damping, where the stress is not convex) needs a few steps more. There may also be several
# valleys, on either side of the points, so that it starts on all sides of them. Only known
# distances are read, so that a row costs less than by
# :func:`lowland._engines.stress.placement.place_by_stress`.


STEPS = 60
SMALL = 1e-3  # of the distances: shorter ones weigh no more in the first start
LEAST_DAMPING = 1e-12  # relative to the number of distances
CLOSE = 1e-10  # of the distances: shorter steps end the search
ROUNDING = 1e-9  # relative; of heights that differ by less, the first counts
TINY = 1e-280  # determinants below it are those of no matrix that can be solved


def place_by_few(delta: np.ndarray, Y: np.ndarray, most: int) -> np.ndarray:
    """Places (m, q) of rows with at most ``most`` known distances ``delta`` (m, n) to points Y.

    NaN is an unknown distance. No row depends on the others.
    """
    # as many columns for any rows: sums of other lengths would round otherwise
    columns = np.argsort(np.isnan(delta), axis=1, kind="stable")[:, :most]
    t = np.take_along_axis(delta, columns, axis=1)
    w = np.isfinite(t) * 1.0
    with limit_blas(1):
        return _lowest(np.where(w > 0, t, 0.0), w, Y[columns])


def _lowest(t: np.ndarray, w: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The lowest of the minima below starts between the nearest points and on all sides of them."""
    share = w / w.sum(axis=1, keepdims=True)
    center = np.einsum("mn,mnq->mq", share, points)
    radius = np.sqrt(np.einsum("mn,mn->m", share, t**2))
    near = share / np.maximum(t / radius[:, None], SMALL) ** 2
    near /= near.sum(axis=1, keepdims=True)
    best, lowest = _newton(np.einsum("mn,mnq->mq", near, points), t, w, points)
    for axis, side in itertools.product(range(points.shape[2]), (-1, 1)):
        start = center.copy()
        start[:, axis] += side * radius
        found, height = _newton(start, t, w, points)
        lower = height < lowest * (1 - ROUNDING)
        best = np.where(lower[:, None], found, best)
        lowest = np.where(lower, height, lowest)
    return best


def _newton(
    Z: np.ndarray, t: np.ndarray, w: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places where each row's sum_j w_j (t_j - |z - y_j|)^2 is lowest near Z, and the sums."""
    rows, one = np.arange(len(Z)), np.eye(Z.shape[1])
    height, slope, curve = _derivatives(Z, t, w, points)
    found, lowest = Z.copy(), height.copy()
    damping = least = LEAST_DAMPING * w.sum(axis=1)
    for _ in range(STEPS):
        damped = curve + damping[:, None, None] * one
        going = np.abs(np.linalg.det(damped)) > TINY
        damped[~going] = one
        step = -np.linalg.solve(damped, slope[:, :, None])[:, :, 0]
        there = _derivatives(Z + step, t, w, points)
        better = going & (there[0] < height)
        Z = np.where(better[:, None], Z + step, Z)
        height = np.where(better, there[0], height)
        slope = np.where(better[:, None], there[1], slope)
        curve = np.where(better[:, None, None], there[2], curve)
        damping = np.where(better, np.maximum(damping / 10, least), np.maximum(10 * damping, 1e-6))
        found[rows], lowest[rows] = Z, height
        going &= np.abs(step).max(axis=1) > CLOSE * t.max(axis=1)
        if not going.any():
            break
        if not going.all():  # rows that have arrived are left out
            rows, Z, t, w, points = (part[going] for part in (rows, Z, t, w, points))
            height, slope, curve = height[going], slope[going], curve[going]
            damping, least = damping[going], least[going]
    return found, lowest


def _derivatives(
    Z: np.ndarray, t: np.ndarray, w: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The stress of each row, and half its gradient and Hessian."""
    along = Z[:, None] - points
    d = np.sqrt(np.einsum("mnq,mnq->mn", along, along))
    pull = w * np.where(d > 0, t / np.where(d > 0, d, 1.0), 0.0)
    unit = along / np.where(d > 0, d, 1.0)[:, :, None]
    height = np.einsum("mn,mn->m", w, (t - d) ** 2)
    slope = np.einsum("mn,mnq->mq", w - pull, along)
    curve = np.einsum("mn,mnq,mnr->mqr", pull, unit, unit)
    curve += (w - pull).sum(axis=1)[:, None, None] * np.eye(Z.shape[1])
    return height, slope, curve


# Pairs of rows whose geodesic distance the boundary of the surface cannot have changed.
#
# A shortest path that runs along the boundary, around a hole or a bay, is longer than the straight
# line that a flat map has between its ends. Two criteria keep a pair (i, j):
#
#     "path"      a shortest path from i to j has no boundary row strictly inside
#     "distance"  delta_ij < delta(i, dM) + delta(j, dM), dM the boundary
#
# A path through a boundary row b has delta_ij = delta_ib + delta_bj, which is not below the right
# side: "distance" implies "path". It also holds on the surface itself, between whose rows a path
# may touch the boundary unseen.


BLOCK = 512  # rows whose paths are compared at a time
# a path through the boundary is as long as the right side, up to rounding
MARGIN = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


def without_passage(graph: scipy.sparse.csr_matrix, boundary: np.ndarray) -> Any:
    """The graph without the edges that leave boundary rows: paths may only end there."""
    inside = np.ones(graph.shape[0], bool)
    inside[boundary] = False
    kept = inside[row_numbers(graph)]
    starts = np.concatenate([[0], np.cumsum(kept)])[graph.indptr]
    return scipy.sparse.csr_matrix((graph.data[kept], graph.indices[kept], starts), graph.shape)


class Surface(NamedTuple):
    """A neighbor graph in units of its longest edge, and which of its rows are on the boundary."""

    graph: scipy.sparse.csr_matrix
    boundary: np.ndarray
    criterion: str
    owner: str

    @property
    def is_free(self) -> bool:
        """Whether all pairs are consistent."""
        return self.criterion == "all" or not self.boundary.size

    def reach(self, run: FitContext) -> np.ndarray:
        """delta(i, dM) of all rows, by a search that begins at all boundary rows."""
        n, b = self.graph.shape[0], self.boundary
        link = scipy.sparse.csr_matrix((np.zeros(b.size), b, [0, b.size]), shape=(1, n))
        return geodesics.geodesics_of_new_rows(self.graph, link, 1.0, np.arange(n), run)[0]

    def of_rows(self, D: np.ndarray, rows: np.ndarray, run: FitContext) -> np.ndarray:
        """Which distances D (len(rows), n) from some rows to all rows are consistent."""
        keep = np.ones(D.shape, bool)
        if self.is_free:
            return keep
        everyone, reach = np.arange(D.shape[1]), self.reach(run)
        for part in row_blocks(len(rows), BLOCK):
            if self.criterion == "path":
                keep[part] = self._by_path(D[part], self.graph[rows[part]], everyone, 1.0, run)
            else:
                keep[part] = self._by_distance(D[part], reach[rows[part]], reach)
        return keep

    def of_new_rows(
        self, D: np.ndarray, links: Any, rows: np.ndarray, unit: float, run: FitContext
    ) -> np.ndarray:
        """Which distances D (m, len(rows)) from new rows to ``rows`` are consistent.

        ``links`` are the edges of the new rows, in a unit in which the longest edge is ``unit``.
        """
        if self.is_free:
            return np.ones(D.shape, bool)
        if self.criterion == "path":
            return self._by_path(D, links, rows, unit, run)
        reach = self.reach(run)
        ways = links.data.astype(np.float64) / unit + reach[links.indices]
        own = np.minimum.reduceat(ways, links.indptr[:-1])
        return self._by_distance(D, own, reach[rows])

    def _by_path(
        self, D: np.ndarray, links: Any, rows: np.ndarray, unit: float, run: FitContext
    ) -> np.ndarray:
        inside = without_passage(self.graph, self.boundary)
        # the same sums in the same order: equal to the last bit if a path stays inside
        return np.asarray(geodesics.geodesics_of_new_rows(inside, links, unit, rows, run) <= D)

    def _by_distance(self, D: np.ndarray, reach: np.ndarray, others: np.ndarray) -> np.ndarray:
        least = 1 - MARGIN[np.dtype(self.graph.dtype)]
        return np.asarray(least * (reach[:, None] + others) > D)


# The stress of some pairs of a matrix of geodesic distances, and its majorizer.


LISTED = 0.2  # share of the pairs up to which a list of them is faster than the matrix
# up to so many pairs of a row, a multigrid cycle is cheap and saves steps; with more pairs the
# degrees alone are nearly as good
FEW_PARTNERS = 100


def nearest_pairs(D: np.ndarray, k: int) -> np.ndarray:
    """Whether each distance is among the k smallest of its row; of ties with the last one, all."""
    if k >= D.shape[1]:
        return np.ones(D.shape, bool)
    return np.asarray(np.partition(D, k - 1, axis=1)[:, k - 1 : k] >= D)


def connected_neighbors(D: np.ndarray, k: int, run: FitContext) -> scipy.sparse.csr_matrix:
    """The k nearest others of each row, and the shortest pairs that join them if they fall apart.

    D are distances among all rows; the result is a symmetric pattern.
    """
    near = nearest_pairs(D, k + 1)  # the first is the row itself
    near |= near.T
    np.fill_diagonal(near, False)
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(near, axis=1))])
    ends = np.nonzero(near)[1].astype(np.int32)
    graph = scipy.sparse.csr_matrix((np.ones(ends.size), ends, starts), shape=D.shape)
    shared: dict[str, Any] = {"threads": run.threads, "monitor": run.monitor}
    return connect(graph, D, "bridge", metric="precomputed", **shared).graph


def kept_stress(
    D: np.ndarray, keep: np.ndarray, unit: float, run: FitContext
) -> tuple[AllPairs | ListedPairs, int]:
    """sum over the pairs i < j with ``keep[i, j]`` of (D_ij / unit - d_ij)^2, and their number."""
    n = len(D)
    blocks = list(row_blocks(n, 512))
    counts = [np.count_nonzero(np.triu(keep[rows, rows.start :], 1), axis=1) for rows in blocks]
    per_row = np.concatenate(counts)
    total = int(per_row.sum())
    if total > LISTED * n * (n - 1) / 2:
        delta = np.empty_like(D)
        for rows in blocks:
            part = np.where(keep[rows, rows.start :], D[rows, rows.start :] / unit, np.nan)
            delta[rows, rows.start :] = part
        mirror(delta)
        np.fill_diagonal(delta, 0.0)
        return AllPairs(delta, None, 0, run.threads), total
    first = np.repeat(np.arange(n, dtype=np.int32), per_row)
    above = (np.triu(keep[rows, rows.start :], 1) for rows in blocks)
    ends = [np.nonzero(part)[1] + rows.start for part, rows in zip(above, blocks, strict=True)]
    second = np.concatenate(ends).astype(np.int32)
    objective = ListedPairs(n, first, second, D[first, second] / unit, None, run.threads)
    if n > FACTORED_ROWS and 2 * total <= FEW_PARTNERS * n:
        starts = np.concatenate([[0], np.cumsum(per_row)])
        once = scipy.sparse.csr_matrix((np.ones(total), second, starts), shape=(n, n))
        pairs = scipy.sparse.csr_matrix(once + once.T)
        objective.laplacian = _Multigrid(graph_multigrid(pairs, run.rng, run.threads))
    return objective, total


class _Multigrid:
    """An approximate V^+ whose inverse lies above V, as the Guttman transform needs it."""

    def __init__(self, solve: Any) -> None:
        self.solve = solve


ALL_ROWS, LANDMARKS = 5000, 2500  # "auto" takes all rows up to here, and of more rows so many
FEW_KNOWN = 64  # distances of a row, up to which its place is found by Newton's method
# the global shape is uncertain if less than FEW_PAIRS of all pairs are kept, and if these are less
# than FEW_FAR for each edge of the graph, or if almost all rows are on the boundary
FEW_PAIRS, FEW_FAR, ALMOST_ALL = 0.1, 1.02, 0.9


class TCIE(GeodesicEmbedding):
    """min sum w_ij (delta_ij - |y_i - y_j|)^2, w_ij = 0 where the boundary may have bent a path.

    Isomap without its error at holes and bays. There, the shortest path along the surface runs
    around the boundary and is longer than the line that a flat map needs. The rows on the boundary
    are found first; pairs whose path may touch it get no weight, and the others make the map. Use
    it for bent sheets that have holes or are not convex. Not for clusters or many-dimensional
    data, where all rows are on the boundary. Cost: O(m n k) for the distances along the graph of
    m landmarks, all rows up to 5000, and O(kept pairs) per step.

    Parameters
    ----------
    criterion : {"distance", "path", "all"}, default="distance"
        Which pairs are kept. "distance": pairs nearer to each other than the sum of their
        distances to the boundary. "path": pairs with a shortest path that has no boundary row
        strictly inside. "all": all pairs, which is Isomap with the stress of distances.
    boundary : "auto" or list of int, default="auto"
        Numbers of the rows on the boundary, if they are known. "auto" finds them.
    boundary_neighbors : int or None, default=None
        Number K of neighbors by which the boundary is found. None takes 8 (n_components + 1), and
        at most a quarter of the rows.
    boundary_threshold : float, default=0.6
        Where the boundary begins; smaller values find more rows. A row is on the boundary if the
        mean of the unit vectors to its K nearest rows is longer than this share of its length at a
        straight edge, which is 2/pi for two axes.
    landmarks : int, "auto" or None, default="auto"
        Number of random rows whose pairs make the map. The other rows are placed like new rows.
        None takes all rows. "auto" takes all up to 5000 rows, and 2500 of more.
    max_iter : int, default=300
        Maximum number of steps. 0 keeps the start, which is the map of Isomap.
    tol : float, default=1e-6
        The fit stops when a step lowers the loss by less than this share of it.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows, in the unit of the distances; the landmarks are centered.
    boundary_ : ndarray of shape (n_boundary,)
        Indices of the boundary rows among the rows of the map.
    landmarks_ : ndarray of shape (n_landmarks,)
        Indices of the rows whose pairs made the map, among the rows of the map. Of equal rows it
        has one.
    share_kept_ : float
        Share of the pairs of landmarks that are kept.
    stress_ : float
        Sum of (delta - d)^2 over the kept pairs.
    loss_history_ : ndarray of shape (n_steps,)
        Stress at the start and after each step; it never increases.

    Notes
    -----
    The paper tests for the boundary in coordinates of local tangent planes: it counts neighbors on
    either side of the directions to each of them. Here the mean of the unit vectors to the
    neighbors decides, whose length follows from distances along the graph alone; on sheets with
    holes it gave lower errors than the paper's test. Neighbors are always kept, so that the map
    hangs together: the edges of the graph, and with landmarks the 2 ``n_neighbors`` nearest ones.
    Of the criteria of the paper "distance" is stricter and had the lower error. On a sheet of 3 x 1
    with a hole of 1.4 x 0.6 around a cylinder (400 rows, 10 neighbors) the error relative to the
    size of the sheet is 0.03; "path" has 0.09, "all" 0.15, Isomap 0.21. HessianLLE, which needs no
    boundary, has 0.01; with noise of 0.05 it has 0.35, TCIE 0.12. Smaller thresholds keep fewer and
    shorter distances, which are more exact, but make a map of noisy rows uncertain; 0.6 was chosen
    by errors on such sheets. Steps are accelerated by L-BFGS instead of vector extrapolation. A new
    row is linked with its nearest rows; it is placed by the stress of its consistent distances to
    the landmarks and of those to its ``n_neighbors`` nearest.

    References
    ----------
    Rosman, Bronstein, Bronstein & Kimmel (2010), Nonlinear dimensionality reduction by
    topologically constrained isometric embedding, International Journal of Computer Vision 89,
    56-68, doi:10.1007/s11263-010-0322-1.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> sheet = swiss_roll(400, hole=True, random_state=0)
    >>> TCIE(n_neighbors=8, random_state=0).fit_transform(sheet.X).shape
    (400, 2)
    """

    criterion: str = param(OneOf("distance", "path", "all"), default="distance")
    boundary: Any = param(OneOf("auto") | Several(Integer(0)), default="auto")
    boundary_neighbors: int | None = param(Null() | Integer(2, 1000), default=None)
    boundary_threshold: float = param(Real(0, closed="left"), default=0.6)
    landmarks: Any = param(Null() | OneOf("auto") | Integer(2), default="auto")
    max_iter: int = param(Integer(0), default=300)
    tol: float = param(Real(0, closed="left"), default=1e-6)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    boundary_: np.ndarray = fitted(
        "n_boundary", type=int, may_be_empty=True, meaning=some_of("n_kept")
    )
    share_kept_: float = fitted()
    stress_: float = fitted()
    loss_history_: np.ndarray = fitted("n_steps")
    n_iter_: int = fitted(type=int)

    card = Card(
        keeps="distances along the surface that the rows lie on, where no boundary is in the way",
        use="to unroll a bent sheet that has holes or is not convex",
        avoid="for clusters and closed surfaces; for small or many-dimensional data, where all "
        "rows are on the boundary",
        cost="O(n^2 k) time and n^2 numbers up to 5000 rows, O(n) beyond",
    )
    reference = "Rosman, Bronstein, Bronstein & Kimmel (2010)"
    aliases = ("topologically_constrained_isometric_embedding",)
    reading = GeodesicEmbedding.reading._replace(
        distances="Distances in the map are distances along the surface that the rows lie on. "
        "Across a hole, they are those of the flat surface without the hole.",
        sizes="The size of a group is its size along the surface.",
        scale="The axes have the unit of the distances in the data.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        m, size = (n if n <= ALL_ROWS else LANDMARKS), (8 if n <= DOUBLE_ROWS else 4)
        paths = geodesics.shortest_paths_cost(m, n, 10, size) + Estimate(3e-5 * n, 0)
        stress = classical_scaling_cost(m, 2) + majorization_cost(m, 2, 100, n_pairs=m * m // 20)
        place = Estimate((n - m) * m * 1.5e-7, 3e7 if n > m else 0)
        held = neighbor_graph_cost(n, p, 10) + paths + stress.holding(size * m * (n + 3 * m))
        return (held + place.holding(size * m * n)).holding(16 * n * p)

    # --- fit ----------------------------------------------------------------------------------

    def _embed(self, graph: scipy.sparse.csr_matrix, run: FitContext) -> np.ndarray:
        n = graph.shape[0]
        q = self._check_axes(n, n)
        self._keep_edges(graph)
        equal = equal_in_graph(self._graph())
        distinct = geodesics.without_copies(self._graph(), equal)
        self.boundary_ = self._boundary(distinct, equal, n, run)
        self.landmarks_ = chosen = self._choose_landmarks(n, equal, run)
        require_memory(
            len(chosen) * (n + 3 * len(chosen)) * self.edge_lengths_.dtype.itemsize,
            task=f"TCIE with {len(chosen)} of {n} rows as landmarks",
            alternative="set landmarks to fewer rows",
        )
        shared: dict[str, Any] = {"threads": run.threads, "monitor": run.monitor}
        D = geodesics.shortest_paths(
            self._graph(), chosen, dtype=self.edge_lengths_.dtype, **shared
        )
        keep = self._surface().of_rows(D, chosen, run)
        among, kept = D, keep
        if len(chosen) < n:  # in C order, other than by D[:, chosen]
            among, kept = D.take(chosen, axis=1), keep.take(chosen, axis=1)
        # neighbors always count: in the graph, or among the landmarks
        every = len(chosen) == distinct.shape[0]
        near = distinct if every else connected_neighbors(among, 2 * int(self.n_neighbors), run)
        kept[row_numbers(near), near.indices] = True
        found, unit = self._descend(among, kept, near.nnz // 2 if every else 0, q, run)
        length = unit * self.longest_edge_
        self.loss_history_, self.n_iter_ = found.losses * length**2, found.n_iter
        self.stress_ = float(self.loss_history_[-1])
        Y = np.empty((n, q))
        Y[chosen] = (found.Y - found.Y.mean(axis=0)) * unit
        self._place_others(Y, D, keep, run)
        return Y * self.longest_edge_

    def _boundary(
        self, distinct: Any, equal: EqualRows | None, n: int, run: FitContext
    ) -> np.ndarray:
        """Boundary rows, as given or as found in the graph of distinct rows."""
        if self.criterion == "all":
            return np.empty(0, np.int64)
        if not isinstance(self.boundary, str):
            given, n = np.asarray(self.boundary, np.int64), n + self.excluded_.size
            if given.max() >= n:
                raise ParameterError(
                    f"TCIE: boundary has row {given.max()}, but the rows are numbered 0 to {n - 1}."
                )
            return np.flatnonzero(np.isin(self._kept(n), given))
        k = None if self.boundary_neighbors is None else int(self.boundary_neighbors)
        threshold = float(self.boundary_threshold)
        found = boundary_rows(distinct, int(self.n_components), k, threshold, run)
        return np.flatnonzero(found if equal is None else found[equal.group])

    def _choose_landmarks(self, n: int, equal: EqualRows | None, run: FitContext) -> np.ndarray:
        distinct, m = np.arange(n) if equal is None else equal.first, self.landmarks
        if m not in (None, "auto") and len(distinct) <= m <= n:
            m = None
        auto = ALL_ROWS, LANDMARKS
        return distinct[random_landmarks(m, len(distinct), auto, "TCIE", run)]

    def _surface(self) -> Surface:
        return Surface(self._graph(), self.boundary_, self.criterion, type(self).__name__)

    def _descend(
        self, D: np.ndarray, keep: np.ndarray, n_edges: int, q: int, run: FitContext
    ) -> tuple[Majorized, float]:
        """The map of the landmarks and its unit: from Isomap's by weighted majorization."""
        n = len(D)
        unit = float(np.sqrt(np.einsum("ij,ij->", D, D, dtype=np.float64) / (n * n))) or 1.0
        length = unit * self.longest_edge_
        with limit_blas(1):  # sums over all points must not depend on the number of threads
            objective, n_pairs = kept_stress(D, keep, unit, run)
            self.share_kept_ = n_pairs / (n * (n - 1) / 2) if n > 1 else 1.0
            self._warn_of_few(n_pairs, n_edges)
            start = initial_map.classical_start(D, q, run) / unit
            if self.max_iter > 0 and objective(start).loss > 1e-12 * objective.scale:
                start = initial_map.separated(start, run.rng)
            found = majorize(
                objective,
                start,
                max_iter=int(self.max_iter),
                tol=float(self.tol),
                monitor=run.monitor,
                shown=lambda Y: Y * length,
                told=lambda loss: loss * length**2,
            )
        return found, unit

    def _warn_of_few(self, n_pairs: int, n_edges: int) -> None:
        n = len(self.edge_starts_) - 1
        few = n_pairs < FEW_FAR * n_edges or self.boundary_.size > ALMOST_ALL * n
        if few and self.share_kept_ < FEW_PAIRS:
            warnings.warn(
                f"{self.boundary_.size} of {n} rows are on the boundary, and "
                f"{self.share_kept_:.1%} of the pairs are kept, few of them other than neighbors, "
                "so that the global shape is uncertain; set boundary_threshold higher, or "
                "criterion='path'.",
                stacklevel=9,
            )

    # --- other rows ---------------------------------------------------------------------------

    def _place_others(
        self, Y: np.ndarray, D: np.ndarray, keep: np.ndarray, run: FitContext
    ) -> None:
        """Fill the rows of Y that are not landmarks; D and ``keep`` are (n_landmarks, n)."""
        others = np.setdiff1d(np.arange(len(Y)), self.landmarks_)
        if not others.size:
            return
        with run.monitor.phase("placing rows", total=len(others)) as phase:
            for part in row_blocks(len(others), NEW_ROWS):
                rows = others[part]
                Y[rows] = self._by_stress(D[:, rows].T, keep[:, rows].T, Y[self.landmarks_], run)
                phase.advance(len(rows))

    def _by_stress(
        self, D: np.ndarray, keep: np.ndarray, Y: np.ndarray, run: FitContext
    ) -> np.ndarray:
        """Places of rows with distances D to landmarks at Y; the nearest ones always count."""
        D = np.ascontiguousarray(D, np.float64)
        delta = np.where(keep | nearest_pairs(D, int(self.n_neighbors)), D, np.nan)
        equal = equal_points(D, delta, Y, 0, run.threads)
        few = (np.count_nonzero(~np.isnan(delta), axis=1) <= FEW_KNOWN) & (equal < 0)
        few &= Y.shape[1] > 1  # on a line there is a minimum between any two points
        Z = np.empty((len(D), Y.shape[1]))
        Z[~few] = place_by_stress(delta[~few], Y, 0, equal[~few], run.threads)
        if few.any():
            Z[few] = place_by_few(delta[few], Y, FEW_KNOWN)
        return Z

    def _by_geodesics(self, D: np.ndarray, links: Any, run: FitContext) -> np.ndarray:
        unit, places = self.longest_edge_, self._kept(len(self.embedding_))[self.landmarks_]
        keep = self._surface().of_new_rows(D, links, self.landmarks_, unit, run)
        return self._by_stress(D, keep, self.embedding_[places].astype(np.float64) / unit, run)
