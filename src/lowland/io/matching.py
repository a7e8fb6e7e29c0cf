"""Rows of two tables that belong together, by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland._core.wording import count, listing
from lowland.io.columns.guessing import guess_roles

if TYPE_CHECKING:
    import polars as pl

    from lowland.io.contents import Contents

EXAMPLES = 3


class Match(NamedTuple):
    """Where the rows of one table are in another one."""

    places: np.ndarray  # of each row in the other table, -1 where there is none
    lost: list[str]  # ids of the rows that the other table lacks
    extra: list[str]  # ids of the other table that no row asked for


def as_names(ids: pl.Series) -> pl.Series:
    """Ids as text; 7, 7.0 and " 7" are the same id."""
    import polars as pl

    text = ids.cast(pl.String, strict=False).str.strip_chars()
    return text.str.replace(r"^([+-]?\d+)\.0+$", "$1").alias("id")


def match_rows(wanted: pl.Series, there: pl.Series, source: str) -> Match:
    """The places of the wanted ids; ids of ``source`` that name two rows are refused."""
    import polars as pl

    ours, theirs = as_names(wanted), as_names(there)
    known = theirs.drop_nulls()
    if known.n_unique() < len(known):
        twice = known.filter(known.is_duplicated())[0]
        raise DataError(
            f"{source}: column {there.name!r} names rows twice, such as {twice!r}; one row for "
            "each id is needed."
        )
    places = pl.DataFrame([theirs]).with_row_index("place")
    found = pl.DataFrame([ours]).join(places, on="id", how="left", maintain_order="left")["place"]
    lost = ours.filter(found.is_null()).cast(pl.String).fill_null("(missing)").to_list()
    extra = known.filter(~known.is_in(ours.drop_nulls().implode())).to_list()
    return Match(found.fill_null(-1).cast(pl.Int64).to_numpy(), lost, extra)


class SameObjects(NamedTuple):
    """Rows of several tables that are the same object."""

    rows: np.ndarray  # (n_objects, n_tables), -1 where a table lacks the object
    twice: list[list[str]]  # of each table: ids that name several rows, which belong to no object
    unnamed: list[int]  # of each table: rows without an id
    alone: list[int]  # of each table: rows whose id no other table has


def same_objects(tables: Sequence[pl.Series]) -> SameObjects:
    """The objects that at least two tables have, by the ids of their rows.

    Objects are in the order in which they first occur.
    """
    import polars as pl

    ids = [as_names(column) for column in tables]
    unnamed = [column.null_count() for column in ids]
    twice, once = [], []
    for column in ids:
        known = column.drop_nulls()
        twice.append(known.filter(known.is_duplicated()).unique(maintain_order=True).to_list())
        frame = pl.DataFrame([column]).with_row_index("place")
        once.append(frame.filter(column.is_not_null() & column.is_unique()))
    names = pl.concat([frame["id"] for frame in once]).to_frame()
    shared = names.filter(pl.col("id").is_duplicated()).unique(maintain_order=True)
    places = []
    for frame in once:
        found = shared.join(frame, on="id", how="left", maintain_order="left")["place"]
        places.append(found.cast(pl.Int64).fill_null(-1).to_numpy())
    rows = np.column_stack(places)
    alone = [len(frame) - int((of >= 0).sum()) for frame, of in zip(once, places, strict=True)]
    return SameObjects(rows, twice, unnamed, alone)


def examples(ids: list[str]) -> str:
    """A few ids, for a message."""
    return listing(ids[:EXAMPLES])


def no_match(source: str, there: pl.Series, other: str, ids: pl.Series, match: Match) -> str:
    """How many ids differ, with examples of both sides."""
    lost, extra = examples(match.lost), examples(match.extra)
    text = (
        f"{source}: the ids in column {there.name!r} are not those of {other} (column "
        f"{ids.name!r}): {len(match.lost)} of {count(len(ids), 'row')} are missing there, such as "
        f"{lost}"
    )
    return text + (f"; {len(match.extra)} are not in {other}, such as {extra}" if extra else "")


def id_column_of(contents: Contents, preferred: str | None = None) -> str | None:
    """The column of a frame that names its rows: the preferred one, the file's, or a guess."""
    names = contents.frame.columns
    if preferred is not None and preferred in names:
        return preferred
    if contents.id_name is not None or not names:
        return contents.id_name
    guesses = guess_roles(contents.frame, names, needs_id=True)
    return next((guess.name for guess in guesses if guess.role == "id"), None)
