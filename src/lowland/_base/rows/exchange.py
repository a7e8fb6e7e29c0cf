"""Rows brought together by part, through files: every part meets all of its rows at once.

1. Each task of the table writes one file: its rows, sorted by part, r copies of each. The rows of
   a part are one range of bytes. A task whose rows exceed ``SECTION_BYTES`` writes several such
   sections, one below another, so that memory stays bounded.
2. Each part is a task of its own: it reads its ranges from all files, in the order of the tasks,
   so that row numbers ascend, and hands the rows to a function.

A file is written under a temporary name and renamed: a task that runs twice leaves the same bytes.
A section is plain: the row numbers (int64), then the rows (C order), both little-endian. Where the
ranges are travels with the results of the first step.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.constraints import Integer, require
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import format_bytes, require_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block, Task
from lowland._base.rows.engines import Job, naming_source
from lowland._base.rows.parts import whole_file
from lowland._base.validation import is_sparse

if TYPE_CHECKING:
    from lowland._base.rows.table import Rows

SECTION_BYTES = 1 << 28  # of the rows of a task that are sorted at once, with all copies
MOST_PARTS = 1 << 20
NUMBER = np.dtype("<i8")

PartOf = Callable[[Block], np.ndarray]
OnPart = Callable[[int, np.ndarray, np.ndarray], Any]


class Section(NamedTuple):
    """A sorted run of rows in a file; part i has the rows ``starts[i]`` to ``starts[i + 1]``."""

    path: str
    offset: int  # of the first byte
    starts: np.ndarray


class Range(NamedTuple):
    """The rows of one part in one section."""

    path: str
    numbers_at: int
    rows_at: int
    n_rows: int


class PartChunk(NamedTuple):
    """All rows of one part; a block of it has their numbers as ``y``."""

    part: int
    ranges: tuple[Range, ...]
    n_columns: int
    dtype: str

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self.ranges)

    @property
    def identity(self) -> tuple[Any, ...]:
        return ("part", *self)

    @property
    def source(self) -> str:
        return f"part {self.part}"

    def read(self, start: int) -> Block:
        n, p, dtype = self.n_rows, self.n_columns, np.dtype(self.dtype)
        require_memory(
            n * (p * dtype.itemsize + NUMBER.itemsize),
            task=f"a part of {n} rows x {p} columns",
            alternative="take more parts (n_parts)",
        )
        X, numbers = np.empty((n, p), dtype), np.empty(n, NUMBER)
        first = 0
        for path, numbers_at, rows_at, count in self.ranges:
            last = first + count
            with Path(path).open("rb", buffering=0) as file:
                _fill(file, numbers_at, numbers[first:last], path)
                _fill(file, rows_at, X[first:last], path)
            first = last
        native = X.astype(dtype.newbyteorder("="), copy=False)
        return Block(native, start, None, numbers.astype(np.int64, copy=False), self.source)


def _fill(file: Any, offset: int, into: np.ndarray, path: str) -> None:
    """Read an array from a place of a file."""
    if not into.size:
        return
    file.seek(offset)
    left = memoryview(into.reshape(-1).view(np.uint8).data)
    while len(left):
        got = file.readinto(left)
        if not got:
            raise DataError(
                f"{path}: ends before the rows it was written with; was it changed, or is the disk "
                "full?"
            )
        left = left[got:]


@dataclasses.dataclass(frozen=True)
class PartFile:
    """The work on one task of the table: write its rows sorted by part; the result: sections."""

    folder: str
    part_of: PartOf
    n_parts: int
    copies: int
    dtype: np.dtype

    def __call__(self, blocks: Iterator[Block], number: int) -> list[Section]:
        target = Path(self.folder) / f"rows-{number:06d}.bin"
        sections: list[Section] = []
        held: list[tuple[Block, np.ndarray]] = []
        n_bytes = 0
        with whole_file(target) as unfinished, unfinished.open("wb") as file:
            for block in blocks:
                block = block._replace(X=self._array(block))
                with naming_source(block.source):
                    held.append((block, self._parts(block)))
                n_bytes += self.copies * block.X.nbytes
                if n_bytes >= SECTION_BYTES:
                    sections.append(self._write(file, held, str(target)))
                    held, n_bytes = [], 0
            if held:
                sections.append(self._write(file, held, str(target)))
        return sections

    def _array(self, block: Block) -> np.ndarray:
        if is_sparse(block.X):
            raise DataError(
                f"{block.source}: rows in sparse matrices cannot be exchanged; reduce them first, "
                "as in PCA(50).fit(rows).transform(rows)."
            )
        X = block.X if isinstance(block.X, np.ndarray) else block.X.to_numpy()
        return np.ascontiguousarray(X, self.dtype)

    def _parts(self, block: Block) -> np.ndarray:
        """The parts of each row, checked: whoever made them may be wrong."""
        parts = np.asarray(self.part_of(block))
        if parts.shape != (block.n_rows, self.copies) or parts.dtype.kind not in "iu":
            raise ParameterError(
                f"part_of gave {parts.dtype} of shape {parts.shape} for {block.n_rows} rows; it "
                f"must give integers of shape {(block.n_rows, self.copies)}."
            )
        if parts.size and not (parts.min() >= -1 and parts.max() < self.n_parts):
            wrong = parts[(parts < -1) | (parts >= self.n_parts)][0]
            raise ParameterError(
                f"part_of gave the part {wrong}; parts are 0 to {self.n_parts - 1}, or -1 for none."
            )
        ordered = np.sort(parts, axis=1)
        if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
            raise ParameterError("part_of gave a part twice for one row; the parts must differ.")
        return parts

    def _write(self, file: Any, held: Sequence[tuple[Block, np.ndarray]], path: str) -> Section:
        offset = file.tell()
        parts = np.concatenate([parts.ravel() for _, parts in held])
        sizes = np.bincount(parts + 1, minlength=self.n_parts + 1)  # the first: sent nowhere
        order = np.argsort(parts, kind="stable")[sizes[0] :]  # row numbers ascend within a part
        starts = np.zeros(self.n_parts + 1, np.int64)
        np.cumsum(sizes[1:], out=starts[1:])
        places = order // self.copies
        numbers = np.concatenate(
            [np.arange(block.start, block.start + block.n_rows) for block, _ in held]
        )
        file.write(numbers[places].astype(NUMBER))
        X = held[0][0].X if len(held) == 1 else np.concatenate([block.X for block, _ in held])
        step = max(1, (1 << 24) // max(1, X.strides[0]))
        for first in range(0, len(places), step):
            file.write(np.ascontiguousarray(X[places[first : first + step]]))
        return Section(path, offset, starts)


@dataclasses.dataclass(frozen=True)
class OnRows:
    """The work on one part: a function of the part, its rows and their numbers."""

    f: OnPart

    def __call__(self, blocks: Iterator[Block], part: int) -> Any:
        block = next(blocks)
        return self.f(part, block.X, block.y)


def exchange(
    rows: Rows,
    part_of: PartOf,
    f: OnPart,
    n_parts: int,
    *,
    copies: int = 1,
    folder: str | os.PathLike[str] | None = None,
    monitor: Monitor | None = None,
) -> Iterator[Any]:
    """``f(part, X, numbers)`` of every part, in order: rows are brought together by part.

    ``part_of(block)`` gives the numbers of the parts that each row goes to, an integer array of
    shape (rows, ``copies``), from 0 to ``n_parts`` - 1 and all different within a row, or -1
    for no part. ``f`` gets all rows of a part at once, ascending by their ``numbers`` in the
    table (int64); a part may be empty. The rows go through files in ``folder``, which all
    workers must see: by default the temporary folder of the system. The files have ``copies``
    times the size of the table, and are removed at the end.
    """
    require("exchange: n_parts", n_parts, Integer(1, MOST_PARTS))
    require("exchange: copies", copies, Integer(1, n_parts))
    if rows.dtype.kind != "f":
        raise DataError("exchange: the table has columns that are no numbers; choose others.")
    home = Path(tempfile.gettempdir() if folder is None else folder)
    if not home.is_dir():
        raise ParameterError(f"folder={str(home)!r} does not exist; make it, or choose another.")
    need = copies * len(rows) * (rows.shape[1] * rows.dtype.itemsize + NUMBER.itemsize)
    free = shutil.disk_usage(home).free
    if need > free:
        raise DataError(
            f"{home}: the exchange of rows writes {format_bytes(need)}, but the disk has "
            f"{format_bytes(free)} left; give another folder (folder=, or the environment "
            "variable TMPDIR), or take fewer copies."
        )

    def results() -> Iterator[Any]:
        own = tempfile.mkdtemp(prefix="lowland-", dir=home.absolute())
        dtype, tasks = rows.dtype.newbyteorder("<"), rows.tasks
        try:
            work = PartFile(own, part_of, int(n_parts), int(copies), dtype)
            numbers = [task.number for task in tasks]
            written = list(rows.results(work, monitor, "parts", tasks=tasks, arguments=numbers))
            sections = [section for found in written for section in found]
            chunks = [_chunk(part, sections, rows.shape[1], dtype) for part in range(n_parts)]
            parts = [Task(part, 0, (chunk,)) for part, chunk in enumerate(chunks)]
            job = Job("rows by part", OnRows(f), parts, (), range(n_parts))
            yield from rows.run(job, monitor or Monitor())
        finally:
            shutil.rmtree(own, ignore_errors=True)

    return results()  # not a generator itself: what is wrong is refused before anything is read


def _chunk(part: int, sections: Sequence[Section], p: int, dtype: np.dtype) -> PartChunk:
    """The ranges of a part in all sections that have rows of it."""
    ranges = []
    for path, offset, starts in sections:
        first, last = int(starts[part]), int(starts[part + 1])
        if first < last:
            numbers_at = offset + NUMBER.itemsize * first
            rows_at = offset + NUMBER.itemsize * int(starts[-1]) + p * dtype.itemsize * first
            ranges.append(Range(path, numbers_at, rows_at, last - first))
    return PartChunk(part, tuple(ranges), p, dtype.str)
