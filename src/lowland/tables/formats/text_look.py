"""Opening a delimited text: its dialect, where its rows are, and how its columns are written.

Types are decided by the first rows and by rows from all over the file. A text that begins as
another one did is read as that one is, if its first rows allow it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lowland._base.errors import DataError
from lowland.tables.contents import Request, unreadable
from lowland.tables.file_chunks import Look, stamp_of
from lowland.tables.formats.delimited import read_delimited, split_text
from lowland.tables.formats.dialect import LONGEST, Dialect, dialect_of
from lowland.tables.formats.text_chunks import (
    FALLBACK,
    TEXT,
    Marks,
    Place,
    TextReader,
    Written,
    count_records,
    decided,
    read_bytes,
    record_starts,
)
from lowland.tables.opening import MARKS, File

if TYPE_CHECKING:
    import polars as pl

HEAD = 1 << 21  # bytes of the first rows that decide about types
PLACES, PLACE = 24, 1 << 16  # other places in the file, and bytes of each
BOM = b"\xef\xbb\xbf"
NONE = Request(columns=())  # no vectors in text


def look_at_text(path: str, name: str, like: Look | None = None) -> Look:
    """Dialect, rows and types of a text; ``like`` is a text that this one may resemble."""
    stamp = stamp_of(path, name)
    start = read_bytes(path, name, 0, 4)
    if any(start.startswith(mark) for mark, _ in MARKS):
        raise DataError(
            f"{name}: is text in UTF-16 or UTF-32, whose rows cannot be found quickly; convert it "
            f"first (iconv -f utf-16 -t utf-8 {Path(name).name})."
        )
    found = None if like is None else _same(path, name, like)
    if found is None:
        begin, dialect = _data_begin(path, name)
        marks = _counted(path, name, begin)
        found = _Sample(path, name, begin, marks).decide(dialect.separator), marks
    reader, marks = found
    return Look(
        name, path, stamp, reader, marks.n_rows, reader.schema, id_name=reader.id_name, marks=marks
    )


def _counted(path: str, name: str, begin: int) -> Marks:
    marks = count_records(path, name, begin)
    if not marks.n_rows:
        raise DataError(f"{name}: there are no rows.")
    return marks


def _data_begin(path: str, name: str) -> tuple[int, Dialect]:
    """The byte behind the header, and the dialect of the first lines."""
    dialect = dialect_of(File(Path(path), name))
    with open(path, "rb") as lines:
        for _ in range(dialect.skipped):
            lines.readline()
        begin = lines.tell()
        if dialect.names is None or not dialect.in_rows:
            return max(
                begin, len(BOM) if lines.seek(0) == 0 and lines.read(3) == BOM else 0
            ), dialect
        header = lines.readline(LONGEST)
        while header.count(b'"') % 2 and (more := lines.readline(LONGEST)):
            header += more
    if b"\r" in header.rstrip(b"\r\n"):
        raise unreadable(name, "delimited text", "its lines do not end in a line feed")
    return begin + len(header), dialect


class _Sample(NamedTuple):
    """Rows that stand for all rows of a text."""

    path: str
    name: str
    begin: int
    marks: Marks

    @property
    def preamble(self) -> bytes:
        """Comments and header."""
        return read_bytes(self.path, self.name, 0, self.begin).removeprefix(BOM).replace(b"\r", b"")

    def head(self, size: int) -> bytes:
        """The first rows, all of them whole."""
        end = min(self.marks.end, self.begin + size)
        text = read_bytes(self.path, self.name, self.begin, end)
        if end == self.marks.end:
            return text
        starts = record_starts(text)
        return text[: starts[-1]] if len(starts) > 1 else self.head(2 * size)

    def body(self) -> bytes:
        """The first rows, and some from all over the file."""
        parts = [self.head(HEAD)]
        known = self.begin + len(parts[0])
        places = self.marks.places[self.marks.places >= known]
        step = -(-len(places) // PLACES) or 1
        for place in places[::step].tolist():
            text = read_bytes(self.path, self.name, place, min(self.marks.end, place + PLACE))
            starts = record_starts(text)
            if len(starts) > 1:
                parts.append(text[: starts[-1]])
        return b"\n".join(part.rstrip(b"\r\n") for part in parts) + b"\n"

    def decide(self, separator: str) -> TextReader:
        """The reader of this text, by the house reader's reading of the sample."""
        try:
            return self._decided(self.body(), separator)
        except DataError:
            # Lines of the first rows have the numbers that they have in the file.
            return self._decided(self.head(HEAD), separator)

    def _decided(self, body: bytes, separator: str) -> TextReader:
        frame, id_name, decimal_comma = self._read(body)
        names = tuple(frame.columns)
        texts = (Written(TEXT),) * len(names)
        plain = TextReader(names, texts, separator, self.marks.is_utf8, id_name)
        place = Place(self.path, self.name, self.begin)
        text = plain.parse(body, place, len(record_starts(body)), names, ())
        if text.height != frame.height:
            raise unreadable(self.name, "delimited text", "blank lines stand between its rows")
        written = []
        for name in names:
            how = decided(text[name], frame[name], decimal_comma)
            if how is None:
                raise DataError(
                    f"{self.name}: the numbers of column {name!r} are written in several ways; "
                    "save the table as Parquet."
                )
            written.append(how)
        return plain._replace(written=tuple(written))

    def _read(self, body: bytes) -> tuple[pl.DataFrame, str | None, bool]:
        """What the house reader makes of the sample: columns, row id, decimal mark."""
        text = self.preamble + body
        if not self.marks.is_utf8:
            text = text.decode(FALLBACK, errors="replace").encode()
        with tempfile.TemporaryDirectory(prefix="lowland-") as folder:
            copy = Path(folder) / f"sample{Path(self.name).suffix.lower()}"
            copy.write_bytes(text)
            with split_text(File(copy, self.name)) as (split, dialect):
                contents = read_delimited(split, dialect, NONE)
        return contents.frame, contents.id_name, dialect.decimal_comma


def _same(path: str, name: str, like: Look) -> tuple[TextReader, Marks] | None:
    """The reader of another text, if this one has its header and first rows that it can read.

    Finding the dialect of a small text takes longer than reading it.
    """
    reader: TextReader = like.reader
    begin = int(like.marks.places[0])
    if read_bytes(path, name, 0, begin) != read_bytes(like.path, like.name, 0, begin):
        return None
    if not begin and read_bytes(path, name, 0, len(BOM)) == BOM:
        return None
    marks = _counted(path, name, begin)
    head = _Sample(path, name, begin, marks).head(PLACE)
    place = Place(path, name, begin)
    try:
        if marks.is_utf8 != reader.is_utf8:
            return None
        reader.parse(head, place, len(record_starts(head)), reader.names, reader.names)
    except DataError:
        return None
    return reader, marks
