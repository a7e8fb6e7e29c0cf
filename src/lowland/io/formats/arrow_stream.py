"""A look at the messages of an Arrow stream, before polars allocates what they claim to hold.

A stream is a list of messages: the mark FFFFFFFF, the size of the metadata, the metadata (a
FlatBuffer), the body. The metadata of a batch of rows list the places of its buffers in the body.
polars allocates the size that is listed and ends the process if there is not so much memory.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator

from lowland.io.contents import unreadable
from lowland.io.files.opening import File

CONTINUES = 0xFFFFFFFF
DICTIONARY, ROWS = 2, 3  # kinds of messages that have buffers
# Numbers of the fields of the FlatBuffer tables, in the order in which Arrow declares them.
KIND, HEADER, BODY_SIZE = 1, 2, 3
DICTIONARY_ROWS, BUFFERS = 1, 2


def check_stream(file: File) -> None:
    """Refuse a stream that claims to hold more than the file does."""
    with (
        file.path.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        try:
            place = 0
            while place < len(data):
                place = _checked_message(data, place)
        except (struct.error, IndexError, ValueError) as error:
            raise unreadable(file, "Arrow", "it is damaged") from error


def _checked_message(data: mmap.mmap, place: int) -> int:
    """Where the next message starts."""
    mark, size = struct.unpack_from("<Ii", data, place)
    if mark != CONTINUES:  # streams before Arrow 0.15 have no mark
        size, place = struct.unpack_from("<i", data, place)[0], place - 4
    if size == 0:
        return len(data)
    start = place + 8
    if size < 0 or start + size > len(data):
        raise ValueError("metadata beyond the end")
    metadata = data[start : start + size]
    message = _Table(metadata, struct.unpack_from("<I", metadata)[0])
    body_size = message.number(BODY_SIZE, "<q")
    end = start + size + body_size
    if body_size < 0 or end > len(data):
        raise ValueError("a body beyond the end")
    kind = message.number(KIND, "<B")
    if kind in (DICTIONARY, ROWS):
        rows = message.table(HEADER)
        if kind == DICTIONARY:
            rows = rows.table(DICTIONARY_ROWS)
        for offset, length in rows.pairs(BUFFERS):
            if offset < 0 or length < 0 or offset + length > body_size:
                raise ValueError("a buffer beyond the body")
    return end


class _Table:
    """A table of a FlatBuffer: its first number leads back to the places of its fields."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data, self.place = data, place
        self.fields = place - struct.unpack_from("<i", data, place)[0]
        if self.fields < 0:
            raise ValueError("fields before the start")
        self.n_bytes = struct.unpack_from("<H", data, self.fields)[0]

    def _field(self, number: int) -> int:
        """The place of a field; 0 if the table does not have it."""
        entry = 4 + 2 * number
        if entry + 2 > self.n_bytes:
            return 0
        offset = struct.unpack_from("<H", self.data, self.fields + entry)[0]
        return self.place + offset if offset else 0

    def number(self, field: int, form: str) -> int:
        place = self._field(field)
        return struct.unpack_from(form, self.data, place)[0] if place else 0

    def _followed(self, field: int) -> int:
        place = self._field(field)
        if not place:
            raise ValueError("a field is missing")
        return place + struct.unpack_from("<I", self.data, place)[0]

    def table(self, field: int) -> _Table:
        return _Table(self.data, self._followed(field))

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """The numbers of a list of pairs."""
        if not self._field(field):
            return
        start = self._followed(field)
        n = struct.unpack_from("<I", self.data, start)[0]
        if start + 4 + 16 * n > len(self.data):
            raise ValueError("a list beyond the end")
        yield from struct.iter_unpack("<qq", self.data[start + 4 : start + 4 + 16 * n])
