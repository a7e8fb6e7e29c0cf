"""Pairs of rows whose geodesic distance the boundary of the surface cannot have changed.

A shortest path that runs along the boundary, around a hole or a bay, is longer than the straight
line that a flat map has between its ends. Two criteria keep a pair (i, j):

    "path"      a shortest path from i to j has no boundary row strictly inside
    "distance"  delta_ij < delta(i, dM) + delta(j, dM), dM the boundary

A path through a boundary row b has delta_ij = delta_ib + delta_bj, which is not below the right
side: "distance" implies "path". It also holds on the surface itself, between whose rows a path may
touch the boundary unseen.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.threads import limit_blas
from lowland._engines.graphs.components import connect
from lowland._engines.graphs.geodesics import geodesics_of_new_rows
from lowland._engines.graphs.laplacian import graph_multigrid
from lowland._engines.graphs.weights import row_numbers
from lowland._engines.linalg.products import mirror, row_blocks
from lowland._engines.stress.objective import FACTORED_ROWS, AllPairs, ListedPairs

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


def one_sidedness(graph: scipy.sparse.csr_matrix, k: int, run: FitContext) -> np.ndarray:
    """r of every row, from its k nearest rows along a graph whose edges are all longer than 0."""
    squares = np.empty(graph.shape[0])
    _native.mean_cosines(
        graph.indptr.astype(np.int64),
        graph.indices.astype(np.int32),
        graph.data.astype(np.float64),
        k,
        squares,
        run.threads,
    )
    return np.sqrt(np.maximum(squares, 0.0))


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
    with run.monitor.phase("boundary"):
        return one_sidedness(graph, min(k, n - 1), run) > threshold * half_sphere(q)


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
        return self._geodesics(self.graph, link, np.arange(n), 1.0, run)[0]

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
        return np.asarray(self._geodesics(inside, links, rows, unit, run) <= D)

    def _by_distance(self, D: np.ndarray, reach: np.ndarray, others: np.ndarray) -> np.ndarray:
        least = 1 - MARGIN[np.dtype(self.graph.dtype)]
        return np.asarray(least * (reach[:, None] + others) > D)

    def _geodesics(
        self, graph: Any, links: Any, rows: np.ndarray, unit: float, run: FitContext
    ) -> np.ndarray:
        return geodesics_of_new_rows(graph, links, unit, rows, run)


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
    second = np.concatenate([_columns_above(keep, rows) for rows in blocks])
    objective = ListedPairs(n, first, second, D[first, second] / unit, None, run.threads)
    if n > FACTORED_ROWS and 2 * total <= FEW_PARTNERS * n:
        starts = np.concatenate([[0], np.cumsum(per_row)])
        once = scipy.sparse.csr_matrix((np.ones(total), second, starts), shape=(n, n))
        pairs = scipy.sparse.csr_matrix(once + once.T)
        objective.laplacian = _Multigrid(graph_multigrid(pairs, run.rng, run.threads))
    return objective, total


def _columns_above(keep: np.ndarray, rows: slice) -> np.ndarray:
    """The columns j > i with keep[i, j], row by row."""
    above = np.triu(keep[rows, rows.start :], 1)
    return (np.flatnonzero(above) % above.shape[1] + rows.start).astype(np.int32)


class _Multigrid:
    """An approximate V^+ whose inverse lies above V, as the Guttman transform needs it."""

    def __init__(self, solve: Any) -> None:
        self.solve = solve
