"""The base of maps by pairs: neighbors, pairs, start, descent, out-of-sample placement."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._base.constraints import Array, Boolean, Integer, Null, OneOf, Real, Several
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import above, at_least
from lowland._base.params import fitted, param
from lowland._base.traits import Estimate, Reading
from lowland._base.validation import dense_if_small, is_sparse
from lowland._engines.distances import metrics
from lowland._engines.distances.distance_rows import rows_of
from lowland._engines.embedding import initial_layout, particle_mesh
from lowland._engines.embedding.placement import MapField
from lowland._engines.linalg import products
from lowland._engines.linalg.principal_axes import leading_axes, principal_axes_cost
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph_cost
from lowland._engines.stress import initial_map
from lowland.methods.embedding._base import NeighborMap

# The pairs of rows that maps by pairs are made of: near, mid-near and far (Wang et al. 2021).
#
#     near      the k rows with the least d_ij^2 / (s_i s_j) among the k + 50 nearest, where s_i is
#               the mean distance of row i to its fourth, fifth and sixth neighbor
#     mid-near  the second nearest of six random rows, several times
#     far       random rows that are not near
#
# Random rows are functions of a seed, the row and the place in its list (counter-based numbers):
# no draw depends on another row, nor on the number of threads.


MORE_CANDIDATES = 50  # neighbors beyond k that near pairs are chosen from
SCALE_OF = slice(3, 6)  # the neighbors whose mean distance is the scale of a row
LEAST_SCALE = 1e-10  # of the largest scale: rows with many copies have scale 0
GROUP = 6  # random rows, the second nearest of which is mid-near
SEVERAL = 10_000  # from here on more neighbors are used by default


class PairCounts(NamedTuple):
    """How many pairs of each kind a row has."""

    near: int
    mid: int
    far: int


def default_neighbors(n: int) -> int:
    """10 neighbors, and 15 more for each factor of ten beyond 10 000 rows."""
    return 10 if n <= SEVERAL else round(10 + 15 * (math.log10(n) - math.log10(SEVERAL)))


def pair_counts(n: int, k: int, mid_ratio: float, far_ratio: float) -> PairCounts:
    """k near pairs, and mid-near and far pairs in these ratios; of few rows, shares of n.

    There is at least one near pair and, of three rows or more, one far pair.
    """
    near, mid, far = min(k, n - 1), round(k * mid_ratio), max(1, round(k * far_ratio))
    if near + mid + far >= n:
        share = n / (1 + mid_ratio + far_ratio)
        near, mid = max(1, min(near, int(share))), int(share * mid_ratio)
        far = max(1, int(share * far_ratio))
    return PairCounts(near, min(mid, n - 1), min(far, n - 1 - near))


def local_scales(distances: np.ndarray) -> np.ndarray:
    """s_i: the mean distance to the fourth, fifth and sixth neighbor; of fewer, to the last one."""
    some = distances[:, SCALE_OF] if distances.shape[1] > SCALE_OF.start else distances[:, -1:]
    scales = some.astype(np.float64).mean(axis=1)
    least = LEAST_SCALE * float(scales.max())
    return np.maximum(scales, least if least > 0 else 1.0)


def nearest_scaled(
    graph: NeighborGraph, scales: np.ndarray, k: int, threads: int, own: np.ndarray | None = None
) -> np.ndarray:
    """The k rows with the least d_ij^2 / (s_i s_j) of each list, (m, k); ties by distance.

    ``own`` holds the s_i. They do not change the order, but keep the quotients near 1.
    """
    distances = graph.distances.astype(np.float64)
    if own is not None:
        distances /= own[:, None]
    order = np.empty(distances.shape, np.int32)
    _native.sort_rows(distances / np.sqrt(scales[graph.indices]), False, order, threads)
    return np.ascontiguousarray(
        np.take_along_axis(graph.indices, order[:, :k].astype(np.int64), axis=1), np.int32
    )


def mid_near_pairs(
    X: Any, count: int, seed: int, metric: Any, params: dict[str, Any] | None, run: FitContext
) -> np.ndarray:
    """For each row ``count`` times the second nearest of six random rows, (n, count)."""
    n = X.shape[0]
    size = min(GROUP, n - 1)
    pairs = np.empty((n, count), np.int32)
    if count == 0:
        return pairs
    distances_of = _measure(X, metrics.canonical(metric), params, run.threads)
    with run.monitor.phase("mid-near pairs", total=n) as phase:
        for rows in row_blocks(n, rows_within(24 * size * count + 8 * X.shape[1])):
            m = rows.stop - rows.start
            drawn = np.empty((m, count * size), np.int32)
            _native.draw_groups(rows.start, n, seed, count, drawn, run.threads)
            distances = distances_of(rows, drawn).reshape(m, count, size)
            if size > 1:
                nearest = distances.argmin(axis=2)[..., None]
                np.put_along_axis(distances, nearest, np.inf, axis=2)
            second = distances.argmin(axis=2)[..., None]
            groups = drawn.reshape(m, count, size)
            pairs[rows] = np.take_along_axis(groups, second, axis=2)[..., 0]
            phase.advance(m)
    return pairs


def _measure(X: Any, metric: Any, params: dict[str, Any] | None, threads: int) -> Any:
    """A function of rows and lists (m, c) of others: distances in their order, at least, (m, c)."""
    if metric == "precomputed":
        return lambda rows, ids: np.take_along_axis(X[rows], ids.astype(np.int64), axis=1).astype(
            np.float64
        )
    if is_sparse(X):
        return _sparse_measure(X, metric)
    if metrics.from_products(metric):
        points, _ = rows_of(X, metric, "X")

        def squares(rows: slice, ids: np.ndarray) -> np.ndarray:
            found = np.empty(ids.shape, points.dtype)
            _native.listed_squares(points, rows.start, ids, found, threads)
            return found

        return squares

    def distances(rows: slice, ids: np.ndarray) -> np.ndarray:
        pairs = zip(range(rows.start, rows.stop), ids, strict=True)
        return np.stack([metrics.pair_distances(X[[i]], X[j], metric, params)[0] for i, j in pairs])

    return distances


def _sparse_measure(X: Any, metric: Any) -> Any:
    """Squared distances of sparse rows from their products; of directions with cosine."""
    X = X.tocsr().astype(np.float64)
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    directions = metrics.has_directions(metric)

    def squares(rows: slice, ids: np.ndarray) -> np.ndarray:
        m, count = ids.shape
        here = np.repeat(np.arange(rows.start, rows.stop), count)
        products = np.asarray(X[here].multiply(X[ids.ravel()]).sum(axis=1)).ravel()
        if directions:
            lengths = np.sqrt(norms[here] * norms[ids.ravel()])
            cosines = np.divide(products, lengths, out=np.zeros(m * count), where=lengths > 0)
            return (1 - cosines).reshape(m, count)
        return (norms[here] + norms[ids.ravel()] - 2 * products).reshape(m, count)

    return squares


# Descent of maps by pairs: three phases of steps of Adam (Kingma & Ba 2015) on all pairs.
#
# With s = 1 + |y_i - y_j|^2 the loss is
#
#     sum over near pairs      w s / (10 + s)
#   + sum over mid-near pairs  w s / (10^4 + s)
#   + sum over far pairs       w / (1 + s)
#
# The weights w change from phase to phase: mid-near pairs lay out the map at first and are let go
# in the end. Each point sums the forces on it over lists of its partners in both directions, in
# one fixed order, so that the map is the same for any number of threads.


FIRST_MID = 1000.0  # weight of mid-near pairs at the start
BETAS = (0.9, 0.999)
LOOK = 50  # the loss is computed every so many steps
REDRAW = 10  # far pairs of LocalMAP are drawn again after so many steps


class Weights(NamedTuple):
    """Weights of near, mid-near and far pairs; c of LocalMAP, 0 for PaCMAP."""

    near: float
    mid: float
    far: float
    local: float = 0.0


# Starts and columns of the near, the mid-near and the far partners of each point.
PairLists = tuple[np.ndarray, ...]


class PairDescent(NamedTuple):
    """The final map, losses during the descent, the number of steps, and the last weights."""

    Y: np.ndarray
    losses: list[float]
    n_iter: int
    weights: Weights
    lists: PairLists


def both_directions(pairs: np.ndarray, threads: int) -> PairLists:
    """Starts and columns of the lists of partners and of those that have the point as partner."""
    starts = np.empty(len(pairs) + 1, np.int64)
    _native.pair_starts(pairs, starts, threads)
    columns = np.empty(starts[-1], np.int32)
    _native.pair_lists(pairs, starts, columns, threads)
    return starts, columns


def weights_at(step: int, num_iters: Sequence[int], local: float = 0.0) -> Weights:
    """The weights of a step, counted from 0; ``local`` is c of LocalMAP in the third phase."""
    first, second, _ = num_iters
    if step < first:
        t = step / first
        return Weights(2.0, (1 - t) * FIRST_MID + t * 3.0, 1.0)
    if step < first + second:
        return Weights(3.0, 3.0, 1.0)
    return Weights(1.0, 0.0, 1.0, local)


def pair_loss(lists: PairLists, weights: Weights, Y: np.ndarray, threads: int) -> float:
    """The loss at the map Y."""
    losses = np.empty(len(Y))
    _native.pair_forces(*lists, np.array(weights), Y, np.empty_like(Y), losses, threads)
    return float(losses.sum())


def descend_pairs(
    lists: PairLists,
    Y: np.ndarray,
    num_iters: Sequence[int],
    learning_rate: float,
    run: FitContext,
    local: float = 0.0,
    redraw: Callable[[int, np.ndarray], np.ndarray] | None = None,
) -> PairDescent:
    """Descend from Y. Losses are those before every ``LOOK``-th step, with its weights.

    ``redraw(number, Y)`` gives other far pairs (n, k) after every ``REDRAW`` steps of the third
    phase.
    """
    total, third, threads = sum(num_iters), num_iters[0] + num_iters[1], run.threads
    here, there = Y.copy(), np.empty_like(Y)
    moments = np.zeros_like(Y), np.zeros_like(Y)
    weights, losses, done = weights_at(0, num_iters, local), [], 0
    for step in range(total):
        if redraw is not None and step > third and (step - third) % REDRAW == 0:
            far = redraw((step - third) // REDRAW, here)
            lists = *lists[:4], *both_directions(far, threads)
        weights = weights_at(step, num_iters, local)
        if step % LOOK == 0:
            losses.append(pair_loss(lists, weights, here, threads))
        # both corrections of Adam for the zeros that the moments start with
        first, second = (1 - beta ** (step + 1) for beta in BETAS)
        rate = learning_rate * second**0.5 / first
        _native.pair_step(*lists, np.array(weights), rate, here, there, *moments, threads)
        here, there = there, here
        done = step + 1
        if run.monitor.iteration(done, here, losses[-1], total=total):
            break
    return PairDescent(here, losses, done, weights, lists)


# Out-of-sample rows in a map by pairs: each one is placed alone in the fixed map.
#
# A new row settles at a minimum of
#
#     J(z) = sum over its near pairs of A(s_j) + rho * sum over all fitted rows of R(s_j),
#
# with s_j = 1 + |z - y_j|^2. A is the loss of near pairs in the third phase, and R(s) = 1 / (1 +
# s) that of far pairs; if these are drawn within a reach, R is lowered by its tangent there, so
# that it ends without a jump, and is 0 beyond. The last sum is what far pairs would add on
# average, if they were drawn again and again: rho is their number divided by the number of rows
# that they are drawn from. So nothing is random, and no new row has an influence on another one.
#
# The repulsion of a large map is computed once, as a field on a grid.


STEPS = 200
CLOSE = 1e-5  # a row has converged when it moves by less
MARGIN = 40  # grid nodes around the map that a new row may use
GRID_POINTS = 5000  # smaller maps: all pairs; larger maps: the field on a grid, computed once
GRID_LIMIT = 2**24  # nodes (of 24 bytes) of a grid


def place_pairs(
    Y: np.ndarray, near: np.ndarray, far_weight: float, reach: float, run: FitContext
) -> np.ndarray:
    """Places (m, d), in float64, of rows with these near rows (m, k) in the map Y.

    ``reach`` is that of LocalMAP, within which far pairs are drawn; 0 for PaCMAP.
    """
    _, grid = run.prepared("field", (Y,), reach, lambda: _field(Y, reach, run.threads))
    Z = np.empty((len(near), Y.shape[1]))
    _native.settle_pairs(
        np.ascontiguousarray(near, np.int32),
        np.ascontiguousarray(Y, np.float64),
        reach / 2,
        far_weight,
        reach or math.inf,
        np.zeros(Y.shape[1]) if grid is None else grid.low,
        1.0 if grid is None else grid.pitch,
        None if grid is None else grid.values,
        STEPS,
        CLOSE,
        Z,
        run.threads,
    )
    return Z


def _field(Y: np.ndarray, reach: float, threads: int) -> MapField:
    """2 sum_j R(s_j) of a large map on a grid, in units of sqrt(2): 1 / (1 + s) = 1 / 2 (1 + u^2).

    The grid is None for small maps, and for maps that would need a huge one.
    """
    U = np.ascontiguousarray(np.asarray(Y, np.float64) / math.sqrt(2), np.float32)
    kernel = _repulsion(reach)
    large = len(U) >= GRID_POINTS and U.shape[1] <= 3
    if not large or particle_mesh.grid_nodes(U, kernel, MARGIN) > GRID_LIMIT:
        return MapField(U, None)
    return MapField(
        U, particle_mesh.ParticleMesh(kernel, threads).field(U, margin=MARGIN).without_charge()
    )


def _repulsion(reach: float) -> particle_mesh.RadialKernel:
    """2 R as a function of u^2."""
    whole = particle_mesh.similarity(1.0)
    if reach == 0:
        return whole
    most = reach**2 / 2
    edge = 1 / (1 + most)

    def values(squares: np.ndarray) -> np.ndarray:
        tangent = edge * (2 - edge * (1 + squares))
        return np.where(squares < most, whole.values(squares) - tangent, 0.0)

    return particle_mesh.RadialKernel(values, whole.pitch)


START = 0.01  # standard deviation of the start along the widest axis
WIDE = 100  # columns; wider tables are searched in as many principal components
SEEDS = 2**62


class PairEmbedding(NeighborMap):
    """A map in which near pairs attract and far pairs repel each other.

    Parameters
    ----------
    n_neighbors : int or None, default=10
        Number of near pairs of each row. Larger values show coarser structure. None is 10, and 15
        more for each factor of ten beyond 10 000 rows.
    MN_ratio : float, default=0.5
        Number of mid-near pairs per near pair. These pairs lay out the map as a whole.
    FP_ratio : float, default=2.0
        Number of far pairs per near pair.
    num_iters : list of three int, default=(100, 100, 250)
        Numbers of steps of the three phases.
    learning_rate : float, default=1.0
        Step length of Adam, about the way of a point in one of the first steps.
    apply_pca : bool, default=True
        Whether tables of more than 100 columns are searched for pairs in their first 100 principal
        components. Only with Euclidean distances.
    init : {"pca", "random"} or array of shape (n, n_components), default="pca"
        Initial layout. An array is centered and otherwise taken as it is. If X holds distances,
        "pca" is classical scaling.
    metric : str or function, default="euclidean"
        Distance between rows: a name, a function of two rows, or "precomputed". With
        "precomputed", X holds the n x n distances of the fitted rows, all of them, and new rows are
        given by their distances to the fitted rows.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows. Equal rows share one place.
    loss_ : float
        Loss at the end, with the weights of the last step.
    loss_history_ : ndarray of shape (n_looks,)
        Loss before every 50th step, with the weights of that step, and at the end.
    n_neighbors_ : int
        Number of near pairs of each row.
    n_mid_near_ : int
        Number of mid-near pairs of each row.
    n_far_ : int
        Number of far pairs of each row.
    local_scales_ : ndarray of shape (n_samples,)
        Mean distance of each row to its fourth, fifth and sixth neighbor.
    far_weight_ : float
        Weight of each fitted row in the repulsion of new rows.
    fitted_rows_ : array of shape (n_samples, n_searched) or None
        Rows that new rows are compared with, perhaps in principal components. None if X held
        distances.
    search_mean_ : ndarray of shape (n_features,) or None
        Mean of the rows, if they are searched in principal components.
    search_axes_ : ndarray of shape (n_searched, n_features) or None
        Axes of these principal components.
    """

    n_neighbors: int | None = param(Null() | Integer(1), default=10)
    MN_ratio: float = param(Real(0, 1e6, closed="both"), default=0.5)
    FP_ratio: float = param(Real(0, 1e6, closed="right"), default=2.0)
    num_iters: Sequence[int] = param(Several(Integer(0, 10**9)), default=(100, 100, 250))
    learning_rate: float = param(Real(0, 1e6, closed="right"), default=1.0)
    apply_pca: bool = param(Boolean(), default=True)
    init: Any = param(OneOf("pca", "random") | Array(), default="pca")
    loss_: float = fitted()
    loss_history_: np.ndarray = fitted("n_looks")
    n_iter_: int = fitted(type=int)
    n_mid_near_: int = fitted(type=int)
    n_far_: int = fitted(type=int)
    local_scales_: np.ndarray = fitted("n_samples", meaning=above(0))
    far_weight_: float = fitted(meaning=at_least(0))
    fitted_rows_: Any = fitted("n_samples", "n_searched", optional=True, sparse=True)
    search_mean_: Any = fitted("n_features", optional=True)
    search_axes_: Any = fitted("n_searched", "n_features", optional=True)

    accepts_graph = False
    wants_pca = False
    reading = Reading(
        axes="The axes have no meaning. Only who is near whom can be read.",
        distances="Rows that are neighbors in the map are mostly neighbors in the data. The "
        "arrangement of the groups follows the data roughly; distances between them have no exact "
        "meaning.",
        gaps="Separate groups are groups of mutual neighbors. Small groups may be noise, and one "
        "group may be torn in two: run another seed, and trust only what both maps show.",
        sizes="Sizes and densities mean nothing: far pairs spread dense groups and near pairs pack "
        "sparse ones. A point far outside is not an outlier for that reason.",
        scale="The scale of the axes has no meaning.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: axes, 60 neighbors and 450 steps on 35 pairs per row."""
        search = neighbor_graph_cost(n, min(p, WIDE), 60)
        if p > WIDE:
            search = principal_axes_cost(n, p, WIDE) + search
        steps = 450 * (3e-5 + 5e-8 * n)
        return Estimate(
            0.02 + search.seconds + steps, search.n_bytes + n * (8.0 * p + 8 * min(p, WIDE) + 2000)
        )

    # --- what a method may override -------------------------------------------------------------

    def _reach(self) -> float:
        """The distance in the map within which far pairs are drawn in the third phase; 0: any."""
        return 0.0

    # --- fit ----------------------------------------------------------------------------------

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: distances stand in place of rows, axes are a pair."""
        if self.search_mean_ is None and self.search_axes_ is not None:
            return "no 'search_mean_'"
        rows, p = self.fitted_rows_, self.n_features_in_
        if rows is not None and self.search_axes_ is None and rows.shape[1] != p:
            return f"'fitted_rows_' of {rows.shape[1]} columns, but rows have {p}"
        return super().inconsistency()

    def check_params(self) -> None:
        """See :meth:`Declared.check_params`; and there are three phases."""
        super().check_params()
        if len(self.num_iters) != 3:
            raise ParameterError(
                f"{type(self).__name__}: num_iters={list(self.num_iters)!r} is not allowed; "
                "expected three numbers of steps, one for each phase, such as (100, 100, 250)."
            )

    def _check_training_rows(self, X: Any) -> Any:
        X = super()._check_training_rows(X)
        if self._has_distances and is_sparse(X):
            raise DataError(
                f"{type(self).__name__}: metric='precomputed' needs all distances, because "
                "mid-near pairs are chosen among random rows; give them as a dense array."
            )
        return X

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        rows = X if self._has_distances else dense_if_small(X)
        n, d = rows.shape[0], int(self.n_components)
        k = default_neighbors(n) if self.n_neighbors is None else int(self.n_neighbors)
        counts = pair_counts(n, k, self.MN_ratio, self.FP_ratio)
        require_memory(
            n * (12 * sum(counts) + 40 * (counts.near + MORE_CANDIDATES) + 24 * d),
            task=f"{type(self).__name__} with {sum(counts)} pairs for each of {n} rows",
            alternative="a smaller n_neighbors, MN_ratio or FP_ratio",
        )
        searched = self._searched(rows, run)
        graph = self._nearest_rows(searched, min(counts.near + MORE_CANDIDATES, n - 1), run)
        if run.shared is not None and self.search_axes_ is None:
            run.shared.graph = graph
        equal = equal_in_graph(graph)
        scales = local_scales(graph.distances)
        seeds = [int(seed) for seed in run.rng.integers(SEEDS, size=3)]
        near = nearest_scaled(graph, scales, counts.near, run.threads, scales)
        mid = mid_near_pairs(searched, counts.mid, seeds[0], self.metric, self.metric_params, run)
        far = np.empty((n, counts.far), np.int32)
        _native.draw_far(near, seeds[1], far, run.threads)
        dtype = np.promote_types(graph.distances.dtype, np.float32)
        del graph
        Y = at_common_place(self._start(searched, run).astype(np.float32), equal)
        within = np.full(n, n, np.int32)  # the rows that far pairs are drawn from

        def redraw(number: int, Y: np.ndarray) -> np.ndarray:
            seed = seeds[2] + number
            _native.redraw_far(near, Y, self._reach(), seed, far, within, run.threads)
            return far

        pairs = [part for kind in (near, mid, far) for part in both_directions(kind, run.threads)]
        found = descend_pairs(
            tuple(pairs),
            np.ascontiguousarray(Y),
            [int(steps) for steps in self.num_iters],
            float(self.learning_rate),
            run,
            local=self._reach() / 2,
            redraw=redraw if self._reach() > 0 else None,
        )
        Y = found.Y - found.Y.mean(axis=0, dtype=np.float64).astype(np.float32)
        Y = np.ascontiguousarray(at_common_place(Y, equal))
        self.loss_ = pair_loss(found.lists, found.weights, Y, run.threads)
        self.loss_history_ = np.array([*found.losses, self.loss_])
        self.embedding_, self.n_iter_ = Y.astype(dtype), found.n_iter
        self.n_neighbors_, self.n_mid_near_, self.n_far_ = counts
        self.local_scales_ = scales
        self.far_weight_ = counts.far / max(1.0, float(within.mean(dtype=np.float64)))
        self.fitted_rows_ = None if self._has_distances else searched.copy()
        return self.embedding_.copy()

    def _start(self, X: Any, run: FitContext) -> np.ndarray:
        """Principal components, noise or a given map, (n, d); of distances classical scaling."""
        n, d = X.shape[0], int(self.n_components)
        if not isinstance(self.init, str):
            return initial_layout.given_layout(self.init, n, d)
        if self.init == "random":
            return initial_layout.random_layout(n, d, run)
        if self._has_distances:
            Y = np.zeros((n, d))
            scaled = initial_map.classical_start(X.astype(np.float64), min(d, n - 1), run)
            Y[:, : scaled.shape[1]] = scaled
            Y = initial_map.separated(Y, run.rng)
            Y -= Y.mean(axis=0)
        else:
            Y = initial_layout.principal_layout(X, d, run)
        return Y * (START / Y.std(axis=0).max())

    def _searched(self, rows: Any, run: FitContext) -> Any:
        """The rows that are searched for pairs: themselves, or their principal components."""
        self.search_mean_ = self.search_axes_ = None
        known = "" if callable(self.metric) else metrics.canonical(self.metric)
        euclidean = known in ("euclidean", "sqeuclidean")
        if not (self.apply_pca and euclidean and rows.shape[1] > WIDE):
            return rows
        q = min(WIDE, rows.shape[0] - 1)
        found = leading_axes(rows, q, run.threads, run.rng, run.monitor)
        self.search_mean_ = np.ascontiguousarray(found.mean)
        self.search_axes_ = np.ascontiguousarray(found.axes)
        return self._in_axes(rows, rows.dtype, run)

    def _in_axes(self, rows: Any, dtype: Any, run: FitContext) -> np.ndarray:
        """Principal components of the rows, computed in this type."""
        rows = rows.astype(dtype, copy=False)
        return products.times(rows, self.search_mean_, self.search_axes_.T, run.threads)

    # --- new rows -----------------------------------------------------------------------------

    def _known_neighbors(self) -> int:
        return self.n_neighbors_ + MORE_CANDIDATES

    def _nearest_fitted(self, X: Any, k: int, run: FitContext) -> NeighborGraph:
        if self.search_axes_ is not None:
            X = self._in_axes(X, self.fitted_rows_.dtype, run)
        return super()._nearest_fitted(X, k, run)

    def _places(self, near: NeighborGraph, run: FitContext) -> np.ndarray:
        ids = nearest_scaled(near, self.local_scales_, self.n_neighbors_, run.threads)
        return place_pairs(self.embedding_, ids, self.far_weight_, self._reach(), run)
