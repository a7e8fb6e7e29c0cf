"""The tables of an alignment: each is read and prepared by itself, with the same options."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError, unknown_name
from lowland._base.validation import is_sparse
from lowland.preparation._categories import parse_codes
from lowland.preparation.preparation import Preparation
from lowland.tables import Table
from lowland.tables.in_memory import has_column_names, is_path
from lowland.tables.opening import is_stream
from lowland.tables.options import TableOptions
from lowland.tables.preparing import Prepared, prepare, read
from lowland.tables.several import as_names
from lowland.workflow.outputs import result_stem

NAMING = ("columns", "use", "drop", "labels", "one_hot")  # options that are names of columns
KEYED = ("order", "cyclic")  # options with a value for each named column
SET = "set"


class TableSet(NamedTuple):
    """One prepared table of an alignment."""

    name: str
    prepared: Prepared
    preparation: Preparation  # also if it changes no numbers: it has the names of columns

    @property
    def table(self) -> Table:
        """The rows that are kept."""
        return self.prepared.table

    @property
    def numbers(self) -> Any:
        """The prepared numbers, an array or a sparse matrix."""
        X = self.prepared.X
        return X if is_sparse(X) else np.asarray(X)


def set_names(data: Sequence[Any], names: Sequence[str] | None = None) -> list[str]:
    """The names of the sets: those given by the user, or of their files, without folder and suffix.

    >>> set_names(["a/cells.csv", "b/genes.csv.gz"])
    ['cells', 'genes']
    >>> set_names(["a/cells.csv", "b/cells.csv"])
    ['a/cells.csv', 'b/cells.csv']
    """
    if names is not None:
        given = [str(name) for name in names]
        if len(given) != len(data) or len({*given}) < len(given) or not all(given):
            raise ParameterError(
                f"names: {given} are not allowed; expected {len(data)} different names, one for "
                "each table."
            )
        return given
    if not all(is_path(each) and not isinstance(each, list | tuple) for each in data):
        own = [getattr(each, "name", None) for each in data]
        named = all(isinstance(name, str) and name for name in own) and len({*own}) == len(own)
        return [str(name) for name in own] if named else [f"set{i}" for i in range(len(data))]
    paths = [str(each) for each in data]
    for shorter in (result_stem, lambda path: Path(path).name):
        found = [shorter(path) for path in paths]
        if len({*found}) == len(found):
            return found
    return paths


def prepared_sets(
    data: Sequence[Any],
    names: Sequence[str],
    options: TableOptions,
    match: Sequence[str] | None,
    note: Callable[[str], None],
) -> list[TableSet]:
    """Every table, read and prepared; ``match`` is its column of ids, if rows are matched by ids.

    An option that names a column concerns the tables that have it.
    """
    each = _options_of_each(data, names, options)
    found = []
    for i, (one, name, how) in enumerate(zip(data, names, each, strict=True)):
        how = how.for_data(one)
        if how.distances:
            raise DataError(
                f"{name}: is a matrix of distances, which has no columns to align; give tables."
            )
        how = how if match is None else dataclasses.replace(how, id_column=match[i])
        table = read(one, how)
        if not is_path(one):
            table = dataclasses.replace(table, source=name)
        prepared = prepare(table, how)
        for said in (*table.notes, *prepared.cautions):
            note(f"{name}: {said}")
        preparation = prepared.preparation
        if preparation is None:
            preparation = Preparation(scale="none")
            preparation.fit(prepared.X)
        found.append(TableSet(name, prepared, preparation))
    return found


def _options_of_each(
    data: Sequence[Any], names: Sequence[str], options: TableOptions
) -> list[TableOptions]:
    """The options without the columns that a table does not have; refused if no table has one."""
    codes = parse_codes(options.missing_values)
    asked = {option: list(getattr(options, option) or ()) for option in (*NAMING, *KEYED)}
    asked["missing_values"] = [code.column for code in codes if code.column is not None]
    if not any(asked.values()):
        return [options for _ in data]
    say = options.spelling.option
    known = [_column_names(one, options) for one in data]
    every = [name for names in known for name in names or ()]
    for option, columns in asked.items():
        for column in columns:
            if all(names is not None for names in known) and column not in every:
                what = unknown_name("column", column, list(dict.fromkeys(every)))
                raise DataError(f"{say(option)}: {what}")
    found = []
    for name, there in zip(names, known, strict=True):
        found.append(options if there is None else _only(options, there))
        if options.columns and there is not None and not {*options.columns} & {*there}:
            raise DataError(f"{say('columns')}: {name} has none of these columns.")
    return found


def _only(options: TableOptions, there: Sequence[str]) -> TableOptions:
    """The options about columns that are there."""
    left: dict[str, Any] = {}
    for option in NAMING:
        left[option] = tuple(name for name in getattr(options, option) if name in there)
    for option in KEYED:
        given = getattr(options, option) or {}
        left[option] = {name: given[name] for name in given if name in there} or None
    codes = zip(options.missing_values, parse_codes(options.missing_values), strict=True)
    left["missing_values"] = tuple(
        text for text, code in codes if code.column is None or code.column in there
    )
    return dataclasses.replace(options, **left)


def _column_names(one: Any, options: TableOptions) -> list[str] | None:
    """All columns of a table; None if they cannot be known before it is read."""
    if hasattr(one, "columns"):
        return [str(name) for name in one.columns]
    if is_path(one) and is_stream(Path(one)):
        return None  # it can be read only once
    if not has_column_names(one):
        return []
    plain = TableOptions(part=options.part, transpose=options.transpose, spelling=options.spelling)
    table = read(one, plain)
    ids = [table.ids.name] if table.has_ids else []
    named = [*(table.feature_names or ()), *table.labels.columns, *ids]
    return [*named, *table.unused, *table.left_out]


def joint_table(sets: Sequence[TableSet], color: str | None = None) -> tuple[Table, str]:
    """The ids and labels of all rows, set after set, and the label that names the set.

    The column that colors the map is a label of the joint table, also where it is mapped.
    """
    import polars as pl

    tables = [one.table for one in sets]
    ids = [table.ids for table in tables]
    if len({column.dtype for column in ids}) > 1:
        ids = [as_names(column) for column in ids]  # so that 7 and 7.0 look the same
    id_names = {table.ids.name for table in tables}
    id_name = id_names.pop() if len(id_names) == 1 else "id"
    every = list(dict.fromkeys(name for table in tables for name in table.labels.columns))
    if color is not None and color not in every:
        features = [name for table in tables for name in table.feature_names or ()]
        if color not in features:
            known = list(dict.fromkeys([*every, *features]))
            raise DataError(
                f"{' and '.join(one.name for one in sets)}: {unknown_name('column', color, known)}"
            )
        every.append(color)
    own = SET
    while own in {*every, id_name, "x", "y", "z"}:
        own += "_"
    rows = [table.shape[0] for table in tables]
    columns = [pl.Series(own, np.repeat([one.name for one in sets], rows))]
    for name in every:
        parts = []
        for table in tables:
            has_it = name in table.labels.columns
            has_it |= name == color and name in (table.feature_names or ())
            nothing = pl.Series(name, [None] * table.shape[0], dtype=pl.Null)
            parts.append(table.column(name) if has_it else nothing)
        columns.append(_stacked(parts).alias(name))
    source = " and ".join(one.name for one in sets) if len(sets) <= 3 else f"{len(sets)} tables"
    guesses = tuple(guess for table in tables for guess in table.guesses)
    stacked, empty = _stacked(ids).alias(id_name), np.empty((sum(rows), 0))
    return Table(source, empty, pl.DataFrame(columns), stacked, guesses=guesses), own


def without_row_names(table: Table) -> Table:
    """The table with numbers as ids: names of rows of several sets would cover one another."""
    import polars as pl

    return dataclasses.replace(table, ids=pl.Series("row", np.arange(table.shape[0])))


def _stacked(parts: Sequence[Any]) -> Any:
    """Columns one below the other; as text if their types do not fit."""
    import polars as pl

    known = [part.dtype for part in parts if part.dtype != pl.Null]
    if len({"number" if dtype.is_numeric() else str(dtype) for dtype in known}) > 1:
        parts = [part.cast(pl.String, strict=False) for part in parts]
    frames = [part.alias("value").to_frame() for part in parts]
    return pl.concat(frames, how="vertical_relaxed")["value"]
