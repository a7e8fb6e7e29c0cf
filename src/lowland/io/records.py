"""A delimited text record by record, for line numbers; slow, and used only after an error."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from lowland._core.errors import DataError
from lowland.io.opening import File

__all__ = ["check_widths", "first_record", "is_number", "records"]


def first_record(file: File, separator: str) -> list[str]:
    """The fields of the first line that is not blank."""
    for _, fields in records(file, separator):
        if fields:
            return fields
    raise DataError(f"{file}: the file is empty.")


def records(file: File, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Every record with the number of its last line; decoding errors name the line."""
    with file.path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines, delimiter=separator, strict=True)
        try:
            for fields in reader:
                yield reader.line_num, fields
        except UnicodeDecodeError as error:
            raise _not_utf8(file) from error
        except csv.Error as error:
            reason = str(error)
            if "unexpected end of data" in reason:
                reason = "a quotation mark is opened and never closed"
            raise DataError(f"{file}, line {reader.line_num}: {reason}.") from error


def check_widths(file: File, separator: str, width: int) -> None:
    """Raise for the first line that has another number of fields than the first one."""
    for line, fields in records(file, separator):
        if fields and len(fields) != width:
            raise DataError(
                f"{file}, line {line}: {len(fields)} fields where the first line has {width}."
            )


def is_number(text: str) -> bool:
    """Whether Python reads the text as a number; blanks around it are allowed."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _not_utf8(file: File) -> DataError:
    with file.path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return DataError(
                    f"{file}, line {number}: not UTF-8 text (byte 0x{byte:02x} at position "
                    f"{error.start}); save the file as UTF-8."
                )
    return DataError(f"{file}: not UTF-8 text; save the file as UTF-8.")
