"""Which rows of several tables are the same object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland._core.wording import Spelling, count, listing
from lowland.io.matching import as_names, examples, same_objects
from lowland.study.aligning.sets import TableSet

FEWEST_DIFFERENT = 0.9  # share of different values in a column that may be ids
SHARED = 0.5  # share of the rows of the smallest table that such a column matches


class Pairs(NamedTuple):
    """The rows of each object in each set, -1 where a set lacks it, and how they were found."""

    rows: np.ndarray | None  # None: nothing is known
    how: str  # in words
    notes: list[str]

    @property
    def n_objects(self) -> int:
        """Objects that at least two sets have."""
        return 0 if self.rows is None else len(self.rows)

    def partners(self, place: int) -> int:
        """Rows of a set that have a partner in another one."""
        return 0 if self.rows is None else int((self.rows[:, place] >= 0).sum())


def match_columns(match: str | Sequence[str] | None, n_sets: int, option: str) -> list[str] | None:
    """The column of ids of each set: one name for all, ``left=right``, or a list of names."""
    if match is None:
        return None
    names = [match] if isinstance(match, str) else [str(name) for name in match]
    if isinstance(match, str) and match.count("=") == n_sets - 1:
        names = [name.strip() for name in match.split("=")]
    names = names * n_sets if len(names) == 1 else names
    if len(names) != n_sets or not all(names):
        raise ParameterError(
            f"{option}: {match!r} is not allowed; expected the name of a column, or one name for "
            f"each of the {n_sets} tables."
        )
    return names


def paired_rows(
    sets: Sequence[TableSet], match: Sequence[str] | None, same_order: bool, spelling: Spelling
) -> Pairs:
    """The pairs that ids or the order of the rows give; none if neither was asked for."""
    if same_order:
        return _by_order(sets, spelling)
    if match is not None:
        return _by_ids(sets, match, spelling)
    return Pairs(None, "no pairs are known; local patterns decide", _hints(sets, spelling))


def _by_order(sets: Sequence[TableSet], spelling: Spelling) -> Pairs:
    read = {one.name: one.prepared.rows_read for one in sets}
    if len({*read.values()}) > 1:
        sizes = ", ".join(f"{name} has {count(rows, 'row')}" for name, rows in read.items())
        raise DataError(
            f"{spelling.option('same_order')}: the tables differ in length: {sizes}; match rows by "
            f"a column of ids with {spelling.option('match')}."
        )
    n = next(iter(read.values()))
    rows = np.full((n, len(sets)), -1, dtype=np.int64)
    for place, one in enumerate(sets):
        kept = one.table.source_rows  # rows with missing values may have been dropped
        rows[np.arange(n) if kept is None else kept, place] = np.arange(one.table.shape[0])
    rows = rows[(rows >= 0).sum(axis=1) >= 2]
    return Pairs(rows, "rows in the same order", [])


def _by_ids(sets: Sequence[TableSet], match: Sequence[str], spelling: Spelling) -> Pairs:
    found = same_objects([one.table.ids for one in sets])
    notes = []
    for one, twice, unnamed, alone in zip(
        sets, found.twice, found.unnamed, found.alone, strict=True
    ):
        if twice:
            verb = "names" if len(twice) == 1 else "name"
            notes.append(
                f"{one.name}: {count(len(twice), 'id')} {verb} several rows, such as "
                f"{examples(twice[:1])}; these rows take part without a partner"
            )
        if unnamed:
            verb = "has" if unnamed == 1 else "have"
            notes.append(f"{one.name}: {count(unnamed, 'row')} {verb} no id, and so no partner")
        if alone:
            verb = "occurs" if alone == 1 else "occur"
            notes.append(f"{one.name}: {count(alone, 'id')} {verb} in no other table")
    for place, (one, column) in enumerate(zip(sets, match, strict=True)):
        if not (found.rows[:, place] >= 0).any():
            others = [other for other in sets if other is not one]
            here = examples(_some(one))
            there = "; ".join(f"{other.name} has {examples(_some(other))}" for other in others[:2])
            raise DataError(
                f"{spelling.option('match')}: no id of {one.name} (column {column!r}) occurs in "
                f"another table: it has {here}; {there}."
            )
    columns = listing(list(dict.fromkeys(match)), quote=False)
    return Pairs(found.rows, f"rows with the same {columns}", notes)


def _some(one: TableSet) -> list[str]:
    return [str(value) for value in as_names(one.table.ids).drop_nulls()[:3].to_list()]


def _hints(sets: Sequence[TableSet], spelling: Spelling) -> list[str]:
    """A word to the user whose tables have a column of ids in common."""
    for column in _common_columns(sets):
        values = [_column(one, column) for one in sets]
        if any(ids.n_unique() < FEWEST_DIFFERENT * len(ids) for ids in values):
            continue
        found = len(same_objects(values).rows)
        if found >= SHARED * min(len(ids) for ids in values):
            return [
                f"{count(found, 'value')} of column {column!r} are in several tables, but rows are "
                f"not matched; if they are ids, match rows with {spelling.option('match', column)}"
            ]
    return []


def _common_columns(sets: Sequence[TableSet]) -> list[str]:
    known = []
    for one in sets:
        table = one.table
        ids = [table.ids.name] if table.has_ids else []
        known.append([*ids, *table.labels.columns, *(table.feature_names or ())])
    return [name for name in known[0] if all(name in names for names in known[1:])]


def _column(one: TableSet, name: str) -> Any:
    """A column as ids; numbers with fractions name nothing."""
    table = one.table
    ids = table.ids if table.has_ids and name == table.ids.name else table.column(name)
    if ids.dtype.is_float() and not (ids.drop_nulls().round() == ids.drop_nulls()).all():
        return ids.clear()
    return ids
