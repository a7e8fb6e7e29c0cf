"""CSV and TSV: header, types, blank lines, and the line number of an error."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from lowland._core.errors import DataError
from lowland.io.budget import column_bytes, require_for_table
from lowland.io.contents import Contents, Request, unreadable
from lowland.io.formulas import unguarded, unguarded_name
from lowland.io.opening import File
from lowland.io.records import check_widths, first_record, is_number, records

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_csv", "read_delimited", "read_tsv", "separator_of"]

# Types are inferred from the first rows; if a later value does not fit, from all rows.
GUESS_ROWS = 10_000
GUESS_FIELDS = 1_000_000  # fewer rows of a wide table: inference is slower than reading
LARGE = 4_000_000  # bytes; types of larger files are inferred before the file is read
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-", ".")


def read_csv(file: File, request: Request) -> Contents:
    """Comma-separated values, or semicolons where the first line has no comma."""
    return read_delimited(file, separator_of(file))


def read_tsv(file: File, request: Request) -> Contents:
    """Tab-separated values."""
    return read_delimited(file, "\t")


def separator_of(file: File) -> str:
    """The comma, unless only semicolons split the first line."""
    header = first_record(file, ",")
    return ";" if len(header) == 1 and ";" in header[0] else ","


def read_delimited(file: File, separator: str, *, headed: bool | None = None) -> Contents:
    """The table. If ``headed`` is None, the first line is a header unless all of it are numbers."""
    header = first_record(file, separator)
    notes, id_name = [], None
    if headed is None:
        headed = not all(is_number(field) for field in header)
        if not headed:
            last = len(header) - 1
            notes.append(f"no header line, columns are named column_0 to column_{last}")
    if headed:
        names = [unguarded_name(name.strip()) or f"column_{i}" for i, name in enumerate(header)]
        if not header[0].strip() and len(header) > 1:  # as pandas and R write names of rows
            id_name = names[0] = "index" if "row" in names else "row"
            notes.append("the first column has no name and is taken as the row id")
        _refuse_duplicates(file, names)
    else:
        names = [f"column_{i}" for i in range(len(header))]
    frame = _parse(file, separator, names, headed)
    frame = _without_blank_lines(file, separator, frame)
    frame, doubts = _repair_types(unguarded(frame), id_name)
    return Contents(frame, id_name=id_name, notes=(*notes, *doubts))


def _parse(file: File, separator: str, names: list[str], headed: bool) -> pl.DataFrame:
    import polars as pl

    how = {"separator": separator, "has_header": headed}
    rows = min(GUESS_ROWS, max(100, GUESS_FIELDS // len(names)))
    for guess in (True, False):
        try:
            schema = _inferred_types(file, rows, how) if guess and file.size >= LARGE else None
            frame = pl.read_csv(
                file.path, schema=schema, infer_schema_length=rows if guess else None, **how
            )
            break
        except pl.exceptions.PolarsError as error:
            reason = error
    else:
        check_widths(file, separator, len(names))
        raise unreadable(file, "CSV", reason)
    if frame.width != len(names) or (frame.width > 1 and frame[:, -1].has_nulls()):
        # A short line looks like a missing last value.
        check_widths(file, separator, len(names))
    if frame.width != len(names):
        raise unreadable(file, "CSV", "its lines do not end in a line feed")
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def _inferred_types(file: File, rows: int, how: dict[str, Any]) -> dict[str, pl.DataType]:
    """Types inferred from the first rows; a table that does not fit into memory is refused.

    Small whole numbers get a narrow type, so that a pixel takes 2 bytes instead of 8. If a later
    value does not fit its type, reading fails, and the caller reads again with types inferred from
    all rows.
    """
    import polars as pl

    sample = pl.read_csv(file.path, n_rows=rows, infer_schema_length=rows, **how)
    schema = {column.name: _narrow_type(column) for column in sample.iter_columns()}
    with file.path.open("rb") as lines:
        lengths = [len(line) for line in itertools.islice(lines, 1, rows)]
    estimate = round(file.size * len(lengths) / max(sum(lengths), 1))
    numbers = [dtype for dtype in schema.values() if dtype.is_numeric()]
    small = all(dtype in (pl.Int16, pl.UInt16) for dtype in numbers)
    row_bytes = column_bytes(schema.values()) + len(numbers) * (4 if small else 8)
    require_for_table(
        file,
        estimate,
        sample.width,
        row_bytes,
        advice="save it as Parquet and choose columns",
        estimated=True,
    )
    return schema


def _narrow_type(column: pl.Series) -> pl.DataType:
    import polars as pl

    if not column.dtype.is_integer() or column.count() == 0:
        return column.dtype
    if column.min() >= 0:
        return pl.UInt16() if column.max() < 2**16 else column.dtype
    return pl.Int16() if column.min() >= -(2**15) and column.max() < 2**15 else column.dtype


def _without_blank_lines(file: File, separator: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Remove blank lines. A line of empty fields is a row with all values missing, and stays."""
    import polars as pl

    if not frame[:, 0].has_nulls():
        return frame
    empty = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    if not empty.any():
        return frame
    blank = sum(not fields for _, fields in records(file, separator))
    return frame.filter(~empty) if blank == empty.sum() else frame


def _repair_types(frame: pl.DataFrame, id_name: str | None) -> tuple[pl.DataFrame, list[str]]:
    """Turn columns of text into numbers if all their values are numbers, blank or missing."""
    import polars as pl

    notes = []
    for name, dtype in frame.schema.items():
        if dtype != pl.String or name == id_name:
            continue
        text = frame[name].str.strip_chars()
        text = text.set(text.str.to_lowercase().is_in(MISSING), None)
        number = text.cast(pl.Float64, strict=False)
        odd = text.is_not_null() & number.is_null()
        if number.count() and not odd.any():
            frame = frame.with_columns(number)
        elif number.count() > odd.sum():
            row = int(odd.arg_true()[0])
            notes.append(
                f"column {name!r} is kept as a label because not all of it is numbers: "
                f"row {row} holds {text[row]!r}"
            )
    return frame, notes


def _refuse_duplicates(file: File, names: list[str]) -> None:
    if len(set(names)) == len(names):
        return
    twice = sorted({name for name in names if names.count(name) > 1})
    listed = ", ".join(repr(name) for name in twice[:5])
    raise DataError(f"{file}: several columns are called {listed}; rename all but one.")
