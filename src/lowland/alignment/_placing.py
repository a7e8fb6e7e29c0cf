"""Fitted rows and fitted projections: where new rows of one of several tables lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.context import FitContext
from lowland._core.meanings.contents import Ascending, above, index_of
from lowland._core.params import fitted
from lowland._engines.graphs.nystrom import weighted_sum
from lowland._engines.graphs.weights import half_length, local_weights
from lowland._engines.linalg import products
from lowland._engines.neighbors.search import neighbor_query
from lowland.alignment._base import SeveralTables
from lowland.alignment._matches import set_of
from lowland.alignment._projections import Projections
from lowland.alignment._stored_rows import StoredRows


class PlacedTables(SeveralTables):
    """New rows by a matrix if there is one, else by the neighbors among the fitted rows.

    Attributes
    ----------
    excluded_ : ndarray of shape (n_excluded,)
        Stacked numbers of the rows excluded from the fit by ``on_disconnected="largest"``.
    centers_ : ndarray of shape (n_sets, n_components)
        Place b of each table that formulas for new rows refer to.
    projections_ : ndarray of shape (n_features, n_components) or None
        Matrix V of the columns of all tables: z = (x - m) V + b. None for ``level="instance"``.
    means_ : ndarray of shape (n_features,) or None
        m of the columns of all tables.
    extensions_ : ndarray of shape (n_sets, n_components, n_components) or None
        Matrix E of each table: z = (mean of the neighbors - b) E + b. None for other levels.
    scales_ : ndarray of shape (n_kept,) or None
        Local scale of each fitted row.
    dense_rows_ : ndarray of shape (n_values,) or None
        Fitted rows of the dense tables, one after the other.
    sparse_rows_ : sparse matrix of shape (n_kept, n_features) or None
        Fitted rows of the sparse tables, as blocks.
    sparse_sets_ : ndarray of shape (n_sets,)
        Whether the fitted rows of each table are sparse.
    """

    excluded_: np.ndarray = fitted(
        "n_excluded",
        type=int,
        may_be_empty=True,
        meaning=(index_of("n_samples"), Ascending(strict=True)),
    )
    centers_: np.ndarray = fitted("n_sets", "n_components")
    projections_: np.ndarray | None = fitted("n_features", "n_components", optional=True)
    means_: np.ndarray | None = fitted("n_features", optional=True)
    extensions_: np.ndarray | None = fitted("n_sets", "n_components", "n_components", optional=True)
    scales_: np.ndarray | None = fitted("n_kept", optional=True, meaning=above(0))
    dense_rows_: np.ndarray | None = fitted("n_values", optional=True, may_be_empty=True)
    sparse_rows_: Any = fitted("n_kept", "n_features", optional=True, sparse=True)
    sparse_sets_: np.ndarray = fitted("n_sets", type=bool)

    size_rules = {"n_samples": "n_kept + n_excluded"}

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: a matrix, or rows that fit the starts."""
        flaw = super().inconsistency()
        if flaw is not None:
            return flaw
        linear, near = ("projections_", "means_"), ("extensions_", "scales_", "dense_rows_")
        needed, others = (near, linear) if self._by_neighbors() else (linear, near)
        for name in needed:
            if getattr(self, name) is None:
                return f"no {name!r} with level={self.level!r}"  # type: ignore[attr-defined]
        for name in (*others, *(() if self._by_neighbors() else ("sparse_rows_",))):
            if getattr(self, name) is not None:
                return f"{name!r} with level={self.level!r}"  # type: ignore[attr-defined]
        if (np.diff(self._kept_starts()) < 1).any():
            return "a table whose rows are all in 'excluded_'"
        return self._stored().flaw() if self._by_neighbors() else None

    def _by_neighbors(self) -> bool:
        """Whether new rows are placed by their neighbors; else by a matrix."""
        raise NotImplementedError

    # --- what a fit keeps ---------------------------------------------------------------------

    def _keep_projections(self, found: Projections) -> None:
        self.means_, self.projections_, self.centers_ = found
        self.extensions_ = self.scales_ = self.dense_rows_ = self.sparse_rows_ = None
        self.sparse_sets_ = np.zeros(self.n_sets_, bool)

    def _keep_rows(
        self, own: list[Any], scales: np.ndarray, extensions: np.ndarray, centers: np.ndarray
    ) -> None:
        stored = StoredRows.of(own, self.column_starts_)
        self.dense_rows_, self.sparse_rows_ = stored.values, stored.blocks
        self.sparse_sets_, self.scales_ = stored.sparse, scales
        self.extensions_, self.centers_ = extensions, centers
        self.projections_ = self.means_ = None

    def _kept_rows(self, Xs: list[Any], kept: np.ndarray) -> list[Any]:
        """The rows of each table that make the map; sets which do not."""
        self.excluded_ = np.setdiff1d(np.arange(self.row_starts_[-1]), kept)
        if not self.excluded_.size:
            return Xs
        tables = set_of(kept, self.row_starts_)
        return [X[kept[tables == d] - self.row_starts_[d]] for d, X in enumerate(Xs)]

    def _with_excluded(self, Y: np.ndarray, Xs: list[Any], run: FitContext) -> np.ndarray:
        """The map of all rows; the excluded rows are placed like new rows."""
        self.embedding_ = np.zeros((int(self.row_starts_[-1]), Y.shape[1]))
        self.embedding_[self._kept()] = Y
        tables = set_of(self.excluded_, self.row_starts_)
        for d in np.unique(tables):
            rows = self.excluded_[tables == d]
            own = Xs[d][rows - self.row_starts_[d]]
            self.embedding_[rows] = self._place(own, int(d), run)
        return self.embedding_

    # --- new rows -----------------------------------------------------------------------------

    def _place(self, X: Any, d: int, run: FitContext) -> np.ndarray:
        if self._by_neighbors():
            return self._place_by_neighbors(X, d, run)
        columns = slice(*self.column_starts_[d : d + 2])
        Z = products.times(X, self.means_[columns], self.projections_[columns], run.threads)  # type: ignore[index]
        return Z + self.centers_[d]

    def _place_by_neighbors(self, X: Any, d: int, run: FitContext) -> np.ndarray:
        """Nystroem's formula on the weighted mean of the nearest fitted rows of the table."""
        stored = self._stored()
        rows = slice(*stored.row_starts[d : d + 2])
        places = self.embedding_[self._kept()[rows]].astype(np.float64)
        links = neighbor_query(
            stored.table(d),
            X,
            min(int(self.n_neighbors), len(places)),  # type: ignore[attr-defined]
            metric=self._graph_metric(),
            threads=run.threads,
            monitor=run.monitor,
        )
        own = half_length(links.distances.max(axis=1, keepdims=True))
        w = local_weights(links.distances, own, self.scales_[rows][links.indices])  # type: ignore[index]
        p = w / w.sum(axis=1, keepdims=True)
        center = self.centers_[d]
        mean = weighted_sum(p, links.indices, places) - center
        Z = np.einsum("nq,qr->nr", mean, self.extensions_[d]) + center  # type: ignore[index]
        equal = links.distances[:, 0] == 0
        Z[equal] = places[links.indices[equal, 0]]
        return Z

    def _graph_metric(self) -> str:
        """The metric of the edges: their lengths are distances, never squared distances."""
        metric: str = self.metric  # type: ignore[attr-defined]
        return "euclidean" if metric == "sqeuclidean" else metric

    def _kept(self) -> np.ndarray:
        return np.setdiff1d(np.arange(self.row_starts_[-1]), self.excluded_)

    def _kept_starts(self) -> np.ndarray:
        outside = np.bincount(set_of(self.excluded_, self.row_starts_), minlength=self.n_sets_)
        return np.cumsum([0, *(np.diff(self.row_starts_) - outside)])

    def _stored(self) -> StoredRows:
        assert self.dense_rows_ is not None
        return StoredRows(
            self.dense_rows_,
            self.sparse_rows_,
            self.sparse_sets_,
            self._kept_starts(),
            self.column_starts_,
        )
