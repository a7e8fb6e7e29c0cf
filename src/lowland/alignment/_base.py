"""The base of methods on several tables: lists in, lists out, and one table at a time afterwards.

Tables may have different widths, so what a model keeps of them is stacked: rows of the map by
``row_starts_``, columns by ``column_starts_``.
"""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np

from lowland._core.base import Reducer
from lowland._core.columns import check_columns, check_same_columns, column_names
from lowland._core.context import FitContext
from lowland._core.errors import DataError, DataTypeError, ParameterError
from lowland._core.meanings.contents import Interval, Starts, count
from lowland._core.params import fitted
from lowland._core.threads import resolve_n_jobs
from lowland._core.units import beyond, exponent_for, in_unit, largest_value
from lowland._core.validation import all_finite, check_matrix, dense_if_small, is_sparse
from lowland._core.wording import shown

LARGEST_EXPONENT = 1100  # of two; the largest float64 is below 2^1024


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
    unit_exponents_ : ndarray of shape (n_sets,)
        Exponent e of each table: its rows were multiplied by 2^e before the fit. 0 unless the
        largest value is above 1e9 or below 1e-9.
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of all rows, table after table.
    """

    n_sets_: int = fitted(type=int, meaning=count(2))
    row_starts_: np.ndarray = fitted("n_sets + 1", type=int, meaning=Starts("n_samples"))
    column_starts_: np.ndarray = fitted("n_sets + 1", type=int, meaning=Starts("n_features"))
    unit_exponents_: np.ndarray = fitted(
        "n_sets",
        type=int,
        meaning=Interval(-LARGEST_EXPONENT, LARGEST_EXPONENT, what="an exponent"),
    )
    embedding_: np.ndarray = fitted("n_samples", "n_components")

    accepts_sparse = True

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: no table is without rows or columns."""
        for name in ("row_starts_", "column_starts_"):
            if (np.diff(getattr(self, name)) < 1).any():
                return f"a table without rows or columns in {name!r}"
        return super().inconsistency()

    # --- what a method writes -----------------------------------------------------------------

    def _fit_tables(
        self, Xs: list[Any], correspondence: Any, coordinates: Any, run: FitContext
    ) -> np.ndarray:
        """The map of all rows, stacked, in float64; sets the method's other attributes."""
        raise NotImplementedError

    def _place(self, X: Any, d: int, run: FitContext) -> np.ndarray:
        """Places of new rows of table d, each as if it came alone, in float64."""
        raise NotImplementedError

    def _may_rescale(self) -> bool:
        """Whether extreme tables may be fitted in another unit."""
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
        self._fit_list(Xs, correspondence, coordinates)
        return self

    def fit_transform(
        self, Xs: Any, y: Any = None, *, correspondence: Any = None, coordinates: Any = None
    ) -> list[Any]:  # type: ignore[override]
        """Put the tables into one map; the same as ``fit(Xs, ...)`` and then ``embeddings_``."""
        self._fit_list(Xs, correspondence, coordinates)
        return [self._in_container(Y, X) for Y, X in zip(self.embeddings_, Xs, strict=True)]

    def transform(self, X: Any, domain: int = 0) -> Any:  # type: ignore[override]
        """Place rows of table number ``domain``, each as if it came alone. Changes nothing."""
        self._require_fitted()
        d = self._check_domain(domain)
        rows = self._check_rows_of(X, d)
        with self._running() as run, np.errstate(over="ignore", invalid="ignore"):
            moved = in_unit(rows, int(self.unit_exponents_[d]))
            self._refuse_infinite(moved.data if is_sparse(moved) else moved, X=rows, run=run)
            Z = self._place(moved, d, run).astype(_float_of([rows]), copy=False)
            self._refuse_infinite(Z, X=rows, run=run)
        return self._in_container(Z, X)

    @property
    def embeddings_(self) -> list[np.ndarray]:
        """The map of each table."""
        self._require_fitted()
        return np.split(self.embedding_, self.row_starts_[1:-1])

    def _fit_list(self, Xs: Any, correspondence: Any, coordinates: Any) -> None:
        self.check_params()
        tables = self._check_tables(Xs)
        self._forget()
        self._remember_tables(Xs, tables)
        with self._running() as run:
            moved = [in_unit(X, int(e)) for X, e in zip(tables, self.unit_exponents_, strict=True)]
            try:
                with np.errstate(over="ignore"):
                    Y = self._fit_tables(moved, correspondence, coordinates, run)
                self.embedding_ = np.ascontiguousarray(Y, _float_of(tables))
                self._refuse_infinite(self.embedding_, X=tables[0], run=run)
            except BaseException:
                self._forget()  # a model is fitted as a whole or not at all
                raise

    # --- checks -------------------------------------------------------------------------------

    def _check_tables(self, Xs: Any) -> list[Any]:
        name = type(self).__name__
        if not isinstance(Xs, list | tuple):
            raise DataTypeError(
                f"{name}: Xs is {type(Xs).__name__}, expected a list of 2 or more tables."
            )
        if len(Xs) < 2:
            raise DataError(f"{name}: Xs has {len(Xs)} table(s), expected 2 or more.")
        threads = resolve_n_jobs(self.n_jobs)
        return [
            dense_if_small(
                check_matrix(
                    X,
                    owner=name,
                    argument=f"Xs[{d}]",
                    accept_sparse=self.accepts_sparse,
                    min_rows=self.min_rows,
                    threads=threads,
                )
            )
            for d, X in enumerate(Xs)
        ]

    def _remember_tables(self, Xs: Any, tables: list[Any]) -> None:
        widths = [X.shape[1] for X in tables]
        self.n_sets_ = len(tables)
        self.row_starts_ = np.cumsum([0, *(X.shape[0] for X in tables)])
        self.column_starts_ = np.cumsum([0, *widths])
        self.n_features_in_ = int(self.column_starts_[-1])
        free = self._may_rescale()
        self.unit_exponents_ = np.array(
            [exponent_for(largest_value(X)) if free else 0 for X in tables]
        )
        names = [column_names(X) for X in Xs]
        if any(found is not None for found in names):
            unnamed = [np.full(width, "", object) for width in widths]
            pairs = zip(names, unnamed, strict=True)
            self.feature_names_in_ = np.concatenate([b if a is None else a for a, b in pairs])

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
        owner = f"{type(self).__name__} (domain={d})"
        columns = slice(*self.column_starts_[d : d + 2])
        names = getattr(self, "feature_names_in_", None)
        known = None if names is None or not any(names[columns]) else names[columns]
        check_same_columns(column_names(X), known, owner=owner)
        checked = check_matrix(
            X,
            owner=owner,
            accept_sparse=self.accepts_sparse,
            threads=resolve_n_jobs(self.n_jobs),
        )
        check_columns(checked, columns.stop - columns.start, owner=owner)
        return checked

    def _refuse_infinite(self, values: np.ndarray, X: Any, run: FitContext) -> None:
        if not all_finite(values, run.threads):
            what = "the result"
            raise beyond(type(self).__name__, largest_value(X), what, _float_of([X]))


def _float_of(tables: list[Any]) -> Any:
    """float32 if all tables are, else float64."""
    return np.dtype(np.float32 if all(X.dtype == np.float32 for X in tables) else np.float64)
