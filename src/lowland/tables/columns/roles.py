"""Which column is a feature, which a label, which the row id."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lowland._base.errors import DataError, count, listing, unknown_name
from lowland._base.validation import is_sparse
from lowland.preparation._categories import Code, check_columns_of_codes, without_codes
from lowland.tables.columns.guessing import (
    Guess,
    coded_columns,
    described,
    guess_roles,
    holds_no_values,
    is_number,
    is_text,
)
from lowland.tables.contents import Contents, Request, named_matrix
from lowland.tables.formats.dialect import MISSING

if TYPE_CHECKING:
    import polars as pl


class Roles(NamedTuple):
    """Every column of a source in exactly one role.

    ``guesses`` are columns of numbers that were set aside because they look like ids or classes,
    and an id that the names suggested; ``by_type`` are labels only because they are not numbers.
    """

    features: list[str]
    labels: list[str]
    unused: list[str]
    dropped: list[str]
    id_name: str | None
    guesses: tuple[Guess, ...] = ()
    by_type: tuple[str, ...] = ()

    @classmethod
    def assign(cls, source: str, contents: Contents, request: Request) -> Roles:
        """Numbers are features, unless the source, the caller or their values suggest otherwise.

        Text is a label. A choice of the caller is never changed by a guess.
        """
        schema = contents.schema
        known = [*schema, *contents.unread, *contents.left_out]
        for name in request.drop:
            if name not in known:
                option = request.spelling.option("drop")
                raise DataError(f"{source}: {option}: {unknown_name('column', name, known)}")
        schema = {name: dtype for name, dtype in schema.items() if name not in request.drop}
        asked = [*request.labels, *filter(None, [request.id_column]), *request.use]
        check_names(source, [*schema, *contents.unread], asked)
        for name in request.use:
            if name in request.labels or name == request.id_column:
                what = f"column {name!r} cannot be mapped and be a label or the row id"
                raise DataError(f"{source}: {request.spelling.option('use')}: {what}.")
        offered = contents.id_name in schema and contents.id_name not in request.use
        given_id = contents.id_name if offered else None
        guesses: tuple[Guess, ...] = ()
        if _may_guess(contents, request):
            settled = {*(request.columns or ()), *request.use, *request.labels, *contents.labels}
            settled |= {given_id, request.id_column}
            free = [name for name in schema if name not in settled]
            needs_id = given_id is None and request.id_column is None
            how = {"needs_id": needs_id, "names_only": request.columns is not None}
            guesses = tuple(guess_roles(contents.frame, free, **how))
        guessed_id = next((guess.name for guess in guesses if guess.role == "id"), None)
        id_name = request.id_column or given_id or guessed_id
        # A row id of the file is not a measurement, also if the user chose another id.
        given = {*request.labels, *contents.labels, given_id, *(guess.name for guess in guesses)}
        given -= {*(request.columns or ()), *request.use}
        dropped = [name for name, dtype in schema.items() if holds_no_values(dtype)]
        dropped += [name for name in contents.left_out if name not in request.drop]
        apart = {*given, id_name}
        numeric = [name for name, dtype in schema.items() if is_number(dtype) and name not in apart]
        features = []
        if contents.is_named:
            wanted = numeric if request.columns is None else request.columns
            features = [name for name in wanted if name not in request.drop]
            features += [name for name in request.use if name not in features]
            _check_features(source, schema, features, numeric, guesses, request)
            numbers = set(numeric)
            features = [name for name in features if name in numbers]
        chosen = set(features)
        unused = [name for name in numeric if name not in chosen]
        taken = {*features, *unused, *dropped, id_name}
        labels = [name for name in schema if name not in taken]
        by_type = tuple(name for name in labels if name not in given)
        unused += [name for name in contents.unread if name not in request.drop]
        return cls(features, labels, unused, dropped, id_name, guesses, by_type)

    def notes(self, contents: Contents, request: Request) -> list[str]:
        """Notes for the user on the roles that were chosen automatically."""
        if request.columns is not None:
            return []
        say = request.spelling
        # text is not a feature at any rate, so nothing is lost if it names the rows
        notes = [guess.note(say) for guess in self.guesses if not guess.is_text]
        unasked = [name for name in self.features if name not in request.use]
        coded = coded_columns(contents.frame, unasked) if _may_guess(contents, request) else []
        if coded:
            listed = ", ".join(f"{name!r} ({values} values)" for name, values in coded)
            verb = "is mapped as a quantity" if len(coded) == 1 else "are mapped as quantities"
            back = say.columns("labels", [name for name, _ in coded])
            notes.append(f"{listed} {verb}; if these numbers are codes of classes, add {back}")
        if self.dropped:
            left = listing(self.dropped)
            notes.append(f"columns of nested or binary values are left out: {left}")
        return notes


def _may_guess(contents: Contents, request: Request) -> bool:
    """Whether columns have names that people gave them, and no declared roles."""
    return request.guess and contents.matrix is None and not contents.declared


def check_names(source: str, known: list[str], asked: Sequence[str]) -> None:
    """Refuse names that no column has."""
    for name in asked:
        if name not in known:
            if not known:
                raise DataError(f"{source}: its columns have no names, so there is no {name!r}.")
            raise DataError(f"{source}: {unknown_name('column', name, known)}")


def _check_features(
    source: str,
    schema: Mapping[str, pl.DataType],
    features: list[str],
    numeric: list[str],
    guesses: Sequence[Guess],
    request: Request,
) -> None:
    missing = [name for name in features if name not in schema]
    if missing:
        noun = "column is" if len(missing) == 1 else "columns are"
        raise DataError(f"{source}: {len(missing)} needed {noun} missing: {listing(missing)}.")
    numbers = set(numeric)
    text = [name for name in features if name not in numbers]
    if text and not request.allow_text:
        what = f"must hold numbers, but its type is {schema[text[0]]}"
        raise DataError(f"{source}: column {text[0]!r} {what}.")
    if features or request.allow_text:
        return
    option = request.spelling.option
    apart = [guess for guess in guesses if not guess.is_text]
    if not apart:
        if request.drop:
            raise DataError(f"{source}: {option('drop')} leaves no column of numbers.")
        raise DataError(f"{source}: no column of numbers; found {described(schema)}.")
    names = [guess.name for guess in apart]
    reasons = "; ".join(f"{guess.name!r}: {guess.reason}" for guess in apart)
    rest = {name: dtype for name, dtype in schema.items() if name not in names}
    others = f"; no numbers: {described(rest)}" if rest else ""
    back = f"{request.spelling.columns('use', names)} maps {'it' if len(names) == 1 else 'them'}"
    raise DataError(f"{source}: no column is left to map ({reasons}{others}); {back}.")


# Tables whose rows are the columns to map, such as genes in rows and cells in columns.


def transposed(source: str, contents: Contents, request: Request) -> Contents:
    """Rows become columns and the reverse; names of rows become names of columns and the reverse.

    The names of the rows are those of ``request.id_column``, else of the row id of the source, else
    of the first column of text. Other columns of text describe rows that are now columns: they are
    left out, and a note states it.
    """
    import polars as pl

    frame = contents.frame
    if contents.matrix is not None:
        id_name = request.id_column or contents.id_name
        matrix = contents.matrix.T
        matrix = matrix.tocsr() if is_sparse(contents.matrix) else np.ascontiguousarray(matrix)
        ids, left = contents.matrix_names, [name for name in frame.columns if name != id_name]
    else:
        texts = [name for name, dtype in frame.schema.items() if is_text(dtype)]
        id_name = request.id_column or contents.id_name or (texts[0] if texts else None)
    if id_name is not None:
        check_names(source, frame.columns, [id_name])
    if contents.matrix is None:
        numbers = {n: dtype for n, dtype in frame.schema.items() if is_number(dtype)}
        numbers.pop(id_name, None)
        if not numbers:
            found = described(frame.schema)
            raise DataError(f"{source}: no column of numbers to transpose; found {found}.")
        kept = {id_name, *numbers}
        ids, left = (*numbers,), [name for name in frame.columns if name not in kept]
        narrow = all(dtype == pl.Float32 for dtype in numbers.values())
        block = frame.select(ids).cast(pl.Float32 if narrow else pl.Float64)
        matrix = block.to_numpy().T
    names, called = None, ""
    if id_name is not None:
        given = frame[id_name].to_list()
        names = [f"row_{i}" if name is None else str(name) for i, name in enumerate(given)]
        called = f", named by {id_name!r}"
    rows, columns = matrix.shape
    said = [f"transposed: {rows} columns became rows, {columns} rows became columns{called}"]
    if left:
        said.append(f"columns that describe the former rows are left out: {listing(left)}")
    labels = {} if ids is None else {"row": np.array([str(name) for name in ids], dtype=object)}
    return named_matrix(matrix, names, labels, (*contents.notes, *said), "row" if labels else None)


# Values that the user declares to mean "missing": they become missing before columns get roles.


def coded_as_missing(
    contents: Contents, codes: Sequence[Code], kept: Collection[str] = ()
) -> Contents:
    """The contents with the coded values missing, except in the columns that are ``kept``.

    A column of text that has only numbers left becomes a column of numbers.
    """
    if not codes:
        return contents
    if contents.matrix is None or contents.matrix_names is not None:
        check_columns_of_codes(codes, [*contents.schema, *contents.unread])
    found, changed, notes = {}, [], [*contents.notes]
    for column in contents.frame.iter_columns():
        here = [] if column.name in kept else [code for code in codes if code.applies(column.name)]
        coded = _coded(column, here) if here else None
        if coded is None or not coded.any():
            continue
        found[column.name] = int(coded.sum())
        cleared = column.set(coded, None)
        numbers = numbers_in_text(cleared) if is_text(column.dtype) else None
        if numbers is not None:  # the reader said that this is not a column of numbers
            said = f"column {column.name!r} is kept as a label"
            notes = [note for note in notes if not note.startswith(said)]
        changed.append(cleared if numbers is None else numbers)
    frame = contents.frame.with_columns(changed)
    matrix, n_matrix = contents.matrix, 0
    if is_sparse(matrix):
        everywhere = [code for code in codes if code.column is None]
        values, n_matrix = without_codes(matrix.data[:, None], None, everywhere)
        if n_matrix:
            matrix = matrix.copy()
            matrix.data = values[:, 0]
    elif matrix is not None:
        matrix, n_matrix = without_codes(matrix, None, codes)
    given = listing([code.text for code in codes], quote=False)
    where = f" in {listing(list(found))}" if found else ""
    total = count(sum(found.values()) + n_matrix, "value")
    notes.append(f"{total} declared to be missing ({given}){where}")
    return dataclasses.replace(contents, frame=frame, matrix=matrix, notes=tuple(notes))


def _coded(column: pl.Series, codes: Sequence[Code]) -> pl.Series | None:
    """Where a column of numbers or text has one of the codes."""
    import polars as pl

    numbers = [code.number for code in codes if code.number is not None]
    if column.dtype.is_numeric():
        if column.dtype == pl.Float32:
            numbers = [float(np.float32(number)) for number in numbers]
        return column.cast(pl.Float64).is_in(numbers).fill_null(False)
    if not is_text(column.dtype):
        return None
    stripped = column.str.strip_chars()
    coded = stripped.str.to_lowercase().is_in([code.text.lower() for code in codes])
    coded |= stripped.cast(pl.Float64, strict=False).is_in(numbers).fill_null(False)
    return coded.fill_null(False)


def numbers_in_text(column: pl.Series) -> pl.Series | None:
    """The numbers of a column of text, if there is nothing else in it but what is missing."""
    text = column.str.strip_chars()
    text = text.set(text.str.to_lowercase().is_in(MISSING).fill_null(False), None)
    number = text.cast(float, strict=False)
    return number if number.count() and number.null_count() == text.null_count() else None
