"""Preparation of a table: missing values, categories, normalization of rows, units of columns.

Everything is learned from the fitted rows and kept, so that new rows are treated in the same way.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lowland._base import validation
from lowland._base.constraints import Null, OneOf, Several, Text
from lowland._base.errors import DataError, ParameterError, listing
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._base.rows.fitting import as_rows
from lowland._base.threads import resolve_n_jobs
from lowland._base.validation import all_finite, check_columns, is_sparse
from lowland.preparation import _chunks
from lowland.preparation._categories import parse_codes, without_codes
from lowland.preparation._chunks import Columns, Numbers
from lowland.preparation._neighbors_fill import Fitted, column_spread, fill_from_neighbors
from lowland.preparation._scales import STEPS, Scale, normalized
from lowland.preparation.encoding import Encoding

BESIDE = "categories or cycles take part, and numbers are to weigh the same"


class Preparation(Encoding):
    """x -> (filled(x) - center) / spread, column by column, after encoding of text and dates.

    The order is: coded values become missing, missing values are filled, rows are normalized,
    categories are encoded, columns are scaled.

    Parameters
    ----------
    scale : {"auto", "none", "standard", "robust", "gower"}, default="auto"
        How columns are scaled. "standard" gives mean 0 and deviation 1, "robust" median 0 and the
        interquartile range of a normal distribution. "auto" is "standard" if the units of the
        columns seem to differ or categories take part, else "none"; see
        :meth:`lowland.preparation._chunks.Columns.choose`. Columns of 0 and 1 that stand for
        categories are weighted, not scaled; see :mod:`lowland.preparation._chunks`. With "gower"
        the Manhattan distance of two rows is Gower's distance.
    missing : {"refuse", "mean", "median", "neighbors", "keep"}, default="refuse"
        What replaces a missing value: the mean or the median of the column, or the mean of the
        5 nearest fitted rows that have a value there. "neighbors" measures distances over the
        columns that both rows have, in units of their deviations, as scikit-learn's KNNImputer
        does after scaling; the model keeps the fitted rows for it. "keep" leaves missing numbers as
        NaN, for methods that take them. "refuse" raises an error. A missing category is a category
        of its own.
    missing_values : list of str or None, default=None
        Values that mean "missing", such as "-999"; "age=-1" means only those of one column. A
        column without a name is called by its number, from 0.
    normalize : list of {"cpm", "log1p", "l2"} or None, default=None
        Steps that are applied to each row, in this order: "cpm" scales it to the sum 1e6 (counts
        per million), "log1p" replaces x by log(1 + x), "l2" scales it to the length 1. Only columns
        of numbers take part.

    Attributes
    ----------
    chosen_ : str
        Scale in use: "none", "standard", "robust" or "gower".
    reason_ : str
        Reason for this scale.
    fill_ : ndarray of shape (n_numbers,) or None
        Value that replaces missing values, for each column of numbers; for "neighbors" the value
        where no fitted row helps, and for "keep" the mean. None if missing values are refused.
    n_filled_ : int
        Number of missing values in the fitted rows.
    donors_ : ndarray of shape (n_donors, n_numbers) or None
        The fitted rows, from which "neighbors" fills; NaN where they have no value.
    donor_spread_ : ndarray of shape (n_numbers,) or None
        Deviations of their columns, the units of distances between rows.
    n_empty_ : int
        Number of fitted rows without a number other than 0, which normalization leaves as they are.
    center_ : ndarray of shape (n_columns,) or None
        Value that is subtracted from each column. None subtracts nothing.
    spread_ : ndarray of shape (n_columns,) or None
        Value that each column is divided by; 1 for constant columns. None divides by nothing.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 100.0], [2.0, np.nan], [3.0, 300.0]])
    >>> ready = Preparation(scale="standard", missing="mean").fit(X)
    >>> ready.transform(X).round(2)
    array([[-1.22, -1.22], [ 0.  ,  0.  ], [ 1.22,  1.22]])
    """

    scale: str = param(OneOf("auto", "none", "standard", "robust", "gower"), default="auto")
    missing: str = param(OneOf("refuse", "mean", "median", "neighbors", "keep"), default="refuse")
    missing_values: list[str] | None = param(
        Several(Text("a value or column=value")) | Null(), default=None
    )
    normalize: list[str] | None = param(Several(OneOf(*STEPS)) | Null(), default=None)

    chosen_: str = fitted(type=str)
    reason_: str = fitted(type=str)
    fill_: np.ndarray | None = fitted("n_numbers", optional=True)
    n_filled_: int = fitted(type=int)
    donors_: np.ndarray | None = fitted("n_donors", "n_numbers", optional=True, allows_nan=True)
    donor_spread_: np.ndarray | None = fitted("n_numbers", optional=True, meaning=above(0))
    n_empty_: int = fitted(type=int)
    center_: np.ndarray | None = fitted("n_columns", optional=True)
    spread_: np.ndarray | None = fitted("n_columns", optional=True, meaning=above(0))

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn fill values, levels and scale from the rows of X.

        A table that is read in chunks is gone through once, and once more each if it has text or
        dates, or is normalized. It has no "median", "neighbors" and "robust", which need all rows.
        """
        rows = as_rows(X)
        if rows is None:
            self._fit(X)
        else:
            self._check_choices()
            _chunks.fit_chunks(self, rows)
        return self

    def _fit(self, X: Any) -> Any:
        """Learn from the rows of X; the result are these rows before they are scaled."""
        self._check_choices()
        X, names = self._entered(X), validation.column_names(X)
        self.n_features_in_ = X.shape[1]
        if names is not None:
            self.feature_names_in_ = names
        framed = hasattr(X, "columns")
        self._fit_encoding(dict(zip(X.columns, X, strict=True)) if framed else {})
        numbers = self._numbers(X)
        self.n_filled_, self.fill_ = 0, None
        self.donors_ = self.donor_spread_ = None
        if self.missing != "refuse" and not is_sparse(numbers):
            self._learn_fill(_chunks.all_numbers(numbers))
            if self.missing == "median":
                self.fill_ = np.nanmedian(numbers.astype(np.float64, copy=False), axis=0)
            elif self.missing == "neighbors":
                self.donors_ = numbers.copy()
                self.donor_spread_ = column_spread(numbers, self.fill_)
        filled, self.n_empty_ = self._normalized(self._filled(numbers))
        self._keep_scale(self._scale(Columns(filled)))
        return self._with_levels(filled, X)

    def _keep_scale(self, found: Scale) -> None:
        self.chosen_, self.reason_ = found.kind, found.reason
        self.center_, self.spread_ = found.center, found.spread

    def _check_choices(self) -> None:
        self.check_params()
        if self.missing == "keep" and self.normalize:
            why = "a row is normalized by all of its values; fill them"
            raise ParameterError(f"missing='keep' with normalize={self.normalize!r}: {why}.")

    def transform(self, X: Any) -> Any:
        """Rows prepared like the fitted rows; X is not modified.

        Of a table that is read in chunks the result is such a table, computed when it is used.
        """
        if not self._is_fitted():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("This Preparation is not fitted yet; call 'fit' first.")
        rows = as_rows(X)
        names = validation.column_names(X if rows is None else rows)
        X = self._entered(X) if rows is None else rows
        if "feature_names_in_" in vars(self):
            validation.check_same_columns(names, self.feature_names_in_, owner="Preparation")
        check_columns(X, self.n_features_in_, owner="Preparation")
        return self._prepared(X) if rows is None else _chunks.prepared_chunks(self, rows)

    def _prepared(self, X: Any) -> Any:
        """Rows that are checked, prepared."""
        numbers, _ = self._normalized(self._filled(self._numbers(X)))
        return self._scaled(self._with_levels(numbers, X))

    def _scaled(self, ready: Any) -> Any:
        if self.spread_ is None:
            return ready
        if is_sparse(ready):
            return ready.multiply(1.0 / self.spread_).tocsr().astype(ready.dtype)
        # not centered after a fit on sparse rows
        ready = ready.copy() if self.center_ is None else ready - self.center_.astype(ready.dtype)
        ready /= self.spread_.astype(ready.dtype)
        return ready

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The prepared fitted rows."""
        if as_rows(X) is not None:
            return self.fit(X).transform(X)
        return self._scaled(self._fit(X))  # missing values are searched and filled once

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: the columns that the rows have after encoding."""
        if flaw := super().inconsistency():
            return flaw
        columns = self._n_features_out
        sizes = {"fill_": self._n_numbers, "center_": columns, "spread_": columns}
        for name, size in sizes.items():
            found = getattr(self, name)
            if found is not None and len(found) != size:
                return f"{name!r} of {len(found)} values, expected {size}"
        return None

    def _numbers(self, X: Any) -> Any:
        """The columns of numbers and the cycles; coded values are missing."""
        codes = parse_codes(self.missing_values)
        if not codes or is_sparse(X):
            return super()._numbers(X)
        if not hasattr(X, "columns"):
            return without_codes(super()._numbers(X), None, codes)[0]
        import polars as pl

        names = [name for name, dtype in X.schema.items() if dtype.is_numeric()]
        codes = [code for code in codes if code.column is None or code.column in names]
        numbers = X.select(names).to_numpy(order="c")
        if numbers.dtype.kind != "f":
            numbers = numbers.astype(np.float64)
        known, _ = without_codes(numbers, names, codes)
        return super()._numbers(X.with_columns(pl.from_numpy(known, schema=names, orient="row")))

    @staticmethod
    def _entered(X: Any) -> Any:
        """X, if it is a data frame of polars, else a matrix of numbers; values may be missing."""
        if type(X).__module__.startswith("polars") and hasattr(X, "select") and hasattr(X, "shape"):
            return X
        X = validation.check_matrix(X, owner="Preparation", accept_sparse=True, finite=is_sparse(X))
        return X if is_sparse(X) else np.ascontiguousarray(X)  # sums do not depend on the layout

    def _normalized(self, numbers: Any) -> tuple[Any, int]:
        """Each row after the steps of ``normalize``, without the cycles; and how many are 0."""
        if not self.normalize:
            return numbers, 0
        names, plain = self.column_names_out(), self._n_plain
        apart = len(self.cycle_columns_) > 0
        found, n_empty = normalized(
            numbers[:, :plain] if apart else numbers,
            self.normalize,
            None if names is None else np.array(names[:plain], dtype=object),
        )
        return (np.hstack([found, numbers[:, plain:]]) if apart else found), n_empty

    def _filled(self, numbers: Any) -> Any:
        if is_sparse(numbers):
            return numbers
        if all_finite(numbers):
            validation.check_size(validation.largest_value(numbers), part=True)
            return numbers
        missing = np.isnan(numbers)
        validation.check_finite(np.where(missing, 0.0, numbers), None)  # infinity cannot be filled
        columns = np.flatnonzero(missing.any(axis=0))
        if self.fill_ is None:
            fitted_on = "; the model was fitted with missing='refuse'" if self._is_fitted() else ""
            where = f"{len(columns)} columns: {listing(self._named(columns))}{fitted_on}"
            advice = "choose missing='mean', 'median' or 'neighbors', or drop these rows"
            raise DataError(f"missing values in {where}; {advice}.")
        if self.missing == "keep":
            return numbers
        if self.donors_ is not None and self.donor_spread_ is not None:
            fitted = Fitted(self.donors_, self.fill_, self.donor_spread_)
            return fill_from_neighbors(numbers, fitted, resolve_n_jobs(None))
        return np.where(missing, self.fill_.astype(numbers.dtype), numbers)

    def _is_fitted(self) -> bool:
        return "chosen_" in vars(self)

    def _learn_fill(self, found: Numbers) -> None:
        """How many values are missing, and the means that they are filled with."""
        empty = np.flatnonzero(found.columns.known == 0)
        if len(empty):
            names = listing(self._named(empty))
            raise DataError(f"all values are missing in {names}; leave these columns out.")
        self.n_filled_ = int((found.n_rows - found.columns.known).sum())
        self.fill_ = found.columns.mean

    def _named(self, columns: np.ndarray) -> list[str]:
        names = self.column_names_out()
        return [f"column {i}" if names is None else names[i] for i in columns.tolist()]

    def _scale(self, columns: Columns) -> Scale:
        """The scale of all columns; 0/1 columns of categories need not be made for it."""
        if self.scale == "none":
            return Scale("none", "as asked")
        if self.scale == "gower":
            return columns.gower(self)
        coded = self._n_features_out - self._n_plain
        if self.scale == "auto" and self.normalize and not coded:
            return Scale("none", "the rows were normalized, which gives all columns one unit")
        numbers = columns.plain(self._n_plain) if coded else columns
        if self.scale == "auto" and not coded:
            found = numbers.choose(self.column_names_out())
        elif numbers.n_columns:
            make = numbers.robust if self.scale == "robust" else numbers.standard
            found = make(BESIDE if self.scale == "auto" else "as asked")
        elif not len(self.switch_columns_):
            return Scale("none", "every column is a category or a cycle")
        else:
            kind = "robust" if self.scale == "robust" else "standard"
            found = Scale(kind, "every column is a category or a cycle, and all weigh the same")
        if self.scale == "auto" and found.center is not None:
            found = numbers.keep_binary(found)
        return _chunks.beside_numbers(found, self) if coded else found
