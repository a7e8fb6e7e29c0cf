"""A file of a table in chunks, the layout that all files share, and the chunk itself."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError
from lowland._base.rows.chunks import Block

if TYPE_CHECKING:
    import polars as pl

# Bytes of rows that are read at once. A page of a Parquet file is decoded as a whole, whatever the
# number of rows that are taken from it, so chunks of wide tables are read several at a time.
SPAN_BYTES = 1 << 28


@dataclasses.dataclass(frozen=True, eq=False)
class Layout:
    """The columns that are taken from every file, and what becomes of them.

    All chunks of a table share one. ``columns`` are those that methods see, as numbers of ``dtype``
    or, with ``frames``, as a data frame. ``beside`` go along. ``types`` are the types of columns
    that keep their own.
    """

    columns: Sequence[str]
    beside: Sequence[str]
    dtype: np.dtype[Any]
    types: dict[str, pl.DataType]
    row_bytes: int
    frames: bool = False

    @functools.cached_property
    def wanted(self) -> tuple[str, ...]:
        """All columns that are read."""
        return tuple(dict.fromkeys([*self.columns, *self.beside]))

    @functools.cached_property
    def key(self) -> str:
        kinds = {name: str(kind) for name, kind in self.types.items()}
        beside = [[*self.columns], [*self.beside]]
        facts = json.dumps([*beside, str(self.dtype), kinds, self.frames])
        return hashlib.sha256(facts.encode()).hexdigest()[:24]

    @property
    def kept(self) -> Sequence[str]:
        """The columns that keep their own type."""
        return self.wanted if self.frames else self.beside

    def parts(self, data: Any) -> tuple[Any, Any]:
        """X and what goes along, of rows as a reader returned them: a frame or an array."""
        import polars as pl

        if isinstance(data, np.ndarray):
            X = data.astype(self.dtype, order="C", copy=False)
            return (pl.from_numpy(X, schema=self.columns, orient="row") if self.frames else X), None
        kept = [
            data[name] if data.schema[name] == kind else data[name].cast(kind)
            for name, kind in self.types.items()
        ]
        if self.frames:
            return pl.DataFrame(kept), None
        beside = pl.DataFrame(kept) if kept else None
        return self._numbers(data), beside

    def _numbers(self, data: pl.DataFrame) -> np.ndarray:
        """The columns of numbers as one array in C order; nulls are NaN."""
        import polars as pl

        target = pl.Float32() if self.dtype == np.float32 else pl.Float64()
        if self.beside:  # names of 20 000 columns take longer than their numbers
            data = data.select(self.columns)
        if set(data.dtypes) != {target}:
            data = data.select(pl.all().cast(target))
        return data.to_numpy(order="c")


class Look(NamedTuple):
    """What opening found out about a file: how it is read, its columns, its rows.

    A reader is light, can be pickled, and is shared by files that are read alike. Its ``read(file,
    first, n_rows, span)`` returns a range of rows as a data frame with the columns of the layout,
    or as an array. Its ``key`` is what decides about the values beside the bytes of the file, and
    ``together`` tells whether several chunks in one go cost less than one by one.
    """

    name: str
    path: str
    stamp: tuple[int, int] | None
    reader: Any
    n_rows: int
    schema: dict[str, pl.DataType] | None  # None: an array whose columns have no names
    width: int = 0  # of such an array
    dtype: np.dtype[Any] | None = None  # of such an array
    id_name: str | None = None  # the column that names the rows, if the file has one
    marks: Any = None  # of text: where rows begin, see ``text_chunks.py``


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SourceFile:
    """A file as its chunks know it."""

    name: str  # what messages call it
    path: str  # absolute, or an address
    stamp: tuple[int, int] | None  # size and time of the last change; None for an address
    reader: Any
    layout: Layout

    def rows(self, chunks: Sequence[FileChunk]) -> Any:
        """The rows of consecutive chunks; the file must be as it was when it was opened."""
        first = chunks[0].first
        n_rows = sum(chunk.n_rows for chunk in chunks)
        span = (chunks[0].span[0], chunks[-1].span[1])
        self._check()
        try:
            data = self.reader.read(self, first, n_rows, span)
        except DataError:
            self._check()  # a file that changes meanwhile looks damaged
            raise
        self._check()
        if data.shape[0] != n_rows:
            found = f"{data.shape[0]} of {n_rows} rows were found from row {first} on"
            raise DataError(f"{self.name}: {found}; it is damaged, or changed since it was opened.")
        return data

    def _check(self) -> None:
        if self.stamp is not None and stamp_of(self.path, self.name) != self.stamp:
            what = "changed since it was opened; open the files again with open_rows"
            raise DataError(f"{self.name}: {what}.")


class FileChunk(NamedTuple):
    """Some rows of a file; ``span`` is their range of bytes in a text."""

    file: SourceFile
    first: int
    n_rows: int
    span: tuple[int, int] = (0, 0)

    @property
    def identity(self) -> tuple[Any, ...]:
        file = self.file
        facts = (file.path, file.stamp, file.reader.key, file.layout.key)
        return (*facts, self.first, self.n_rows)

    @property
    def source(self) -> str:
        return f"{self.file.name}, rows {self.first} to {self.first + self.n_rows - 1}"

    @property
    def run(self) -> Any:
        """Neighbors with the same run are read together; None: each alone."""
        return self.file if self.file.reader.together else None

    def read(self, start: int) -> Block:
        return next(self.read_run([self], start))

    @staticmethod
    def read_run(chunks: Sequence[FileChunk], start: int) -> Iterator[Block]:
        """The blocks of consecutive chunks of one file."""
        for group in _spans(chunks):
            yield from _blocks(group, start)
            start += sum(chunk.n_rows for chunk in group)


def _blocks(chunks: Sequence[FileChunk], start: int) -> Iterator[Block]:
    file = chunks[0].file
    data, place = file.rows(chunks), 0
    for chunk in chunks:
        X, beside = file.layout.parts(data[place : place + chunk.n_rows])
        place += chunk.n_rows
        if chunk is chunks[-1]:
            del data
        yield Block(X, start, beside, None, chunk.source)
        start += chunk.n_rows


def _spans(chunks: Sequence[FileChunk]) -> Iterator[list[FileChunk]]:
    """Chunks in groups whose rows are read at once."""
    most = max(1, SPAN_BYTES // max(1, chunks[0].file.layout.row_bytes))
    group: list[FileChunk] = []
    for chunk in chunks:
        if group and sum(each.n_rows for each in group) + chunk.n_rows > most:
            yield group
            group = []
        group.append(chunk)
    yield group


def stamp_of(path: str, name: str) -> tuple[int, int]:
    """Size and time of the last change of a file that can be read."""
    with unread(name):
        facts = os.stat(path)
    return facts.st_size, facts.st_mtime_ns


@contextlib.contextmanager
def unread(name: str) -> Iterator[None]:
    """Let errors of the system name the file as the user does."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{name}: no such file.") from error
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror or error}.") from error
    except ValueError as error:  # a null character in the name
        if isinstance(error, DataError) or "null" not in str(error):
            raise
        raise DataError(f"{name!r}: is not the name of a file: {error}.") from error
