"""A delimited text record by record, for line numbers; slow, and used only after an error."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from lowland._core.errors import DataError
from lowland.io.files.opening import File

# Fields that say that a value is missing, in lower case.
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-", ".")


def records(file: File, separator: str, skipped: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Every record of a file in UTF-8 with the number of its last line, after skipped lines."""
    with file.path.open(encoding="utf-8-sig", newline="") as lines:
        for _ in range(skipped):
            next(lines, None)
        reader = csv.reader(lines, delimiter=separator, strict=True)
        try:
            for fields in reader:
                yield skipped + reader.line_num, fields
        except csv.Error as error:
            reason = str(error)
            if "unexpected end of data" in reason:
                reason = "a quotation mark is opened and never closed"
            raise DataError(f"{file}, line {skipped + reader.line_num}: {reason}.") from error


def check_widths(file: File, separator: str, width: int, skipped: int = 0) -> None:
    """Raise for the first line after skipped ones that has another number of fields."""
    for line, fields in records(file, separator, skipped):
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
