"""Missing values of a table: empty columns are left out, rows dropped, or values refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import all_finite, is_sparse
from lowland._core.wording import count, listing
from lowland.io import Table
from lowland.study.tables.categories import TakingPart, missing_in
from lowland.study.tables.options import TableOptions


def without_missing(
    table: Table, part: TakingPart, options: TableOptions, log: list[str]
) -> tuple[Table, list[Any]]:
    """The table without rows that have missing values, if that was asked for; and their ids.

    A column without any value is left out. Missing values are refused, with their columns and what
    each option would do, if nothing was said about them. A missing category is a category.
    """
    coded = missing_in(table, part, options)
    finite = is_sparse(table.features) or all_finite(np.asarray(table.features))
    if finite and not coded:
        return table, []
    missing, names = np.zeros((table.shape[0], 0), bool), [*map(repr, coded)]
    if not finite:
        table = _without_empty_columns(table, options, log)
        missing = np.isnan(np.asarray(table.features))
        names = [*(_name(table, i) for i in range(table.shape[1])), *map(repr, coded)]
    missing = np.column_stack([missing, *coded.values()])
    if not missing.any():
        return table, []
    unusable = options.missing == "keep" and not options.missing_values_taken
    if options.missing == "refuse" or unusable:
        raise DataError(_refusal(table, missing, names, options))
    if options.missing != "drop":
        return table, []
    bad = missing.any(axis=1)
    say = options.spelling.option
    if bad.all():
        raise DataError(
            f"{table.source}: every row has a missing value, so {say('missing', 'drop')} "
            f"leaves none; use {say('missing', 'mean')}, {say('missing', 'median')} or "
            f"{say('missing', 'neighbors')}, or leave the emptiest columns out with {say('drop')}."
        )
    dropped = table.ids.filter(bad).to_list()
    log.append(
        f"dropped {count(len(dropped), 'row')} with missing values: "
        f"{listing([str(row) for row in dropped], quote=False)}"
    )
    return table.with_rows(~bad), dropped


def _without_empty_columns(table: Table, options: TableOptions, log: list[str]) -> Table:
    """The table without the columns that have no value at all.

    A column of a bare array cannot be left out: new rows could not be told apart from the old ones.
    """
    values = np.asarray(table.features)
    empty = np.flatnonzero(np.isnan(values).all(axis=0))
    if not len(empty):
        return table
    say, names = options.spelling.option, table.feature_names
    if names is None or len(empty) == values.shape[1]:
        shown = [_name(table, i) for i in empty]
        raise DataError(
            f"{table.source}: all values are missing in {listing(shown, quote=False)}; leave "
            "such columns out of the data."
        )
    left = [names[i] for i in empty]
    log.append(f"left out {count(len(left), 'column')} without any value: {listing(left)}")
    kept = table.features.drop(left)
    unused = (*table.unused, *left)
    asked = [name for name in left if name in options.columns]
    if asked:
        raise DataError(
            f"{table.source}: all values are missing in {asked[0]!r}; leave it out of "
            f"{say('columns')}."
        )
    return dataclasses.replace(table, features=kept, unused=unused, image_shape=None)


def _refusal(table: Table, missing: np.ndarray, names: list[str], options: TableOptions) -> str:
    """Where values are missing, and what each option would do about them."""
    say = options.spelling.option
    counts = missing.sum(axis=0)
    shown = [f"{names[i]} ({counts[i]})" for i in np.flatnonzero(counts)]
    rows, lost = len(missing), int(missing.any(axis=1).sum())
    drop = f"{say('missing', 'drop')} (loses {lost} of {count(rows, 'row')}, {lost / rows:.1%})"
    if lost == rows:
        drop = f"not {say('missing', 'drop')}, which would leave no row"
    before = after = ""
    if options.missing_values_taken:
        after = f"{say('missing', 'keep')} to have the other values of their rows used, "
    elif options.missing == "keep":
        before = f"{say('missing', 'keep')} is only for methods that take them; "
    return (
        f"{table.source}: {count(int(counts.sum()), 'missing value')} in "
        f"{count(len(shown), 'column')}: {listing(shown, quote=False)}; {before}choose {after}"
        f"{say('missing', 'mean')}, {say('missing', 'median')} or {say('missing', 'neighbors')} "
        f"to fill them, {drop}, or leave columns out with {say('drop')}."
    )


def _name(table: Table, column: int) -> str:
    names = table.feature_names
    return f"column {column}" if names is None else repr(names[column])
