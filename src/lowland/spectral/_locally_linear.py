"""What the methods that fit small patches together share: LLE and its relatives.

A method gives the paper's matrix M; neighbors, equal rows, graphs in several pieces, the bottom
eigenvectors, their scale, and places for new rows are the same for all.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland._core.base import Invertible
from lowland._core.constraints import Function, Integer, Mapping, Null, OneOf, Real
from lowland._core.context import FitContext
from lowland._core.errors import DataError, DataTypeError, ParameterError
from lowland._core.memory import require_memory
from lowland._core.params import fitted, param
from lowland._core.traits import Reading
from lowland._core.validation import as_dense, dense_if_small, is_sparse
from lowland._engines.distances.dissimilarities import given_dissimilarities
from lowland._engines.distances.metrics import METRICS
from lowland._engines.distances.precomputed import check_distances
from lowland._engines.graphs.components import connect
from lowland._engines.linalg.eigen import fix_signs, smallest_eigenpairs
from lowland._engines.linalg.magnitude import check_fits
from lowland._engines.linalg.skyline import line_up
from lowland._engines.neighbors.duplicates import equal_rows
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph, neighbor_query
from lowland._engines.patches.patch_points import PatchDistances, PatchRows, Points
from lowland._engines.patches.patch_sums import across_bridges
from lowland._engines.patches.patch_weights import all_tangents, barycentric, mixtures, tangents
from lowland.spectral._isometry import isometric

__all__ = ["LocalReducer", "Neighborhoods"]

INVERSE_REG = 1e-3


class Neighborhoods(NamedTuple):
    """Different rows in one piece, and the numbers of each one's neighbors (n, k)."""

    points: Points
    neighbors: np.ndarray

    @property
    def with_self(self) -> np.ndarray:
        """Patches of a row and its neighbors, the row first."""
        own = np.arange(len(self.points), dtype=self.neighbors.dtype)
        return np.column_stack([own, self.neighbors])


class LocalReducer(Invertible):
    """min tr(Y^T M Y) over centered Y with Y^T Y = n I: M = sum of what each patch demands."""

    n_neighbors: int = param(Integer(1), default=12, doc="neighbors per row; at most all others")
    normalize: str = param(
        OneOf("orthonormal", "isometric"),
        default="orthonormal",
        doc="unit variance in all coordinates, or the scale of the data",
    )
    metric: Any = param(
        OneOf(*METRICS) | Function(), default="euclidean", doc="distance that finds neighbors"
    )
    metric_params: dict[str, Any] | None = param(
        Null() | Mapping(), default=None, doc="parameters of the metric"
    )
    on_disconnected: str = param(
        OneOf("bridge", "largest", "raise"),
        default="bridge",
        doc="what to do when the neighbor graph is in several pieces",
    )
    tol: float = param(Real(0), default=1e-4, doc="relative residual of eigenvectors to warn above")

    embedding_: np.ndarray = fitted("n_samples", "n_components", doc="the map of the fitted rows")
    eigenvalues_: np.ndarray = fitted("n_components", doc="of M, without that of the constant")
    residual_: float = fitted(doc="largest relative residual of the eigenpairs")
    n_neighbors_: int = fitted(type=int, doc="neighbors per row in use")
    n_connected_components_: int = fitted(type=int, doc="pieces of the neighbor graph")
    excluded_: np.ndarray = fitted(
        "n_excluded", type=int, doc="rows outside the largest piece, placed like new rows"
    )
    rows_: np.ndarray = fitted(
        "n_kept",
        "n_features",
        doc="the different rows that M is about, or their distances to all fitted rows",
    )
    row_numbers_: np.ndarray = fitted("n_kept", type=int, doc="their numbers among the fitted rows")

    accepts_sparse = True
    accepts_distances = True
    reading = Reading(
        axes="The axes have no meaning of their own beyond their order.",
        distances="The map unfolds a graph of nearest neighbors. A path through the points has a "
        "meaning; the straight line across an empty region has none.",
        gaps="A few wrong edges of the graph can close a gap, fold the map or make a spike. "
        "Compare "
        "with another number of neighbors.",
        sizes="Sizes and densities are set by the method, not by the data: each axis has the same "
        "variance.",
        scale="Each axis has unit variance by default, whatever the scale of the data.",
    )

    # --- what a method writes ------------------------------------------------------------------

    def _least_neighbors(self, q: int) -> int:
        """How many neighbors a map of q dimensions takes."""
        raise NotImplementedError

    def _matrix(self, hoods: Neighborhoods, run: FitContext) -> scipy.sparse.csr_matrix:
        """The paper's M."""
        raise NotImplementedError

    def _weights(self, points: Points, ids: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Weights (m, k) that make each row of X, and its place, of its neighbors among points."""
        raise NotImplementedError

    # --- what comes in -------------------------------------------------------------------------

    @property
    def _given(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _check_training_rows(self, X: Any) -> Any:
        self._refuse_graphs(X)
        checked = dense_if_small(super()._check_training_rows(X))
        if is_sparse(checked):
            raise DataTypeError(
                f"Sparse data was passed as X, but {type(self).__name__} needs dense data, and "
                f"{X.shape[0]} x {X.shape[1]} would be large; reduce it by PCA first, or use "
                "X.toarray() if that fits in memory."
            )
        if self._given:
            name = type(self).__name__
            task = f"{name} with copies of the distances of {len(checked)} rows"
            # one copy while they are checked, one that new rows are placed by
            require_memory(2 * checked.nbytes, task=task, alternative="fit on fewer rows")
            given_dissimilarities(checked, owner=name, allow_missing=False)
        return checked

    def _check_new_rows(self, X: Any) -> Any:
        self._refuse_graphs(X)
        checked = super()._check_new_rows(X)
        if self._given:
            check_distances(checked, "X", square=False)
        return as_dense(checked, type(self).__name__)

    def _refuse_graphs(self, X: Any) -> None:
        if isinstance(X, NeighborGraph) or (self._given and is_sparse(X)):
            raise DataTypeError(
                f"{type(self).__name__}: a graph or a sparse matrix of distances is not enough, "
                "because the distances of a row's neighbors from each other are needed, too; give "
                "the rows, or with metric='precomputed' a dense matrix of all distances."
            )

    def _points(self, rows: np.ndarray, numbers: np.ndarray) -> Points:
        """Fitted rows of these numbers as patches take them."""
        return PatchDistances(rows, numbers) if self._given else PatchRows(rows)

    # --- fit -----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        self._check_choices(X)
        equal = equal_rows(X, run.threads)
        every = np.arange(len(X))
        first, member_of = (every, every) if equal is None else equal
        points = self._points(X[first], first)
        self.n_neighbors_ = max(1, min(int(self.n_neighbors), len(points) - 1))
        if len(points) <= max(self._least_neighbors(self.n_components), self.n_components):
            Y, kept = self._one_patch(points), np.arange(len(points))
        else:
            Y, kept = self._map(points, run)
        self.rows_, self.row_numbers_ = points.take(kept).rows, first[kept].astype(np.int64)
        check_fits(Y, X.dtype, type(self).__name__)
        places = np.zeros((len(points), self.n_components), X.dtype)
        places[kept] = Y
        self.embedding_ = places[member_of]
        inside = np.zeros(len(points), bool)
        inside[kept] = True
        self.excluded_ = np.flatnonzero(~inside[member_of])
        if self.excluded_.size:
            self.embedding_[self.excluded_] = self._place(X[self.excluded_], run)
        return self.embedding_.copy()

    def _check_choices(self, X: np.ndarray) -> None:
        name, q = type(self).__name__, self.n_components
        if q > len(X):
            raise ParameterError(f"{name}: n_components={q} is more than n_samples={len(X)}.")
        least = self._least_neighbors(q)
        if self.n_neighbors < least:
            raise ParameterError(
                f"{name}: n_neighbors={self.n_neighbors} is too few for n_components={q}, which "
                f"needs at least {least}."
            )
        if self.normalize == "isometric" and X.shape[1] < q:
            raise ParameterError(
                f"{name}: normalize='isometric' has no map of n_components={q} for data of fewer "
                f"columns (n_features={X.shape[1]}); ask for fewer components, or set "
                "normalize='orthonormal'."
            )

    def _one_patch(self, points: Points) -> np.ndarray:
        """Rows too few for more than one patch: what all of these methods make of a single one."""
        q = self.n_components
        found = tangents(points, np.arange(len(points))[None, :], q)
        self.eigenvalues_, self.residual_, self.n_connected_components_ = np.zeros(q), 0.0, 1
        scale = found.lengths[0] if self.normalize == "isometric" else np.sqrt(len(points))
        return fix_signs(found.bases[0] * scale)

    def _map(self, points: Points, run: FitContext) -> tuple[np.ndarray, np.ndarray]:
        """Places of the kept ones of different rows, and which are kept."""
        n, k = len(points), self.n_neighbors_
        require_memory(
            8 * n * (k + 1) * (2 * k + 8),
            task=f"{type(self).__name__} with patches of {k} neighbors for {n} rows",
            alternative="use fewer n_neighbors or fewer rows",
        )
        hoods, kept, along = self._neighborhoods(points, k, run)
        found = smallest_eigenpairs(
            self._matrix(hoods, run),
            self.n_components,
            tol=self.tol,
            rng=run.rng,
            monitor=run.monitor,
            threads=run.threads,
            ordering=along,
            trivial=np.ones(len(kept)),
        )
        self.eigenvalues_, self.residual_ = found.values, found.residual
        Y = found.vectors * np.sqrt(len(kept))
        return (self._isometric(Y, hoods, run) if self.normalize == "isometric" else Y), kept

    def _neighborhoods(
        self, points: Points, k: int, run: FitContext
    ) -> tuple[Neighborhoods, np.ndarray, np.ndarray]:
        """Neighbors in a graph of one piece, the rows kept for it, and their places in a line."""
        rows = points.searched(points.rows)
        shared = {"metric": self.metric, "metric_params": self.metric_params}
        graph = neighbor_graph(
            rows, k, threads=run.threads, rng=run.rng, monitor=run.monitor, **shared
        )
        joined = connect(
            graph.to_csr(),
            rows,
            self.on_disconnected,  # type: ignore[arg-type]
            threads=run.threads,
            monitor=run.monitor,
            **shared,
        )
        self.n_connected_components_ = joined.n_components
        neighbors = graph.indices.astype(np.int32)
        if len(joined.added.rows):
            neighbors = across_bridges(neighbors, joined.added)
        if len(joined.kept) < len(rows):
            number = np.full(len(rows), -1, np.int32)
            number[joined.kept] = np.arange(len(joined.kept))
            neighbors = number[neighbors[joined.kept]]
        points = points.take(joined.kept)
        return Neighborhoods(points, neighbors), joined.kept, line_up(joined.graph)

    def _isometric(self, Y: np.ndarray, hoods: Neighborhoods, run: FitContext) -> np.ndarray:
        patches, q = hoods.with_self, int(self.n_components)
        found = all_tangents(hoods.points, patches, q, run.threads, run.monitor)
        flat = isometric(Y, found, patches)
        if flat is None:
            raise DataError(
                f"{type(self).__name__}: no neighborhood of the data has n_components="
                f"{q} dimensions; ask for fewer, or set normalize='orthonormal'."
            )
        return flat

    # --- new rows ------------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return self._place(X, run).astype(X.dtype, copy=False)

    def _place(self, X: np.ndarray, run: FitContext) -> np.ndarray:
        """sum_j w_j y_j over each row's neighbors; a fitted row has its place already."""
        points = self._points(self.rows_, self.row_numbers_)
        near = neighbor_query(
            points.searched(points.rows),
            points.searched(X),
            min(self.n_neighbors_, len(points)),
            metric=self.metric,
            metric_params=self.metric_params,
            threads=run.threads,
            monitor=run.monitor,
        )
        places = self.embedding_[self.row_numbers_]
        return mixtures(points, X, places, near.indices, self._weights, run.threads, run.monitor)

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        if self._given:
            raise ParameterError(
                f"{type(self).__name__}: inverse_transform is not possible with metric="
                "'precomputed', because there are no rows to mix; fit on the rows themselves."
            )
        places = self.embedding_[self.row_numbers_]
        Y = Y.astype(places.dtype)
        k = min(self.n_neighbors_, len(places))
        near = neighbor_query(places, Y, k, threads=run.threads, monitor=run.monitor)

        weights = partial(barycentric, reg=INVERSE_REG)
        return mixtures(
            PatchRows(places), Y, self.rows_, near.indices, weights, run.threads, run.monitor
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._given
        return tags
