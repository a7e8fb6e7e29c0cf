"""Values in the columns of a fitted method, back in the columns and units of the table."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from lowland.preparation.preparation import Preparation
from lowland.tables.preparing import Prepared
from lowland.workflow.fitting import Fit


class InOwnUnits(NamedTuple):
    """Values with the names of their columns, and what the numbers are, for a caption."""

    values: np.ndarray
    names: list[str]
    units: str


def in_own_units(values: np.ndarray, prepared: Prepared, fit: Fit) -> InOwnUnits:
    """Undo what was done to the rows before the method: the reduction by PCA, and the scaling."""
    values = np.asarray(values, dtype=np.float64)
    for step in reversed(_steps_before(fit)):
        if isinstance(step, Preparation):
            values = _unscaled(values, step)
        elif hasattr(step, "inverse_transform"):
            values = np.asarray(step.inverse_transform(values), dtype=np.float64)
        else:
            return InOwnUnits(values, _numbered(values), "as the method was given them")
    names, preparation = prepared.table.feature_names, prepared.preparation
    units = "in the units of the table"
    if preparation is not None:
        names = preparation.column_names_out() or names
        if preparation.normalize:
            units = f"after normalization ({', '.join(preparation.normalize)})"
    if names is None or len(names) != values.shape[1]:
        return InOwnUnits(values, _numbered(values), units)
    return InOwnUnits(values, [str(name) for name in names], units)


def rows_of_method(prepared: Prepared, fit: Fit, chosen: np.ndarray | None = None) -> Any:
    """All or some of the rows as the method was given them: a frame, an array or sparse."""
    X = prepared.X if chosen is None else prepared.X[chosen]
    for step in _steps_before(fit):
        if step is not prepared.preparation:  # the prepared rows are behind it already
            X = step.transform(X)
    return X


def table_rows(prepared: Prepared, chosen: np.ndarray) -> np.ndarray:
    """Some rows in the columns and units of :func:`in_own_units`; NaN where values are missing."""
    values = as_array(prepared.X[chosen])
    return values if prepared.preparation is None else _unscaled(values, prepared.preparation)


def decoded(places: np.ndarray, prepared: Prepared, fit: Fit) -> InOwnUnits:
    """What the method makes of places in the map."""
    estimator: Any = fit.estimator
    images = estimator.inverse_transform(places_of_method(places, fit))
    return in_own_units(as_array(images), prepared, fit)


def places_of_method(places: np.ndarray, fit: Fit) -> np.ndarray:
    """Places in the method's own map, which may have been turned after it."""
    for step in reversed(fit.steps):
        if getattr(step, "follows_map", False):
            places = step.inverse_transform(places)
    return places


def as_array(X: Any) -> np.ndarray:
    """Rows as a dense array of float64."""
    for way in ("toarray", "to_numpy"):  # a sparse matrix, a frame
        if hasattr(X, way):
            X = getattr(X, way)()
    return np.asarray(X, dtype=np.float64)


def _steps_before(fit: Fit) -> list[Any]:
    """The steps of the model that come before the method."""
    return list(itertools.takewhile(lambda step: step is not fit.estimator, fit.steps))


def _unscaled(values: np.ndarray, preparation: Preparation) -> np.ndarray:
    if preparation.spread_ is not None:
        values = values * preparation.spread_
    return values if preparation.center_ is None else values + preparation.center_


def _numbered(values: np.ndarray) -> list[str]:
    return [f"column {number}" for number in range(values.shape[1])]
