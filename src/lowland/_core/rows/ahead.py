"""Reading ahead: the next block is read in a second thread while the present one is worked on.

To read is mostly waiting and decoding, and to compute leaves cores idle between its parallel parts.
One block waits at most, so that memory holds two instead of one.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from lowland._core.rows.leaves import Block, Task

END = object()  # of the blocks of a task
PATIENCE = 0.1  # seconds after which a waiting reader looks whether it is still wanted


class ReadAhead:
    """The blocks of tasks in order, read by a thread of its own; use it with ``with``.

    >>> from lowland._core.rows.arrays import array_rows
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
