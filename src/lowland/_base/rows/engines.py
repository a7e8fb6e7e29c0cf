"""Who goes through the tasks of a table: this process, or workers elsewhere.

An engine runs jobs. ``Stream`` reads task after task in this process, so that memory holds one
chunk at a time. Others send tasks to workers. All merge in the same tree, and so give the same
bytes.
"""

from __future__ import annotations

import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
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
PATIENCE = 0.1  # seconds after which a waiting reader looks whether it is still wanted


class ReadAhead:
    """The blocks of tasks in order, read by a thread of its own; use it with ``with``.

    >>> from lowland._base.rows.arrays import array_rows
    >>> import numpy as np
    >>> rows = array_rows(np.arange(6.0).reshape(3, 2), task_rows=2)
    >>> with ReadAhead(rows.tasks) as reader:
    ...     [[block.n_rows for block in reader.blocks()] for task in rows.tasks]
    [[2], [1]]
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks
        self.read: queue.Queue[Any] = queue.Queue(maxsize=1)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._read, name="lowland-reader", daemon=True)

    def __enter__(self) -> ReadAhead:
        self.thread.start()
        return self

    def __exit__(self, *details: object) -> None:
        self.stopped.set()
        with contextlib.suppress(queue.Empty):
            self.read.get_nowait()  # a reader that waits for room goes on, and ends
        self.thread.join()

    def blocks(self) -> Iterator[Block]:
        """The blocks of the next task; what is not used of them is passed over."""
        done = False
        try:
            while not done:
                found = self.read.get()
                done = found is END
                if isinstance(found, BaseException):
                    done = True
                    raise found
                if not done:
                    yield found
                    del found
        finally:
            while not (done or self.stopped.is_set()):
                with contextlib.suppress(queue.Empty):
                    found = self.read.get(timeout=PATIENCE)
                    done = found is END or isinstance(found, BaseException)

    def _read(self) -> None:
        try:
            for task in self.tasks:
                for block in task.blocks():
                    if not self._put(block):
                        return
                    del block
                if not self._put(END):
                    return
        except BaseException as error:  # raised where the block is wanted
            self._put(error)

    def _put(self, found: Any) -> bool:
        """Hand over what was read; False if nobody wants it anymore."""
        while not self.stopped.is_set():
            try:
                self.read.put(found, timeout=PATIENCE)
            except queue.Full:
                continue
            return True
        return False


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
