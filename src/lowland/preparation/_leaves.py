"""Preparation of a table in leaves: what it learns in a few passes, and the step it becomes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import ParameterError
from lowland._core.rows.fitting import float_type
from lowland._core.rows.table import Rows
from lowland._engines.linalg.column_sums import with_value
from lowland.preparation._leaf_columns import (
    Numbers,
    NumbersIn,
    Representatives,
    SummedColumns,
    merge_numbers,
)

if TYPE_CHECKING:
    from lowland.preparation.preparation import Preparation


def fit_leaves(preparation: Preparation, rows: Rows) -> None:
    """Learn levels, fill values and scale from all rows."""
    _check_choices(preparation)
    rows = framed(preparation, rows)
    _fit_columns(preparation, rows)
    refused = preparation.missing == "refuse"
    preparation.n_filled_ = preparation.n_empty_ = 0
    preparation.fill_ = preparation.donors_ = preparation.donor_spread_ = None
    found: Numbers | None = None
    if not refused or not preparation.normalize:
        found = _totals(preparation, rows, ready=False)
    if found is not None and not refused and not found.is_sparse:
        found = _filled(preparation, found)
    if preparation.normalize:
        found = _totals(preparation, rows, ready=True)
        preparation.n_empty_ = found.n_empty
    assert found is not None
    preparation._keep_scale(preparation._scale(SummedColumns(found)))


def _check_choices(preparation: Preparation) -> None:
    for parameter, allowed in (("missing", ("median", "neighbors")), ("scale", ("robust",))):
        value = getattr(preparation, parameter)
        if value in allowed:
            other = "missing='mean'" if parameter == "missing" else "scale='standard'"
            raise ParameterError(
                f"Preparation: {parameter}={value!r} needs all rows in memory; use {other}, or fit "
                "a sample, as in Preparation().fit(rows.sample(10_000)), and prepare all rows with "
                "transform(rows)."
            )


def framed(preparation: Preparation, rows: Rows) -> Rows:
    """The rows as data frames, if parameters speak of columns by their names."""
    asked = preparation.order or preparation.cyclic or preparation.dates
    if rows.dtype == object or rows.names is None or not (asked or preparation.missing_values):
        return rows
    return rows.map(Framed(rows.names))


class Framed:
    """The step that gives the columns of an array their names."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)

    def __call__(self, X: Any) -> Any:
        import polars as pl

        if not isinstance(X, np.ndarray):
            return X
        return pl.from_numpy(X, schema=self.names, orient="row")


def _fit_columns(preparation: Preparation, rows: Rows) -> None:
    """Learn which columns become what."""
    vars(preparation).pop("feature_names_in_", None)
    preparation.n_features_in_ = rows.shape[1]
    if rows.names is not None:
        preparation.feature_names_in_ = np.array(rows.names, dtype=object)
    if rows.dtype == object or isinstance(rows.steps[-1] if rows.steps else None, Framed):
        work = Representatives(list(preparation.order or ()), list(preparation.dates or ()))
        preparation._fit_encoding(rows.total(work, work.merged, name="values"))
    else:
        preparation._fit_encoding(None)


def _totals(preparation: Preparation, rows: Rows, *, ready: bool) -> Numbers:
    work = NumbersIn(copy.copy(preparation), ready=ready)
    return rows.total(work, merge_numbers, name="columns")


def _filled(preparation: Preparation, found: Numbers) -> Numbers:
    """Keep the fill values; the sums of the columns after they are filled."""
    columns = found.columns
    gaps = found.n_rows - columns.known
    preparation._check_not_empty(columns.known == 0)
    preparation.n_filled_, preparation.fill_ = int(gaps.sum()), columns.mean
    if preparation.missing == "keep":
        return found
    values = columns.mean.astype(np.float32 if found.is_single else np.float64)
    return found._replace(
        columns=with_value(columns, gaps, values.astype(np.float64)),
        binary=found.binary & (gaps == 0),
    )


class Prepared:
    """The step that prepares rows by a fitted preparation, as it is now."""

    def __init__(self, preparation: Preparation) -> None:
        self.preparation = copy.copy(preparation)

    def __call__(self, X: Any) -> Any:
        return self.preparation._prepared(self.preparation._entered(X))


def prepared_leaves(preparation: Preparation, rows: Rows) -> Rows:
    """The table of all prepared rows."""
    rows = framed(preparation, rows)
    n, names = preparation._n_features_out, preparation.column_names_out()
    dtype = float_type(np.float64 if rows.dtype == object else rows.dtype)
    return rows.map(Prepared(preparation), n, names=names, dtype=dtype)
