"""What neighbor embeddings share: affinities, a start, the descent, and places for new rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from lowland._core.base import Reducer
from lowland._core.constraints import Array, Function, Integer, Mapping, Null, OneOf, Real, Several
from lowland._core.context import FitContext
from lowland._core.errors import DataError, ParameterError
from lowland._core.params import fitted, param
from lowland._core.validation import dense_if_small, is_sparse
from lowland._engines.distances.metrics import METRICS
from lowland._engines.embedding import initial_layout
from lowland._engines.embedding.affinity import (
    check_perplexity,
    conditional_affinities,
    default_neighbors,
    joint_affinities,
    symmetrize_affinities,
)
from lowland._engines.embedding.descent import Stage, descend
from lowland._engines.embedding.divergence import Divergence, entropy_of
from lowland._engines.embedding.placement import FrozenMap, place_rows
from lowland._engines.embedding.repulsion import Repulsion, pairwise_repulsion
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph, neighbor_query, stored_graph

__all__ = ["NeighborEmbedding"]

MOMENTUM = 0.8


class NeighborEmbedding(Reducer):
    """Minimize KL(P || Q): Gaussian similarities of all pairs, where a method says no other."""

    perplexity: float | Sequence[float] = param(
        Real(0) | Several(Real(0)),  # the engine asks for at least 1, knowing the data
        default=30.0,
        doc="effective number of neighbors of a row; a list mixes several scales",
    )
    n_neighbors: int | None = param(
        Null() | Integer(1),
        default=None,
        doc="neighbors that get an affinity; None lets the method choose",
    )
    early_exaggeration: float = param(
        Real(1, 1e6, closed="both"), default=1.0, doc="factor on the attraction at first"
    )
    early_exaggeration_iter: int = param(
        Integer(0), default=0, doc="steps with the early exaggeration; none from a given map"
    )
    learning_rate: float | str = param(
        OneOf("auto") | Real(0, 1e12, closed="right"),
        default="auto",
        doc="step length; auto is n / exaggeration",
    )
    max_iter: int = param(Integer(0), default=750, doc="steps in all, at most")
    init: Any = param(
        OneOf("pca", "spectral", "random") | Array(), default="pca", doc="where the map starts"
    )
    metric: Any = param(
        OneOf(*METRICS) | Function(), default="euclidean", doc="distance between rows"
    )
    metric_params: dict[str, Any] | None = param(
        Null() | Mapping(), default=None, doc="parameters of the metric"
    )
    tol: float = param(
        Real(0, closed="left"), default=1e-5, doc="stop when the loss falls less per step; 0: never"
    )
    callback: Callable[..., Any] | None = param(
        Null() | Function(), default=None, doc="called as callback(step, map, loss); True stops"
    )

    embedding_: np.ndarray = fitted("n_samples", "n_components", doc="the map of the fitted rows")
    kl_divergence_: float = fitted(doc="the divergence of the map from the data")
    loss_history_: np.ndarray = fitted("n_looks", doc="divergence every 50 steps, and at the end")
    n_iter_: int = fitted(type=int, doc="steps done")
    n_neighbors_: int = fitted(type=int, doc="neighbors that got an affinity")
    mean_potential_: float = fitted(doc="similarity that a point of the map sees in all")
    rows_: Any = fitted(
        "n_samples",
        "n_features",
        doc="the fitted rows, which new rows are compared with; None if distances were given",
        optional=True,
    )

    accepts_sparse = True
    all_pairs: ClassVar[bool] = True  # whether every row is a neighbor, unless n_neighbors says
    by_rows: ClassVar[bool] = False  # whether Q is normalized row by row

    # --- what a method may say otherwise -------------------------------------------------------

    def _dof(self) -> float:
        """Degrees of freedom of the similarity in the map; infinity is the Gaussian."""
        return math.inf

    def _repulsion(self, n: int, d: int, run: FitContext) -> Repulsion:
        return pairwise_repulsion(self._dof(), run.threads)

    def _final_exaggeration(self) -> float:
        return 1.0

    def _momentum(self) -> float:
        """Of the steps after the early exaggeration."""
        return MOMENTUM

    # --- fit ----------------------------------------------------------------------------------

    def _check_training_rows(self, X: Any) -> Any:
        return X if isinstance(X, NeighborGraph) else super()._check_training_rows(X)

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        given_graph = isinstance(X, NeighborGraph)
        as_it_is = given_graph or self.metric == "precomputed"
        rows = X if as_it_is else dense_if_small(X)
        # affinities square the distances
        graph = (rows if given_graph else self._neighbors_of(rows, run)).in_distances()
        n, d = len(graph), int(self.n_components)
        listener = vars(self).pop("_graph_listener", None)  # set by lowland.study for one fit
        if listener is not None:
            listener(graph)
        self._check_graph(graph)
        Y = self._start(None if given_graph else rows, graph, run).astype(np.float32)
        Y = _equal_rows_together(Y, graph)
        divergence = self._divergence(graph, n, d, run)
        found = descend(
            divergence,
            np.ascontiguousarray(Y),
            self._stages(),
            learning_rate=None if self.learning_rate == "auto" else float(self.learning_rate),
            tol=self.tol,
            monitor=run.monitor,
        )
        Y = _equal_rows_together(found.Y, graph)
        if Y is not found.Y:
            found.losses[-1] = divergence.loss(np.ascontiguousarray(Y[found.rows]))
        kept = None if given_graph or self.metric == "precomputed" else rows
        self.embedding_ = Y.astype(np.promote_types(graph.distances.dtype, np.float32))
        self.loss_history_, self.kl_divergence_ = found.losses, float(found.losses[-1])
        self.n_iter_, self.n_neighbors_ = found.n_iter, graph.n_neighbors
        self.mean_potential_ = divergence.mean_potential(np.ascontiguousarray(Y))
        self.rows_ = None if kept is None else kept.copy()
        return self.embedding_.copy()

    def _stages(self) -> list[Stage]:
        given = not isinstance(self.init, str)  # clusters have formed: to exaggerate undoes them
        early = 0 if given else min(self.early_exaggeration_iter, self.max_iter)
        late, may_stop = self.max_iter - early, self.tol > 0
        return [
            Stage(early, self.early_exaggeration, MOMENTUM, False),
            Stage(late, self._final_exaggeration(), self._momentum(), may_stop),
        ]

    def _neighbors_of(self, rows: Any, run: FitContext) -> NeighborGraph:
        n = rows.shape[0]
        k = default_neighbors(self.perplexity, n)
        if self.all_pairs:
            k = n - 1
        if self.n_neighbors is not None:
            k = min(self.n_neighbors, n - 1)
            check_perplexity(self.perplexity, n, k)
        if self.metric == "precomputed" and is_sparse(rows):
            return stored_graph(rows, k)
        return neighbor_graph(
            rows,
            k,
            metric=self.metric,
            metric_params=self.metric_params,
            threads=run.threads,
            rng=run.rng,
            monitor=run.monitor,
        )

    def _check_graph(self, graph: NeighborGraph) -> None:
        if len(graph) != graph.n_points:
            raise DataError(
                f"{type(self).__name__}: the graph has the neighbors of {len(graph)} new rows; a "
                f"fit needs those of the {graph.n_points} fitted rows (knn_graph)."
            )
        check_perplexity(self.perplexity, graph.n_points, graph.n_neighbors)

    def _divergence(self, graph: NeighborGraph, n: int, d: int, run: FitContext) -> Divergence:
        if not self.by_rows:
            P = joint_affinities(graph, self.perplexity, threads=run.threads, dtype=np.float32)
            entropy = entropy_of(P.weights)
        else:
            p, _ = conditional_affinities(
                graph, self.perplexity, threads=run.threads, dtype=np.float32
            )
            starts = np.arange(n + 1, dtype=np.int64) * graph.n_neighbors
            P = symmetrize_affinities(starts, graph.indices.ravel(), p.ravel(), run.threads)
            entropy = entropy_of(p)
        repulsion = self._repulsion(n, d, run)
        return Divergence(P, self._dof(), repulsion, entropy, run.threads, by_rows=self.by_rows)

    def _start(self, rows: Any, graph: NeighborGraph, run: FitContext) -> np.ndarray:
        """The first layout; without a table of features the graph takes the place of PCA."""
        n, d = len(graph), int(self.n_components)
        if not isinstance(self.init, str):
            return initial_layout.given_layout(self.init, n, d)
        if self.init == "random":
            return initial_layout.random_layout(n, d, run)
        if self.init == "spectral" or rows is None or self.metric == "precomputed":
            P = joint_affinities(graph, self.perplexity, threads=run.threads)
            return initial_layout.spectral_layout(P.to_csr(), d, run)
        return initial_layout.principal_layout(rows, d, run)

    # --- new rows -----------------------------------------------------------------------------

    def _check_new_rows(self, X: Any) -> Any:
        self._require_fitted()
        if self.rows_ is None and self.metric != "precomputed":
            raise ParameterError(
                f"{type(self).__name__} was fitted on a NeighborGraph, so there are no rows to "
                "compare new ones with; fit on the rows, or set metric='precomputed' and give the "
                "distances of the new rows to the fitted ones."
            )
        return super()._check_new_rows(X)

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        n = len(self.embedding_)
        k = min(self.n_neighbors_, n)
        fitted_rows = self.rows_
        if fitted_rows is None:
            fitted_rows = np.broadcast_to(np.float32(0), (n, n))  # only its shape is asked for
        queries = X
        if self.metric != "precomputed" and is_sparse(X) and not is_sparse(fitted_rows):
            queries = X.toarray()  # but distances that are not stored are not 0
        near = neighbor_query(
            fitted_rows,
            queries,
            k,
            metric=self.metric,
            metric_params=self.metric_params,
            threads=run.threads,
            monitor=run.monitor,
        )
        near = near.in_distances()
        p, _ = conditional_affinities(near, self._new_perplexity(k), threads=run.threads)
        mean = None if self.by_rows else self.mean_potential_
        Z = place_rows(FrozenMap(self.embedding_, self._dof(), mean), near.indices, p, run.threads)
        Z = Z.astype(self.embedding_.dtype)
        at_home = near.distances[:, 0] == 0  # a fitted row has its place already
        Z[at_home] = self.embedding_[near.indices[at_home, 0]]
        return Z.astype(X.dtype, copy=False)

    def _new_perplexity(self, k: int) -> Any:
        several = isinstance(self.perplexity, Sequence | np.ndarray)
        wanted = list(self.perplexity) if several else [self.perplexity]  # type: ignore[arg-type]
        return [min(float(value), float(k)) for value in wanted]


def _equal_rows_together(Y: np.ndarray, graph: NeighborGraph) -> np.ndarray:
    """Rows without any distance between them get one place, their mean."""
    first = np.arange(len(Y))
    copies = graph.distances[:, 0] == 0
    first[copies] = np.minimum(first[copies], graph.indices[copies, 0])
    if not copies.any():
        return Y
    members = np.bincount(first, minlength=len(Y))
    Y = Y.copy()
    for axis in range(Y.shape[1]):
        sums = np.bincount(first, weights=Y[:, axis].astype(np.float64), minlength=len(Y))
        Y[:, axis] = (sums / np.maximum(members, 1))[first]
    return Y
