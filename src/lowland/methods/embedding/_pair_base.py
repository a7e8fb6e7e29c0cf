"""The base of maps by pairs: neighbors, pairs, start, descent, out-of-sample placement."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowland import _native
from lowland._base.base import Reducer
from lowland._base.constraints import (
    Array,
    Boolean,
    Function,
    Integer,
    Mapping,
    Null,
    OneOf,
    Real,
    Several,
)
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import above, at_least, count
from lowland._base.params import fitted, param
from lowland._base.traits import Estimate, Reading
from lowland._base.validation import dense_if_small, is_sparse
from lowland._engines.distances.metrics import METRICS, canonical
from lowland._engines.embedding import initial_layout
from lowland._engines.embedding.particle_mesh import (
    ParticleMesh,
    RadialKernel,
    grid_nodes,
    similarity,
)
from lowland._engines.embedding.placement import MapField
from lowland._engines.linalg import products
from lowland._engines.linalg.principal_axes import leading_axes, principal_axes_cost
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import (
    given_neighbors,
    neighbor_graph,
    neighbor_graph_cost,
    query_fitted,
)
from lowland._engines.stress import initial_map
from lowland.methods.embedding._pairs import (
    MORE_CANDIDATES,
    PairCounts,
    PairLists,
    default_neighbors,
    descend_pairs,
    local_scales,
    mid_near_pairs,
    nearest_scaled,
    pair_counts,
    pair_loss,
)

# The map that the descent of maps by pairs starts from.


START = 0.01  # standard deviation along the widest axis


def start_map(init: Any, X: Any, d: int, run: FitContext, *, distances: bool) -> np.ndarray:
    """Principal components, noise or a given map, (n, d); of distances classical scaling."""
    n = X.shape[0]
    if not isinstance(init, str):
        return initial_layout.given_layout(init, n, d)
    if init == "random":
        return initial_layout.random_layout(n, d, run)
    if distances:
        Y = np.zeros((n, d))
        scaled = initial_map.classical_start(X.astype(np.float64), min(d, n - 1), run)
        Y[:, : scaled.shape[1]] = scaled
        Y = initial_map.separated(Y, run.rng)
        Y -= Y.mean(axis=0)
    else:
        Y = initial_layout.principal_layout(X, d, run)
    return Y * (START / Y.std(axis=0).max())


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
    if not large or grid_nodes(U, kernel, MARGIN) > GRID_LIMIT:
        return MapField(U, None)
    return MapField(U, ParticleMesh(kernel, threads).field(U, margin=MARGIN).without_charge())


def _repulsion(reach: float) -> RadialKernel:
    """2 R as a function of u^2."""
    whole = similarity(1.0)
    if reach == 0:
        return whole
    most = reach**2 / 2
    edge = 1 / (1 + most)

    def values(squares: np.ndarray) -> np.ndarray:
        tangent = edge * (2 - edge * (1 + squares))
        return np.where(squares < most, whole.values(squares) - tangent, 0.0)

    return RadialKernel(values, whole.pitch)


WIDE = 100  # columns; wider tables are searched in as many principal components
SEEDS = 2**62
CANDIDATE_BYTES = 64  # of one candidate of a new row: number, distance, quotient, order
PLACED_BYTES = 1 << 28  # of the new rows that are placed at a time


class PairEmbedding(Reducer):
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
    metric: Any = param(OneOf(*METRICS) | Function(), default="euclidean")
    metric_params: dict[str, Any] | None = param(Null() | Mapping(), default=None)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray = fitted("n_samples", "n_components")
    loss_: float = fitted()
    loss_history_: np.ndarray = fitted("n_looks")
    n_iter_: int = fitted(type=int)
    n_neighbors_: int = fitted(type=int, meaning=count(1, "n_samples"))
    n_mid_near_: int = fitted(type=int)
    n_far_: int = fitted(type=int)
    local_scales_: np.ndarray = fitted("n_samples", meaning=above(0))
    far_weight_: float = fitted(meaning=at_least(0))
    fitted_rows_: Any = fitted("n_samples", "n_searched", optional=True, sparse=True)
    search_mean_: Any = fitted("n_features", optional=True)
    search_axes_: Any = fitted("n_searched", "n_features", optional=True)

    accepts_sparse = True
    accepts_distances = True
    reading = Reading(
        axes="The axes have no meaning. Only who is near whom can be read.",
        distances="Rows that are neighbors in the map are mostly neighbors in the data. The "
        "arrangement of the groups follows the data roughly; distances between them are no "
        "measure.",
        gaps="Groups that stand apart are groups of mutual neighbors. Small groups may be noise, "
        "and one group may be torn in two: run another seed and trust what stays.",
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

    @property
    def _has_distances(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: distances stand in place of rows, axes are a pair."""
        if self.search_mean_ is None and self.search_axes_ is not None:
            return "no 'search_mean_'"
        rows, p = self.fitted_rows_, self.n_features_in_
        if rows is not None and self.search_axes_ is None and rows.shape[1] != p:
            return f"'fitted_rows_' of {rows.shape[1]} columns, but rows have {p}"
        given = self._has_distances
        return self._rows_flaw(len(self.embedding_), given) or super().inconsistency()

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
        self._check_not_beyond_rows(X.shape[0])
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
        self._check_memory(n, d, counts)
        searched = self._searched(rows, run)
        graph = self._candidates(searched, counts.near, run)
        if run.shared is not None and self.search_axes_ is None:
            run.shared.graph = graph
        equal = equal_in_graph(graph)
        scales = local_scales(graph.distances)
        seeds = [int(seed) for seed in run.rng.integers(SEEDS, size=3)]
        near = nearest_scaled(graph, scales, counts.near, run.threads, scales)
        metric = {"metric": self.metric, "metric_params": self.metric_params}
        mid = mid_near_pairs(searched, counts.mid, seeds[0], **metric, run=run)
        far = np.empty((n, counts.far), np.int32)
        _native.draw_far(near, seeds[1], far, run.threads)
        dtype = np.promote_types(graph.distances.dtype, np.float32)
        del graph
        Y = at_common_place(
            start_map(self.init, searched, d, run, distances=self._has_distances).astype(
                np.float32
            ),
            equal,
        )
        within = np.full(n, n, np.int32)  # the rows that far pairs are drawn from

        def redraw(number: int, Y: np.ndarray) -> np.ndarray:
            seed = seeds[2] + number
            _native.redraw_far(near, Y, self._reach(), seed, far, within, run.threads)
            return far

        found = descend_pairs(
            PairLists.of(near, mid, far, run.threads),
            np.ascontiguousarray(Y),
            [int(steps) for steps in self.num_iters],
            learning_rate=float(self.learning_rate),
            monitor=run.monitor,
            threads=run.threads,
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

    def _check_memory(self, n: int, d: int, counts: PairCounts) -> None:
        pairs = 12 * sum(counts) + 40 * (counts.near + MORE_CANDIDATES)
        require_memory(
            n * (pairs + 24 * d),
            task=f"{type(self).__name__} with {sum(counts)} pairs for each of {n} rows",
            alternative="a smaller n_neighbors, MN_ratio or FP_ratio",
        )

    def _searched(self, rows: Any, run: FitContext) -> Any:
        """The rows that are searched for pairs: themselves, or their principal components."""
        self.search_mean_ = self.search_axes_ = None
        euclidean = not callable(self.metric) and canonical(self.metric) in (
            "euclidean",
            "sqeuclidean",
        )
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

    def _candidates(self, rows: Any, k: int, run: FitContext) -> NeighborGraph:
        return neighbor_graph(
            rows,
            min(k + MORE_CANDIDATES, rows.shape[0] - 1),
            metric=self.metric,
            metric_params=self.metric_params,
            threads=run.threads,
            rng=run.rng,
            monitor=run.monitor,
        ).in_distances()

    # --- new rows -----------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        candidates = min(self.n_neighbors_ + MORE_CANDIDATES, len(self.embedding_))
        step = rows_within(CANDIDATE_BYTES * candidates, PLACED_BYTES)
        blocks = row_blocks(X.shape[0], step)
        parts = [self._placed_rows(X[rows], candidates, run) for rows in blocks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _placed_rows(self, X: Any, candidates: int, run: FitContext) -> np.ndarray:
        """Some new rows in the map; rows equal to a fitted row get its place."""
        near = self._candidates_of(X, candidates, run)
        ids = nearest_scaled(near, self.local_scales_, self.n_neighbors_, run.threads)
        Z = place_pairs(self.embedding_, ids, self.far_weight_, self._reach(), run)
        Z = Z.astype(self.embedding_.dtype)
        equal = near.distances[:, 0] == 0
        Z[equal] = self.embedding_[near.indices[equal, 0]]
        return Z.astype(X.dtype, copy=False)

    def _candidates_of(self, X: Any, k: int, run: FitContext) -> NeighborGraph:
        if self.fitted_rows_ is None:
            return given_neighbors(X, k, monitor=run.monitor)
        if self.search_axes_ is not None:
            X = self._in_axes(X, self.fitted_rows_.dtype, run)
        return query_fitted(
            self.fitted_rows_,
            X.toarray() if is_sparse(X) and not is_sparse(self.fitted_rows_) else X,
            k,
            metric=self.metric,
            metric_params=self.metric_params,
            run=run,
        ).in_distances()
