"""The base of neighbor embeddings: affinities, initial layout, descent, out-of-sample placement.

A method chooses the similarity in the map (``_dof``), how Q is normalized (``by_rows``), which
pairs have an affinity (``all_pairs``) and how the repulsion is computed (``_repulsion``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from lowland._base.base import Reducer
from lowland._base.constraints import Array, Function, Integer, Null, OneOf, Real, Several
from lowland._base.context import FitContext
from lowland._base.models.checks import at_least, count
from lowland._base.params import fitted, param
from lowland._base.traits import Reading
from lowland._base.validation import dense_if_small, is_sparse
from lowland._engines.embedding import affinity, initial_layout
from lowland._engines.embedding.descent import Divergence, Stage, descend, entropy_of
from lowland._engines.embedding.placement import FrozenMap, map_field, place_rows
from lowland._engines.embedding.repulsion import Repulsion, pairwise_repulsion
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.graph import NeighborGraph, check_fitted_rows, no_fitted_rows
from lowland._engines.neighbors.search import given_neighbors, stored_graph
from lowland.methods._bases.by_metric import ByMetric

NEIGHBOR_BYTES = 64  # of one neighbor of a new row: candidates, distance, affinity
PLACED_BYTES = 1 << 28  # of the new rows that are placed at a time


class NeighborMap(ByMetric, Reducer):
    """A map of the fitted rows, and places of new rows near their neighbors.

    A method writes ``_fit``, and ``_places`` for the neighbors of new rows. Rows may be dense or
    sparse, distances or, if ``accepts_graph``, a ``NeighborGraph``.

    Parameters
    ----------
    metric : str or function, default="euclidean"
        Distance between rows: a name, a function of two rows, or "precomputed". With
        "precomputed", X holds the n x n distances of the fitted rows, dense or sparse, and new rows
        are given by their distances to the fitted rows. X may also be a ``NeighborGraph``.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows. Equal rows share one place.
    fitted_rows_ : array of shape (n_samples, n_features) or None
        Rows that new rows are compared with. None if X held distances or was a graph.
    """

    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray = fitted("n_samples", "n_components")
    n_neighbors_: int = fitted(type=int, meaning=count(1, "n_samples"))
    fitted_rows_: Any = fitted("n_samples", "n_features", optional=True, sparse=True)

    accepts_sparse = True
    accepts_distances = True
    accepts_graph = True
    wants_pca = True

    # --- what a method writes -------------------------------------------------------------------

    def _neighbors_of(self, rows: Any, run: FitContext) -> NeighborGraph:
        """The neighbors of the fitted rows, unless they are given."""
        raise NotImplementedError

    def _known_neighbors(self) -> int:
        """How many fitted neighbors a new row needs."""
        return self.n_neighbors_

    def _places(self, near: NeighborGraph, run: FitContext) -> np.ndarray:
        """Places for rows with these fitted neighbors; each row alone."""
        raise NotImplementedError

    # --- fit ------------------------------------------------------------------------------------

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: distances or a graph stand in place of rows."""
        given = self._has_distances or self.fitted_rows_ is None
        return self._rows_flaw(len(self.embedding_), given) or super().inconsistency()

    def _check_training_rows(self, X: Any) -> Any:
        if self.accepts_graph and isinstance(X, NeighborGraph):
            X = X.in_distances()  # affinities square the distances
        else:
            X = super()._check_training_rows(X)
        self._check_not_beyond_rows(X.shape[0])
        return X

    def _rows_and_graph(self, X: Any, run: FitContext) -> tuple[Any, NeighborGraph]:
        """The rows of X, None if it holds distances or is a graph, and their neighbors."""
        if isinstance(X, NeighborGraph):
            check_fitted_rows(X, type(self).__name__)
            return None, X
        if self._has_distances:
            return None, self._neighbors_of(X, run)
        rows = dense_if_small(X)
        return rows, self._neighbors_of(rows, run)

    def _nearest_rows(self, rows: Any, k: int, run: FitContext, at_least: int = 1) -> NeighborGraph:
        """The k nearest other rows of every fitted row; those that a sparse matrix stores."""
        if self._has_distances and is_sparse(rows):
            return stored_graph(rows, k, at_least=at_least)
        return self._nearest_others(rows, k, run).in_distances()

    # --- new rows -------------------------------------------------------------------------------

    def _check_new_rows(self, X: Any) -> Any:
        self._require_fitted()
        if self.fitted_rows_ is None and not self._has_distances:
            raise no_fitted_rows(type(self).__name__)
        return super()._check_new_rows(X)

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        k = min(self._known_neighbors(), len(self.embedding_))
        step = rows_within(NEIGHBOR_BYTES * k, PLACED_BYTES)
        parts = [self._placed_rows(X[rows], k, run) for rows in row_blocks(X.shape[0], step)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _placed_rows(self, X: Any, k: int, run: FitContext) -> np.ndarray:
        """Some new rows in the map; a row equal to a fitted row gets the same place."""
        near = self._nearest_fitted(X, k, run)
        Z = self._places(near, run).astype(self.embedding_.dtype)
        equal = near.distances[:, 0] == 0
        Z[equal] = self.embedding_[near.indices[equal, 0]]
        return Z.astype(X.dtype, copy=False)

    def _nearest_fitted(self, X: Any, k: int, run: FitContext) -> NeighborGraph:
        if self.fitted_rows_ is None:
            return given_neighbors(X, k, monitor=run.monitor).in_distances()
        return self._nearest_of(self.fitted_rows_, X, k, run).in_distances()


MOMENTUM = 0.8


class NeighborEmbedding(NeighborMap):
    """Minimize KL(P || Q); Q has Gaussian similarities of all pairs unless a method differs.

    Parameters
    ----------
    perplexity : float or list of float, default=30.0
        Effective number of neighbors of each row, between 1 and n - 1. Larger values show coarser
        structure. The affinities of several values are averaged.
    n_neighbors : int or None, default=None
        Number of neighbors that get an affinity. None takes all rows.
    early_exaggeration : float, default=1.0
        Factor on the attraction in the first steps.
    early_exaggeration_iter : int, default=0
        Number of steps with the early exaggeration. It is 0 if ``init`` is a map, whose clusters
        these steps would undo.
    learning_rate : float or "auto", default="auto"
        Step length of the descent. "auto" is n / exaggeration.
    max_iter : int, default=750
        Largest number of steps. 0 returns the initial layout.
    init : {"pca", "spectral", "random"} or array of shape (n, n_components), default="pca"
        Initial layout. An array continues from an earlier map. If X holds distances or is a graph,
        "pca" means "spectral".
    tol : float, default=1e-5
        Stop when a step lowers the divergence by less than this share of it. 0 never stops early.

    Attributes
    ----------
    kl_divergence_ : float
        Divergence of the map from the data at the end.
    loss_history_ : ndarray of shape (n_looks,)
        Divergence every 50 steps and at the end.
    n_neighbors_ : int
        Number of neighbors that got an affinity.
    mean_potential_ : float
        Mean over the rows of their sum of similarities in the map. It scales the repulsion of new
        rows.
    """

    perplexity: float | Sequence[float] = param(
        Real(0) | Several(Real(0)),  # the engine, which knows the data, asks for at least 1
        default=30.0,
    )
    n_neighbors: int | None = param(Null() | Integer(1), default=None)
    early_exaggeration: float = param(Real(1, 1e6, closed="both"), default=1.0)
    early_exaggeration_iter: int = param(Integer(0), default=0)
    learning_rate: float | str = param(
        OneOf("auto") | Real(0, 1e12, closed="right"), default="auto"
    )
    max_iter: int = param(Integer(0), default=750)
    init: Any = param(OneOf("pca", "spectral", "random") | Array(), default="pca")
    tol: float = param(Real(0, closed="left"), default=1e-5)

    kl_divergence_: float = fitted()
    loss_history_: np.ndarray = fitted("n_looks")
    n_iter_: int = fitted(type=int)
    mean_potential_: float = fitted(meaning=at_least(0))

    reading = Reading(
        axes="The axes have no meaning. Only who is near whom can be read.",
        distances="Rows that are neighbors in the map are mostly neighbors in the data. Distances "
        "between groups mean little, and so does the arrangement of the groups: two groups side by "
        "side need not be more alike than two at opposite ends.",
        gaps="Separate groups are groups of mutual neighbors. Small groups may be noise, and one "
        "group may be torn in two: run another seed and another perplexity, and trust only what "
        "all maps show.",
        sizes="Sizes and densities mean nothing: the method spreads dense groups and packs sparse "
        "ones until they look alike. A point far outside is not an outlier for that reason.",
        scale="The scale of the axes has no meaning.",
    )
    all_pairs: ClassVar[bool] = True  # every row is a neighbor unless n_neighbors is given
    by_rows: ClassVar[bool] = False  # Q is normalized row by row

    # --- what a method may override -------------------------------------------------------------

    def _dof(self) -> float:
        """Degrees of freedom of the similarity in the map; infinity is the Gaussian."""
        return math.inf

    def _repulsion(self, n: int, d: int, run: FitContext) -> Repulsion:
        return pairwise_repulsion(self._dof(), run.threads)

    def _final_exaggeration(self) -> float:
        return 1.0

    def _momentum(self) -> float:
        """Momentum of the steps after the early exaggeration."""
        return MOMENTUM

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`."""
        if self.mean_potential_ == 0 and not self.by_rows:  # the repulsion is divided by it
            return "'mean_potential_' = 0"
        return super().inconsistency()

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        rows, graph = self._rows_and_graph(X, run)
        n, d = len(graph), int(self.n_components)
        affinity.check_perplexity(self.perplexity, n, graph.n_neighbors)
        if run.shared is not None:
            run.shared.graph = graph
        Y = self._start(rows, graph, run).astype(np.float32)
        equal = equal_in_graph(graph)
        Y = at_common_place(Y, equal)
        divergence = self._divergence(graph, n, d, run)
        found = descend(
            divergence,
            np.ascontiguousarray(Y),
            self._stages(),
            learning_rate=None if self.learning_rate == "auto" else float(self.learning_rate),
            tol=self.tol,
            monitor=run.monitor,
        )
        Y = at_common_place(found.Y, equal)
        if Y is not found.Y:
            found.losses[-1] = divergence.loss(np.ascontiguousarray(Y[found.rows]))
        self.embedding_ = Y.astype(np.promote_types(graph.distances.dtype, np.float32))
        self.loss_history_, self.kl_divergence_ = found.losses, float(found.losses[-1])
        self.n_iter_, self.n_neighbors_ = found.n_iter, graph.n_neighbors
        self.mean_potential_ = divergence.mean_potential(np.ascontiguousarray(Y))
        self.fitted_rows_ = None if rows is None else rows.copy()
        return self.embedding_.copy()

    def _stages(self) -> list[Stage]:
        given = not isinstance(self.init, str)  # exaggeration would undo the clusters of a map
        early = 0 if given else min(self.early_exaggeration_iter, self.max_iter)
        late, may_stop = self.max_iter - early, self.tol > 0
        return [
            Stage(early, self.early_exaggeration, MOMENTUM, False),
            Stage(late, self._final_exaggeration(), self._momentum(), may_stop),
        ]

    def _neighbors_of(self, rows: Any, run: FitContext) -> NeighborGraph:
        n = rows.shape[0]
        k = affinity.default_neighbors(self.perplexity, n)
        if self.all_pairs:
            k = n - 1
        if self.n_neighbors is not None:
            k = min(self.n_neighbors, n - 1)
            affinity.check_perplexity(self.perplexity, n, k)
        return self._nearest_rows(rows, k, run)

    def _divergence(self, graph: NeighborGraph, n: int, d: int, run: FitContext) -> Divergence:
        if not self.by_rows:
            P = affinity.joint_affinities(
                graph, self.perplexity, threads=run.threads, dtype=np.float32
            )
            entropy = entropy_of(P.weights)
        else:
            p, _ = affinity.conditional_affinities(
                graph, self.perplexity, threads=run.threads, dtype=np.float32
            )
            starts = np.arange(n + 1, dtype=np.int64) * graph.n_neighbors
            P = affinity.symmetrize_affinities(
                starts, graph.indices.ravel(), p.ravel(), run.threads
            )
            entropy = entropy_of(p)
        repulsion = self._repulsion(n, d, run)
        return Divergence(P, self._dof(), repulsion, entropy, run.threads, by_rows=self.by_rows)

    def _start(self, rows: Any, graph: NeighborGraph, run: FitContext) -> np.ndarray:
        """The initial layout; without rows of features, the graph replaces PCA."""
        n, d = len(graph), int(self.n_components)
        if not isinstance(self.init, str):
            return initial_layout.given_layout(self.init, n, d)
        if self.init == "random":
            return initial_layout.random_layout(n, d, run)
        if self.init == "spectral" or rows is None:
            P = affinity.joint_affinities(graph, self.perplexity, threads=run.threads)
            return initial_layout.spectral_layout(P.to_csr(), d, run)
        return initial_layout.principal_layout(rows, d, run)

    # --- new rows -----------------------------------------------------------------------------

    def _places(self, near: NeighborGraph, run: FitContext) -> np.ndarray:
        wanted = self._perplexity_of_new_rows(near.n_neighbors)
        p, _ = affinity.conditional_affinities(near, wanted, threads=run.threads)
        mean = None if self.by_rows else self.mean_potential_
        frozen = FrozenMap(self.embedding_, self._dof(), mean)
        Y, dof = frozen.Y, frozen.dof
        field = run.prepared("field", (Y,), dof, lambda: map_field(Y, dof, run.threads))
        return place_rows(frozen, near.indices, p, run.threads, field)

    def _perplexity_of_new_rows(self, n_neighbors: int) -> list[float]:
        """The perplexity of the map, or all of them; at most the number of neighbors."""
        several = isinstance(self.perplexity, Sequence | np.ndarray)
        wanted = list(self.perplexity) if several else [self.perplexity]  # type: ignore[arg-type]
        return [min(float(value), float(n_neighbors)) for value in wanted]
