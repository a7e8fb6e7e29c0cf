"""Parquet and Arrow IPC (Feather): only the columns asked for are read."""

from __future__ import annotations

import contextlib
import mmap
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lowland._base.errors import DataError
from lowland.tables.budget import column_bytes, refuse_bomb, require_for_table
from lowland.tables.columns.guessing import speaks_of_a_role
from lowland.tables.columns.vectors import check_choice, vector_bytes
from lowland.tables.contents import Contents, Request, unreadable
from lowland.tables.opening import File

if TYPE_CHECKING:
    import polars as pl

# A look at the messages of an Arrow stream, before polars allocates what they claim to hold.
#
# A stream is a list of messages: the mark FFFFFFFF, the size of the metadata, the metadata (a
# FlatBuffer), the body. The metadata of a batch of rows list the places of its buffers in the body.
# polars allocates the size that is listed and ends the process if there is not so much memory.


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


PANDAS_INDEX = "__index_level_0__"
ARROW_FILE, FEATHER_1 = b"ARROW1", b"FEA1"
LOOKED_AT = 100  # rows that tell how long the lists of a column are
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


def read_parquet(file: File, request: Request) -> Contents:
    """Parquet; pandas' stored index becomes the row id."""
    import polars as pl

    with polars_reading(file, "Parquet"):
        return _chosen(file, pl.scan_parquet(file.path), request)


def read_arrow(file: File, request: Request) -> Contents:
    """Arrow IPC, as a file (also called Feather 2) or as a stream."""
    import polars as pl

    with file.path.open("rb") as opened:
        start = opened.read(len(ARROW_FILE))
        opened.seek(max(0, file.size - len(END_OF_STREAM)))
        end = opened.read()
    if start.startswith(FEATHER_1):
        raise DataError(f"{file}: is Feather 1, an old format; save it as Feather 2 or Parquet.")
    with polars_reading(file, "Arrow"):
        if start == ARROW_FILE:
            lazy = pl.scan_ipc(file.path)
        elif end != END_OF_STREAM:  # else rows would be lost without an error
            raise unreadable(file, "Arrow", "it is cut short, or no Arrow file")
        else:  # a stream has no directory and is read as a whole
            check_stream(file)
            lazy = pl.read_ipc_stream(file.path).lazy()
        return _chosen(file, lazy, request)


@contextlib.contextmanager
def polars_reading(file: File, kind: str) -> Iterator[None]:
    """Turn every error that polars raises on a damaged file into a DataError of one line."""
    import polars as pl

    try:
        yield
    except DataError:
        raise
    except (pl.exceptions.PolarsError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise _damaged(file, kind, error) from error
    except BaseException as error:
        # Rust panics on some damaged files; PanicException is not a subclass of Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise _damaged(file, kind, error) from error


def _damaged(file: File, kind: str, error: BaseException) -> DataError:
    """The words of a panic are those of a programmer of polars."""
    panicked = type(error).__name__ == "PanicException" or "panic" in str(error).lower()
    return unreadable(file, kind, "it is damaged" if panicked else error)


def _chosen(file: File, lazy: pl.LazyFrame, request: Request) -> Contents:
    """The columns that may get a role; numbers that were not asked for are not read."""
    import polars as pl

    schema = lazy.collect_schema()
    vectors = check_choice(file, schema, request)
    wanted = schema if request.columns is None else request.columns
    asked = {*wanted, *request.labels, request.id_column, *request.use}
    unread = [
        name
        for name, dtype in schema.items()
        if (dtype.is_numeric() or dtype == pl.Boolean)
        and name not in asked
        and name != PANDAS_INDEX
        and not ((vectors or request.guess) and speaks_of_a_role(name))  # it may name the rows
    ]
    left_out = [
        name
        for name, dtype in schema.items()
        if (dtype.is_nested() or dtype in (pl.Binary, pl.Object)) and name not in vectors
    ]
    kept = [name for name in schema if name not in {*unread, *left_out}]
    rows = lazy.select(pl.len()).collect().item()
    as_floats = 8 * sum(schema[name].is_numeric() for name in kept)
    row_bytes = column_bytes(schema[name] for name in kept) + as_floats
    for name in vectors:  # as lists, and as one block
        first = lazy.select(name).head(LOOKED_AT).collect()[name]
        row_bytes += 2 * vector_bytes(schema[name], first)
    refuse_bomb(file, rows * row_bytes, file.size)
    require_for_table(file, rows, len(kept), row_bytes, advice="choose fewer columns")
    frame = lazy.select(kept).collect()
    if frame.height != rows:  # polars may return no rows for a frame without columns
        raise unreadable(file, "a table", f"{frame.height} of {rows} rows were found")
    id_name = None
    if PANDAS_INDEX in frame.columns:
        id_name = "index" if "row" in schema else "row"
        frame = frame.rename({PANDAS_INDEX: id_name})
    return Contents(frame, id_name=id_name, unread=tuple(unread), left_out=tuple(left_out))
