"""Fitted rows and fitted projections: where new rows of one of several tables lie."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from lowland._base import validation
from lowland._base.base import Reducer
from lowland._base.context import FitContext
from lowland._base.errors import DataError, DataTypeError, ParameterError, shown
from lowland._base.models.checks import Ascending, Starts, above, count, index_of
from lowland._base.params import fitted
from lowland._base.threads import resolve_n_jobs
from lowland._engines.graphs.laplacian import weighted_sum
from lowland._engines.graphs.weights import half_length, local_weights
from lowland._engines.linalg import products
from lowland._engines.neighbors.search import neighbor_query
from lowland.methods.alignment._joint_graph import set_of
from lowland.methods.alignment._maps import Projections

# The base of methods on several tables: lists in, lists out, and one table at a time afterwards.
#
# Tables may have different widths, so what a model keeps of them is stacked: rows of the map by
# ``row_starts_``, columns by ``column_starts_``.


class SeveralTables(Reducer):
    """One map of several tables. A method writes ``_fit_tables`` and ``_place``.

    Attributes
    ----------
    n_sets_ : int
        Number of tables.
    row_starts_ : ndarray of shape (n_sets + 1,)
        First row of each table in ``embedding_``, and the number of all rows.
    column_starts_ : ndarray of shape (n_sets + 1,)
        First column of each table among all columns, and their number.
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of all rows, table after table.
    """

    n_sets_: int = fitted(type=int, meaning=count(2))
    row_starts_: np.ndarray = fitted("n_sets + 1", type=int, meaning=Starts("n_samples", True))
    column_starts_: np.ndarray = fitted("n_sets + 1", type=int, meaning=Starts("n_features", True))
    embedding_: np.ndarray = fitted("n_samples", "n_components")

    accepts_sparse = True

    # --- what a method writes -----------------------------------------------------------------

    def _fit_tables(
        self, Xs: list[Any], correspondence: Any, coordinates: Any, run: FitContext
    ) -> np.ndarray:
        """The map of all rows, stacked, in float64; sets the method's other attributes."""
        raise NotImplementedError

    def _place(self, X: Any, d: int, run: FitContext) -> np.ndarray:
        """Places of new rows of table d, each as if it came alone, in float64."""
        raise NotImplementedError

    # --- the protocol -------------------------------------------------------------------------

    def fit(
        self, Xs: Any, y: Any = None, *, correspondence: Any = None, coordinates: Any = None
    ) -> Self:  # type: ignore[override]
        """Put the tables ``Xs`` into one map; ``y`` is ignored.

        Parameters
        ----------
        Xs : list of 2 or more tables
            Arrays, data frames or sparse matrices (n_d, p_d); rows and columns may differ.
        correspondence : integer array of shape (m, n_sets) or None, default=None
            Each row is one object: its row number in each table, or -1 where the table does not
            have it. None: no correspondence is known.
        coordinates : list of arrays (n_d, n_components) or None, default=None
            Known places, one array per table. Rows of NaN are unknown. An entry may be None.
        """
        self.check_params()
        tables = self._check_tables(Xs)
        self._forget()
        self._remember_tables(Xs, tables)
        with self._running() as run:
            wide = tables
            if not all(validation.is_usual(validation.largest_value(X)) for X in tables):
                self.needs_float64_, wide = True, [validation.in_float64(X) for X in tables]
            try:
                Y = self._fit_tables(wide, correspondence, coordinates, run)
                self.embedding_ = np.ascontiguousarray(Y, _float_of(tables))
                if not validation.all_finite(self.embedding_, run.threads):
                    dtype = self.embedding_.dtype
                    raise validation.beyond(type(self).__name__, tables[0], "the map", dtype)
            except BaseException:
                self._forget()  # a model is fitted as a whole or not at all
                raise
        return self

    def fit_transform(
        self, Xs: Any, y: Any = None, *, correspondence: Any = None, coordinates: Any = None
    ) -> list[Any]:  # type: ignore[override]
        """Put the tables into one map; the same as ``fit(Xs, ...)`` and then ``embeddings_``."""
        self.fit(Xs, correspondence=correspondence, coordinates=coordinates)
        return [self._in_container(Y, X) for Y, X in zip(self.embeddings_, Xs, strict=True)]

    def transform(self, X: Any, domain: int = 0) -> Any:  # type: ignore[override]
        """Place rows of table number ``domain``, each as if it came alone. Changes nothing."""
        self._require_fitted()
        d = self._check_domain(domain)
        rows = self._check_rows_of(X, d)

        def place(X: Any, run: FitContext) -> np.ndarray:
            return self._place(X, d, run).astype(_float_of([X]), copy=False)

        with self._running() as run:
            return self._in_container(self._placed(rows, run, place), X)

    @property
    def embeddings_(self) -> list[np.ndarray]:
        """The map of each table."""
        self._require_fitted()
        return np.split(self.embedding_, self.row_starts_[1:-1])

    # --- checks -------------------------------------------------------------------------------

    def _check_tables(self, Xs: Any) -> list[Any]:
        name = type(self).__name__
        if not isinstance(Xs, list | tuple):
            kind = type(Xs).__name__
            raise DataTypeError(f"{name}: Xs is {kind}, expected a list of 2 or more tables.")
        if len(Xs) < 2:
            raise DataError(f"{name}: Xs has {len(Xs)} table(s), expected 2 or more.")
        options: dict[str, Any] = {"owner": name, "accept_sparse": self.accepts_sparse}
        options |= {"min_rows": self.min_rows, "threads": resolve_n_jobs(self.n_jobs)}
        checked = (
            validation.check_matrix(X, argument=f"Xs[{d}]", **options) for d, X in enumerate(Xs)
        )
        return [validation.dense_if_small(X) for X in checked]

    def _remember_tables(self, Xs: Any, tables: list[Any]) -> None:
        heights, widths = zip(*(X.shape for X in tables), strict=True)
        self.n_sets_ = len(tables)
        self.row_starts_ = np.cumsum([0, *heights])
        self.column_starts_ = np.cumsum([0, *widths])
        self.n_features_in_ = int(self.column_starts_[-1])
        names = [validation.column_names(X) for X in Xs]
        if any(found is not None for found in names):
            pairs = zip(names, widths, strict=True)
            filled = [np.full(p, "", object) if own is None else own for own, p in pairs]
            self.feature_names_in_ = np.concatenate(filled)

    def _check_domain(self, domain: Any) -> int:
        whole = isinstance(domain, numbers.Integral) and not isinstance(domain, bool | np.bool_)
        if not whole or not 0 <= int(domain) < self.n_sets_:
            raise ParameterError(
                f"{type(self).__name__}: domain={shown(domain)} is not allowed; expected the "
                f"number of a table, 0 to {self.n_sets_ - 1}."
            )
        return int(domain)

    def _check_rows_of(self, X: Any, d: int) -> Any:
        """New rows of table d, checked against its columns."""
        columns = slice(*self.column_starts_[d : d + 2])
        names = getattr(self, "feature_names_in_", None)
        known = None if names is None or not any(names[columns]) else names[columns]
        owner = f"{type(self).__name__} (domain={d})"
        return self._check_rows(X, owner, known, columns.stop - columns.start)


def _float_of(tables: list[Any]) -> Any:
    """float32 if all tables are, else float64."""
    return np.dtype(np.float32 if all(X.dtype == np.float32 for X in tables) else np.float64)


# The fitted rows of several tables in two arrays, whatever their widths are.
#
# Dense tables follow each other in one vector of values. Sparse ones are the blocks of a matrix
# with the columns of all tables.


class StoredRows(NamedTuple):
    """``values`` of the dense tables; ``blocks`` of the sparse ones, None if there are none."""

    values: np.ndarray
    blocks: Any
    sparse: np.ndarray
    row_starts: np.ndarray
    column_starts: np.ndarray

    @classmethod
    def of(cls, Xs: list[Any], column_starts: np.ndarray) -> StoredRows:
        """The rows of the tables, copied."""
        row_starts = np.cumsum([0, *(X.shape[0] for X in Xs)])
        sparse = np.array([validation.is_sparse(X) for X in Xs])
        dense = [np.ravel(X) for X in Xs if not validation.is_sparse(X)]
        values = np.concatenate(dense) if dense else np.empty(0)
        blocks = None
        if sparse.any():
            parts = [X if validation.is_sparse(X) else scipy.sparse.csr_matrix(X.shape) for X in Xs]
            blocks = scipy.sparse.csr_matrix(scipy.sparse.block_diag(parts, format="csr"))
            blocks.sort_indices()
        return cls(values, blocks, sparse, row_starts, column_starts)

    def flaw(self) -> str | None:
        """What does not fit together; None if all does."""
        expected = int(self._value_starts()[-1])
        if self.values.size != expected:
            return f"{self.values.size} values of dense rows, expected {expected}"
        found = 0 if self.blocks is None else self.blocks.shape[0]
        if self.sparse.any() and found != self.row_starts[-1]:
            return f"{found} sparse rows, expected {self.row_starts[-1]}"
        return None

    def table(self, d: int) -> Any:
        """The rows of table d."""
        rows = slice(*self.row_starts[d : d + 2])
        columns = slice(*self.column_starts[d : d + 2])
        if self.sparse[d]:
            return self.blocks[rows, columns]
        own = slice(*self._value_starts()[d : d + 2])
        return self.values[own].reshape(rows.stop - rows.start, columns.stop - columns.start)

    def _value_starts(self) -> np.ndarray:
        sizes = np.diff(self.row_starts) * np.diff(self.column_starts) * ~self.sparse
        return np.cumsum([0, *sizes])


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
        linear, near = ("projections_", "means_"), ("extensions_", "scales_", "dense_rows_")
        for name in near if self._by_neighbors() else linear:
            if getattr(self, name) is None:
                return f"no {name!r} with level={self.level!r}"  # type: ignore[attr-defined]
        if (np.diff(self._kept_starts()) < 1).any():
            return "a table whose rows are all in 'excluded_'"
        flaw = self._stored().flaw() if self._by_neighbors() else None
        return flaw or super().inconsistency()

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
        k = min(int(self.n_neighbors), len(places))  # type: ignore[attr-defined]
        metric = self._graph_metric()
        links = neighbor_query(
            stored.table(d), X, k, metric=metric, threads=run.threads, monitor=run.monitor
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
        rows = self.dense_rows_, self.sparse_rows_, self.sparse_sets_
        return StoredRows(*rows, self._kept_starts(), self.column_starts_)
