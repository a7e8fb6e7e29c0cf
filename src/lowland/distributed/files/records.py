"""Where the rows of a delimited text begin: one pass at the speed of the disk, in little memory."""

from __future__ import annotations

import codecs
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland.distributed.files.leaves import unread

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


class _Scan:
    """Finds the starts of records in pieces of a text that come one after another.

    A record ends at a line feed outside quotation marks. Blank lines are no records.
    """

    def __init__(self) -> None:
        self.inside = False  # a quotation mark is open
        self.start = 0  # of the current record
        self.base = 0  # of the next piece
        self.last = NEWLINE  # byte before it

    def starts(self, piece: bytes) -> np.ndarray:
        """Starts of the records that end in this piece."""
        bytes_ = np.frombuffer(piece, np.uint8)
        quotes = quotes_of(piece)
        ends = outside(bytes_, NEWLINE, quotes, self.inside)
        self.inside ^= bool(len(quotes) % 2)
        starts = np.empty(len(ends), np.int64)
        if len(ends):
            starts[0] = self.start
            np.add(ends[:-1], self.base + 1, out=starts[1:])
            starts = starts[~self._blank(bytes_, ends, starts)]
            self.start = self.base + int(ends[-1]) + 1
        self.base += len(piece)
        self.last = piece[-1]
        return starts

    def _blank(self, bytes_: np.ndarray, ends: np.ndarray, starts: np.ndarray) -> np.ndarray:
        lengths = ends + self.base - starts
        before = bytes_[ends - 1]
        if ends[0] == 0:
            before[0] = self.last
        return (lengths == 0) | ((lengths == 1) & (before == RETURN))

    def rest(self) -> np.ndarray:
        """The start of a last record without a line feed, if there is one."""
        length = self.base - self.start
        blank = length == 0 or (length == 1 and self.last == RETURN)
        return np.array([] if blank else [self.start], np.int64)


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
    scan, n_rows, places = _Scan(), 0, []
    decoder: Any = codecs.getincrementaldecoder("utf-8")()
    is_utf8 = True
    with unread(name), open(path, "rb", buffering=0) as opened:
        opened.seek(begin)
        while piece := opened.read(CHUNK):
            if b"\0" in piece:
                raise DataError(f"{name}: holds a null byte, so it is no text; save it as UTF-8.")
            if is_utf8 and not (piece.isascii() and not decoder.getstate()[0]):
                is_utf8 = _decodes(decoder, piece)
            found = scan.starts(piece)
            places.append(found[-n_rows % EVERY :: EVERY])
            n_rows += len(found)
    if scan.inside:
        line = line_of(path, name, begin + scan.start)
        raise DataError(f"{name}, line {line}: a quotation mark is opened and never closed.")
    found = scan.rest()
    places.append(found[-n_rows % EVERY :: EVERY])
    n_rows += len(found)
    is_utf8 = is_utf8 and not decoder.getstate()[0]
    return Marks(n_rows, begin + np.concatenate(places), begin + scan.base, is_utf8)


def _decodes(decoder: Any, piece: bytes) -> bool:
    try:
        decoder.decode(piece)
    except UnicodeDecodeError:
        return False
    return True


def record_starts(text: bytes) -> np.ndarray:
    """Where each record of a whole text begins."""
    if not text:
        return np.empty(0, np.int64)
    scan = _Scan()
    found = scan.starts(text)
    return np.concatenate([found, scan.rest()])


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
