"""Preparation of a table: missing values, categories, normalization of rows, units of columns.

Everything is learned from the fitted rows and kept, so that new rows are treated in the same way.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lowland._core.constraints import Null, OneOf, Several, Text
from lowland._core.errors import DataError, ParameterError
from lowland._core.meanings.contents import Names, above, count
from lowland._core.params import Declared, fitted, param
from lowland._core.threads import resolve_n_jobs
from lowland._core.validation import (
    all_finite,
    check_columns,
    check_finite,
    check_matrix,
    check_same_columns,
    column_names,
    is_sparse,
)
from lowland._core.wording import listing
from lowland.preparation._coded import parse_codes, without_codes
from lowland.preparation._neighbors_fill import column_spread, fill_from_neighbors
from lowland.preparation._normalizing import STEPS, normalized
from lowland.preparation._scales import Scale, choose_scale, robust_scale, standard_scale

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Preparation"]


class Preparation(Declared):
    """x -> (filled(x) - center) / spread, column by column, after one-hot encoding of categories.

    The order is: coded values become missing, missing values are filled, rows are normalized,
    categories are encoded, columns are scaled.

    Parameters
    ----------
    scale : {"auto", "none", "standard", "robust"}, default="auto"
        How columns are scaled. "standard" gives mean 0 and deviation 1, "robust" median 0 and the
        interquartile range of a normal distribution. "auto" is "standard" if the units of the
        columns seem to differ, else "none"; see :func:`lowland.preparation._scales.choose_scale`.
    missing : {"refuse", "mean", "median", "neighbors"}, default="refuse"
        What replaces a missing value: the mean or the median of the column, or the mean of the
        5 nearest fitted rows that have a value there. "neighbors" measures distances over the
        columns that both rows have, in units of their deviations, as scikit-learn's KNNImputer
        does after scaling; the model keeps the fitted rows for it. "refuse" raises an error.
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
        Scale in use: "none", "standard" or "robust".
    reason_ : str
        Reason for this scale.
    fill_ : ndarray of shape (n_numbers,) or None
        Value that replaces missing values, for each column of numbers; for "neighbors" the value
        where no fitted row helps. None if missing values are refused.
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
    level_columns_ : ndarray of shape (n_levels,)
        Name of the text column of each 0/1 column. The 0/1 columns follow the columns of numbers.
    levels_ : ndarray of shape (n_levels,)
        Text value of each 0/1 column.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 100.0], [2.0, np.nan], [3.0, 300.0]])
    >>> ready = Preparation(scale="standard", missing="mean").fit(X)
    >>> ready.transform(X).round(2)
    array([[-1.22, -1.22], [ 0.  ,  0.  ], [ 1.22,  1.22]])
    """

    scale: str = param(OneOf("auto", "none", "standard", "robust"), default="auto")
    missing: str = param(OneOf("refuse", "mean", "median", "neighbors"), default="refuse")
    missing_values: list[str] | None = param(
        Several(Text("a value or column=value")) | Null(), default=None
    )
    normalize: list[str] | None = param(Several(OneOf(*STEPS)) | Null(), default=None)

    chosen_: str = fitted(type=str, meaning=Names(("none", "standard", "robust")))
    reason_: str = fitted(type=str)
    fill_: np.ndarray | None = fitted("n_numbers", optional=True)
    n_filled_: int = fitted(type=int, meaning=count())
    donors_: np.ndarray | None = fitted("n_donors", "n_numbers", optional=True, allows_nan=True)
    donor_spread_: np.ndarray | None = fitted("n_numbers", optional=True, meaning=above(0))
    n_empty_: int = fitted(type=int, meaning=count())
    center_: np.ndarray | None = fitted("n_columns", optional=True)
    spread_: np.ndarray | None = fitted("n_columns", optional=True, meaning=above(0))
    level_columns_: np.ndarray = fitted("n_levels", type=str, may_be_empty=True)
    levels_: np.ndarray = fitted("n_levels", type=str, may_be_empty=True)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn fill values, levels and scale from the rows of X."""
        self._fit(X)
        return self

    def _fit(self, X: Any) -> Any:
        """Learn from the rows of X; the result are these rows before they are scaled."""
        self.check_params()
        X, names = _entered(X), column_names(X)
        self.n_features_in_ = X.shape[1]
        if names is not None:
            self.feature_names_in_ = names
        self.level_columns_, self.levels_ = _levels(X)
        numbers = self._numbers(X)
        self.n_filled_ = _n_missing(numbers)
        self.fill_ = self.donors_ = self.donor_spread_ = None
        if self.missing != "refuse" and not is_sparse(numbers):
            self._learn_fill(numbers)
        filled = self._filled(numbers)
        filled, self.n_empty_ = normalized(filled, self.normalize or (), self._number_names())
        ready = self._with_levels(filled, X)
        found = self._scale(ready, names)
        self.chosen_, self.reason_ = found.kind, found.reason
        self.center_, self.spread_ = found.center, found.spread
        return ready

    def transform(self, X: Any) -> Any:
        """Rows prepared like the fitted rows; X is not modified."""
        if not self._is_fitted():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("This Preparation is not fitted yet; call 'fit' first.")
        names, X = column_names(X), _entered(X)
        if "feature_names_in_" in vars(self):
            check_same_columns(names, self.feature_names_in_, owner="Preparation")
        check_columns(X, self.n_features_in_, owner="Preparation")
        numbers = self._filled(self._numbers(X))
        numbers, _ = normalized(numbers, self.normalize or (), self._number_names())
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
        return self._scaled(self._fit(X))  # missing values are searched and filled once

    @property
    def _n_features_out(self) -> int:
        texts = len(set(self.level_columns_))
        return self.n_features_in_ - texts + len(self.levels_)

    def column_names_out(self) -> list[str] | None:
        """Names of the columns of the result; None if X had no names."""
        if "feature_names_in_" not in vars(self):
            return None
        texts = set(self.level_columns_)
        numbers = [name for name in self.feature_names_in_ if name not in texts]
        pairs = zip(self.level_columns_, self.levels_, strict=True)
        return [*numbers, *(f"{column}={level}" for column, level in pairs)]

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: the columns that the rows have after encoding."""
        texts = set(self.level_columns_)
        if unknown := sorted(texts - set(vars(self).get("feature_names_in_", ()))):
            return f"'level_columns_' with {unknown[0][:80]!r}, which is no column"
        if len({*zip(self.level_columns_, self.levels_, strict=True)}) < len(self.levels_):
            return "'levels_' with a value twice in one column"
        if (self.chosen_ == "none") != (self.spread_ is None):
            has = "no" if self.spread_ is None else "a"
            return f"'chosen_' = {self.chosen_!r} with {has} 'spread_'"
        if self.spread_ is None and self.center_ is not None:
            return "'center_', but no 'spread_'"
        if wrong := self._wrong_filling():
            return wrong
        n_numbers = self.n_features_in_ - len(texts)
        sizes = {"fill_": n_numbers, "center_": n_numbers + len(self.levels_)}
        sizes["spread_"] = sizes["center_"]
        for name, size in sizes.items():
            found = getattr(self, name)
            if found is not None and len(found) != size:
                return f"{name!r} of {len(found)} values, expected {size}"
        return super().inconsistency()

    def _wrong_filling(self) -> str | None:
        """What of the values and rows that fill missing values contradicts the parameters."""
        if (self.missing == "refuse") and self.fill_ is not None:
            return "'fill_', but missing='refuse'"
        is_part = {name: getattr(self, name) is not None for name in ("donors_", "donor_spread_")}
        wanted = self.missing == "neighbors" and self.fill_ is not None
        for name, there in is_part.items():
            if there != wanted:
                return f"{name!r} that does not belong to missing={self.missing!r}"
        if self.donors_ is not None and np.isinf(self.donors_).any():
            return "'donors_' with infinity"
        try:
            parse_codes(self.missing_values)
        except ParameterError as error:
            return str(error)
        return None

    def _numbers(self, X: Any) -> Any:
        """The columns of numbers; a data frame is copied into one C-ordered array."""
        codes = parse_codes(self.missing_values)
        if not hasattr(X, "columns"):
            X = X if is_sparse(X) or X.dtype.kind == "f" else X.astype(np.float64)
            return X if is_sparse(X) else without_codes(X, None, codes)[0]
        texts = set(self.level_columns_)
        names = [name for name in X.columns if name not in texts]
        numbers = X.select(names).to_numpy(order="c")
        if numbers.dtype.kind != "f":
            numbers = numbers.astype(np.float64)
        codes = [code for code in codes if code.column not in texts]
        return without_codes(numbers, names, codes)[0]

    def _number_names(self) -> np.ndarray | None:
        """Names of the columns of numbers, if X had names."""
        names = self.column_names_out()
        numbers = None if names is None else names[: len(names) - len(self.levels_)]
        return None if names is None else np.array(numbers, dtype=object)

    def _filled(self, numbers: Any) -> Any:
        if is_sparse(numbers) or all_finite(numbers):
            return numbers
        missing = np.isnan(numbers)
        check_finite(np.where(missing, 0.0, numbers), None)  # infinity cannot be filled
        columns = np.flatnonzero(missing.any(axis=0))
        if self.fill_ is None:
            fitted_on = "; the model was fitted with missing='refuse'" if self._is_fitted() else ""
            raise DataError(
                f"missing values in {len(columns)} columns: {listing(self._named(columns))}"
                f"{fitted_on}; choose missing='mean', 'median' or 'neighbors', or drop these rows."
            )
        if self.donors_ is not None and self.donor_spread_ is not None:
            threads = resolve_n_jobs(None)
            return fill_from_neighbors(
                numbers, self.donors_, self.fill_, self.donor_spread_, threads
            )
        return np.where(missing, self.fill_.astype(numbers.dtype), numbers)

    def _is_fitted(self) -> bool:
        return "chosen_" in vars(self)

    def _learn_fill(self, numbers: np.ndarray) -> None:
        """The values, or the rows, that missing values are filled from."""
        check_finite(np.where(np.isnan(numbers), 0.0, numbers), None)
        empty = np.flatnonzero(np.isnan(numbers).all(axis=0))
        if len(empty):
            raise DataError(
                f"all values are missing in {listing(self._named(empty))}; leave these columns out."
            )
        middle = np.nanmedian if self.missing == "median" else np.nanmean
        self.fill_ = middle(numbers.astype(np.float64, copy=False), axis=0)
        if self.missing == "neighbors":
            self.donors_ = numbers.copy()
            self.donor_spread_ = column_spread(numbers, self.fill_)

    def _named(self, columns: np.ndarray) -> list[str]:
        names = self.column_names_out()
        return [f"column {i}" if names is None else names[i] for i in columns.tolist()]

    def _with_levels(self, numbers: Any, X: Any) -> Any:
        if not len(self.levels_):
            return numbers
        if not hasattr(X, "columns"):
            raise DataError(
                f"Preparation was fitted with the text column {self.level_columns_[0]!r}, but X "
                "has no named columns; give a data frame with the same columns."
            )
        parts = [numbers]
        for column in dict.fromkeys(self.level_columns_):
            levels = self.levels_[self.level_columns_ == column]
            values = _text(X[column])
            unknown = sorted({*values} - {*levels})
            if unknown:
                warnings.warn(
                    f"column {column!r} has values that the model does not know, which have 0 "
                    f"in all of its columns: {listing(unknown)}",
                    stacklevel=2,
                )
            parts.append((values[:, None] == levels).astype(numbers.dtype))
        return np.hstack(parts)

    def _scale(self, ready: Any, names: np.ndarray | None) -> Scale:
        if self.scale == "none":
            return Scale("none", "as asked")
        if self.scale == "auto" and self.normalize:
            return Scale("none", "the rows were normalized, which gives all columns one unit")
        if self.scale == "auto":
            return choose_scale(ready, self.column_names_out())
        make = standard_scale if self.scale == "standard" else robust_scale
        return make(ready, "as asked")


def _entered(X: Any) -> Any:
    """X, if it is a data frame of polars, else as a matrix of numbers; values may be missing."""
    if type(X).__module__.startswith("polars") and hasattr(X, "select") and hasattr(X, "shape"):
        return X
    X = check_matrix(X, owner="Preparation", accept_sparse=True, finite=is_sparse(X))
    return X if is_sparse(X) else np.ascontiguousarray(X)  # sums do not depend on the layout


def _n_missing(numbers: Any) -> int:
    if is_sparse(numbers) or all_finite(numbers):
        return 0
    return int(np.isnan(numbers).sum())


def _levels(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Column and value of each level of the text columns, sorted within a column."""
    found: list[tuple[str, str]] = []
    if hasattr(X, "columns"):
        for column in X.columns:
            if not X[column].dtype.is_numeric():
                found += [(column, level) for level in sorted({*_text(X[column])})]
    columns, levels = zip(*found, strict=True) if found else ((), ())
    return np.array(columns, dtype=object), np.array(levels, dtype=object)


def _text(column: pl.Series) -> np.ndarray:
    """Values as text; missing values become the level "missing"."""
    import polars as pl

    return column.cast(pl.String).fill_null("missing").to_numpy().astype(object)
