"""The base of LLE and its relatives, which fit small linear patches together.

A method writes the paper's matrix M (``_matrix``) and the weights of new rows (``_weights``). The
base finds the neighborhoods, merges equal rows, solves the eigenproblem, scales the map and places
new rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from lowland._base.base import Invertible
from lowland._base.constraints import Integer, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError, DataTypeError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import Distinct, count, index_of, some_of
from lowland._base.params import fitted, param
from lowland._base.traits import Estimate
from lowland._base.validation import as_dense, is_sparse
from lowland._engines.distances.dissimilarities import given_dissimilarities
from lowland._engines.distances.distance_rows import check_distances
from lowland._engines.graphs.components import line_up
from lowland._engines.linalg.eigen import all_eigenpairs, fix_signs, smallest_eigenpairs
from lowland._engines.neighbors.duplicates import equal_rows
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import given_neighbors, neighbor_graph_cost, neighbor_query
from lowland._engines.patches.patch_weights import (
    PatchDistances,
    PatchRows,
    Points,
    Tangents,
    across_bridges,
    all_tangents,
    barycentric,
    mixtures,
    tangent_weights,
    tangents,
)
from lowland.methods._bases.graphs import GRAPH_READING, NeighborGraphReducer

# Neighborhoods of the rows in a connected graph: the start of locally linear methods.


class Neighborhoods(NamedTuple):
    """Distinct rows of a connected graph, and the indices of the neighbors of each, (n, k)."""

    points: Points
    neighbors: np.ndarray

    @property
    def with_self(self) -> np.ndarray:
        """Patches of a row and its neighbors, the row first."""
        own = np.arange(len(self.points), dtype=self.neighbors.dtype)
        return np.column_stack([own, self.neighbors])


# The linear change of coordinates that gives a map the scale of the data.
#
# Each patch has coordinates Theta_i in its own tangent plane, in the units of the data, and
# places Y_i in the map. Least squares give Y_i = Theta_i B_i + 1 b_i^T. If the map is an affine
# image of an isometric map, all B_i^T B_i equal one matrix G, and Y G^{-1/2} is isometric.
# Otherwise G is the mean of B_i^T B_i.


ROUND = 0.1  # least ratio of width to length of the patches that G is computed from


def isometric(Y: np.ndarray, tangents: Tangents, ids: np.ndarray) -> np.ndarray | None:
    """Y G^{-1/2}, rotated to its principal axes; None if no patch has as many dimensions as Y.

    ``tangents`` are those of the patches ``ids``. O(n k q^2). Donoho & Grimes (2003) take G from
    one patch, which they suppose to be round. The mean over all patches needs no such assumption
    and averages out noise.
    """
    q = Y.shape[1]
    shortest, longest = tangents.lengths[:, -1], tangents.lengths[:, 0]
    full = shortest > 0
    if not full.any():
        return None
    usual = float(np.median(shortest[full] / longest[full]))
    broad = full & (shortest >= min(ROUND, usual) * longest)
    U, S = tangents.bases[broad], tangents.lengths[broad]
    B = (U.transpose(0, 2, 1) @ Y[ids[broad]]) / S[:, :, None]
    G = np.einsum("nai,naj->ij", B, B) / len(B)
    values, axes = all_eigenpairs(G)
    values = np.maximum(values, 1e-15 * values[0])
    flat = Y @ (axes / np.sqrt(values)) @ axes.T
    flat = flat - flat.mean(axis=0)
    turn = all_eigenpairs(np.einsum("ni,nj->ij", flat, flat)).vectors
    return fix_signs(flat @ turn).reshape(-1, q)


INVERSE_REG = 1e-3  # ridge of the weights of inverse_transform, relative to the trace


class LocallyLinearReducer(NeighborGraphReducer, Invertible):
    """min tr(Y^T M Y) over centered Y with Y^T Y = n I, where M is a sum over patches.

    Parameters
    ----------
    n_neighbors : int, default=12
        Number of neighbors of each row. It should exceed the dimension of the surface and be so
        small that a neighborhood is nearly flat. With fewer other rows, all of them are used.
    normalize : {"orthonormal", "isometric"}, default="orthonormal"
        Scale of the map. "orthonormal" gives every coordinate the variance 1, as in the paper.
        "isometric" stretches the map so that patches have, on average, the size and shape that
        they have in the data.
    metric : str or function, default="euclidean"
        Distance that finds the neighbors: a name, a function of two rows, or "precomputed".
        Weights and tangent planes are always Euclidean. With "precomputed", X holds the n x n
        distances of the fitted rows, and new rows are given by their distances to the fitted rows.
    on_disconnected : {"bridge", "largest", "raise"}, default="bridge"
        What to do when the neighbor graph has several connected components. "bridge" gives the
        rows at the shortest edges between components neighbors from both sides. "largest" maps
        the largest component and places the other rows like new rows. "raise" refuses.
    tol : float, default=0.0001
        Largest relative residual of the eigenvectors that gives no warning.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of M, smallest first, without that of the constant vector.
    n_neighbors_ : int
        Number of neighbors in use.
    excluded_ : ndarray of shape (n_excluded,)
        Indices of the rows excluded from the fit by ``on_disconnected="largest"``.
    fitted_rows_ : ndarray of shape (n_kept, n_features)
        Distinct rows that M is made of, or their distances to all fitted rows.
    fitted_row_indices_ : ndarray of shape (n_kept,)
        Indices of ``fitted_rows_`` among the rows of X.
    """

    n_neighbors: int = param(Integer(1), default=12)
    normalize: str = param(OneOf("orthonormal", "isometric"), default="orthonormal")
    tol: float = param(Real(0), default=1e-4)

    embedding_: np.ndarray = fitted("n_samples", "n_components")
    eigenvalues_: np.ndarray = fitted("n_components")
    residual_: float = fitted()
    n_neighbors_: int = fitted(type=int, meaning=count(1, "n_samples"))
    excluded_: np.ndarray = fitted(
        "n_excluded", type=int, may_be_empty=True, meaning=some_of("n_samples")
    )
    fitted_rows_: np.ndarray = fitted("n_kept", "n_features")
    fitted_row_indices_: np.ndarray = fitted(
        "n_kept", type=int, meaning=(index_of("n_samples"), Distinct())
    )

    accepts_distances = True
    reading = GRAPH_READING._replace(
        sizes="Sizes and densities are set by the method, not by the data: each axis has the same "
        "variance.",
        scale="Each axis has unit variance by default, whatever the scale of the data.",
    )

    seconds_per_row: ClassVar[float] = 6e-5  # of the patches and the eigenproblem
    bytes_per_row: ClassVar[int] = 8000

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        search = neighbor_graph_cost(n, p, 12)
        n_bytes = n * (16 * p + cls.bytes_per_row)
        return Estimate(search.seconds + cls.seconds_per_row * n, n_bytes)

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: ``fitted_rows_`` may hold distances."""
        n, p = len(self.embedding_), self.n_features_in_
        if self._has_distances and n != p:
            return f"{n} fitted rows, but distances to {p}"
        return super().inconsistency()

    # --- what a method writes ------------------------------------------------------------------

    def _least_neighbors(self, q: int) -> int:
        """The number of neighbors that a map of q dimensions needs at least."""
        raise NotImplementedError

    def _matrix(self, neighborhoods: Neighborhoods, run: FitContext) -> scipy.sparse.csr_matrix:
        """The paper's matrix M."""
        raise NotImplementedError

    def _weights(self, points: Points, ids: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Weights (m, k) of the neighbors ``ids`` that reproduce each row of X, and its place."""
        return tangent_weights(points, ids, X, int(self.n_components))

    # --- input ---------------------------------------------------------------------------------

    def _check_training_rows(self, X: Any) -> Any:
        self._refuse_graphs(X)
        checked = super()._check_training_rows(X)
        if is_sparse(checked):
            raise DataTypeError(
                f"Sparse data was passed as X, but {type(self).__name__} needs dense data, and "
                f"{X.shape[0]} x {X.shape[1]} would be large; reduce it by PCA first, or use "
                "X.toarray() if that fits in memory."
            )
        return checked

    def _check_distances(self, D: np.ndarray) -> None:
        name = type(self).__name__
        task = f"{name} with copies of the distances of {len(D)} rows"
        # one copy during the check, and one that new rows are placed with
        require_memory(2 * D.nbytes, task=task, alternative="fit on fewer rows")
        given_dissimilarities(D, owner=name, allow_missing=False)

    def _check_new_rows(self, X: Any) -> Any:
        self._refuse_graphs(X)
        checked = super()._check_new_rows(X)
        if self._has_distances:
            check_distances(checked, "X", square=False)
        return as_dense(checked, type(self).__name__)

    def _refuse_graphs(self, X: Any) -> None:
        if isinstance(X, NeighborGraph) or (self._has_distances and is_sparse(X)):
            raise DataTypeError(
                f"{type(self).__name__}: X is a graph or a sparse matrix of distances, but the "
                "distances between the neighbors of a row are needed as well; give the rows, or "
                "with metric='precomputed' a dense matrix of all distances."
            )

    def _points(self, rows: np.ndarray, indices: np.ndarray) -> Points:
        """Fitted rows with these indices, as patches take them."""
        return PatchDistances(rows, indices) if self._has_distances else PatchRows(rows)

    # --- fit -----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        self._check_sizes(X)
        equal, every = equal_rows(X, run.threads), np.arange(len(X))
        first, group = (every, every) if equal is None else equal
        points = self._points(X[first], first)
        self.n_neighbors_ = max(1, min(int(self.n_neighbors), len(points) - 1))
        if len(points) <= max(self._least_neighbors(self.n_components), self.n_components):
            Y, kept = self._tangent_plane(points), np.arange(len(points))
        else:
            Y, kept = self._map(points, run)
        self.fitted_rows_ = points.take(kept).rows
        self.fitted_row_indices_ = first[kept].astype(np.int64)
        places = np.zeros((len(points), self.n_components), X.dtype)
        places[kept] = Y
        self.embedding_ = places[group]
        self.excluded_ = np.flatnonzero(~np.isin(group, kept))
        if self.excluded_.size:
            self.embedding_[self.excluded_] = self._place(X[self.excluded_], run)
        return self.embedding_.copy()

    def _check_sizes(self, X: np.ndarray) -> None:
        name, q = type(self).__name__, self.n_components
        self._check_not_beyond_rows(len(X))
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

    def _tangent_plane(self, points: Points) -> np.ndarray:
        """The map if there are too few rows for more than one patch: its tangent plane."""
        q = int(self.n_components)
        found = tangents(points, np.arange(len(points))[None, :], q)
        self.eigenvalues_, self.residual_, self.n_connected_components_ = np.zeros(q), 0.0, 1
        scale = found.lengths[0] if self.normalize == "isometric" else np.sqrt(len(points))
        return fix_signs(found.bases[0] * scale)

    def _map(self, points: Points, run: FitContext) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the kept rows among distinct rows, and the indices of the kept rows."""
        n, k = len(points), self.n_neighbors_
        require_memory(
            8 * n * (k + 1) * (2 * k + 8),
            task=f"{type(self).__name__} with patches of {k} neighbors for {n} rows",
            alternative="use fewer n_neighbors or fewer rows",
        )
        neighborhoods, kept, ordering = self._neighborhoods(points, k, run)
        found = smallest_eigenpairs(
            self._matrix(neighborhoods, run),
            self.n_components,
            run,
            tol=self.tol,
            ordering=ordering,
            trivial=np.ones(len(kept)),
        )
        self.eigenvalues_, self.residual_ = found.values, found.residual
        Y = found.vectors * np.sqrt(len(kept))
        if self.normalize == "isometric":
            patches, q = neighborhoods.with_self, int(self.n_components)
            found = all_tangents(neighborhoods.points, patches, q, run.threads, run.monitor)
            Y = isometric(Y, found, patches)
            if Y is None:
                raise DataError(
                    f"{type(self).__name__}: no neighborhood of the data has n_components={q} "
                    "dimensions; ask for fewer, or set normalize='orthonormal'."
                )
        return Y, kept

    def _neighborhoods(
        self, points: Points, k: int, run: FitContext
    ) -> tuple[Neighborhoods, np.ndarray, np.ndarray]:
        """Neighborhoods in a connected graph, its rows, and an ordering along the graph.

        Rows at the ends of an added edge get neighbors from both sides of it. Kept rows have kept
        neighbors only, since they form a connected component.
        """
        X = points.searched(points.rows)
        graph = self._neighbors(X, k, run)
        connected = self._connect(graph.to_csr(), X, run)
        neighbors, kept = graph.indices.astype(np.int32), connected.kept
        if len(connected.added.rows):
            neighbors = across_bridges(neighbors, connected.added)
        if len(kept) < len(points):
            new_index = np.full(len(points), -1, np.int32)
            new_index[kept] = np.arange(len(kept))
            neighbors = new_index[neighbors[kept]]
        return Neighborhoods(points.take(kept), neighbors), kept, line_up(connected.graph)

    # --- new rows ------------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return self._place(X, run).astype(X.dtype, copy=False)

    def _place(self, X: np.ndarray, run: FitContext) -> np.ndarray:
        """sum_j w_j y_j over the neighbors of each row; a fitted row keeps its place."""
        points = self._points(self.fitted_rows_, self.fitted_row_indices_)
        rows, new, k = points.searched(points.rows), points.searched(X), self.n_neighbors_
        k = min(k, len(points))
        if self._has_distances:
            near = given_neighbors(new, k, monitor=run.monitor)
        else:
            near = self._nearest_of(rows, new, k, run, self._graph_metric)
        places = self.embedding_[self.fitted_row_indices_]
        return mixtures(points, X, places, near.indices, self._weights, run.threads, run.monitor)

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        """sum_j w_j x_j over the neighbors of each point in the map, with LLE's weights."""
        if self._has_distances:
            raise ParameterError(
                f"{type(self).__name__}: inverse_transform is not possible with metric="
                "'precomputed', because there are no rows to combine; fit on the rows themselves."
            )
        places = self.embedding_[self.fitted_row_indices_]
        Y = Y.astype(places.dtype)
        k = min(self.n_neighbors_, len(places))
        near = neighbor_query(places, Y, k, threads=run.threads, monitor=run.monitor)
        weights = partial(barycentric, reg=INVERSE_REG)
        points, rows = PatchRows(places), self.fitted_rows_
        return mixtures(points, Y, rows, near.indices, weights, run.threads, run.monitor)


# What maps mean whose scale is that of the data.
ISOMETRIC_READING = LocallyLinearReducer.reading._replace(
    distances="Distances within a neighborhood are those of the data. Long distances are "
    "distances along the surface only if the surface is bent but not stretched.",
    sizes="The size of a group is its size along the surface, as far as the map is isometric.",
    scale="The axes have the unit of the data by default (normalize='isometric').",
)
