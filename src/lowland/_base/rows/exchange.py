"""Rows brought together by part, through files: every part meets all of its rows at once.

1. Each task of the table writes one file: its rows, sorted by part, r copies of each. The rows of
   a part are one range of bytes. A task whose rows exceed ``SECTION_BYTES`` writes several such
   sections, one below another, so that memory stays bounded.
2. Each part is a separate task: it reads its ranges from all files, in the order of the tasks,
   so that row numbers ascend, and hands the rows to a function.

A file is written under a temporary name and renamed: a task that runs twice leaves the same bytes.
A section consists of records: the number of a row (int64), then the row. Where the ranges are
travels with the results of the first step.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.constraints import Integer, check_argument
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

PartOf = Callable[[Block], np.ndarray]
OnPart = Callable[[int, np.ndarray, np.ndarray], Any]


class Section(NamedTuple):
    """A sorted run of rows in a file; part i has the rows ``starts[i]`` to ``starts[i + 1]``."""

    path: str
    offset: int  # of the first byte
    starts: np.ndarray


class PartChunk(NamedTuple):
    """All rows of one part; a block of it has their numbers as ``y``."""

    part: int
    n_rows: int
    ranges: tuple[tuple[str, int, int], ...]  # path, first byte, number of rows
    record: np.dtype

    @property
    def identity(self) -> tuple[Any, ...]:
        return ("part", *self)

    @property
    def source(self) -> str:
        return f"part {self.part}"

    def read(self, start: int) -> Block:
        n, rows = self.n_rows, self.record["row"]
        require_memory(
            n * self.record.itemsize,
            task=f"a part of {n} rows x {rows.shape[0]} columns",
            alternative="take more parts (n_parts)",
        )
        X, numbers, first = np.empty((n, *rows.shape), rows.base), np.empty(n, np.int64), 0
        for path, offset, count in self.ranges:
            found = np.fromfile(path, self.record, count, offset=offset)
            if len(found) < count:
                raise DataError(f"{path}: ends before the last of its rows; is the disk full?")
            X[first : first + count], numbers[first : first + count] = found["row"], found["number"]
            first += count
        return Block(X, start, None, numbers, self.source)


@dataclasses.dataclass(frozen=True)
class PartFile:
    """The work on one task of the table: write its rows sorted by part; the result: sections."""

    folder: str
    part_of: PartOf
    n_parts: int
    copies: int
    record: np.dtype

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
        return np.ascontiguousarray(X, self.record["row"].base)

    def _parts(self, block: Block) -> np.ndarray:
        """The parts of each row, checked: the caller that made them may be wrong."""
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
        X = held[0][0].X if len(held) == 1 else np.concatenate([block.X for block, _ in held])
        step = max(1, (1 << 24) // self.record.itemsize)
        for first in range(0, len(places), step):
            some = places[first : first + step]
            records = np.empty(len(some), self.record)
            records["number"], records["row"] = numbers[some], X[some]
            file.write(records.view(np.uint8))
        return Section(path, offset, starts)


def _on_rows(f: OnPart, blocks: Iterator[Block], part: int) -> Any:
    """The work on one part: a function of the part, its rows and their numbers."""
    block = next(blocks)
    return f(part, block.X, block.y)


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
    check_argument("exchange: n_parts", n_parts, Integer(1, MOST_PARTS))
    check_argument("exchange: copies", copies, Integer(1, n_parts))
    if rows.dtype.kind != "f":
        raise DataError("exchange: the table has columns that are not numbers; choose others.")
    home = Path(tempfile.gettempdir() if folder is None else folder)
    if not home.is_dir():
        raise ParameterError(f"folder={str(home)!r} does not exist; make it, or choose another.")
    record = np.dtype([("number", np.int64), ("row", rows.dtype, rows.shape[1:])])
    need = copies * len(rows) * record.itemsize
    free = shutil.disk_usage(home).free
    if need > free:
        raise DataError(
            f"{home}: the exchange of rows writes {format_bytes(need)}, but the disk has "
            f"{format_bytes(free)} left; give another folder (folder=, or the environment "
            "variable TMPDIR), or take fewer copies."
        )

    def results() -> Iterator[Any]:
        own = tempfile.mkdtemp(prefix="lowland-", dir=home.absolute())
        try:
            work = PartFile(own, part_of, int(n_parts), int(copies), record)
            numbers = [task.number for task in rows.tasks]
            written = list(rows.results(work, monitor, "parts", arguments=numbers))
            sections = [section for found in written for section in found]
            parts = [Task(i, 0, (_chunk(i, sections, record),)) for i in range(n_parts)]
            job = Job("rows by part", functools.partial(_on_rows, f), parts, (), range(n_parts))
            yield from rows.run(job, monitor or Monitor())
        finally:
            shutil.rmtree(own, ignore_errors=True)

    return results()  # not a generator itself: what is wrong is refused before anything is read


def _chunk(part: int, sections: Sequence[Section], record: np.dtype) -> PartChunk:
    """The ranges of a part in all sections that have rows of it."""
    ranges = []
    for path, offset, starts in sections:
        first, last = int(starts[part]), int(starts[part + 1])
        if first < last:
            ranges.append((path, offset + record.itemsize * first, last - first))
    return PartChunk(part, sum(n for *_, n in ranges), tuple(ranges), record)
