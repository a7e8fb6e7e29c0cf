"""What an estimator does with tables that are read in chunks."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from lowland._base import registry
from lowland._base.errors import DataError, NeedsMemoryError, ParameterError, shown
from lowland._base.monitor import Monitor
from lowland._base.rows.table import Rows
from lowland._base.validation import (
    FLOATS,
    check_columns,
    check_matrix,
    check_same_columns,
    column_names,
    is_sparse,
)


def as_rows(X: Any) -> Rows | None:
    """X as a table in chunks if it is one, or a collection; None if it is in memory."""
    if isinstance(X, Rows):
        return X
    return registry.collections().collection_rows(X) if is_collection(X) else None


def is_collection(X: Any) -> bool:
    """Whether the rows of X are in partitions that are computed when they are used.

    Such a collection gives its partitions as delayed objects, or is a list of them.
    """
    if isinstance(X, list | tuple):
        return bool(X) and all(map(is_delayed, X))
    return hasattr(type(X), "to_delayed")


def is_delayed(X: Any) -> bool:
    """Whether X is a value that is still to be computed: it has a graph of tasks and no shape."""
    return hasattr(type(X), "__dask_graph__") and not hasattr(type(X), "shape")


def float_type(dtype: Any) -> np.dtype:
    """The type that numbers of ``dtype`` have in a method: float32 stays, others are float64."""
    return np.dtype(dtype) if np.dtype(dtype) in FLOATS else np.dtype(np.float64)


class Placing:
    """The step that places rows by a fitted estimator.

    It keeps a copy of the estimator as it is now: a later fit of the original changes nothing. The
    names of columns are checked once, for the whole table. Blocks come and go as arrays without
    names, whatever ``set_output`` was given; sparse blocks of kept columns stay sparse.
    """

    def __init__(self, estimator: Any) -> None:
        self.named = copy.copy(estimator).set_output(transform="default")
        self.estimator = copy.copy(self.named)
        vars(self.estimator).pop("feature_names_in_", None)

    def __call__(self, X: Any) -> Any:
        if hasattr(X, "columns"):  # a data frame: messages name its columns
            named = "feature_names_in_" in vars(self.named)
            placed = self.named.transform(X) if named else self.estimator.transform(X.to_numpy())
        else:
            placed = self.estimator.transform(X)
        return placed if is_sparse(placed) else np.asarray(placed)


def block_check(owner: str, **options: Any) -> Callable[[Any], Any]:
    """The step that checks a block as ``fit`` checks a table: numbers, finite unless allowed."""
    return functools.partial(check_matrix, owner=owner, part=True, **options)


def checked_rows(rows: Rows, y: Any, estimator: Any) -> Rows:
    """The table whose blocks are checked for a fit, with the target that the method needs."""
    owner = type(estimator).__name__
    n, p = rows.shape
    if n < estimator.min_rows:
        raise DataError(
            f"Found {n} sample(s) while a minimum of {estimator.min_rows} is required by {owner}."
        )
    if p < 1:
        raise DataError(f"Found 0 feature(s) while a minimum of 1 is required by {owner}.")
    if estimator.needs_target:
        rows = _with_target(rows, y, owner)
    step = block_check(
        owner,
        accept_sparse=estimator.accepts_sparse,
        finite=not estimator.fit_checks_finite,
        allow_nan=estimator.allows_nan,
    )
    return rows.map(step, dtype=float_type(rows.dtype))


def _with_target(rows: Rows, y: Any, owner: str) -> Rows:
    """The rows with the labels that ``y`` names; None takes the target they have already."""
    if y is None and rows.target is not None:
        return rows
    if (labeled := rows.with_labels(y)) is not None:
        return labeled
    raise ParameterError(
        f"{owner}: y={shown(y)} is not allowed; for rows that are read in chunks, y is the name of "
        f"one of the columns carried along: {', '.join(rows.beside) or 'none'}."
    )


def rows_at(rows: Rows, numbers: np.ndarray, monitor: Monitor | None = None) -> Any:
    """The rows with these numbers, in any order and perhaps repeated: an array or a CSR matrix."""
    ascending, places = np.unique(np.asarray(numbers, np.int64), return_inverse=True)
    X = rows.take(ascending, monitor).X
    array = X if isinstance(X, np.ndarray) or is_sparse(X) else X.to_numpy()
    return array[places]


def needs_memory(owner: str, setting: str = "", advice: str = "") -> NeedsMemoryError:
    """The error of a method, or of a setting of it, that cannot go through rows in chunks."""
    call = f"{owner}(...)" if setting else f"{owner}()"
    return NeedsMemoryError(
        f"{owner}: {setting or 'fit'} needs all rows in memory; {advice}fit a sample, as in "
        f"{call}.fit(rows.sample(10_000)), and place all rows with transform(rows)."
    )


# Places of tables in chunks and of collections, computed when they are used.


def placed_table(estimator: Any, X: Any) -> Any:
    """The places of X by a fitted estimator, in a container of the kind of X; None if X is in
    memory."""
    if isinstance(X, Rows):
        names = _names(estimator, X)
        return X.map(Placing(estimator), len(names), names=names, dtype=float_type(X.dtype))
    if is_collection(X):
        names_of = functools.partial(_names, estimator)
        placed_collection = registry.collections().placed_collection
        return placed_collection(X, Placing(estimator), names_of, estimator._output())
    return None


def _names(estimator: Any, table: Any) -> list[str]:
    """Names of the columns of the places; the table must have the fitted columns."""
    estimator._require_fitted()
    owner, known = type(estimator).__name__, getattr(estimator, "feature_names_in_", None)
    check_same_columns(column_names(table), known, owner=owner)
    check_columns(table, estimator.n_features_in_, owner=owner)
    return [str(name) for name in estimator.get_feature_names_out()]
