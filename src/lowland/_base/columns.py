"""The columns of a table: their names, their number, and whether they have values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lowland._base.errors import DataError, DataTypeError


def column_names(X: Any) -> np.ndarray | None:
    """Names of a data frame's columns as an object array; None when there are none.

    Like scikit-learn, names count only when all are strings; a mixture is refused.
    """
    columns = getattr(X, "columns", None) if hasattr(X, "shape") else None
    if columns is None or not isinstance(columns, Iterable):
        return None
    names = np.asarray(list(columns), dtype=object)
    strings = [isinstance(name, str) for name in names]
    if not names.size or not any(strings):
        return None
    if not all(strings):
        odd = next(name for name, fine in zip(names, strings, strict=True) if not fine)
        raise DataTypeError(
            "Feature names are only supported if all input features have string names, but the "
            f"column {odd!r} is of type {type(odd).__name__}; rename it, for example with "
            "X.columns = X.columns.astype(str)."
        )
    return names


def column_label(names: np.ndarray | None, column: int) -> str:
    """How a message calls a column: its name where it has one, else its number."""
    return f"column {names[column]!r}" if names is not None else f"column {column}"


def check_columns_have_values(X: Any, names: np.ndarray | None) -> None:
    """Refuse columns of NaN only: nothing can be learned from them."""
    if not isinstance(X, np.ndarray) or not np.isnan(X[0]).any():
        return
    refuse_empty_columns(np.asarray(np.isnan(X).all(axis=0)), names)


def refuse_empty_columns(empty_columns: np.ndarray, names: np.ndarray | None) -> None:
    """The error for columns that are marked as without any value."""
    empty = np.flatnonzero(empty_columns)
    if len(empty):
        others = f" and {len(empty) - 1} more columns" if len(empty) > 1 else ""
        raise DataError(
            f"Input X contains NaN only in {column_label(names, empty[0])}{others}. Leave such "
            "columns out."
        )


def check_columns(X: Any, n_features: int, *, owner: str) -> None:
    """Refuse new data with another number of columns than the fitted data had."""
    if X.shape[1] != n_features:
        raise DataError(
            f"X has {X.shape[1]} features, but {owner} is expecting {n_features} features as "
            "input: the columns it was fitted on."
        )


def check_same_columns(names: np.ndarray | None, fitted: np.ndarray | None, *, owner: str) -> None:
    """Refuse, or warn about, column names that differ from those of the fitted data."""
    import warnings

    if names is None and fitted is None:
        return
    if fitted is None:
        warnings.warn(
            f"X has feature names, but {owner} was fitted without feature names", stacklevel=4
        )
        return
    if names is None:
        warnings.warn(
            f"X does not have valid feature names, but {owner} was fitted with feature names",
            stacklevel=4,
        )
        return
    if len(names) == len(fitted) and (names == fitted).all():
        return
    message = "The feature names should match those that were passed during fit.\n"
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    if unseen:
        message += "Feature names unseen at fit time:\n" + _bullets(unseen)
    if missing:
        message += "Feature names seen at fit time, yet now missing:\n" + _bullets(missing)
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise DataError(message)


def _bullets(names: list[str], most: int = 5) -> str:
    shown = [f"- {name}\n" for name in names[:most]]
    return "".join(shown) + ("- ...\n" if len(names) > most else "")
