"""Who goes through the tasks of a table: this process, or workers elsewhere.

An engine runs jobs. ``Stream`` reads task after task in this process, so that memory holds one
chunk at a time. Others send tasks to workers. All merge in the same tree, and so give the same
bytes.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

from lowland._base.errors import DataError, LowlandError
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import Block, Task
from lowland._base.rows.folding import TreeFold

# Reading ahead: the next block is read in a second thread while the present one is worked on.
#
# To read is mostly waiting and decoding, and to compute leaves cores idle between its parallel
# parts. One block waits at most, so that memory holds two instead of one.


END = object()  # of the blocks of a task


class ReadAhead:
    """The blocks of tasks in order, read by a separate thread; use it with ``with``.

    >>> from lowland._base.rows.arrays import array_rows
    >>> import numpy as np
    >>> rows = array_rows(np.arange(6.0).reshape(3, 2), task_rows=2)
    >>> with ReadAhead(rows.tasks) as reader:
    ...     [[block.n_rows for block in reader.blocks()] for task in rows.tasks]
    [[2], [1]]
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.found = _with_ends(tasks)
        self.inside = False  # whether blocks of the present task are left

    def __enter__(self) -> ReadAhead:
        self.reader = ThreadPoolExecutor(1, "lowland-reader")
        self.waiting = self.reader.submit(next, self.found, END)
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.shutdown(cancel_futures=True)

    def blocks(self) -> Iterator[Block]:
        """The blocks of the next task; what is left of the task before is passed over."""
        while self.inside:
            self._take()
        block = self._take()
        while self.inside:
            yield block
            del block  # before the next one is read
            block = self._take()

    def _take(self) -> Any:
        block = self.waiting.result()  # or the error of reading, raised where the block is wanted
        self.inside = block is not END
        self.waiting = self.reader.submit(next, self.found, END)
        return block


def _with_ends(tasks: Sequence[Task]) -> Iterator[Any]:
    for task in tasks:
        yield from task.blocks()
        yield END


Work = Callable[[Iterator[Block], Any], Any]
OnBlock = Callable[[Block], Any]
Merge = Callable[[Any, Any], Any]


class Job(NamedTuple):
    """The same work on every task of a table.

    ``work(blocks, argument)`` gets the blocks of one task after all ``steps``, and the task's own
    argument (None if there are no ``arguments``). A step is a function of a block of columns. Work,
    steps, arguments and results travel by pickle.
    """

    name: str  # for progress
    work: Work
    tasks: Sequence[Task]
    steps: tuple[Callable[[Any], Any], ...] = ()
    arguments: Sequence[Any] | None = None

    def argument(self, place: int) -> Any:
        return None if self.arguments is None else self.arguments[place]


class Engine(Protocol):
    """What goes through tasks."""

    def run(self, job: Job, monitor: Monitor) -> Iterator[Any]:
        """The result of each task, in the order of the tasks."""
        ...

    def fold(self, job: Job, merge: Merge, monitor: Monitor) -> Any:
        """The results of all tasks merged in the tree of :class:`TreeFold`."""
        ...


class Stream:
    """Task after task in this process, while the next block is read."""

    def run(self, job: Job, monitor: Monitor) -> Iterator[Any]:
        total = sum(task.n_rows for task in job.tasks)
        with monitor.phase(job.name, total=total) as phase, ReadAhead(job.tasks) as reader:
            for place, task in enumerate(job.tasks):
                yield job.work(_stepped(reader.blocks(), job.steps), job.argument(place))
                phase.advance(task.n_rows)

    def fold(self, job: Job, merge: Merge, monitor: Monitor) -> Any:
        tree = TreeFold(merge)
        for result in self.run(job, monitor):
            tree.add(result)
        return tree.result()


def run_task(task: Task, work: Work, argument: Any, *steps: Callable[[Any], Any]) -> Any:
    """The work on one task; errors about data name the file."""
    return work(_stepped(task.blocks(), steps), argument)


def _stepped(blocks: Iterator[Block], steps: Sequence[Callable[[Any], Any]]) -> Iterator[Block]:
    """Blocks after all steps."""
    for block in blocks:
        X = block.X
        with naming_source(block.source):
            for step in steps:
                X = step(X)
        if X.shape[0] != block.n_rows:
            raise DataError(
                f"{block.source}: a step made {X.shape[0]} rows of {block.n_rows}; it must keep "
                "all rows."
            )
        yield block._replace(X=X)
        del block, X  # before the next one is read


@contextlib.contextmanager
def naming_source(source: str) -> Iterator[None]:
    """Let errors about data begin with the source of the rows."""
    try:
        yield
    except LowlandError as error:
        text = str(error)
        if not source or text.startswith(source):
            raise
        raise type(error)(f"{source}: {text}") from error


_current: contextvars.ContextVar[Engine | None] = contextvars.ContextVar("engine", default=None)


def current_engine() -> Engine | None:
    """The engine of the innermost ``with`` block around the caller, if there is one."""
    return _current.get()


@contextlib.contextmanager
def using(engine: Engine) -> Iterator[Engine]:
    """Let tables be gone through by ``engine`` within the block."""
    token = _current.set(engine)
    try:
        yield engine
    finally:
        _current.reset(token)
