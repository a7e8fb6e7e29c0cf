"""How a delimited text is written: separator, header, comment lines, decimal mark.

All of it is decided here, from the first lines of the file:

* The separator is the one of comma, semicolon, tab, bar and white space that splits the lines into
  equally many fields, and among several the one whose fields are numbers most often. White space
  counts only if it gives more numbers than every other one.
* Lines at the top that begin with ``#`` are comments. The last of them is the header if it has a
  name for each field of the first row, which holds a number.
* The first line is a header unless all of its fields are numbers, or it has numbers where the
  rows have numbers and looks like one of them: words that come again, or numbers in no order.
* A header with one name less than the rows have fields names all but the first column, which holds
  names of rows, as R writes them.
* The decimal mark is a comma if fields such as ``1,5`` occur and none such as ``1.5``. A field such
  as ``1,234`` can be read in two ways.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lowland._base.errors import DataError, count
from lowland.tables.opening import MARKS, File, temporary

# The encoding of a text file: UTF-8, UTF-16 or UTF-32 with a mark, or Windows-1252.
#
# Readers of text get UTF-8. A file in another encoding is copied to a temporary file in UTF-8,
# and a note states it.


CHUNK = 1 << 20
FALLBACK = "cp1252"


@contextlib.contextmanager
def utf8(file: File) -> Iterator[tuple[File, list[str]]]:
    """The file, or a copy of it in UTF-8, and a note if it had to be converted."""
    encoding = _encoding(file)
    if encoding == "utf-8":
        yield file, []
        return
    with temporary(f"text{file.suffix}") as copy:
        _convert(file, encoding, copy)
        shown = "Windows-1252 (Western European)" if encoding == FALLBACK else encoding.upper()
        note = f"the file is no UTF-8 text and is read as {shown}"
        yield File(copy, file.name), [note]


def _encoding(file: File) -> str:
    with file.path.open("rb") as opened:
        start = opened.read(4)
        opened.seek(0)
        marked = [encoding for mark, encoding in MARKS if start.startswith(mark)]
        if marked:
            return marked[0]
        decoder = codecs.getincrementaldecoder("utf-8")()
        valid = True
        while chunk := opened.read(CHUNK):
            if b"\0" in chunk:
                raise DataError(f"{file}: holds a null byte, so it is not text; save it as UTF-8.")
            pending = decoder.getstate()[0]
            if valid and (pending or not chunk.isascii()):  # ASCII is by far the most common
                valid = decodes(decoder, chunk)
        return "utf-8" if valid and not decoder.getstate()[0] else FALLBACK


def decodes(decoder: codecs.IncrementalDecoder, chunk: bytes) -> bool:
    """Whether a decoder takes some more bytes."""
    try:
        decoder.decode(chunk)
    except UnicodeDecodeError:
        return False
    return True


def _convert(file: File, encoding: str, copy: Path) -> None:
    """Write a copy in UTF-8; bytes that the encoding does not know are refused with their line."""
    try:
        with (
            file.path.open(encoding=encoding, newline="") as text,
            copy.open("w", encoding="utf-8", newline="") as out,
        ):
            while chunk := text.read(CHUNK):
                if "\0" in chunk:
                    raise DataError(f"{file}: holds a null character; save it as UTF-8 text.")
                out.write(chunk)
    except UnicodeError as error:
        if encoding != FALLBACK:
            wrong = f"is not valid {encoding.upper()}"
            raise DataError(f"{file}: {wrong}; save it as UTF-8.") from error
        with file.path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                require_decoded(line, FALLBACK, f"{file}, line {number}")


def require_decoded(line: bytes, encoding: str, where: str) -> str:
    """The text of a line; bytes that the encoding does not know are refused."""
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{line[error.start]:02x} at position {error.start}"
        raise DataError(f"{where}: not UTF-8 text ({byte}); save the file as UTF-8.") from error


# A delimited text record by record, for line numbers; slow, and used only after an error.


# Fields that mean a missing value, in lower case.
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
            where = f"{file}, line {line}"
            raise DataError(f"{where}: {len(fields)} fields where the first line has {width}.")


def is_number(text: str) -> bool:
    """Whether Python reads the text as a number; blanks around it are allowed."""
    try:
        float(text)
    except ValueError:
        return False
    return True


SAMPLE = 1 << 16  # bytes of text that are looked at, but
FEWEST_LINES, LONGEST = 6, 1 << 24  # at least so many lines, each up to so many bytes
BLANKS = " "  # stands for any white space between fields
SEPARATORS = (",", ";", "\t", "|")
TOKEN = re.compile(r'"(?:[^"]|"")*"|\S+')
DIGITS = r"(?:\d[\d.,'\u2019]*|[1-9]\d{0,2}(?:[ \u00a0\u202f]\d{3})+(?:[.,]\d+)?|\.\d+)"
PLAIN = re.compile(rf"[+\-\u2212]?{DIGITS}(?:[eE][+\-]?\d+)?")
NUMERIC = re.compile(rf"[+\-\u2212]?(?:[$€£¥]\s?)?{DIGITS}(?:[eE][+\-]?\d+)?\s?[%‰€$£¥]?")
DECIMAL_COMMA = re.compile(r"[+\-\u2212]?(?:0,\d+|\d*,(?:\d{1,2}|\d{4,}))(?:[eE][+\-]?\d+)?")
DECIMAL_POINT = re.compile(r"[+\-\u2212]?(?:0\.\d+|\d*\.(?:\d{1,2}|\d{4,}))(?:[eE][+\-]?\d+)?")
PADDED = re.compile(r"[+\-]?0\d[\d.]*")


class Dialect(NamedTuple):
    """How the lines of a file are split, and which of them is the header."""

    separator: str
    skipped: int = 0  # lines before the header, or before the first row if there is none
    names: tuple[str, ...] | None = None  # the header; None if there is none
    in_rows: bool = True  # whether the header is the first line after those that are skipped
    width: int = 1
    row_names: bool = False  # whether the first column is one more than the header has names
    decimal_comma: bool = False
    padded: frozenset[int] = frozenset()  # columns with codes such as 007
    digits: dict[int, int] = {}  # columns of whole numbers of equally many digits, and how many
    notes: tuple[str, ...] = ()


def dialect_of(file: File, *, headed: bool | None = None) -> Dialect:
    """The dialect of a file in UTF-8; ``headed``: whether it has a header, if that is known."""
    lines = _first_lines(file)
    above = [*itertools.takewhile(lambda line: not line.strip() or line[0] == "#", lines)]
    if len(above) == len(lines) == 1 and lines[0].strip():
        above = []  # one line that begins with #: a header without rows
    body = lines[len(above) :]
    if not body:
        raise DataError(f"{file}: the file is empty.")
    separator = _separator(body, file.suffix)
    rows = _records(body, separator)
    last = next((line for line in reversed(above) if line.strip()), "")
    header, in_rows, notes = _header(last, rows, separator, headed)
    hashes = sum(line.startswith("#") for line in above) - (not in_rows)
    if hashes:
        notes.append(f"{count(hashes, 'comment line')} (#) at the top skipped")
    data = rows[1:] if header is not None and in_rows else rows
    row_names = header is not None and in_rows and _are_row_names(rows, _width(data))
    width = len(rows[0] if header is None else header) + row_names
    facts = [_column_facts(data, i) for i in range(width)]
    padded = frozenset(i for i, (is_padded, _) in enumerate(facts) if is_padded)
    digits = {i: n_digits for i, (_, n_digits) in enumerate(facts) if n_digits}
    comma = separator != "," and _decimal_comma(data)
    shape = header, in_rows, width, row_names
    return Dialect(separator, len(above), *shape, comma, padded, digits, tuple(notes))


def has_table(file: File) -> bool:
    """Whether all lines have equally many fields, and a third of these are numbers."""
    lines = [line for line in _first_lines(file) if line.strip() and line[0] != "#"]
    if len(lines) < 2:
        return False
    share, numbers = _score(lines, _separator(lines, file.suffix))
    return share == 1 and numbers >= 1 / 3


def looks_numeric(field: str, pattern: re.Pattern[str] = NUMERIC) -> bool:
    """Whether a field may be a number, with any marks, a percent sign or a currency."""
    field = field.strip()
    return bool(pattern.fullmatch(field)) or is_number(field)


def split_at_blanks(line: str) -> list[str]:
    """The fields between white space; a field in quotation marks may hold some."""
    return TOKEN.findall(line) if '"' in line else line.split()


def _first_lines(file: File) -> list[str]:
    lines, size = [], 0
    with file.path.open("rb") as opened:
        while size < SAMPLE or len(lines) < FEWEST_LINES:
            line = opened.readline(LONGEST)
            if not line:
                break
            size += len(line)
            lines.append(line)
        cut = bool(opened.read(1))
    text = b"".join(lines).decode("utf-8-sig", errors="replace")
    lines = text.split("\n")
    if cut and len(lines) > FEWEST_LINES:
        lines.pop()
    return lines


def _records(lines: Sequence[str], separator: str) -> list[list[str]]:
    """The fields of every line that is not blank."""
    if separator == BLANKS:
        fields = [split_at_blanks(line) for line in lines if line.strip()]
        return [[_unquoted(field) for field in row] for row in fields]
    try:
        reader = csv.reader(io.StringIO("\n".join(lines), newline=""), delimiter=separator)
        return [fields for fields in reader if fields]
    except csv.Error:  # a field of more than 131 072 characters
        return [line.split(separator) for line in lines if line.strip()]


def _unquoted(field: str) -> str:
    quoted = len(field) > 1 and field[0] == field[-1] == '"'
    return field[1:-1].replace('""', '"') if quoted else field


def _separator(lines: Sequence[str], suffix: str) -> str:
    first = "\t" if suffix == ".tsv" else ","
    best, found = (0.0, -1.0), None
    for mark in sorted(SEPARATORS, key=lambda mark: mark != first):
        score = _score(lines, mark)
        if score > best:
            best, found = score, mark
    share, numbers = _score(lines, BLANKS)
    sure = share == 1 and numbers > max(0.0, best[1])
    if sure or (found is None and share > 0.5 and numbers > 0.5):  # a line may be too short
        return BLANKS
    if found is None:  # a single column; decimal commas are not separators
        return ";" if suffix != ".tsv" and any("," in line for line in lines) else first
    return found


def _score(lines: Sequence[str], separator: str) -> tuple[float, float]:
    """The share of rows that have as many fields as the first line, and the share of numbers.

    (0, -1) if the separator does not split the first line.
    """
    if separator != BLANKS and not any(separator in line for line in lines):
        return 0.0, -1.0
    rows = _records(lines, separator)
    data = rows[1:] or rows
    width = _width(data)
    if len(rows[0]) != width and not _are_row_names(rows, width):
        width = len(rows[0])
    if width < 2:
        return 0.0, -1.0
    share = sum(len(row) == width for row in data) / len(data)
    fields = [field for row in data for field in row if field.strip()]
    return share, sum(map(looks_numeric, fields)) / max(len(fields), 1)


def _width(rows: Sequence[Sequence[str]]) -> int:
    counts = Counter(map(len, rows))
    return counts.most_common(1)[0][0] if counts else 0


def _are_row_names(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether all rows have one field more than the header, the last of which is not blank."""
    data = rows[1:]
    return (
        len(data) > 1
        and width >= 3
        and len(rows[0]) == width - 1
        and all(len(row) == width for row in data)
        and any(row[-1].strip() for row in data)
    )


def _header(
    above: str, rows: list[list[str]], separator: str, headed: bool | None
) -> tuple[tuple[str, ...] | None, bool, list[str]]:
    """The header, whether it is the first of the rows, and notes."""
    first = rows[0]
    if headed is None and above.startswith("#"):
        named = _records([above.lstrip("#").strip()], separator)
        # "#,name,x" begins with a column called "#", and "#CHROM" is one called CHROM.
        if above.lstrip("#")[:1] == separator != BLANKS:
            named = _records([above.rstrip("\r")], separator)
        fits = bool(named) and len(named[0]) == len(first) > 1
        if fits and any(map(looks_numeric, first)) and not all(map(looks_numeric, named[0])):
            return tuple(named[0]), False, ["the last comment line (#) is taken as the header"]
    if headed is None:
        # a sign of percent or of a currency may be part of a name
        headed = not (all(looks_numeric(field, PLAIN) for field in first) or _is_a_row(rows))
        if not headed:
            note = f"no header line, columns are named column_0 to column_{len(first) - 1}"
            return None, True, [note]
    if not headed:
        return None, True, []
    if _are_row_names(rows, _width(rows[1:])):
        return tuple(first), True, ["the header names all columns but the first, the row id"]
    return tuple(first), True, []


def _is_a_row(rows: list[list[str]]) -> bool:
    """Whether the first line, which holds words and numbers, looks like the lines below it.

    Names of columns may be numbers, such as years or wavelengths: these ascend, or have equal
    steps.
    """
    first, data = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if len(data) < 2 or not all(field.strip() for field in first):
        return False
    numeric = [i for i, field in enumerate(first) if is_number(field)]
    if not numeric:
        return False
    for i in range(len(first)):
        values = [row[i] for row in data if row[i].strip().lower() not in MISSING]
        if (i in numeric) != all(map(looks_numeric, values)):
            return False
    numbers = [float(first[i]) for i in numeric]
    ascends = all(a < b for a, b in itertools.pairwise(numbers))
    steps = [b - a for a, b in itertools.pairwise(numbers)]
    even = len(steps) > 1 and max(steps) - min(steps) <= 0.01 * abs(steps[0]) and steps[0] != 0
    words = [i for i in range(len(first)) if i not in numeric]
    again = any(first[i] in {row[i] for row in data} for i in words)
    return again or not (ascends or even)


def _decimal_comma(rows: Sequence[Sequence[str]]) -> bool:
    fields = [field.strip() for row in rows for field in row]
    commas = (DECIMAL_COMMA.fullmatch(field) for field in fields if "," in field)
    points = (DECIMAL_POINT.fullmatch(field) for field in fields if "." in field)
    return any(commas) and not any(points)


def _column_facts(rows: Sequence[Sequence[str]], place: int) -> tuple[bool, int]:
    """Whether numbers begin with 0 as codes do, and how many digits all of them have, if any."""
    fields = [row[place].strip() for row in rows if len(row) > place]
    fields = [field for field in fields if field]
    if any(field[:1] in "0+-" and PADDED.fullmatch(field) for field in fields):
        return True, 0
    lengths = {len(field) for field in fields}
    alike = len(fields) > 1 and len(lengths) == 1 and lengths != {1}
    if alike and all(field.isascii() and field.isdigit() for field in fields):
        return False, lengths.pop()
    return False, 0
