"""Preparation of columns: missing values filled, categories encoded, units made comparable.

Everything is learned from the fitted rows and kept, so that new rows are treated in the same way.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lowland._core.constraints import Null, OneOf
from lowland._core.errors import DataError
from lowland._core.meanings.contents import Names, above, count
from lowland._core.params import fitted, param
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
from lowland.preparation._scales import Scale, choose_scale, robust_scale, standard_scale
from lowland.preparation._weights import beside_numbers, gower_scale, keep_binary
from lowland.preparation.encoding import Encoding

__all__ = ["Preparation"]

BESIDE = "categories or cycles take part, and numbers are to weigh the same"


class Preparation(Encoding):
    """x -> (filled(x) - center) / spread, column by column, after encoding of text and dates.

    Parameters
    ----------
    scale : {"auto", "none", "standard", "robust", "gower"}, default="auto"
        How columns are scaled. "standard" gives mean 0 and deviation 1, "robust" median 0 and the
        interquartile range of a normal distribution. "auto" is "standard" if the units of the
        columns seem to differ or categories take part, else "none"; see
        :func:`lowland.preparation._scales.choose_scale`. Columns of 0 and 1 that stand for
        categories are weighted, not scaled; see :mod:`lowland.preparation._weights`. With "gower"
        the Manhattan distance of two rows is Gower's distance.
    impute : {"mean", "median"} or None, default=None
        Value that replaces a missing value. None refuses missing values. A missing category is a
        category of its own.

    Attributes
    ----------
    chosen_ : str
        Scale in use: "none", "standard", "robust" or "gower".
    reason_ : str
        Reason for this scale.
    fill_ : ndarray of shape (n_numbers,) or None
        Value that replaces missing values, for each column of numbers.
    n_filled_ : int
        Number of missing values in the fitted rows.
    center_ : ndarray of shape (n_columns,) or None
        Value that is subtracted from each column. None subtracts nothing.
    spread_ : ndarray of shape (n_columns,) or None
        Value that each column is divided by; 1 for constant columns. None divides by nothing.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 100.0], [2.0, np.nan], [3.0, 300.0]])
    >>> ready = Preparation(scale="standard", impute="mean").fit(X)
    >>> ready.transform(X).round(2)
    array([[-1.22, -1.22], [ 0.  ,  0.  ], [ 1.22,  1.22]])
    """

    scale: str = param(OneOf("auto", "none", "standard", "robust", "gower"), default="auto")
    impute: str | None = param(OneOf("mean", "median") | Null(), default=None)

    chosen_: str = fitted(type=str, meaning=Names(("none", "standard", "robust", "gower")))
    reason_: str = fitted(type=str)
    fill_: np.ndarray | None = fitted("n_numbers", optional=True)
    n_filled_: int = fitted(type=int, meaning=count())
    center_: np.ndarray | None = fitted("n_columns", optional=True)
    spread_: np.ndarray | None = fitted("n_columns", optional=True, meaning=above(0))

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn fill values, levels and scale from the rows of X."""
        self.check_params()
        X, names = _entered(X), column_names(X)
        self.n_features_in_ = X.shape[1]
        if names is not None:
            self.feature_names_in_ = names
        self._fit_encoding(X)
        numbers = self._numbers(X)
        self.n_filled_ = _n_missing(numbers)
        self.fill_ = self._fill_values(numbers) if self.n_filled_ else None
        found = self._scale(self._filled(numbers))
        self.chosen_, self.reason_ = found.kind, found.reason
        self.center_, self.spread_ = found.center, found.spread
        return self

    def transform(self, X: Any) -> Any:
        """Rows prepared like the fitted rows; X is not modified."""
        if "chosen_" not in vars(self):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("This Preparation is not fitted yet; call 'fit' first.")
        names, X = column_names(X), _entered(X)
        if "feature_names_in_" in vars(self):
            check_same_columns(names, self.feature_names_in_, owner="Preparation")
        check_columns(X, self.n_features_in_, owner="Preparation")
        ready = self._with_levels(self._filled(self._numbers(X)), X)
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
        return self.fit(X).transform(X)

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: the columns that the rows have after encoding."""
        if (self.chosen_ == "none") != (self.spread_ is None):
            has = "no" if self.spread_ is None else "a"
            return f"'chosen_' = {self.chosen_!r} with {has} 'spread_'"
        if self.spread_ is None and self.center_ is not None:
            return "'center_', but no 'spread_'"
        if flaw := super().inconsistency():
            return flaw
        columns = self._n_features_out
        sizes = {"fill_": self._n_numbers, "center_": columns, "spread_": columns}
        for name, size in sizes.items():
            found = getattr(self, name)
            if found is not None and len(found) != size:
                return f"{name!r} of {len(found)} values, expected {size}"
        return None

    def _filled(self, numbers: Any) -> Any:
        if is_sparse(numbers) or all_finite(numbers):
            return numbers
        missing = np.isnan(numbers)
        check_finite(np.where(missing, 0.0, numbers), None)  # infinity cannot be filled
        columns = np.flatnonzero(missing.any(axis=0))
        if self.impute is None:
            raise DataError(
                f"missing values in {len(columns)} columns: {listing(self._named(columns))}; "
                "choose impute='mean' or 'median', or drop these rows."
            )
        if self.fill_ is None:
            raise DataError(
                f"missing values in {listing(self._named(columns))}, but the fitted rows had none, "
                "so the model has no values to replace them; drop these rows."
            )
        return np.where(missing, self.fill_.astype(numbers.dtype), numbers)

    def _fill_values(self, numbers: np.ndarray) -> np.ndarray:
        if self.impute is None:
            return np.zeros(numbers.shape[1])  # not used: _filled refuses missing values
        empty = np.flatnonzero(np.isnan(numbers).all(axis=0))
        if len(empty):
            raise DataError(
                f"all values are missing in {listing(self._named(empty))}; leave these columns out."
            )
        middle = np.nanmean if self.impute == "mean" else np.nanmedian
        return middle(numbers.astype(np.float64, copy=False), axis=0)

    def _named(self, columns: np.ndarray) -> list[str]:
        names = self.column_names_out()
        return [f"column {i}" if names is None else names[i] for i in columns.tolist()]

    def _scale(self, ready: Any) -> Scale:
        """The scale of all columns; 0/1 columns of categories need not be made for it."""
        if self.scale == "none":
            return Scale("none", "as asked")
        if self.scale == "gower":
            return gower_scale(ready, self)
        coded = self._n_features_out - self._n_plain
        numbers = ready[:, : self._n_plain] if coded else ready
        if self.scale == "auto" and not coded:
            found = choose_scale(numbers, self.column_names_out())
        elif numbers.shape[1]:
            make = robust_scale if self.scale == "robust" else standard_scale
            found = make(numbers, BESIDE if self.scale == "auto" else "as asked")
        elif not len(self.switch_columns_):
            return Scale("none", "every column is a category or a cycle")
        else:
            kind = "robust" if self.scale == "robust" else "standard"
            found = Scale(kind, "every column is a category or a cycle, and all weigh the same")
        if self.scale == "auto" and found.center is not None:
            found = keep_binary(found, numbers)
        return beside_numbers(found, self) if coded else found


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
