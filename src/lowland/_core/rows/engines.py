"""Who goes through the tasks of a table: this process, or workers elsewhere.

An engine runs jobs. ``Stream`` reads task after task in this process, so that memory holds one leaf
at a time. ``lowland.distributed.Dask`` sends tasks to workers. Both merge in the same tree, and
so give the same bytes.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from lowland._core.errors import DataError, LowlandError
from lowland._core.monitor import Monitor
from lowland._core.rows.ahead import ReadAhead
from lowland._core.rows.folding import TreeFold
from lowland._core.rows.leaves import Block, Task

Work = Callable[[Iterator[Block], Any], Any]


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

    def fold(self, job: Job, merge: Callable[[Any, Any], Any], monitor: Monitor) -> Any:
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

    def fold(self, job: Job, merge: Callable[[Any, Any], Any], monitor: Monitor) -> Any:
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
        yield _after(block, steps)
        del block  # before the next one is read


def _after(block: Block, steps: Sequence[Callable[[Any], Any]]) -> Block:
    X = block.X
    with naming_source(block.source):
        for step in steps:
            X = step(X)
    if X.shape[0] != block.n_rows:
        raise DataError(
            f"{block.source}: a step made {X.shape[0]} rows of {block.n_rows}; it must keep all "
            "rows."
        )
    return block._replace(X=X)


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


def current_engine(otherwise: Engine | None = None) -> Engine:
    """The engine of the innermost ``with`` block around the caller; else that, or a stream."""
    return _current.get() or otherwise or Stream()


@contextlib.contextmanager
def using(engine: Engine) -> Iterator[Engine]:
    """Let tables be gone through by ``engine`` within the block."""
    token = _current.set(engine)
    try:
        yield engine
    finally:
        _current.reset(token)
