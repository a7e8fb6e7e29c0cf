"""The base of selectors: a method ranks the columns, and the best columns are kept unchanged."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import numpy as np

from lowland._base.constraints import Integer, Null, Real
from lowland._base.errors import DataError, ParameterError
from lowland._base.estimator import Estimator
from lowland._base.models.checks import Permutation
from lowland._base.params import fitted, param
from lowland._base.rows.fitting import as_rows
from lowland._base.targets import Labels, check_labels, check_numbers, require_target
from lowland._base.validation import as_array, is_sparse


class Selector(Estimator):
    """Base of every selector: a method writes ``_fit`` and calls ``_keep``.

    ``transform`` returns the kept columns of X, in their order and with their type: integers stay
    integers, sparse data stay sparse.

    Parameters
    ----------
    n_features : int, float or None, default=None
        Number of columns to keep, or their share of all columns. None lets the method decide.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,)
        Whether each column is kept.
    ranking_ : ndarray of shape (n_features,)
        Rank of each column; 1 is the best.
    scores_ : ndarray of shape (n_features,)
        Score of each column.
    """

    n_features: Any = param(Integer(1) | Real(0, 1) | Null(), default=None, kw_only=False)

    support_: np.ndarray = fitted("n_features", type=bool)
    ranking_: np.ndarray = fitted("n_features", type=int, meaning=Permutation())
    scores_: np.ndarray = fitted("n_features")

    accepts_sparse = True
    aliases: ClassVar[tuple[str, ...]] = ()  # other names of the selector, for the command line

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Which columns are kept: a mask, or their indices in ascending order."""
        self._require_fitted()
        return np.flatnonzero(self.support_) if indices else self.support_.copy()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the kept columns: their own, or ``x0``, ``x1``, ... where they have none."""
        self._require_fitted()
        known = getattr(self, "feature_names_in_", None)
        if input_features is None:
            p = self.n_features_in_
            input_features = [f"x{i}" for i in range(p)] if known is None else known
        names = np.asarray(input_features, dtype=object)
        if len(names) != self.n_features_in_:
            raise DataError(
                "input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(names)}."
            )
        if known is not None and not np.array_equal(names, known):
            raise DataError("input_features is not equal to feature_names_in_.")
        return names[self.support_]

    @property
    def _n_features_out(self) -> int:
        return int(self.support_.sum())

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Choose columns and return them: the same as ``fit(X, y).transform(X)``."""
        if as_rows(X) is not None:
            return super().fit_transform(X, y)
        checked, _ = self._fit_checked(X, y)
        return self._kept(X, checked)

    def transform(self, X: Any) -> Any:
        """The kept columns of X, unchanged; of a table in chunks, such a table."""
        if as_rows(X) is not None:
            return super().transform(X)
        return self._kept(X, self._check_new_rows(X))

    def _kept(self, X: Any, checked: Any) -> Any:
        """The kept columns of X with their type; as floats if X is not an array of numbers."""
        columns = np.flatnonzero(self.support_)
        if is_sparse(X):
            return X.tocsr()[:, columns]
        wanted = self._output()  # a data frame of the same kind keeps the type of each column
        if wanted == "pandas" and hasattr(X, "iloc"):
            return X.iloc[:, columns]
        if wanted == "polars" and type(X).__module__.startswith("polars"):
            return X[:, columns.tolist()]
        array = np.asarray(X)
        rows = array if array.dtype.kind in "fiub" else checked
        return self._in_container(np.ascontiguousarray(rows[:, columns]), X)

    # --- what methods call ------------------------------------------------------------------

    def _number_wanted(self, p: int) -> int | None:
        """``n_features`` as a number of columns; None if the method decides."""
        if self.n_features is None:
            return None
        if not isinstance(self.n_features, numbers.Integral):
            return max(1, int(self.n_features * p))
        if self.n_features > p:
            raise ParameterError(
                f"{type(self).__name__}: n_features={self.n_features} is more than the {p} "
                f"columns of X; ask for at most {p}."
            )
        return int(self.n_features)

    def _keep(self, order: np.ndarray, n_kept: int, scores: np.ndarray) -> None:
        """Set the fitted attributes from the indices of the columns, the best first."""
        p = len(order)
        self.ranking_ = np.empty(p, dtype=np.int64)
        self.ranking_[order] = np.arange(1, p + 1)
        self.support_ = self.ranking_ <= n_kept
        self.scores_ = np.asarray(scores, dtype=np.float64)


# Whether a target holds classes or numbers, for selectors that take both.


def read_target(y: Any, n_rows: int, kind: str, *, owner: str) -> Labels | np.ndarray:
    """Classes or numbers; ``kind`` is "classes", "numbers" or "auto"."""
    require_target(y, owner=owner)
    if kind == "classes" or (kind == "auto" and holds_classes(y)):
        return read_classes(y, n_rows, owner=owner)
    return check_numbers(y, n_rows, owner=owner)


def read_classes(y: Any, n_rows: int, *, owner: str) -> Labels:
    """Labels with at least two classes."""
    labels = check_labels(y, n_rows, owner=owner)
    require_two(labels.classes, owner)
    return labels


def require_two(classes: np.ndarray, owner: str) -> None:
    """Refuse a single class."""
    if len(classes) < 2:
        raise DataError(
            f"{owner} needs at least two classes, but y has only one class, "
            f"{classes.tolist()[0]!r}; add rows of another class."
        )


def holds_numbers(y: Any) -> bool:
    """Whether y holds numbers; booleans do not count, numbers in an object array do."""
    values = as_array(y, "y")
    if values.dtype != object:
        return values.dtype.kind in "iuf"
    return all(isinstance(value, int | float) for value in values.ravel().tolist())


def holds_classes(y: Any) -> bool:
    """Text and booleans are classes; so are integers that occur three times on average."""
    if not holds_numbers(y):
        return True
    try:
        values = as_array(y, "y").astype(np.float64)
    except (OverflowError, TypeError, ValueError):  # integers beyond float64: refused as numbers
        return False
    if not np.array_equal(values, np.floor(values)):
        return False
    return len(np.unique(values)) <= max(2, values.size // 3)
