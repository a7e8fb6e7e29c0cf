"""Delimited text (CSV and its relatives): header, types, blank lines, line numbers of errors.

polars parses the lines and infers the types. It does not tell a header from a row, decimal commas
and thousands marks from separators, or codes such as 007 from numbers, and it names no lines in
its errors; ``dialect.py`` and ``numerals.py`` do.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._base.errors import DataError, listing
from lowland.tables.budget import column_bytes, require_for_table
from lowland.tables.columns.vectors import with_vectors
from lowland.tables.contents import Contents, Request, free_id, refuse_twice, unreadable
from lowland.tables.file_chunks import Look, stamp_of
from lowland.tables.formats import text_chunks
from lowland.tables.formats.dialect import (
    BLANKS,
    FALLBACK,
    LONGEST,
    Dialect,
    check_widths,
    dialect_of,
    records,
    split_at_blanks,
    utf8,
)
from lowland.tables.formats.formulas import unguarded, unguarded_name
from lowland.tables.formats.numerals import EITHER, NEITHER, SHOWN, Numerals, understood
from lowland.tables.formats.text_chunks import TextReader
from lowland.tables.opening import MARKS, File, temporary

if TYPE_CHECKING:
    import polars as pl

# Columns of text that become numbers, and the note about it.
#
# What each column means is decided from all of its values; a column such as ``1,234 5,678`` that
# can be read in two ways is decided by the other columns of the file, then by the separator.


def numbers_in_text(
    frame: pl.DataFrame,
    skip: Sequence[str] = (),
    *,
    separator: str = ",",
    decimal_comma: bool = False,
    as_text: Callable[[list[str]], pl.DataFrame] | None = None,
) -> tuple[pl.DataFrame, list[str]]:
    """The frame with numbers in the place of text, and notes about what was converted.

    Parameters
    ----------
    frame : polars.DataFrame
        As the parser returned it: columns of numbers, and columns of text.
    skip : sequence of str
        Columns that stay text.
    separator, decimal_comma
        Of the file, for columns that can be read in two ways.
    as_text : function, optional
        Reads columns again as text. If columns of text have decimal commas, then numbers such as
        1.234 in other columns may be thousands.
    """
    native = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    found, notes = understood(frame, skip)
    has_commas = any(what.decimal == "," for what in found.values())
    if has_commas and not decimal_comma and native and as_text is not None:
        frame, native = frame.with_columns(as_text(native)), []
        found, notes = understood(frame, skip)
    if not found and not (decimal_comma and native):
        return frame, notes
    votes = len(native) * (1 if decimal_comma else -1)
    votes += sum({",": 1, ".": -1}.get(what.decimal, 0) for what in found.values())
    usual = "," if votes > 0 or (votes == 0 and separator == ";") else "."
    marks = {
        name: usual if what.decimal in (EITHER, NEITHER) else what.decimal
        for name, what in found.items()
    }
    numbers = {name: what.values(marks[name]) for name, what in found.items()}
    said = _conversions(found, marks, numbers, native if decimal_comma else [])
    notes = [f"numbers in text: {'; '.join(said)}", *notes] if said else notes
    return frame.with_columns(list(numbers.values())), notes


def _conversions(
    found: dict[str, Numerals],
    marks: dict[str, str],
    numbers: dict[str, pl.Series],
    commas: list[str],
) -> list[str]:
    """What was converted, in short: decimal commas, thousands marks, units."""
    columns = functools.partial(listing, most=SHOWN, quote=False)
    commas = [*commas, *(name for name in found if marks[name] == "," in found[name].marks)]
    said = [f"decimal commas in {columns(commas)}"] if commas else []
    grouped = [name for name in found if found[name].grouping(marks[name])]
    if grouped:
        first = found[grouped[0]]
        mark = first.grouping(marks[grouped[0]])[0]
        row = int(first.text.str.contains(mark, literal=True).fill_null(False).arg_true()[0])
        example = f"{first.text[row]!r} is {numbers[grouped[0]][row]:.15g}"
        said.append(f"thousands marks removed in {columns(grouped)} ({example})")
    # In a file of decimal points, the meaning of a point is clear.
    doubtful = [
        name
        for name, what in found.items()
        if what.decimal == EITHER and (marks[name] == "," or "," in what.marks)
    ]
    if doubtful:
        kind = "a decimal comma" if marks[doubtful[0]] == "," else "a decimal point"
        said.append(f"{columns(doubtful)} can be read in two ways, and the file has {kind}")
    for unit in dict.fromkeys(what.unit for what in found.values() if what.unit):
        names = [name for name, what in found.items() if what.unit == unit]
        said.append(f"unit {unit} removed from {columns(names)}")
    return said


# Types are inferred from the first rows; if a later value does not fit, from all rows.
GUESS_ROWS = 10_000
GUESS_FIELDS = 1_000_000  # fewer rows of a wide table: inference is slower than reading
LARGE = 4_000_000  # bytes; types of larger files are inferred before the file is read
UNNAMED = "the first column has no name and is taken as the row id"
NAMED = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", BLANKS: "white space"}
EXPECTED = {".csv": (",", ";"), ".tsv": ("\t",)}  # separators that need no note, by suffix


def read_text(file: File, request: Request) -> Contents:
    """Text whose separator, header and decimal mark are found out."""
    with split_text(file) as (text, dialect):
        return read_delimited(text, dialect, request)


@contextlib.contextmanager
def split_text(file: File, *, headed: bool | None = None) -> Iterator[tuple[File, Dialect]]:
    """The text in UTF-8, split by a separator of one character, and its dialect."""
    with utf8(file) as (text, notes):
        dialect = dialect_of(text, headed=headed)
        separator, notes = dialect.separator, [*notes, *dialect.notes]
        if separator not in EXPECTED.get(file.suffix, NAMED) and dialect.width >= 2:
            by = f"are separated by {NAMED[separator]}"
            notes.append(f"the fields of this {file.suffix} file {by}")
        dialect = dialect._replace(notes=tuple(notes))
        if separator != BLANKS:
            yield text, dialect
            return
        with temporary(f"split{file.suffix}") as copy:
            with (
                text.path.open(encoding="utf-8-sig") as lines,
                copy.open("w", encoding="utf-8", newline="") as out,
            ):
                out.writelines("\t".join(split_at_blanks(line)) + "\n" for line in lines)
            yield File(copy, file.name), dialect._replace(separator="\t")


def read_delimited(file: File, dialect: Dialect, request: Request) -> Contents:
    """The table of a text in UTF-8 whose dialect is known."""
    notes, id_name, header = list(dialect.notes), None, dialect.names
    names = [f"column_{i}" for i in range(dialect.width)]
    if header is not None:
        given = ["", *header] if dialect.row_names else header
        names = [unguarded_name(name.strip()) or names[i] for i, name in enumerate(given)]
        unnamed = dialect.row_names or (not header[0].strip() and len(header) > 1)
        if unnamed:  # as pandas and R write names of rows
            id_name = names[0] = free_id(names)
        if unnamed and not dialect.row_names:
            notes.append(UNNAMED)
        refuse_twice(file, names)
    frame = _parse(file, dialect, names)
    kept = _not_blank(file, dialect, frame)

    def as_text(chosen: list[str]) -> pl.DataFrame:
        again = _parse(file, dialect, names, as_text=chosen)
        return (again if kept is None else again.filter(kept)).select(chosen)

    frame = _with_codes(dialect, frame if kept is None else frame.filter(kept), as_text)
    frame = with_vectors(file, unguarded(frame), request)
    frame, said = numbers_in_text(
        frame,
        [] if id_name is None else [id_name],
        separator=dialect.separator,
        decimal_comma=dialect.decimal_comma,
        as_text=as_text,
    )
    return Contents(frame, id_name=id_name, notes=(*notes, *said))


def _parse(
    file: File, dialect: Dialect, names: list[str], *, as_text: list[str] | None = None
) -> pl.DataFrame:
    """The columns in the types that polars infers; codes, and those in ``as_text``, are text."""
    import polars as pl

    own_header = dialect.names is not None and dialect.in_rows
    skipped = dialect.skipped + (own_header and dialect.row_names)
    how: dict[str, Any] = {
        "separator": dialect.separator,
        "has_header": own_header and not dialect.row_names,
        "skip_lines": skipped,
        "decimal_comma": dialect.decimal_comma,
    }
    if as_text is not None:
        places = sorted(names.index(name) for name in as_text)
        frame = pl.read_csv(file.path, infer_schema=False, columns=places, **how)
        return frame.rename(dict(zip(frame.columns, [names[i] for i in places], strict=True)))
    rows = min(GUESS_ROWS, max(100, GUESS_FIELDS // len(names)))
    try:
        if dialect.padded:
            first = pl.read_csv(file.path, n_rows=0, infer_schema=False, **how).columns
            how["schema_overrides"] = {
                first[i]: pl.String for i in dialect.padded if i < len(first)
            }
        typed = how
        if file.size >= LARGE:
            typed = {**how, "schema": _inferred_types(file, rows, how), "schema_overrides": None}
        frame = pl.read_csv(file.path, infer_schema_length=rows, **typed)
    except pl.exceptions.PolarsError:
        try:
            frame = pl.read_csv(file.path, infer_schema_length=None, **how)
        except pl.exceptions.PolarsError as error:
            check_widths(file, dialect.separator, len(names), skipped)
            raise unreadable(file, "CSV", error) from error
    if frame.width != len(names) or (frame.width > 1 and frame[:, -1].has_nulls()):
        # A short line looks like a missing last value.
        check_widths(file, dialect.separator, len(names), skipped)
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
        lengths = [len(line) for line in itertools.islice(lines, how["skip_lines"] + 1, rows)]
    estimate = round(file.size * len(lengths) / max(sum(lengths), 1))
    numbers = [dtype for dtype in schema.values() if dtype.is_numeric()]
    small = all(dtype in (pl.Int16, pl.UInt16) for dtype in numbers)
    row_bytes = column_bytes(schema.values()) + len(numbers) * (4 if small else 8)
    advice = "save it as Parquet and choose columns"
    require_for_table(file, estimate, sample.width, row_bytes, advice=advice, estimated=True)
    return schema


def _narrow_type(column: pl.Series) -> pl.DataType:
    import polars as pl

    if not column.dtype.is_integer() or column.count() == 0:
        return column.dtype
    if column.min() >= 0:
        return pl.UInt16() if column.max() < 2**16 else column.dtype
    return pl.Int16() if column.min() >= -(2**15) and column.max() < 2**15 else column.dtype


def _not_blank(file: File, dialect: Dialect, frame: pl.DataFrame) -> pl.Series | None:
    """The rows that are not blank lines, if there are some. A line of empty fields is a row."""
    import polars as pl

    if not frame[:, 0].has_nulls():
        return None
    empty = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    if not empty.any():
        return None
    found = records(file, dialect.separator, dialect.skipped)
    blank = sum(not fields for _, fields in found)
    return ~empty if blank == empty.sum() else None


def _with_codes(
    dialect: Dialect, frame: pl.DataFrame, as_text: Callable[[list[str]], pl.DataFrame]
) -> pl.DataFrame:
    """Keep codes such as 01234 as text where the first rows did not show a leading zero.

    Where all of the first numbers have five digits, a smaller one may have begun with 0.
    """
    import polars as pl

    names = frame.columns
    some = [
        names[i]
        for i, digits in dialect.digits.items()
        if frame.schema[names[i]].is_integer() and (frame[names[i]].min() or 0) < 10 ** (digits - 1)
    ]
    if not some:
        return frame
    text = as_text(some)
    padded = text.select(pl.all().str.contains(r"^\s*[+-]?0\d").any()).row(0)
    return frame.with_columns(text[name] for name, code in zip(some, padded, strict=True) if code)


# Opening a text for ranges of rows: its dialect, where its rows are, how its columns are written.
#
# Types are decided by the first rows and by rows from all over the file. A text that begins as
# another one did is read as that one is, if its first rows allow it.


HEAD = 1 << 21  # bytes of the first rows that decide about types
PLACES, PLACE = 24, 1 << 16  # other places in the file, and bytes of each
BOM = b"\xef\xbb\xbf"


def look_at_text(path: str, name: str, like: Look | None = None) -> Look:
    """Dialect, rows and types of a text; ``like`` is a text that this one may resemble."""
    stamp = stamp_of(path, name)
    start = text_chunks.read_bytes(path, name, 0, 4)
    if any(start.startswith(mark) for mark, _ in MARKS):
        what = "is text in UTF-16 or UTF-32, whose rows cannot be found quickly"
        command = f"iconv -f utf-16 -t utf-8 {Path(name).name}"
        raise DataError(f"{name}: {what}; convert it first ({command}).")
    found = None if like is None else _same(path, name, like)
    if found is None:
        begin, separator = _data_begin(path, name)
        marks = text_chunks.count_records(path, name, begin)
        found = _Sample(path, name, begin, marks).decide(separator), marks
    reader, marks = found
    names = {"id_name": reader.id_name, "marks": marks}
    return Look(name, path, stamp, reader, marks.n_rows, reader.schema, **names)


def _data_begin(path: str, name: str) -> tuple[int, str]:
    """The byte behind the header, and the separator."""
    dialect = dialect_of(File(Path(path), name))
    with open(path, "rb") as lines:
        for _ in range(dialect.skipped):
            lines.readline()
        begin = lines.tell()
        if dialect.names is None or not dialect.in_rows:
            lines.seek(0)
            mark = len(BOM) if lines.read(len(BOM)) == BOM else 0
            return max(begin, mark), dialect.separator
        header = lines.readline(LONGEST)
        while header.count(b'"') % 2 and (more := lines.readline(LONGEST)):
            header += more
    if b"\r" in header.rstrip(b"\r\n"):
        raise unreadable(name, "delimited text", "its lines do not end in a line feed")
    return begin + len(header), dialect.separator


class _Sample(NamedTuple):
    """Rows that stand for all rows of a text."""

    path: str
    name: str
    begin: int
    marks: text_chunks.Marks

    def head(self, size: int) -> bytes:
        """The first rows, all of them whole."""
        end = min(self.marks.end, self.begin + size)
        text = text_chunks.read_bytes(self.path, self.name, self.begin, end)
        if end == self.marks.end:
            return text
        starts = text_chunks.record_starts(text)
        return text[: starts[-1]] if len(starts) > 1 else self.head(2 * size)

    def body(self) -> bytes:
        """The first rows, and some from all over the file."""
        parts = [self.head(HEAD)]
        known = self.begin + len(parts[0])
        places = self.marks.places[self.marks.places >= known]
        step = -(-len(places) // PLACES) or 1
        for place in places[::step].tolist():
            end = min(self.marks.end, place + PLACE)
            text = text_chunks.read_bytes(self.path, self.name, place, end)
            starts = text_chunks.record_starts(text)
            if len(starts) > 1:
                parts.append(text[: starts[-1]])
        return b"\n".join(part.rstrip(b"\r\n") for part in parts) + b"\n"

    def decide(self, separator: str) -> TextReader:
        """The reader of this text, by what the reader of whole texts makes of the sample."""
        try:
            return self._decided(self.body(), separator)
        except DataError:
            # Lines of the first rows have the numbers that they have in the file.
            return self._decided(self.head(HEAD), separator)

    def _decided(self, body: bytes, separator: str) -> TextReader:
        frame, id_name, decimal_comma = self._read(body)
        names = tuple(frame.columns)
        texts = (text_chunks.Written(text_chunks.TEXT),) * len(names)
        plain = TextReader(names, texts, separator, self.marks.is_utf8, id_name)
        place = text_chunks.Place(self.path, self.name, self.begin)
        text = plain.parse(body, place, len(text_chunks.record_starts(body)), names, ())
        if text.height != frame.height:
            raise unreadable(self.name, "delimited text", "there are blank lines between its rows")
        written = []
        for name in names:
            how = text_chunks.decided(text[name], frame[name], decimal_comma)
            if how is None:
                what = f"the numbers of column {name!r} are written in several ways"
                raise DataError(f"{self.name}: {what}; save the table as Parquet.")
            written.append(how)
        return plain._replace(written=tuple(written))

    def _read(self, body: bytes) -> tuple[pl.DataFrame, str | None, bool]:
        """What the reader of whole texts makes of the sample: columns, row id, decimal mark."""
        above = text_chunks.read_bytes(self.path, self.name, 0, self.begin)  # comments and header
        text = above.removeprefix(BOM).replace(b"\r", b"") + body
        if not self.marks.is_utf8:
            text = text.decode(FALLBACK, errors="replace").encode()
        with temporary(f"sample{Path(self.name).suffix.lower()}") as copy:
            copy.write_bytes(text)
            with split_text(File(copy, self.name)) as (split, dialect):
                contents = read_delimited(split, dialect, Request(columns=()))  # no vectors in text
        return contents.frame, contents.id_name, dialect.decimal_comma


def _same(path: str, name: str, like: Look) -> tuple[TextReader, text_chunks.Marks] | None:
    """The reader of another text, if this one has its header and first rows that it can read.

    Finding the dialect of a small text takes longer than reading it.
    """
    reader: TextReader = like.reader
    begin = int(like.marks.places[0])
    if text_chunks.read_bytes(path, name, 0, begin) != text_chunks.read_bytes(
        like.path, like.name, 0, begin
    ):
        return None
    if not begin and text_chunks.read_bytes(path, name, 0, len(BOM)) == BOM:
        return None
    marks = text_chunks.count_records(path, name, begin)
    if marks.is_utf8 != reader.is_utf8:
        return None
    head = _Sample(path, name, begin, marks).head(PLACE)
    place = text_chunks.Place(path, name, begin)
    try:
        reader.parse(head, place, len(text_chunks.record_starts(head)), reader.names, reader.names)
    except DataError:
        return None
    return reader, marks
