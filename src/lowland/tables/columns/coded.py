"""Values that the user declares to mean "missing": they become missing before columns get roles."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lowland._base.errors import count, listing
from lowland._base.validation import is_sparse
from lowland.preparation._categories import Code, check_columns_of_codes, codes_for, without_codes
from lowland.tables.contents import Contents
from lowland.tables.formats.dialect import MISSING

if TYPE_CHECKING:
    import polars as pl


def coded_as_missing(
    contents: Contents, codes: Sequence[Code], kept: Collection[str] = ()
) -> Contents:
    """The contents with the coded values missing, except in the columns that are ``kept``.

    A column of text that has only numbers left becomes a column of numbers.
    """
    if not codes:
        return contents
    named = [*contents.schema, *contents.unread]
    if contents.matrix is None or contents.matrix_names is not None:
        check_columns_of_codes(codes, named)
    found: dict[str, int] = {}
    columns, repaired = [], []
    for column in contents.frame.iter_columns():
        here = [] if column.name in kept else codes_for(codes, column.name)
        changed, n_changed = _without(column, here) if here else (column, 0)
        columns.append(changed)
        if n_changed:
            found[column.name] = n_changed
        if changed.dtype != column.dtype:
            repaired.append(column.name)
    frame = contents.frame.with_columns(columns)
    matrix, n_matrix = _matrix_without(contents, codes)
    given = listing([code.text for code in codes], quote=False)
    total = sum(found.values()) + n_matrix
    where = f" in {listing(list(found))}" if found else ""
    said = f"{count(total, 'value')} declared to be missing ({given}){where}"
    notes = [note for note in contents.notes if not _is_about(note, repaired)]
    return dataclasses.replace(contents, frame=frame, matrix=matrix, notes=(*notes, said))


def _is_about(note: str, columns: Sequence[str]) -> bool:
    """Whether a reader said that one of these columns is no column of numbers."""
    return any(note.startswith(f"column {name!r} is kept as a label") for name in columns)


def _without(column: pl.Series, codes: Sequence[Code]) -> tuple[pl.Series, int]:
    """The column with null in place of the codes, and how many there were."""
    import polars as pl

    if column.dtype.is_numeric():
        coded = pl.repeat(False, len(column), eager=True, dtype=pl.Boolean)
        for code in codes:
            if code.number is not None:
                number = np.float32(code.number) if column.dtype == pl.Float32 else code.number
                coded |= (column == number).fill_null(False)
        n_coded = int(coded.sum())
        return (column.set(coded, None) if n_coded else column), n_coded
    if column.dtype != pl.String:
        return column, 0
    stripped = column.str.strip_chars()
    coded = stripped.str.to_lowercase().is_in([code.text.lower() for code in codes])
    numbers = [code.number for code in codes if code.number is not None]
    if numbers:
        coded |= stripped.cast(pl.Float64, strict=False).is_in(numbers).fill_null(False)
    coded = coded.fill_null(False)
    n_coded = int(coded.sum())
    if not n_coded:
        return column, 0
    cleared = column.set(coded, None)
    number = numbers_in_text(cleared)
    return (cleared if number is None else number), n_coded


def numbers_in_text(column: pl.Series) -> pl.Series | None:
    """The numbers of a column of text, if there is nothing else in it but what is missing."""
    import polars as pl

    text = column.str.strip_chars()
    text = text.set(text.str.to_lowercase().is_in(MISSING).fill_null(False), None)
    number = text.cast(pl.Float64, strict=False)
    return number if number.count() and number.null_count() == text.null_count() else None


def _matrix_without(contents: Contents, codes: Sequence[Code]) -> tuple[object, int]:
    matrix = contents.matrix
    if matrix is None:
        return None, 0
    if not is_sparse(matrix):
        return without_codes(matrix, None, codes)
    values, n_found = without_codes(matrix.data[:, None], None, [c for c in codes if not c.column])
    if not n_found:
        return matrix, 0
    changed = matrix.copy()
    changed.data = values[:, 0]
    return changed, n_found
