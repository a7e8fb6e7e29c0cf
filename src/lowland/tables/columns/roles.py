"""Which column is a feature, which a label, which the row id."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, count, listing, unknown_name
from lowland._base.validation import is_sparse
from lowland.preparation._categories import Code, check_columns_of_codes, codes_for, without_codes
from lowland.tables.columns.guessing import Guess, coded_columns, guess_roles
from lowland.tables.contents import Contents, Request, named_matrix
from lowland.tables.formats.dialect import MISSING

if TYPE_CHECKING:
    import polars as pl


class Roles(NamedTuple):
    """Every column of a source in exactly one role.

    ``guesses`` are columns of numbers that were set aside because they look like ids or classes,
    and an id that the names suggested; ``by_type`` are labels only because they are no numbers.
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
        """Numbers are features, unless the source, the caller or the look of them says otherwise.

        Text is a label. What the caller says is never changed by a guess.
        """
        import polars as pl

        schema = _without_dropped(source, contents, request)
        asked = [*request.labels, *([request.id_column] if request.id_column else [])]
        known = [*schema, *contents.unread]
        check_names(source, known, asked)
        _check_use(source, known, request)
        offered = contents.id_name in schema and contents.id_name not in request.use
        given_id = contents.id_name if offered else None
        guesses = _guesses(contents, schema, request, given_id)
        id_name = request.id_column or given_id
        if id_name is None:
            id_name = next((guess.name for guess in guesses if guess.role == "id"), None)
        # A row id of the file is not a measurement, also if the user chose another id.
        given = {*request.labels, *contents.labels, given_id, *(guess.name for guess in guesses)}
        given -= {*(request.columns or ()), *request.use}
        dropped = [
            name
            for name, dtype in schema.items()
            if dtype.is_nested() or dtype in (pl.Binary, pl.Object)
        ]
        dropped += [name for name in contents.left_out if name not in request.drop]
        apart = {*given, id_name}
        numeric = [
            name
            for name, dtype in schema.items()
            if (dtype.is_numeric() or dtype == pl.Boolean) and name not in apart
        ]
        wanted = numeric if request.columns is None else request.columns
        wanted = [name for name in wanted if name not in request.drop]
        features = wanted if contents.is_named else []
        features += [name for name in request.use if name not in features]
        if contents.is_named:
            _check_features(source, schema, features, numeric, guesses, request)
            numbers = set(numeric)
            features = [name for name in features if name in numbers]
        chosen = set(features)
        unused = [name for name in numeric if name not in chosen]
        taken = {*features, *unused, *dropped, id_name}
        labels = [name for name in schema if name not in taken]
        by_type = tuple(name for name in labels if name not in given)
        unread = [name for name in contents.unread if name not in request.drop]
        return cls(features, labels, [*unused, *unread], dropped, id_name, guesses, by_type)

    def notes(self, contents: Contents, request: Request) -> list[str]:
        """What a person should know about the roles that nobody asked for."""
        if request.columns is not None:
            return []
        say = request.spelling
        # text is no feature at any rate, so nothing is lost if it names the rows
        notes = [guess.note(say) for guess in self.guesses if not guess.is_text]
        unasked = [name for name in self.features if name not in request.use]
        coded = coded_columns(contents.frame, unasked) if _may_guess(contents, request) else []
        if coded:
            listed = ", ".join(f"{name!r} ({values} values)" for name, values in coded)
            verb = "is mapped as a quantity" if len(coded) == 1 else "are mapped as quantities"
            back = say.columns("labels", [name for name, _ in coded])
            notes.append(f"{listed} {verb}; if these numbers are codes of classes, add {back}")
        if self.dropped:
            notes.append(
                f"columns of nested or binary values are left out: {listing(self.dropped)}"
            )
        return notes


def _may_guess(contents: Contents, request: Request) -> bool:
    """Whether columns have names that people gave them, and no declared roles."""
    return request.guess and contents.matrix is None and not contents.declared


def _guesses(
    contents: Contents,
    schema: Mapping[str, pl.DataType],
    request: Request,
    given_id: str | None,
) -> tuple[Guess, ...]:
    if not _may_guess(contents, request):
        return ()
    settled = {*(request.columns or ()), *request.use, *request.labels, *contents.labels}
    settled |= {given_id, request.id_column}
    candidates = [name for name in schema if name not in settled]
    needs_id = given_id is None and request.id_column is None
    by_name = request.columns is not None
    return tuple(guess_roles(contents.frame, candidates, needs_id=needs_id, names_only=by_name))


def _without_dropped(
    source: str, contents: Contents, request: Request
) -> Mapping[str, pl.DataType]:
    """The columns without those that the caller does not want."""
    schema = contents.schema
    known = [*schema, *contents.unread, *contents.left_out]
    option = request.spelling.option("drop")
    for name in request.drop:
        if name not in known:
            raise DataError(f"{source}: {option}: {unknown_name('column', name, known)}")
    return {name: dtype for name, dtype in schema.items() if name not in request.drop}


def _check_use(source: str, known: list[str], request: Request) -> None:
    """A column that is mapped is neither a label nor the row id."""
    option = request.spelling.option("use")
    check_names(source, known, request.use)
    for name in request.use:
        if name in request.labels or name == request.id_column:
            raise DataError(
                f"{source}: {option}: column {name!r} cannot be mapped and be a label or the row "
                "id at the same time."
            )


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
        raise DataError(
            f"{source}: column {text[0]!r} must hold numbers, but its type is {schema[text[0]]}."
        )
    if features or request.allow_text:
        return
    apart = [guess for guess in guesses if not guess.is_text]
    if request.drop and not apart:
        raise DataError(f"{source}: {request.spelling.option('drop')} leaves no column of numbers.")
    if apart:
        reasons = "; ".join(f"{guess.name!r}: {guess.reason}" for guess in apart)
        taken = {guess.name for guess in apart}
        rest = [f"{name!r} ({dtype})" for name, dtype in schema.items() if name not in taken]
        others = f"; no numbers: {listing(rest, quote=False)}" if rest else ""
        raise DataError(
            f"{source}: no column is left to map ({reasons}{others}); "
            f"{request.spelling.columns('use', [guess.name for guess in apart])} maps "
            f"{'it' if len(apart) == 1 else 'them'} all the same."
        )
    found = [f"{name!r} ({dtype})" for name, dtype in schema.items()]
    raise DataError(f"{source}: no column of numbers; found {listing(found, quote=False)}.")


# Tables whose rows are the columns to map, such as genes in rows and cells in columns.


def transposed(source: str, contents: Contents, request: Request) -> Contents:
    """Rows become columns and the reverse; names of rows become names of columns and the reverse.

    The names of the rows are those of ``request.id_column``, else of the row id of the source, else
    of the first column of text. Other columns of text describe rows that are now columns: they are
    left out, and a note says so.
    """
    if contents.matrix is None:
        return _transposed_frame(source, contents, request)
    names = None
    id_name = request.id_column or contents.id_name
    if id_name is not None:
        check_names(source, contents.frame.columns, [id_name])
        names = [str(name) for name in contents.frame[id_name]]
    left = [name for name in contents.frame.columns if name != id_name]
    matrix = contents.matrix.T
    matrix = matrix.tocsr() if is_sparse(contents.matrix) else np.ascontiguousarray(matrix)
    return _named(matrix, names, contents.matrix_names, contents.notes, left, id_name)


def _transposed_frame(source: str, contents: Contents, request: Request) -> Contents:
    import polars as pl

    frame = contents.frame
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    id_name = request.id_column or contents.id_name or (texts[0] if texts else None)
    if id_name is not None:
        check_names(source, frame.columns, [id_name])
    numbers = [
        name
        for name, dtype in frame.schema.items()
        if (dtype.is_numeric() or dtype == pl.Boolean) and name != id_name
    ]
    if not numbers:
        found = listing(
            [f"{name!r} ({dtype})" for name, dtype in frame.schema.items()], quote=False
        )
        raise DataError(f"{source}: no column of numbers to transpose; found {found}.")
    names = None if id_name is None else _row_names(frame[id_name])
    left = [name for name in frame.columns if name not in {id_name, *numbers}]
    block = _block(frame.select(numbers))
    return _named(block.T, names, numbers, contents.notes, left, id_name)


def _block(frame: pl.DataFrame) -> np.ndarray:
    """The numbers as one array; NaN where they are missing."""
    import polars as pl

    narrow = all(dtype == pl.Float32 for dtype in frame.dtypes)
    return frame.cast(pl.Float32 if narrow else pl.Float64).to_numpy()


def _row_names(column: pl.Series) -> list[str]:
    return [f"row_{i}" if name is None else str(name) for i, name in enumerate(column.to_list())]


def _named(
    matrix: Any,
    names: list[str] | None,
    ids: Any,
    notes: tuple[str, ...],
    left: list[str],
    id_name: str | None,
) -> Contents:
    """The contents of the transposed matrix; ``ids`` name its rows, ``names`` its columns."""
    rows, columns = matrix.shape
    called = "" if id_name is None else f", named by {id_name!r}"
    said = [f"transposed: {rows} columns became rows, {columns} rows became columns{called}"]
    if left:
        said.append(f"columns that describe the former rows are left out: {listing(left)}")
    labels = {} if ids is None else {"row": np.array([str(name) for name in ids], dtype=object)}
    return named_matrix(matrix, names, labels, (*notes, *said), "row" if labels else None)


# Values that the user declares to mean "missing": they become missing before columns get roles.


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
