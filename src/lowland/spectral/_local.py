"""What the methods that fit small patches together share: LLE and its relatives.

A method gives the paper's matrix M; neighbors, equal rows, graphs in several pieces, the bottom
eigenvectors, their scale, and places for new rows are the same for all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland._core.base import Invertible, Run
from lowland._core.constraints import Function, Integer, Mapping, Null, OneOf, Real
from lowland._core.errors import DataError, ParameterError
from lowland._core.memory import require_memory
from lowland._core.params import fitted, param
from lowland._engines.bottom import bottom_pairs
from lowland._engines.duplicates import distinct_rows
from lowland._engines.graph import connect
from lowland._engines.isometry import isometric
from lowland._engines.linalg import fix_signs
from lowland._engines.local import Tangents, barycentric, in_chunks, tangents
from lowland._engines.neighbor_choices import METRICS
from lowland._engines.neighbors import neighbor_graph, neighbor_query
from lowland._engines.patches import across_bridges
from lowland._engines.skyline import line_up

__all__ = ["LocalReducer", "Neighborhoods"]

INVERSE_REG = 1e-3


class Neighborhoods(NamedTuple):
    """Different rows in one piece, in double, and the numbers of each one's neighbors (n, k)."""

    points: np.ndarray
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
    rows_: np.ndarray = fitted("n_kept", "n_features", doc="the different rows that M is about")
    row_numbers_: np.ndarray = fitted("n_kept", type=int, doc="their numbers among the fitted rows")

    # --- what a method writes ------------------------------------------------------------------

    def _least_neighbors(self, q: int) -> int:
        """How many neighbors a map of q dimensions takes."""
        raise NotImplementedError

    def _matrix(self, hoods: Neighborhoods, run: Run) -> scipy.sparse.csr_matrix:
        """The paper's M."""
        raise NotImplementedError

    def _weights(self, points: np.ndarray, ids: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Weights (m, k) that make each row of X, and its place, of its neighbors among points."""
        raise NotImplementedError

    # --- fit -----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: Run) -> np.ndarray:
        self._check_choices(X)
        distinct = distinct_rows(X, run.threads, all_sets=True)
        every = np.arange(len(X))
        first, member_of = (every, every) if distinct is None else distinct
        rows = X[first]
        self.n_neighbors_ = max(1, min(int(self.n_neighbors), len(rows) - 1))
        if len(rows) <= max(self._least_neighbors(self.n_components), self.n_components):
            Y, kept = self._one_patch(rows), np.arange(len(rows))
        else:
            Y, kept = self._map(rows, run)
        self.rows_, self.row_numbers_ = rows[kept], first[kept].astype(np.int64)
        places = np.zeros((len(rows), self.n_components), X.dtype)
        places[kept] = Y
        self.embedding_ = places[member_of]
        inside = np.zeros(len(rows), bool)
        inside[kept] = True
        self.excluded_ = np.flatnonzero(~inside[member_of])
        if self.excluded_.size:
            self.embedding_[self.excluded_] = self._place(X[self.excluded_], run)
        return self.embedding_.copy()

    def _check_choices(self, X: np.ndarray) -> None:
        name, q = type(self).__name__, self.n_components
        if self.metric == "precomputed":
            raise ParameterError(
                f"{name}: metric='precomputed' is not possible, because the matrix is made from "
                "the rows themselves; give the rows, or use a method that takes distances."
            )
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

    def _one_patch(self, rows: np.ndarray) -> np.ndarray:
        """Rows too few for more than one patch: what all of these methods make of a single one."""
        q = self.n_components
        found = tangents(rows.astype(np.float64), np.arange(len(rows))[None, :], q)
        self.eigenvalues_, self.residual_, self.n_connected_components_ = np.zeros(q), 0.0, 1
        scale = found.lengths[0] if self.normalize == "isometric" else np.sqrt(len(rows))
        return fix_signs(found.bases[0] * scale)

    def _map(self, rows: np.ndarray, run: Run) -> tuple[np.ndarray, np.ndarray]:
        """Places of the kept ones of different rows, and which are kept."""
        n, k = len(rows), self.n_neighbors_
        require_memory(
            8 * n * (k + 1) * (2 * k + 8),
            task=f"{type(self).__name__} with patches of {k} neighbors for {n} rows",
            alternative="use fewer n_neighbors or fewer rows",
        )
        hoods, kept, along = self._neighborhoods(rows, k, run)
        found = bottom_pairs(
            self._matrix(hoods, run),
            self.n_components,
            tol=self.tol,
            rng=run.rng,
            monitor=run.monitor,
            threads=run.threads,
            along=along,
        )
        self.eigenvalues_, self.residual_ = found.values, found.residual
        Y = found.vectors * np.sqrt(len(kept))
        return (self._isometric(Y, hoods, run) if self.normalize == "isometric" else Y), kept

    def _neighborhoods(
        self, rows: np.ndarray, k: int, run: Run
    ) -> tuple[Neighborhoods, np.ndarray, np.ndarray]:
        """Neighbors in a graph of one piece, the rows kept for it, and their places in a line."""
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
        points = rows[joined.kept].astype(np.float64)
        return Neighborhoods(points, neighbors), joined.kept, line_up(joined.graph)

    def _tangents(self, points: np.ndarray, ids: np.ndarray, run: Run) -> Tangents:
        q, (n, k), p = int(self.n_components), ids.shape, points.shape[1]
        parts = in_chunks(
            lambda rows: tangents(points, ids[rows], q),
            n,
            k * (p + min(k, p) + q),
            run.threads,
            run.monitor,
            "tangents",
        )
        return Tangents(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _isometric(self, Y: np.ndarray, hoods: Neighborhoods, run: Run) -> np.ndarray:
        patches = hoods.with_self
        flat = isometric(Y, self._tangents(hoods.points, patches, run), patches)
        if flat is None:
            raise DataError(
                f"{type(self).__name__}: no neighborhood of the data has n_components="
                f"{self.n_components} dimensions; ask for fewer, or set normalize='orthonormal'."
            )
        return flat

    # --- new rows ------------------------------------------------------------------------------

    def _transform(self, X: Any, run: Run) -> np.ndarray:
        return self._place(X, run).astype(X.dtype, copy=False)

    def _place(self, X: np.ndarray, run: Run) -> np.ndarray:
        """sum_j w_j y_j over each row's neighbors; a fitted row has its place already."""
        rows, places = self.rows_, self.embedding_[self.row_numbers_]
        near = neighbor_query(
            rows,
            X,
            min(self.n_neighbors_, len(rows)),
            metric=self.metric,
            metric_params=self.metric_params,
            threads=run.threads,
            monitor=run.monitor,
        )
        return _mixed(rows, X, places, near.indices, self._weights, run)

    def _inverse_transform(self, Y: np.ndarray, run: Run) -> np.ndarray:
        places = self.embedding_[self.row_numbers_]
        Y = Y.astype(places.dtype)
        k = min(self.n_neighbors_, len(places))
        near = neighbor_query(places, Y, k, threads=run.threads, monitor=run.monitor)

        def weights(points: np.ndarray, ids: np.ndarray, at: np.ndarray) -> np.ndarray:
            return barycentric(points, ids, at, INVERSE_REG)

        return _mixed(places, Y, self.rows_, near.indices, weights, run)


def _mixed(
    points: np.ndarray, X: np.ndarray, values: np.ndarray, ids: np.ndarray, weights: Any, run: Run
) -> np.ndarray:
    """sum_j w_j values_j for each row of X with neighbors ``ids`` among points, whose values are
    given; a row that is one of its neighbors gets that one's value itself."""

    def mix(part: slice) -> np.ndarray:
        near, at = ids[part], X[part]
        w = weights(points, near, at)
        mixed = (w[:, None, :] @ values[near].astype(np.float64))[:, 0]
        same = (points[near] == at[:, None, :]).all(axis=2)
        home = same.any(axis=1)
        mixed = mixed.astype(values.dtype)
        mixed[home] = values[near[home, same[home].argmax(axis=1)]]
        return mixed

    size = ids.shape[1] * (points.shape[1] + values.shape[1] + ids.shape[1])
    parts = in_chunks(mix, len(X), size, run.threads, run.monitor, "places")
    return np.concatenate(parts)
