"""Several files as one table: their rows one after another, and a label that names the file."""

from __future__ import annotations

import dataclasses
import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, count, listing
from lowland._base.validation import is_sparse
from lowland.tables.budget import require_for_table
from lowland.tables.columns.guessing import guess_roles, kind_of
from lowland.tables.contents import Contents, Request, free_name
from lowland.tables.sources import read_source

if TYPE_CHECKING:
    import polars as pl

# Rows of two tables that belong together, by their ids.


EXAMPLES = 3


class Match(NamedTuple):
    """Where the rows of one table are in another one."""

    places: np.ndarray  # of each row in the other table, -1 where there is none
    lost: list[str]  # ids of the rows that the other table lacks
    extra: list[str]  # ids of the other table that no row asked for


def as_names(ids: pl.Series) -> pl.Series:
    """Ids as text; 7, 7.0 and " 7" are the same id."""
    text = ids.cast(str, strict=False).str.strip_chars()
    return text.str.replace(r"^([+-]?\d+)\.0+$", "$1").alias("id")


def match_rows(wanted: pl.Series, there: pl.Series, source: str) -> Match:
    """The places of the wanted ids; ids of ``source`` that name two rows are refused."""
    import polars as pl

    ours, theirs = as_names(wanted), as_names(there)
    known = theirs.drop_nulls()
    if known.n_unique() < len(known):
        twice = f"names rows twice, such as {known.filter(known.is_duplicated())[0]!r}"
        raise DataError(f"{source}: column {there.name!r} {twice}; one row for each id is needed.")
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


PATTERN = set("*?[")
LABEL = "file"


def listed_sources(source: Any) -> list[str]:
    """The paths of a source: one, several, or those that match a pattern such as ``runs/*.csv``."""
    if isinstance(source, str | os.PathLike):
        return _matching(os.fspath(source))
    paths = [path for each in source for path in _matching(os.fspath(each))]
    if not paths:
        raise DataError("the list of inputs is empty; give at least one file.")
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice:
        raise DataError(f"{twice[0]}: is given more than once.")
    return paths


def _matching(text: str) -> list[str]:
    if not PATTERN & set(text) or os.path.lexists(text) or "://" in text:
        return [text]
    found = sorted(path for path in glob.glob(text, recursive=True) if os.path.isfile(path))
    if not found:
        raise DataError(f"{text}: no such file, and none matches this pattern.")
    return found


def shown_name(paths: Sequence[str]) -> str:
    """One name for all files, for messages and titles."""
    if len(paths) == 1:
        return paths[0]
    others = paths[1] if len(paths) == 2 else f"{len(paths) - 1} more files"
    return f"{paths[0]} and {others}"


def read_several(paths: Sequence[str], request: Request) -> Contents:
    """The rows of all files; they must have the same columns."""
    import polars as pl

    parts = [read_source(path, request) for path in paths]
    first, source = parts[0], shown_name(paths)
    for path, part in zip(paths[1:], parts[1:], strict=True):
        _check_alike(paths[0], first, path, part)
    frame = pl.DataFrame()
    if first.frame.width:
        frames = [part.frame.select(first.frame.columns) for part in parts]
        try:
            frame = pl.concat(frames, how="vertical_relaxed")
        except pl.exceptions.PolarsError as error:
            raise DataError(f"{source}: the files do not fit: {error}.") from error
    label = free_name(LABEL, list(first.schema))
    short = [Path(path).name for path in paths]
    short = short if len({*short}) == len(short) else [*paths]
    names = np.repeat(np.array(short, dtype=object), [part.n_rows for part in parts])
    # Notes that all files have are given once, others with the name of the file.
    notes = [note for note in first.notes if all(note in part.notes for part in parts)]
    for path, part in zip(paths, parts, strict=True):
        notes += [f"{path}: {note}" for note in part.notes if note not in notes]
    same_shape = len({part.image_shape for part in parts}) == 1
    return dataclasses.replace(
        first,
        frame=pl.DataFrame([*frame.get_columns(), pl.Series(label, names, dtype=pl.String)]),
        matrix=_stacked(source, [part.matrix for part in parts]),
        labels=(*first.labels, label),
        notes=(f"rows of {len(parts)} files; the label {LABEL!r} names them", *notes),
        image_shape=first.image_shape if same_shape else None,
        declared=False,
    )


def _check_alike(first_path: str, first: Contents, path: str, other: Contents) -> None:
    if (first.matrix is None) != (other.matrix is None):
        raise DataError(f"{path}: has another form than {first_path}; stack files of one kind.")
    check_columns_alike(first_path, first.schema, path, other.schema, list(first.schema))
    if other.matrix is not None:
        here, there = other.matrix.shape[1], first.matrix.shape[1]
        if here != there:
            raise DataError(f"{path}: has {count(here, 'column')}, but {first_path} has {there}.")
        if first.matrix_names != other.matrix_names:
            raise DataError(f"{path}: has its columns in another order than {first_path}.")


def check_columns_alike(
    first_path: str,
    first: Mapping[str, pl.DataType],
    path: str,
    other: Mapping[str, pl.DataType],
    wanted: Sequence[str],
    *,
    exact: bool = True,
) -> None:
    """Refuse a file that lacks a wanted column of the first one, or has other values in one.

    With ``exact`` it must not have more columns either.
    """
    missing = [name for name in wanted if name not in other]
    added = [name for name in other if name not in first] if exact else []
    if missing or added:
        lacks = f"lacks {listing(missing, 4)}" if missing else ""
        has = f"has {listing(added, 4)} in addition to the others" if added else ""
        what = " and ".join(filter(None, (lacks, has)))
        raise DataError(f"{path}: {what}; all files must have the columns of {first_path}.")
    for name in wanted:
        kind, own = kind_of(first[name]), kind_of(other[name])
        if kind != own and "nothing" not in (kind, own):
            raise DataError(f"{path}: column {name!r} holds {own}, but {kind} in {first_path}.")


def _stacked(source: str, matrices: list[Any]) -> Any:
    if matrices[0] is None:
        return None
    if any(map(is_sparse, matrices)):
        import scipy.sparse

        return scipy.sparse.csr_matrix(scipy.sparse.vstack(matrices, format="csr"))
    rows, width = sum(len(matrix) for matrix in matrices), matrices[0].shape[1]
    require_for_table(source, rows, width, matrices[0].itemsize * width)
    return np.concatenate(matrices)
