"""How a table is cut: a leaf is a fixed range of rows of one file, a task a run of leaves.

Sums are folded leaf by leaf within a task and task by task in a fixed tree, so the cuts decide
about the last bits of a result. They depend on the files and on the number of columns only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

TASK_ROWS = 1 << 18  # rows of a task, at most: 1 billion rows are 3 815 tasks
TASK_BYTES = 1 << 30  # of its numbers as float64, at most
LEAF_BYTES = 1 << 26  # of the numbers of a leaf, which is read at once
FEWEST_ROWS = 256  # of a leaf, however wide the table


class Block(NamedTuple):
    """Consecutive rows of a table, in memory.

    ``X`` holds the columns that methods see: an array, a CSR matrix or a polars data frame of b
    rows. ``start`` is the number of the first row in the whole table. ``beside`` is a polars data
    frame of columns that go along (row id, labels), or None. ``y`` holds the target, if one was
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


class Leaf(Protocol):
    """A range of rows that can be read anywhere, at any time, with the same result.

    A leaf travels to workers by pickle, so it holds the way to its rows, not the rows.
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
    """Consecutive leaves that one worker goes through in order."""

    number: int
    start: int  # number of the first row in the whole table
    leaves: tuple[Leaf, ...]

    @property
    def n_rows(self) -> int:
        return sum(leaf.n_rows for leaf in self.leaves)

    def blocks(self) -> Iterator[Block]:
        """The rows, leaf by leaf; neighbors with a common ``run`` may be read in one go."""
        start = self.start
        for run, group in itertools.groupby(self.leaves, key=_run):
            leaves = list(group)
            if run:
                yield from leaves[0].read_run(leaves, start)  # type: ignore[attr-defined]
                start += count_rows(leaves)
                continue
            for leaf in leaves:
                yield leaf.read(start)
                start += leaf.n_rows


def _run(leaf: Leaf) -> int:
    """What leaves have in common that are cheaper to read in one go; 0: nothing.

    Such leaves have an attribute ``run``, one object for all of them, and ``read_run(leaves,
    start)``, which yields the blocks that ``read`` would return one by one.
    """
    run = getattr(leaf, "run", None)
    return 0 if run is None else id(run)


def leaf_rows(n_columns: int, task_rows: int = TASK_ROWS) -> int:
    """Rows of a leaf of a table with so many columns: a power of two, unless ``task_rows`` is less.

    >>> leaf_rows(50), leaf_rows(1000), leaf_rows(20_000)
    (131072, 8192, 256)
    """
    fit = max(1, LEAF_BYTES // (8 * max(1, n_columns)))
    return min(task_rows, max(FEWEST_ROWS, 1 << (fit.bit_length() - 1)))


def leaf_ranges(n_rows: int, step: int) -> Iterator[tuple[int, int]]:
    """Start and stop of each leaf of a file with so many rows."""
    for start in range(0, n_rows, step):
        yield start, min(n_rows, start + step)


def tasks_of(leaves: Sequence[Leaf], n_columns: int, task_rows: int = TASK_ROWS) -> list[Task]:
    """Leaves grouped in order: a task takes leaves, of several files too, while it has room."""
    room = max(1, min(task_rows, TASK_BYTES // (8 * max(1, n_columns))))
    tasks: list[Task] = []
    start, held = 0, 0
    group: list[Leaf] = []
    for leaf in leaves:
        if group and held + leaf.n_rows > room:
            tasks.append(Task(len(tasks), start, tuple(group)))
            start, held, group = start + held, 0, []
        group.append(leaf)
        held += leaf.n_rows
    if group:
        tasks.append(Task(len(tasks), start, tuple(group)))
    return tasks


def count_rows(leaves: Iterable[Leaf]) -> int:
    """Rows of all leaves."""
    return sum(leaf.n_rows for leaf in leaves)
