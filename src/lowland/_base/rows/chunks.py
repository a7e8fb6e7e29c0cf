"""How a table is cut: a chunk is a fixed range of rows of one file, a task a run of chunks.

Sums are folded in chunks within a task and task by task in a fixed tree, so the cuts decide
about the last bits of a result. They depend on the files and on the number of columns only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

TASK_ROWS = 1 << 18  # rows of a task, at most: 1 billion rows are 3 815 tasks
TASK_BYTES = 1 << 30  # of its numbers as float64, at most
CHUNK_BYTES = 1 << 26  # of the numbers of a chunk, which is read at once
FEWEST_ROWS = 256  # of a chunk, however wide the table


class Block(NamedTuple):
    """Consecutive rows of a table, in memory.

    ``X`` holds the columns that methods see: an array, a CSR matrix or a polars data frame of b
    rows. ``start`` is the number of the first row in the whole table. ``beside`` is a polars data
    frame of columns carried along (row id, labels), or None. ``y`` holds the target, if one was
    chosen. ``source`` names the rows in messages.
    """

    X: Any
    start: int
    beside: Any = None
    y: Any = None
    source: str = ""

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]


class Chunk(Protocol):
    """A range of rows that can be read anywhere, at any time, with the same result.

    A chunk travels to workers by pickle, so it holds the way to its rows, not the rows.
    """

    @property
    def n_rows(self) -> int: ...

    @property
    def identity(self) -> tuple[Any, ...]:
        """Plain values that change when the rows may have changed: path, size, time, columns."""
        ...

    @property
    def source(self) -> str:
        """What messages call the rows, such as the name of the file and the range."""
        ...

    def read(self, start: int) -> Block:
        """The rows; ``start`` is the number of the first one in the whole table."""
        ...


class Task(NamedTuple):
    """Consecutive chunks that one worker goes through in order."""

    number: int
    start: int  # number of the first row in the whole table
    chunks: tuple[Chunk, ...]

    @property
    def n_rows(self) -> int:
        return sum(chunk.n_rows for chunk in self.chunks)

    def blocks(self) -> Iterator[Block]:
        """The rows, in chunks; neighbors with a common ``run`` may be read in one go."""
        start = self.start
        for run, group in itertools.groupby(self.chunks, key=_run):
            chunks = list(group)
            if run:
                yield from chunks[0].read_run(chunks, start)  # type: ignore[attr-defined]
                start += count_rows(chunks)
                continue
            for chunk in chunks:
                yield chunk.read(start)
                start += chunk.n_rows


def _run(chunk: Chunk) -> int:
    """What chunks have in common that are cheaper to read in one go; 0: nothing.

    Such chunks have an attribute ``run``, one object for all of them, and ``read_run(chunks,
    start)``, which yields the blocks that ``read`` would return one by one.
    """
    run = getattr(chunk, "run", None)
    return 0 if run is None else id(run)


def chunk_rows(n_columns: int, task_rows: int = TASK_ROWS) -> int:
    """Rows of a chunk of a table with so many columns: a power of two, or ``task_rows`` if less.

    >>> chunk_rows(50), chunk_rows(1000), chunk_rows(20_000)
    (131072, 8192, 256)
    """
    fit = max(1, CHUNK_BYTES // (8 * max(1, n_columns)))
    return min(task_rows, max(FEWEST_ROWS, 1 << (fit.bit_length() - 1)))


def chunk_ranges(n_rows: int, step: int) -> Iterator[tuple[int, int]]:
    """Start and stop of each chunk of a file with so many rows."""
    for start in range(0, n_rows, step):
        yield start, min(n_rows, start + step)


def tasks_of(chunks: Sequence[Chunk], n_columns: int, task_rows: int = TASK_ROWS) -> list[Task]:
    """Chunks grouped in order: a task takes chunks, of several files too, while it has room."""
    room = max(1, min(task_rows, TASK_BYTES // (8 * max(1, n_columns))))
    tasks: list[Task] = []
    start, held = 0, 0
    group: list[Chunk] = []
    for chunk in chunks:
        if group and held + chunk.n_rows > room:
            tasks.append(Task(len(tasks), start, tuple(group)))
            start, held, group = start + held, 0, []
        group.append(chunk)
        held += chunk.n_rows
    if group:
        tasks.append(Task(len(tasks), start, tuple(group)))
    return tasks


def count_rows(chunks: Iterable[Chunk]) -> int:
    """Rows of all chunks."""
    return sum(chunk.n_rows for chunk in chunks)
