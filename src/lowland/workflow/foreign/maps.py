"""A map that any tool has made: its coordinates, and which of its rows is which of the data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError, Spelling, count, listing
from lowland._base.validation import is_sparse
from lowland.tables.columns.guessing import guess_roles, words_of
from lowland.tables.contents import Contents, Request
from lowland.tables.in_memory import contents_of, is_path
from lowland.tables.options import TableOptions
from lowland.tables.preparing import Prepared
from lowland.tables.several import examples, id_column_of, match_rows, no_match
from lowland.tables.sources import read_source
from lowland.tables.table import make_table

if TYPE_CHECKING:
    import polars as pl

# Columns of a file that look like the coordinates of a map.


# What coordinates are called before their number: tsne_1, UMAP 2, PC3, X_pca1.
_PREFIXES = (
    "x dim dimension axis coord coordinate component comp embedding emb latent map factor "
    "pc pca ica nmf fa lda ld ca mca mds nmds pco pcoa sammon tsne sne symmetricsne umap "
    "trimap pacmap phate largevis fitsne isomap lle le ltsa laplacianeigenmaps hessianlle "
    "modifiedlle kernelpca kpca diffusion diffusionmap diffusionmaps diffmap dc drawgraph "
    "fr fdg gplvm som nca vae ae"
)
PREFIXES = frozenset(_PREFIXES.split())
AXES = "xyz"


def coordinate_sets(names: Sequence[str]) -> list[list[str]]:
    """Sets of columns that are coordinates by their names, each in the order of its axes.

    x, y, z and names that end so; known prefixes with numbers from 0 or 1. Only if there are none,
    other prefixes with such numbers.

    >>> coordinate_sets(["id", "UMAP_1", "UMAP_2", "cluster"])
    [['UMAP_1', 'UMAP_2']]
    """
    lettered: dict[str, dict[int, str]] = {}
    numbered: dict[str, dict[int, str]] = {}
    for name in names:
        words = words_of(name)
        if not words:
            continue
        prefix = "".join(words[:-1])
        if words[-1].isdecimal() and prefix and len(words[-1]) < 6:
            numbered.setdefault(prefix, {}).setdefault(int(words[-1]), name)
        elif words[-1] in AXES:
            lettered.setdefault(prefix, {}).setdefault(AXES.index(words[-1]), name)
    letters = [_from_first(found) for found in lettered.values() if 0 in found]
    families = {
        prefix: _from_first(found) for prefix, found in numbered.items() if {0, 1} & {*found}
    }
    known = [found for prefix, found in families.items() if _is_known(prefix)]
    other = [found for found in families.values() if len(found) > 1]
    several = [found for found in [*letters, *known] if len(found) > 1]
    # one column alone is a map of one dimension; beside other coordinates it is any column
    return several or [*letters, *known] or other


def _is_known(prefix: str) -> bool:
    return prefix in PREFIXES or (prefix[0] == "x" and prefix[1:] in PREFIXES)


def _from_first(found: dict[int, str]) -> list[str]:
    """The names from number 0 or 1 on, as far as there is no gap."""
    number, names = min(found), []
    while number in found:
        names.append(found[number])
        number += 1
    return names


def read_map(
    source: Any, asked: list[str], prepared: Prepared, options: TableOptions
) -> tuple[str, np.ndarray, list[str], list[str]]:
    """The name of a map, its coordinates in the order of the rows, their columns, and notes."""
    chosen = tuple(asked) or None
    if is_path(source):
        name = os.fspath(source)
        contents = read_source(source, Request(chosen))
    else:
        name = "map"
        contents = contents_of(source, name)
    if is_sparse(contents.matrix):
        raise DataError(
            f"{name}: is a sparse matrix, but coordinates of a map are dense; write them as a "
            "table or an array."
        )
    names, why = asked, "as asked for"
    if contents.matrix is not None:
        table = make_table(name, contents, Request(chosen, guess=False))
        if not asked:
            names, why = [f"column {i}" for i in range(table.shape[1])], "all columns"
    else:
        if not asked:
            names, why = _coordinates(name, contents, options)
        table = make_table(name, contents, Request(tuple(names), guess=False))
    Y = np.asarray(table.features)
    rows, how = _matched_rows(name, contents, len(Y), prepared, options)
    Y = Y if rows is None else Y[rows]
    notes = [f"coordinates: {listing(names, 4, quote=False)} ({why})", *how]
    return name, np.ascontiguousarray(Y), list(names), notes


def _coordinates(name: str, contents: Contents, options: TableOptions) -> tuple[list[str], str]:
    """The columns that look like coordinates, and why."""
    schema = contents.frame.schema
    # True and false are no coordinates.
    numbers = [column for column, dtype in schema.items() if dtype.is_numeric()]
    id_name = options.id_column or contents.id_name
    numbers = [column for column in numbers if column != id_name]
    sets = coordinate_sets(numbers)
    if len(sets) > 1:
        listed = "; ".join(listing(found, 3, quote=False) for found in sets)
        raise DataError(
            f"{name}: several sets of columns look like coordinates: {listed}; choose one, such as "
            f"{options.spelling.columns(_option(options.spelling), sets[0][:2])}."
        )
    if sets:
        return sets[0], "by their names"
    apart = {guess.name for guess in guess_roles(contents.frame, numbers, needs_id=True)}
    rest = [column for column in numbers if column not in apart]
    if not rest:
        found = [f"{column!r} ({dtype})" for column, dtype in schema.items()]
        raise DataError(
            f"{name}: no column looks like a coordinate; found {listing(found, quote=False)}; name "
            f"the columns with {options.spelling.option(_option(options.spelling))}."
        )
    return rest, "all columns of numbers that are no ids or classes"


def _option(spelling: Spelling) -> str:
    return "coordinates" if spelling.command_line else "coordinate_names"


def _matched_rows(
    name: str, contents: Contents, rows: int, prepared: Prepared, options: TableOptions
) -> tuple[np.ndarray | None, list[str]]:
    """For each prepared row the number of its row in the map, None for the same order; and how."""
    table = prepared.table
    if options.id_column is not None and options.id_column not in contents.frame.columns:
        raise DataError(f"{name}: has no column {options.id_column!r} to match rows by.")
    there = _ids_of_map(contents, prepared, options)
    ids = table.ids
    if not table.has_ids:
        # an id that the user maps all the same still names the rows
        mapped = there is not None and there.name in (table.feature_names or ())
        if there is None or not mapped:
            return _by_number(name, there, rows, prepared, options)
        ids = table.column(there.name)
    if there is None:
        caution = (
            f"caution: {name} has no column of ids, so its rows are taken to be in the order of "
            f"{table.source}"
        )
        return _in_order(name, rows, prepared, options), [caution]
    match = match_rows(ids, there, name)
    if match.lost:
        counted = there.name != ids.name and _counts_from(there) is not None
        if counted and rows == len(ids):
            caution = (
                f"caution: column {there.name!r} of {name} only numbers its rows, so they are "
                f"taken to be in the order of {table.source}"
            )
            return _in_order(name, rows, prepared, options), [caution]
        raise DataError(
            no_match(name, there, table.source, ids, match)
            + f"; name the column that both have with {options.spelling.option('id_column')}."
        )
    notes = [f"rows are matched by their ids in column {there.name!r}"]
    dropped = {str(row).removesuffix(".0") for row in prepared.dropped}
    extra = [row for row in match.extra if row not in dropped]
    if extra:
        notes.append(
            f"caution: {name} has {count(len(extra), 'row')} that {table.source} lacks, such as "
            f"{examples(extra)}; they are left out"
        )
    return match.places, notes


def _ids_of_map(contents: Contents, prepared: Prepared, options: TableOptions) -> pl.Series | None:
    if contents.matrix is not None:
        return None
    names = contents.frame.columns
    own = prepared.table.ids.name
    if options.id_column is not None:
        return contents.frame[options.id_column]
    # map_frame renames an id that is called like a coordinate
    preferred = own if own in names or f"{own}_id" not in names else f"{own}_id"
    found = id_column_of(contents, preferred)
    return None if found is None else contents.frame[found]


def _by_number(
    name: str,
    there: pl.Series | None,
    rows: int,
    prepared: Prepared,
    options: TableOptions,
) -> tuple[np.ndarray | None, list[str]]:
    """Rows of data without ids: by the numbers of rows that the map holds, else by order."""
    table = prepared.table
    if there is None:
        note = "rows are matched by their order, because neither table has ids"
        return _in_order(name, rows, prepared, options), [note]
    numbered = there.name == "row" or _counts_from(there, any_order=True) == 0
    if numbered and there.dtype.is_numeric():
        match = match_rows(table.ids, there, name)
        if not match.lost:
            return match.places, [f"rows are matched by their numbers in column {there.name!r}"]
    if _counts_from(there) is None and _counts_from(there, any_order=True) is not None:
        raise DataError(
            f"{name}: column {there.name!r} is in another order than a count of rows, and "
            f"{table.source} has no ids to match it with; name the column that both have with "
            f"{options.spelling.option('id_column')}."
        )
    caution = (
        f"caution: {table.source} has no ids, so the rows of {name} are taken to be in its order"
    )
    return _in_order(name, rows, prepared, options), [caution]


def _counts_from(ids: pl.Series, *, any_order: bool = False) -> int | None:
    """0 or 1 if the ids only number the rows from there on; None for other ids."""
    if not ids.dtype.is_numeric() or ids.has_nulls():
        return None
    values = ids.sort() if any_order else ids
    numbers = values.to_numpy()
    for first in (0, 1):
        if np.array_equal(numbers, np.arange(first, first + len(numbers))):
            return first
    return None


def _in_order(name: str, rows: int, prepared: Prepared, options: TableOptions) -> np.ndarray | None:
    """The rows of a map that is in the order of the data, which may have lost some."""
    table, say = prepared.table, options.spelling.option
    if rows == prepared.rows_read and prepared.dropped:
        if not table.has_ids:
            return table.ids.to_numpy()  # the numbers of the rows that are left
        raise DataError(
            f"{name}: {count(len(prepared.dropped), 'row')} of the data were dropped, so rows can "
            f"be matched only by name; give {say('id_column')} with a column that both tables have."
        )
    if rows != table.shape[0]:
        raise DataError(
            f"{name}: has {count(rows, 'row')}, but {table.source} has {table.shape[0]}; a map has "
            f"one row for each, in the same order, or give {say('id_column')} with a column that "
            "both tables have."
        )
    return None
