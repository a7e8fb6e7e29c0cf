"""CSV and TSV: header, types, blank lines, and the line number when something is broken."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lowland._core.errors import DataError
from lowland.io.contents import Contents, unreadable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_csv", "read_tsv"]

# Types are guessed from the first rows; a later surprise costs a second, complete look.
GUESS_ROWS = 10_000
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-", ".")


def read_csv(path: Path) -> Contents:
    """Comma-separated values, or semicolons where the first line has no comma."""
    header = _first_record(path, ",")
    if len(header) == 1 and ";" in header[0]:
        return _read(path, ";")
    return _read(path, ",")


def read_tsv(path: Path) -> Contents:
    """Tab-separated values."""
    return _read(path, "\t")


def _read(path: Path, separator: str) -> Contents:
    header = _first_record(path, separator)
    notes, id_name = [], None
    headed = not all(_is_number(field) for field in header)
    if headed:
        names = [name.strip() or f"column_{i}" for i, name in enumerate(header)]
        if not header[0].strip() and len(header) > 1:  # pandas and R write their row names so
            id_name = names[0] = "index" if "row" in names else "row"
            notes.append("the first column has no name and is taken as the row id")
        _refuse_duplicates(path, names)
    else:
        names = [f"column_{i}" for i in range(len(header))]
        notes.append(f"no header line, columns are named column_0 to column_{len(header) - 1}")
    frame = _parse(path, separator, names, headed)
    frame = _without_blank_lines(path, separator, frame)
    frame, doubts = _repair_types(frame, id_name)
    return Contents(frame, id_name=id_name, notes=(*notes, *doubts))


def _parse(path: Path, separator: str, names: list[str], headed: bool) -> pl.DataFrame:
    import polars as pl

    for rows in (GUESS_ROWS, None):
        try:
            frame = pl.read_csv(
                path, separator=separator, has_header=headed, infer_schema_length=rows
            )
            break
        except pl.exceptions.PolarsError as error:
            reason = error
    else:
        _diagnose(path, separator, len(names))
        raise unreadable(path, "CSV", reason)
    if frame.width != len(names) or (frame.width > 1 and frame[:, -1].has_nulls()):
        _diagnose(path, separator, len(names))  # a short line looks like a missing last value
    if frame.width != len(names):
        raise unreadable(path, "CSV", "its lines do not end in a line feed")
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def _without_blank_lines(path: Path, separator: str, frame: pl.DataFrame) -> pl.DataFrame:
    """A blank line is no row, but a line of empty fields is one, with every value missing."""
    import polars as pl

    empty = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    if not empty.any():
        return frame
    blank = sum(not fields for _, fields in _records(path, separator))
    return frame.filter(~empty) if blank == empty.sum() else frame


def _repair_types(frame: pl.DataFrame, id_name: str | None) -> tuple[pl.DataFrame, list[str]]:
    """Columns of numbers that came as text because of blanks or marks of a missing value."""
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


def _first_record(path: Path, separator: str) -> list[str]:
    for _, fields in _records(path, separator):
        if fields:
            return fields
    raise DataError(f"{path}: the file is empty.")


def _records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Every record with the number of its last line; decoding errors name the line."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator, strict=True)
        try:
            for fields in reader:
                yield reader.line_num, fields
        except UnicodeDecodeError as error:
            raise _not_utf8(path) from error
        except csv.Error as error:
            reason = str(error)
            if "unexpected end of data" in reason:
                reason = "a quotation mark is opened and never closed"
            raise DataError(f"{path}, line {reader.line_num}: {reason}.") from error


def _not_utf8(path: Path) -> DataError:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return DataError(
                    f"{path}, line {number}: not UTF-8 text (byte 0x{byte:02x} at position "
                    f"{error.start}); save the file as UTF-8."
                )
    return DataError(f"{path}: not UTF-8 text; save the file as UTF-8.")


def _diagnose(path: Path, separator: str, width: int) -> None:
    """Raise for the first line that has another number of fields than the first one."""
    for line, fields in _records(path, separator):
        if fields and len(fields) != width:
            raise DataError(
                f"{path}, line {line}: {len(fields)} fields where the first line has {width}."
            )


def _refuse_duplicates(path: Path, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        listed = ", ".join(repr(name) for name in twice[:5])
        raise DataError(f"{path}: several columns are called {listed}; rename all but one.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
