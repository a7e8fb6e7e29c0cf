"""A map that any tool has made: its coordinates, and which of its rows is which of the data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, count, listing
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
    known, other = [], []
    for prefix, found in numbered.items():
        if {0, 1} & {*found}:
            is_known = prefix in PREFIXES or (prefix[0] == "x" and prefix[1:] in PREFIXES)
            (known if is_known else other).append(_from_first(found))
    known = [*letters, *known]
    several = [found for found in known if len(found) > 1]
    # one column alone is a map of one dimension; beside other coordinates it is any column
    return several or known or [found for found in other if len(found) > 1]


def _from_first(found: dict[int, str]) -> list[str]:
    """The names from number 0 or 1 on, as far as there is no gap."""
    number, names = min(found), []
    while number in found:
        names.append(found[number])
        number += 1
    return names


class ReadMap(NamedTuple):
    """A map as it was read, and the table whose rows it shows."""

    name: str
    contents: Contents
    prepared: Prepared
    options: TableOptions

    def coordinates(self) -> tuple[list[str], str]:
        """The columns that look like coordinates, and why."""
        contents, spelling = self.contents, self.options.spelling
        option = "coordinates" if spelling.command_line else "coordinate_names"
        schema = contents.frame.schema
        id_name = self.options.id_column or contents.id_name
        # True and false are not coordinates.
        numbers = [n for n, dtype in schema.items() if dtype.is_numeric() and n != id_name]
        sets = coordinate_sets(numbers)
        if len(sets) > 1:
            listed = "; ".join(listing(found, 3, quote=False) for found in sets)
            raise DataError(
                f"{self.name}: several sets of columns look like coordinates: {listed}; choose "
                f"one, such as {spelling.columns(option, sets[0][:2])}."
            )
        if sets:
            return sets[0], "by their names"
        apart = {guess.name for guess in guess_roles(contents.frame, numbers, needs_id=True)}
        rest = [column for column in numbers if column not in apart]
        if not rest:
            found = [f"{column!r} ({dtype})" for column, dtype in schema.items()]
            raise DataError(
                f"{self.name}: no column looks like a coordinate; found "
                f"{listing(found, quote=False)}; name the columns with {spelling.option(option)}."
            )
        return rest, "all columns of numbers that are not ids or classes"

    def matched(self, rows: int) -> tuple[np.ndarray | None, list[str]]:
        """For each prepared row the number of its row in the map of so many rows, and how it was
        found; None for the same order.
        """
        name, table, there = self.name, self.prepared.table, self._ids()
        ids = table.ids
        if not table.has_ids:
            # an id that the user maps all the same still names the rows
            if there is None or there.name not in (table.feature_names or ()):
                return self._by_number(there, rows)
            ids = table.column(there.name)
        if there is None:
            why = f"{name} has no column of ids, so its rows"
            return self._in_order(rows), [_caution(why, table.source)]
        match = match_rows(ids, there, name)
        if match.lost:
            if there.name != ids.name and _counts_from(there) is not None and rows == len(ids):
                why = f"column {there.name!r} of {name} only numbers its rows, so they"
                return self._in_order(rows), [_caution(why, table.source)]
            say = self.options.spelling.option
            raise DataError(
                f"{no_match(name, there, table.source, ids, match)}; name the column that both "
                f"have with {say('id_column')}."
            )
        notes = [f"rows are matched by their ids in column {there.name!r}"]
        dropped = {str(row).removesuffix(".0") for row in self.prepared.dropped}
        extra = [row for row in match.extra if row not in dropped]
        if extra:
            notes.append(
                f"caution: {name} has {count(len(extra), 'row')} that {table.source} lacks, such "
                f"as {examples(extra)}; they are left out"
            )
        return match.places, notes

    def _ids(self) -> pl.Series | None:
        frame, asked = self.contents.frame, self.options.id_column
        if asked is not None and asked not in frame.columns:
            raise DataError(f"{self.name}: has no column {asked!r} to match rows by.")
        if self.contents.matrix is not None:
            return None
        # map_frame renames an id that is called like a coordinate
        own, renamed = self.prepared.table.ids.name, f"{self.prepared.table.ids.name}_id"
        preferred = renamed if own not in frame.columns and renamed in frame.columns else own
        found = asked or id_column_of(self.contents, preferred)
        return None if found is None else frame[found]

    def _by_number(self, there: pl.Series | None, rows: int) -> tuple[np.ndarray | None, list[str]]:
        """Rows of data without ids: by the numbers of rows that the map holds, else by order."""
        table, name = self.prepared.table, self.name
        if there is None:
            note = "rows are matched by their order, because neither table has ids"
            return self._in_order(rows), [note]
        counted = _counts_from(there, any_order=True)
        if (there.name == "row" or counted == 0) and there.dtype.is_numeric():
            match = match_rows(table.ids, there, name)
            if not match.lost:
                return match.places, [f"rows are matched by their numbers in column {there.name!r}"]
        if counted is not None and _counts_from(there) is None:
            raise DataError(
                f"{name}: column {there.name!r} is in another order than a count of rows, and "
                f"{table.source} has no ids to match it with; name the column that both have with "
                f"{self.options.spelling.option('id_column')}."
            )
        caution = f"{table.source} has no ids, so the rows of {name} are taken to be in its order"
        return self._in_order(rows), [f"caution: {caution}"]

    def _in_order(self, rows: int) -> np.ndarray | None:
        """The rows of a map that is in the order of the data, which may have lost some."""
        table, dropped = self.prepared.table, self.prepared.dropped
        say = self.options.spelling.option("id_column")
        if rows == self.prepared.rows_read and dropped:
            if not table.has_ids:
                return table.ids.to_numpy()  # the numbers of the rows that are left
            raise DataError(
                f"{self.name}: {count(len(dropped), 'row')} of the data were dropped, so rows can "
                f"be matched only by name; give {say} with a column that both tables have."
            )
        if rows != table.shape[0]:
            raise DataError(
                f"{self.name}: has {count(rows, 'row')}, but {table.source} has {table.shape[0]}; "
                f"a map has one row for each, in the same order, or give {say} with a column that "
                "both tables have."
            )
        return None


def read_map(
    source: Any, asked: list[str], prepared: Prepared, options: TableOptions
) -> tuple[str, np.ndarray, list[str], list[str]]:
    """The name of a map, its coordinates in the order of the rows, their columns, and notes."""
    name = os.fspath(source) if is_path(source) else "map"
    if is_path(source):
        contents = read_source(source, Request(tuple(asked) or None))
    else:
        contents = contents_of(source, name)
    if is_sparse(contents.matrix):
        raise DataError(
            f"{name}: is a sparse matrix, but coordinates of a map are dense; write them as a "
            "table or an array."
        )
    read = ReadMap(name, contents, prepared, options)
    names, why = asked, "as asked for"
    if not asked and contents.matrix is None:
        names, why = read.coordinates()
    table = make_table(name, contents, Request(tuple(names) or None, guess=False))
    if not names:
        names, why = [f"column {i}" for i in range(table.shape[1])], "all columns"
    Y = np.asarray(table.features)
    rows, how = read.matched(len(Y))
    Y = Y if rows is None else Y[rows]
    notes = [f"coordinates: {listing(names, 4, quote=False)} ({why})", *how]
    return name, np.ascontiguousarray(Y), list(names), notes


def _caution(why: str, source: str) -> str:
    return f"caution: {why} are taken to be in the order of {source}"


def _counts_from(ids: pl.Series, *, any_order: bool = False) -> int | None:
    """0 or 1 if the ids only number the rows from there on; None for other ids."""
    if not ids.dtype.is_numeric() or ids.has_nulls():
        return None
    numbers = (ids.sort() if any_order else ids).to_numpy()
    for first in (0, 1):
        if np.array_equal(numbers, np.arange(first, first + len(numbers))):
            return first
    return None
