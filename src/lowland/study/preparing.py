"""From a table to the numbers that a method gets; every decision is logged."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
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
from lowland.study.categories import (
    TakingPart,
    encoding_log,
    frame_of,
    missing_in,
    take_part,
)
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
        if self.preparation is not None and self.preparation.chosen_ == "gower":
            return "manhattan"
        return "precomputed" if self.distances else "euclidean"


def read(
    data: Any, options: TableOptions, *, allow_missing: bool = True, allow_text: bool = True
) -> Table:
    """The table with the columns that were asked for, and missing values where allowed.

    With ``allow_text`` the table may have no column of numbers.
    """
    if options.distances:
        return _read_distances(data, options)
    labels = [*options.labels, *([options.target] if options.target else [])]
    labels = [name for name in dict.fromkeys(labels) if name not in options.drop]
    # as labels they keep their values as they are written
    coded = [*options.one_hot, *(options.order or ())]
    columns = [name for name in options.columns if name not in coded]
    labels = [*dict.fromkeys([*labels, *coded])]
    how: dict[str, Any] = {
        "columns": columns if options.columns else None,
        "labels": [name for name in labels if name not in options.beside],
        "id_column": options.id_column,
        "allow_missing": allow_missing,
        "allow_text": allow_text,
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
    given = [options.columns, options.drop, options.one_hot, options.impute, options.order]
    given += [options.cyclic, options.use]
    if any(given) or options.scale not in ("auto", "none"):
        raise DataError(
            f"{say('distances')}: a matrix of distances has no columns to choose, fill or scale; "
            f"leave {say('columns')}, {say('drop')}, {say('use')}, {say('one_hot')}, "
            f"{say('order')}, {say('cyclic')}, {say('impute')} and {say('scale')} out."
        )
    if is_path(data):
        table = read_distances(data, part=options.part, allow_missing=options.missing_distances)
        return _with_beside(table, options.beside)
    return as_distances(data, beside=options.beside, allow_missing=options.missing_distances)


def _with_beside(table: Table, beside: Mapping[str, Any]) -> Table:
    """The table with labels that were given as values."""
    if not beside:
        return table
    rows = np.zeros((table.shape[0], 1))  # only its number of rows is used
    given = as_table(rows, beside=beside, name=table.source).labels
    taken = {*table.labels.columns, *(table.feature_names or ())}
    return table.with_labels(given.rename({n: f"{n}_label" for n in given.columns if n in taken}))


def prepare(table: Table, options: TableOptions) -> Prepared:
    """Drop rows, fill missing values, turn categories into numbers, scale."""
    rows_read = table.shape[0]
    if options.distances:
        log = [f"distances between {rows_read} rows, as they are{_n_unknown(table.features)}"]
        return Prepared(table, table.features, None, log, [], rows_read, True)
    part = take_part(table, options)
    table = part.table
    log = [_columns_used(table, part.names), *part.log]
    table, dropped = _without_missing(table, part, options, log)
    X, preparation = _prepared_numbers(frame_of(table, part.names, part.dates), part, options, log)
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
    labels = table.labels.drop(drop, strict=False)
    if names and not kept:
        if not labels.width:
            raise DataError(f"{table.source}: {say('drop')} leaves no column of numbers.")
        features = np.empty((table.shape[0], 0))
        return dataclasses.replace(
            table, features=features, labels=labels, image_shape=None, sparse_names=None
        )
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


def _columns_used(table: Table, taking_part: Sequence[str]) -> str:
    def names(given: Any) -> str:
        return listing(list(given), LISTED, quote=False)

    rows, columns = table.shape
    parts = [f"{count(rows, 'row')}, {count(columns, 'column')} of numbers"]
    parts[0] += f" ({names(table.feature_names)})" if table.feature_names else ""
    if taking_part:
        parts.append(f"{count(len(taking_part), 'other')} ({names(taking_part)})")
    taken = {*taking_part}
    labels = [name for name in table.labels.columns if name not in taken]
    if labels:
        parts.append(f"kept as labels: {names(labels)}")
    if table.unused:
        parts.append(f"not used: {names(table.unused)}")
    return "; ".join(parts)


def _without_missing(
    table: Table, part: TakingPart, options: TableOptions, log: list[str]
) -> tuple[Table, list[Any]]:
    """The table without rows that have missing values, if that was asked for; and their ids.

    Missing values are refused, with their columns, if nothing was said about them. A missing
    category is a category.
    """
    say = options.spelling.option
    coded = missing_in(table, part, options)
    finite = is_sparse(table.features) or all_finite(np.asarray(table.features))
    if finite and not coded:
        return table, []
    missing = np.zeros((table.shape[0], 0), bool)
    names: list[str] = []
    if not finite:
        missing = np.isnan(np.asarray(table.features))
        names += table.feature_names or [f"column {i}" for i in range(table.shape[1])]
    missing = np.column_stack([missing, *coded.values()])
    names += coded
    if options.impute is None:
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


def _prepared_numbers(
    features: pl.DataFrame | Any, part: TakingPart, options: TableOptions, log: list[str]
) -> tuple[Any, Preparation | None]:
    """Filled and scaled numbers; without a preparation if that leaves them as they are."""
    fills = options.impute in ("mean", "median")
    preparation = Preparation(
        scale="gower" if options.gower else options.scale,
        impute=options.impute if fills else None,
        order=None if options.order is None else dict(options.order),
        cyclic=None if options.cyclic is None else dict(options.cyclic),
        dates=part.dates or None,
    ).fit(features)
    log += encoding_log(preparation)
    if preparation.n_filled_:
        filled = count(preparation.n_filled_, "missing value")
        log.append(f"filled {filled} with the column's {options.impute}")
    verb = "not scaled" if preparation.chosen_ == "none" else f"scaled: {preparation.chosen_}"
    log.append(f"{verb} ({preparation.reason_})")
    changed = (
        preparation.encoded_columns or preparation.n_filled_ or preparation.spread_ is not None
    )
    if not changed:
        return features, None
    return preparation.transform(features), preparation
