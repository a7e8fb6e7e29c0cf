"""From a table to the numbers that a method gets; every decision is logged."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError, unknown_name
from lowland._core.validation import all_finite, is_sparse
from lowland._core.wording import count, listing
from lowland.io import (
    Table,
    as_distances,
    as_table,
    read_distances,
    read_table,
)
from lowland.io.in_memory import is_path
from lowland.preparation.preparation import Preparation
from lowland.study.table_options import TableOptions

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Prepared", "prepare", "read"]

LISTED = 4  # names in a line of the log


class Prepared(NamedTuple):
    """The rows that are kept, their prepared numbers, and the log of the preparation."""

    table: Table
    X: Any
    preparation: Preparation | None  # None if the numbers were not changed
    log: list[str]
    dropped: list[Any]
    rows_read: int
    distances: bool

    @property
    def metric(self) -> str:
        """The distance between rows that the map is measured against."""
        return "precomputed" if self.distances else "euclidean"


def read(data: Any, options: TableOptions, *, allow_missing: bool = True) -> Table:
    """The table with the columns that were asked for, and missing values where allowed."""
    if options.distances:
        return _read_distances(data, options)
    labels = [*options.labels, *([options.target] if options.target else [])]
    labels = [name for name in dict.fromkeys(labels) if name not in options.drop]
    columns = [name for name in options.columns if name not in options.one_hot]
    how: dict[str, Any] = {
        "columns": columns or None,
        "labels": [name for name in labels if name not in options.beside],
        "id_column": options.id_column,
        "vector": options.vector,
        "drop": options.drop,
        "allow_missing": allow_missing,
    }
    if is_path(data):
        table = _with_beside(read_table(data, part=options.part, **how), options.beside)
    elif isinstance(data, Table):
        table = _with_beside(data, options.beside)
    else:
        table = as_table(data, beside=options.beside, **how)
    return _without_columns(table, options) if options.drop else table


def _read_distances(data: Any, options: TableOptions) -> Table:
    say = options.spelling.option
    given = [options.columns, options.drop, options.one_hot, options.impute, options.vector]
    if any(given) or options.scale not in ("auto", "none"):
        raise DataError(
            f"{say('distances')}: a matrix of distances has no columns to choose, fill or scale; "
            f"leave {say('columns')}, {say('drop')}, {say('one_hot')}, {say('impute')} and "
            f"{say('scale')} out."
        )
    if is_path(data):
        if isinstance(data, list | tuple):
            raise DataError(f"{say('distances')}: distances are read from one file, not several.")
        table = read_distances(data, part=options.part, allow_missing=options.missing_distances)
        return _with_beside(table, options.beside)
    return as_distances(data, beside=options.beside, allow_missing=options.missing_distances)


def _with_beside(table: Table, beside: Mapping[str, Any]) -> Table:
    """The table with labels that were given as values."""
    if not beside:
        return table
    rows = np.empty((table.shape[0], 1))  # only its number of rows is used
    given = as_table(rows, beside=beside, name=table.source).labels
    taken = {*table.labels.columns, *(table.feature_names or ())}
    return table.with_labels(given.rename({n: f"{n}_label" for n in given.columns if n in taken}))


def prepare(table: Table, options: TableOptions) -> Prepared:
    """Drop rows, fill missing values, turn categories into numbers, scale."""
    rows_read = table.shape[0]
    if options.distances:
        log = [f"distances between {rows_read} rows, as they are{_n_unknown(table.features)}"]
        return Prepared(table, table.features, None, log, [], rows_read, True)
    log = [_columns_used(table)]
    table, dropped = _without_missing(table, options, log)
    X, preparation = _prepared_numbers(_with_categories(table, options), options, log)
    return Prepared(table, X, preparation, log, dropped, rows_read, False)


def _n_unknown(D: Any) -> str:
    """How many distances of an array are not known, if any."""
    missing = int(np.isnan(D).sum()) // 2 if isinstance(D, np.ndarray) else 0
    return f"; {missing} of them not known" if missing else ""


def _without_columns(table: Table, options: TableOptions) -> Table:
    """The table without some columns, features or labels."""
    names, drop, say = table.feature_names, options.drop, options.spelling.option
    known = [*(names or ()), *table.labels.columns, *table.unused]
    for name in drop:
        if name not in known:
            raise DataError(f"{table.source}: {say('drop')}: {unknown_name('column', name, known)}")
    kept = [] if names is None else [name for name in names if name not in drop]
    if names is not None and not kept:
        raise DataError(f"{table.source}: {say('drop')} leaves no column of numbers.")
    labels = table.labels.drop(drop, strict=False)
    if names is None or len(kept) == len(names):
        return dataclasses.replace(table, labels=labels)
    if table.sparse_names is not None:
        places = np.flatnonzero([name in kept for name in names])
        features = table.features[:, places]
        return dataclasses.replace(
            table, features=features, labels=labels, sparse_names=tuple(kept)
        )
    return dataclasses.replace(
        table, features=table.features.select(kept), labels=labels, image_shape=None
    )


def _columns_used(table: Table) -> str:
    def names(given: Any) -> str:
        return listing(list(given), LISTED, quote=False)

    rows, columns = table.shape
    parts = [f"{count(rows, 'row')}, {count(columns, 'column')} of numbers"]
    parts[0] += f" ({names(table.feature_names)})" if table.feature_names else ""
    if table.labels.width:
        parts.append(f"kept as labels: {names(table.labels.columns)}")
    if table.unused:
        parts.append(f"not used: {names(table.unused)}")
    return "; ".join(parts)


def _without_missing(
    table: Table, options: TableOptions, log: list[str]
) -> tuple[Table, list[Any]]:
    """The table without rows that have missing values, if that was asked for; and their ids.

    Missing values are refused, with their columns, if nothing was said about them.
    """
    say = options.spelling.option
    if is_sparse(table.features) or all_finite(np.asarray(table.features)):
        return table, []
    missing = np.isnan(np.asarray(table.features))
    if options.impute is None:
        names = table.feature_names or [f"column {i}" for i in range(table.shape[1])]
        counts = missing.sum(axis=0)
        shown = [f"{names[i]!r} ({counts[i]})" for i in np.flatnonzero(counts)]
        raise DataError(
            f"{table.source}: missing values in {count(len(shown), 'column')}: "
            f"{listing(shown, quote=False)}; choose {say('impute', 'mean')}, "
            f"{say('impute', 'median')} or {say('impute', 'drop-rows')}, or leave columns out with "
            f"{say('drop')}."
        )
    if options.impute != "drop-rows":
        return table, []
    bad = missing.any(axis=1)
    if bad.all():
        raise DataError(
            f"{table.source}: every row has a missing value, so {say('impute', 'drop-rows')} "
            f"leaves none; use {say('impute', 'mean')} or {say('impute', 'median')}, or leave the "
            f"emptiest columns out with {say('drop')}."
        )
    dropped = table.ids.filter(bad).to_list()
    log.append(
        f"dropped {count(len(dropped), 'row')} with missing values: "
        f"{listing([str(row) for row in dropped], quote=False)}"
    )
    return table.with_rows(~bad), dropped


def _with_categories(table: Table, options: TableOptions) -> Any:
    """The features, followed by the columns of text that become 0 and 1."""
    import polars as pl

    one_hot, say = options.one_hot, options.spelling.option
    if not one_hot:
        return table.features
    known = list(table.labels.columns)
    for name in one_hot:
        if name not in known:
            raise DataError(
                f"{table.source}: {say('one_hot')}: {unknown_name('column of text', name, known)}"
            )
    if not isinstance(table.features, pl.DataFrame):
        raise DataError(f"{table.source}: {say('one_hot')} needs a table whose columns have names.")
    return table.features.hstack(table.labels.select(pl.col(one_hot).cast(pl.String)))


def _prepared_numbers(
    features: pl.DataFrame | Any, options: TableOptions, log: list[str]
) -> tuple[Any, Preparation | None]:
    """Filled and scaled numbers; without a preparation if that leaves them as they are."""
    fills = options.impute in ("mean", "median")
    preparation = Preparation(scale=options.scale, impute=options.impute if fills else None).fit(
        features
    )
    if len(preparation.levels_):
        columns = ", ".join(dict.fromkeys(preparation.level_columns_))
        log.append(f"turned {columns} into {len(preparation.levels_)} columns of 0 and 1")
    if preparation.n_filled_:
        filled = count(preparation.n_filled_, "missing value")
        log.append(f"filled {filled} with the column's {options.impute}")
    verb = "not scaled" if preparation.chosen_ == "none" else f"scaled: {preparation.chosen_}"
    log.append(f"{verb} ({preparation.reason_})")
    changed = len(preparation.levels_) or preparation.n_filled_ or preparation.spread_ is not None
    if not changed:
        return features, None
    return preparation.transform(features), preparation
