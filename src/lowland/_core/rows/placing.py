"""Places of tables in leaves and of collections of Dask, computed when they are used."""

from __future__ import annotations

import functools
from typing import Any

from lowland._core.columns import check_columns, check_same_columns, column_names
from lowland._core.rows.collections import is_collection
from lowland._core.rows.fitting import Placing, float_type
from lowland._core.rows.scheduling import PlacedCollection
from lowland._core.rows.table import Rows


def placed_table(estimator: Any, X: Any) -> Any:
    """The places of X by a fitted estimator, in a container of the kind of X; None if X is in
    memory."""
    if isinstance(X, Rows):
        names = _names(estimator, X)
        return X.map(Placing(estimator), len(names), names=names, dtype=float_type(X.dtype))
    if is_collection(X):
        names_of = functools.partial(_names, estimator)
        return PlacedCollection(X).by(Placing(estimator), names_of, estimator._output())
    return None


def _names(estimator: Any, table: Any) -> list[str]:
    """Names of the columns of the places; the table must have the fitted columns."""
    estimator._require_fitted()
    owner, known = type(estimator).__name__, getattr(estimator, "feature_names_in_", None)
    check_same_columns(column_names(table), known, owner=owner)
    check_columns(table, estimator.n_features_in_, owner=owner)
    return [str(name) for name in estimator.get_feature_names_out()]
