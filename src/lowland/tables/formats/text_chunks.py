"""Delimited text in chunks: a range of bytes is parsed in the dialect that opening found out.

polars parses a range of bytes, but has no way to a row in the middle of a text but through all
rows before it, so the places of rows are found here.
"""

from __future__ import annotations

import codecs
import hashlib
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError
from lowland.tables.contents import unreadable
from lowland.tables.file_chunks import SourceFile, unread
from lowland.tables.formats.dialect import BLANKS, FALLBACK, decodes, split_at_blanks
from lowland.tables.formats.formulas import unguarded
from lowland.tables.formats.numerals import EITHER, NEITHER, Numerals, told, without_marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl

# Where the rows of a delimited text begin: one pass at the speed of the disk, in little memory.


CHUNK = 1 << 24  # bytes that are looked at together
EVERY = 256  # rows between two marks
NEWLINE, RETURN, QUOTE = 10, 13, 34


class Marks(NamedTuple):
    """The rows of a text: their number, the bytes at which every 256th begins, and the end."""

    n_rows: int
    places: np.ndarray
    end: int
    is_utf8: bool

    def begin(self, path: str, name: str, row: int) -> int:
        """The byte at which a row begins."""
        if row >= self.n_rows:
            return self.end
        place, more = divmod(row, EVERY)
        begin = int(self.places[place])
        if not more:
            return begin
        stop = self.end if place + 1 == len(self.places) else int(self.places[place + 1])
        return begin + int(record_starts(read_bytes(path, name, begin, stop))[more])


def _record_starts(pieces: Iterable[bytes]) -> Iterator[np.ndarray]:
    """Where the records of a text begin, of which the pieces come one after another.

    For each piece, the starts of the records that end in it; at last the one that ends the text. A
    record ends at a line feed outside quotation marks. Blank lines are not records.
    """
    inside = False  # a quotation mark is open
    start, base, last = 0, 0, NEWLINE  # of the record and of the piece; the byte before the piece
    for piece in pieces:
        bytes_ = np.frombuffer(piece, np.uint8)
        quotes = quotes_of(piece)
        ends = outside(bytes_, NEWLINE, quotes, inside)
        inside ^= bool(len(quotes) % 2)
        starts = np.concatenate([[start], base + ends + 1])
        before = bytes_[ends - 1]
        if len(ends) and ends[0] == 0:
            before[0] = last
        yield starts[:-1][~_is_blank(np.diff(starts) - 1, before)]
        start, base, last = int(starts[-1]), base + len(piece), piece[-1]
    rest = np.array([start], np.int64)
    yield rest[~_is_blank(base - rest, np.array([last]))]


def _is_blank(lengths: np.ndarray, last: np.ndarray) -> np.ndarray:
    return (lengths == 0) | ((lengths == 1) & (last == RETURN))


def quotes_of(piece: bytes) -> np.ndarray:
    """Where quotation marks stand."""
    if b'"' not in piece:
        return np.empty(0, np.int64)
    return np.flatnonzero(np.frombuffer(piece, np.uint8) == QUOTE)


def outside(bytes_: np.ndarray, byte: int, quotes: np.ndarray, inside: bool = False) -> np.ndarray:
    """Where a byte stands outside quotation marks; ``inside``: one is open at the beginning."""
    places = np.flatnonzero(bytes_ == byte)
    if not len(quotes):
        return places[:0] if inside else places
    return places[np.searchsorted(quotes, places) % 2 == inside]


def count_records(path: str, name: str, begin: int) -> Marks:
    """Count the rows from a byte on; nothing is parsed. O(size) time, O(rows / 256) memory."""
    text = _Pieces(path, name, begin)
    n_rows, places = 0, []
    for found in _record_starts(text):
        places.append(found[-n_rows % EVERY :: EVERY])
        n_rows += len(found)
    if text.n_quotes % 2:  # the last record never ends
        line = line_of(path, name, begin + int(found[-1]))
        raise DataError(f"{name}, line {line}: a quotation mark is opened and never closed.")
    if not n_rows:
        raise DataError(f"{name}: there are no rows.")
    return Marks(n_rows, begin + np.concatenate(places), text.end, text.is_utf8)


class _Pieces:
    """The bytes of a text from a byte on, and what is found out about them on the way."""

    def __init__(self, path: str, name: str, begin: int) -> None:
        self.path, self.name, self.begin = path, name, begin
        self.n_quotes, self.end, self.is_utf8 = 0, begin, True

    def __iter__(self) -> Iterator[bytes]:
        decoder: Any = codecs.getincrementaldecoder("utf-8")()
        with unread(self.name), open(self.path, "rb", buffering=0) as opened:
            opened.seek(self.begin)
            while piece := opened.read(CHUNK):
                if b"\0" in piece:
                    raise DataError(f"{self.name}: holds a null byte; save it as UTF-8 text.")
                if self.is_utf8 and not (piece.isascii() and not decoder.getstate()[0]):
                    self.is_utf8 = decodes(decoder, piece)
                self.n_quotes += piece.count(b'"')
                self.end += len(piece)
                yield piece
        self.is_utf8 = self.is_utf8 and not decoder.getstate()[0]


def record_starts(text: bytes) -> np.ndarray:
    """Where each record of a whole text begins."""
    return np.concatenate([*_record_starts([text] if text else [])])


def read_bytes(path: str, name: str, begin: int, end: int) -> bytes:
    """Some bytes of a file."""
    with unread(name), open(path, "rb", buffering=0) as opened:
        opened.seek(begin)
        parts, left = [], end - begin
        while left > 0 and (part := opened.read(left)):
            parts.append(part)
            left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def line_of(path: str, name: str, place: int) -> int:
    """The number of the line that holds a byte; O(size), for messages."""
    lines = 1
    with unread(name), open(path, "rb", buffering=0) as opened:
        while place > 0 and (piece := opened.read(min(CHUNK, place))):
            lines += piece.count(b"\n")
            place -= len(piece)
    return lines


# Columns of a text as values: how each column is written is decided once, for all chunks.
#
# The house reader of delimited text reads a sample, and here is found out by which rule each of
# its columns became numbers. Chunks follow the rule. A value that does not fit is an error: a
# later chunk must not be read in another way than the first one.


NUMBER, WHOLE, TRUTH, TEXT = "number", "whole number", "truth value", "text"


class Written(NamedTuple):
    """How a column is written."""

    kind: str  # one of the four above
    native: bool = True  # whether polars parses it; else as text, by the marks below
    decimal: str = "."
    unit: str = ""

    def dtype(self) -> pl.DataType:
        """The type of its values."""
        import polars as pl

        types = {NUMBER: pl.Float64(), WHOLE: pl.Int64(), TRUTH: pl.Boolean(), TEXT: pl.String()}
        return types[self.kind]


def decided(text: pl.Series, read: pl.Series, decimal_comma: bool) -> Written | None:
    """How a column is written, given its text and what the reader made of it; None if unclear."""
    import polars as pl

    if read.dtype == pl.Boolean:
        return Written(TRUTH)
    decimal = "," if decimal_comma else "."
    if read.dtype.is_integer() or (read.dtype.is_float() and read.dtype != pl.Float64):
        return Written(WHOLE if read.dtype.is_integer() else NUMBER, True, decimal)
    if read.dtype != pl.Float64:
        return Written(TEXT)
    plain = text.str.replace(",", ".", literal=True) if decimal_comma else text
    if plain.cast(float, strict=False).equals(read):
        return Written(NUMBER, True, decimal)
    for mark in (".", ","):
        what = _told(text, mark)
        if what is not None and what.values(mark).equals(read):
            return Written(NUMBER, False, mark, what.unit)
    return None


def _told(text: pl.Series, decimal: str) -> Numerals | None:
    """How numbers in text are written, if this may be their decimal mark."""
    what = told(text)
    fits = isinstance(what, Numerals) and what.decimal in (decimal, EITHER, NEITHER)
    return what if fits else None  # type: ignore[return-value]


def converted(text: pl.Series, how: Written) -> tuple[pl.Series, int | None]:
    """The values of a column that was read as text, and the first row that cannot be read so."""
    if how.kind == TEXT:
        return text, None
    bare = without_marks(text)
    if how.kind == TRUTH:
        low = bare.str.to_lowercase()
        values, bad = low == "true", ~low.is_in(["true", "false"]).fill_null(True)
    else:
        numbers = _numbers(bare, how)
        if numbers is None:
            return text, _first_misfit(bare, how)
        if how.kind == NUMBER:
            return numbers, None
        values = numbers.cast(int, strict=False)
        bad = (values.cast(float) != numbers).fill_null(numbers.is_not_null())
    return values, int(bad.arg_true()[0]) if bad.any() else None


def _numbers(bare: pl.Series, how: Written) -> pl.Series | None:
    """The numbers of a column that is written in this way; None if it has something else."""
    plain = bare.str.replace(",", ".", literal=True) if how.decimal == "," else bare
    values = plain.cast(float, strict=False)
    is_plain = values.null_count() == bare.null_count() and not how.unit
    is_plain &= how.decimal == "." or not bare.str.contains(".", literal=True).any()
    if is_plain or not bare.count():
        return values
    what = _told(bare, how.decimal)
    return None if what is None or what.unit != how.unit else what.values(how.decimal)


def _first_misfit(bare: pl.Series, how: Written) -> int:
    """A row whose value is the reason, found by halves; the first row if only all together are."""
    first, last = 0, len(bare)
    while last - first > 1:
        middle = (first + last) // 2
        if _numbers(bare[first:middle], how) is None:
            last = middle
        elif _numbers(bare[middle:last], how) is None:
            first = middle
        else:
            break
    return first


class Place(NamedTuple):
    """Some bytes of a file, for messages."""

    path: str
    name: str
    begin: int

    def error(self, body: bytes, row: int, what: str) -> DataError:
        """The error about a row of these bytes."""
        starts = record_starts(body)
        begin = self.begin + int(starts[row]) if row < len(starts) else self.begin
        return DataError(f"{self.name}, line {line_of(self.path, self.name, begin)}: {what}.")

    def width_error(self, body: bytes, row: int, found: int, width: int) -> DataError:
        return self.error(body, row, f"{found} fields where the first line has {width}")


class TextReader(NamedTuple):
    """Parses ranges of bytes of a text."""

    names: tuple[str, ...]
    written: tuple[Written, ...]  # how each column is
    separator: str
    is_utf8: bool
    id_name: str | None = None

    together = False  # see ``Look``

    @property
    def key(self) -> str:
        return hashlib.sha256(repr(tuple(self)).encode()).hexdigest()[:24]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: how.dtype() for name, how in zip(self.names, self.written, strict=True)}

    def read(self, file: SourceFile, first: int, n_rows: int, span: tuple[int, int]) -> Any:
        body = read_bytes(file.path, file.name, *span)
        place = Place(file.path, file.name, span[0])
        own = [name for name in file.layout.kept if file.layout.types[name].is_integer()]
        return self.parse(body, place, n_rows, file.layout.wanted, own)

    def parse(
        self, raw: bytes, place: Place, n_rows: int, wanted: Sequence[str], whole: Sequence[str]
    ) -> pl.DataFrame:
        """The wanted columns of some rows; those in ``whole`` are whole numbers or refused."""
        import polars as pl

        body, asked = self._plain(raw, place, n_rows), {*wanted}
        chosen = {i: how for i, how in enumerate(self.written) if self.names[i] in asked}
        for i, how in chosen.items():  # whole numbers that become floats anyway may be any numbers
            if how.kind == WHOLE and self.names[i] not in whole:
                chosen[i] = how._replace(kind=NUMBER)
        if len(chosen) < len(self.names):  # polars does not look at the other columns
            self._check_widths(raw, body, place)
        try:
            frame = self._parsed(body, chosen, as_text=False)
        except pl.exceptions.PolarsError:
            try:
                frame = self._parsed(body, chosen, as_text=True)
            except pl.exceptions.PolarsError as error:
                self._check_widths(raw, body, place)
                reason = "its quotation marks do not pair up" if b'"' in body else error
                raise unreadable(place.name, "delimited text", reason) from error
        columns = []
        for column, text, how in zip(frame, unguarded(frame), chosen.values(), strict=True):
            bad = None
            if text.dtype == pl.String:
                column, bad = converted(text, how)
            if bad is not None:
                what = f"column {text.name!r} holds {text[bad]!r}, but a {how.kind} in the rows by"
                advice = "which its type was decided; correct it, or save the table as Parquet"
                raise place.error(raw, bad, f"{what} {advice}")
            columns.append(column)
        return pl.DataFrame(columns).select(wanted)

    def _parsed(self, body: bytes, how: dict[int, Written], *, as_text: bool) -> pl.DataFrame:
        import polars as pl

        auto = [f"column_{i + 1}" for i in range(len(self.names))]
        schema: dict[str, Any] = dict.fromkeys(auto, pl.String)
        if not as_text:
            schema |= {auto[i]: each.dtype() for i, each in how.items() if each.native}
        frame = pl.read_csv(
            body,
            has_header=False,
            schema=schema,
            columns=[auto[i] for i in how],
            separator=self.mark,
            decimal_comma=any(each.native and each.decimal == "," for each in self.written),
        )
        return frame.rename({auto[i]: self.names[i] for i in how})

    @property
    def mark(self) -> str:
        """The character between two fields of a plain text."""
        return "\t" if self.separator == BLANKS else self.separator

    def _plain(self, raw: bytes, place: Place, n_rows: int) -> bytes:
        """The bytes in UTF-8, one separator between fields, no blank lines, equally wide rows."""
        body = raw
        if not self.is_utf8:
            try:
                body = body.decode(FALLBACK).encode()
            except UnicodeDecodeError as error:
                where = f"line {line_of(place.path, place.name, place.begin + error.start)}"
                wrong = f"not UTF-8 text (byte 0x{raw[error.start]:02x}); save the file as UTF-8"
                raise DataError(f"{place.name}, {where}: {wrong}.") from error
        if self.separator == BLANKS:
            return self._split(body, place)
        if _count(body, "\n") > n_rows - (body[-1:] != b"\n"):  # there are blank lines
            lines = itertools.pairwise([*record_starts(body).tolist(), len(body)])
            body = b"\n".join(body[i:j].rstrip(b"\r\n") for i, j in lines) + b"\n"
        if _count(body, self.separator) != n_rows * (len(self.names) - 1):
            self._check_widths(raw, body, place)
        return body

    def _split(self, body: bytes, place: Place) -> bytes:
        """Fields between white space, with tabs between them."""
        lines: list[str] = []
        for line in body.decode().split("\n"):
            fields = split_at_blanks(line)
            if fields and len(fields) != len(self.names):
                raise place.width_error(body, len(lines), len(fields), len(self.names))
            if fields:
                lines.append("\t".join(fields))
        return "\n".join(lines).encode() + b"\n"

    def _check_widths(self, raw: bytes, body: bytes, place: Place) -> None:
        """Raise for the first row with another number of fields."""
        width = len(self.names)
        starts = np.append(record_starts(body), len(body))
        marks = outside(np.frombuffer(body, np.uint8), ord(self.mark), quotes_of(body))
        counts = np.diff(np.searchsorted(marks, starts)) + 1
        bad = np.flatnonzero(counts != width)
        if len(bad):
            raise place.width_error(raw, int(bad[0]), int(counts[bad[0]]), width)


def _count(body: bytes, mark: str) -> int:
    """How often a character stands outside quotation marks."""
    if b'"' not in body:
        return body.count(mark.encode())
    return len(outside(np.frombuffer(body, np.uint8), ord(mark), quotes_of(body)))
