"""``Dask``: tables gone through by the workers of a cluster, with the bytes of one machine.

Only futures are used. The tree of merges is a tree of tasks, so a sum of many tasks never comes
together in one place, and a bounded number of tasks is known to the scheduler at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import lowland
from lowland._base.constraints import Integer, Real, check_argument
from lowland._base.errors import ClusterError, DataError, ParameterError
from lowland._base.monitor import Monitor, Phase
from lowland._base.rows.chunks import Task
from lowland._base.rows.engines import Job, Merge, using
from lowland._base.rows.folding import TreeFold
from lowland._base.rows.parts import whole_file
from lowland.chunks import connection as remote
from lowland.chunks.connection import Connection, Packed
from lowland.chunks.dask_collections import split_inputs

# How objects travel to workers: as bytes in a task, or as a file that a task reads.
#
# What is scattered to a worker is lost when that worker dies. What a *task* loads is loaded again.
# The key of a task contains a digest of everything that its result depends on, so that two runs
# never share a result that differs.


INLINE = 1_000_000  # bytes in a task, at most: all of them pass through the scheduler


def digest(*parts: bytes | str) -> str:
    """A name for these bytes, in this version of lowland."""
    found = hashlib.sha256(lowland.__version__.encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()[:32]


def task_digest(shared: str, packed: bytes, task: Task) -> str:
    """A name for the work on one task: work and steps, its rows, and what identifies their files.

    The bytes alone would not do: chunks of a file tell its size and time in ``identity`` only.
    """
    identity = json.dumps([chunk.identity for chunk in task.chunks], default=str)
    return digest(shared, packed, identity)


class Shipping:
    """Packs objects; those above ``INLINE`` bytes go through files in ``scratch``, if there is one.

    The files are removed with :meth:`discard` and :meth:`close`.
    """

    def __init__(self, scratch: Path | None) -> None:
        self.scratch = scratch
        self.written: set[Path] = set()

    def pack(self, value: Any) -> tuple[Packed, bytes]:
        """What a task gets in place of the object, and its bytes for a digest."""
        from distributed.protocol.pickle import dumps  # by value what is defined in a script

        data = dumps(value)
        if len(data) <= INLINE or self.scratch is None:
            return data, data
        path = self.scratch / f"lowland-{digest(data)}-{uuid.uuid4().hex[:8]}.pickle"
        self.written.add(path)
        with whole_file(path) as unfinished:
            unfinished.write_bytes(data)
        return path, data

    def discard(self, packed: Packed) -> None:
        """Remove the file of an object that no task needs any more."""
        if isinstance(packed, Path):
            packed.unlink(missing_ok=True)
            self.written.discard(packed)

    def close(self) -> None:
        """Remove all files that are left."""
        for path in self.written:
            path.unlink(missing_ok=True)
        self.written.clear()


POLL = 0.5  # seconds between looks at cancellation and workers
AHEAD = 4  # tasks per thread of the workers that are known to the scheduler
FEWEST_AHEAD = 32
LOOK = 64  # tasks between looks at new workers


class Dask:
    """Let the workers of a Dask cluster go through tables, within a ``with`` block.

    Results have the bytes of a stream in one process, whatever the number of workers, also when
    some of them die: their tasks are done again by others. Written parts appear whole.

    Parameters
    ----------
    scheduler : str or distributed.Client
        Address of a scheduler (``"tcp://host:8786"``), ``"local:4"`` for 4 worker processes of this
        machine, which end with the block, or a client that exists.
    scratch : path or None, default=None
        A folder that all workers see. Models above 1 MB go there once; without it they go through
        the scheduler. Processes of this machine need none.
    threads : int, default=1
        Threads of one task. A worker runs as many tasks at once as it has threads.
    retries : int, default=1
        How often a task that raised an error is tried again, for example because a file system did
        not answer. Tasks of workers that died are always done again; the scheduler gives up after
        its ``allowed-failures``.
    timeout : float, default=60
        Seconds to wait for workers when there are none.

    Notes
    -----
    Workers need the same version of lowland, and see the files under the same names. Set
    ``POLARS_MAX_THREADS=1`` in the environment of workers that have several threads. A script that
    uses ``"local:4"`` must do so below ``if __name__ == "__main__":``.

    Examples
    --------
    >>> with Dask("tcp://scheduler:8786"):                              # doctest: +SKIP
    ...     pca = PCA(50).fit(rows)
    ...     pca.transform(rows).write("scores/")
    """

    def __init__(
        self,
        scheduler: Any,
        *,
        scratch: str | os.PathLike[str] | None = None,
        threads: int = 1,
        retries: int = 1,
        timeout: float = 60.0,
    ) -> None:
        check_argument("Dask: threads", threads, Integer(1, 1024))
        check_argument("Dask: retries", retries, Integer(0, 99))
        check_argument("Dask: timeout", timeout, Real(0, 1e9))
        self.scheduler, self.scratch = scheduler, scratch
        self.threads, self.retries, self.timeout = threads, retries, float(timeout)
        self._connection: Connection | None = None

    # --- the block ----------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._connection is not None:
            raise ParameterError("Dask: this block is open already; make another Dask(...).")
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(remote.connected(self.scheduler, self.timeout))
            folder = self._scratch_folder(stack, is_local=connection.is_local)
            self._shipping = Shipping(folder)
            stack.callback(self._shipping.close)
            connection.inspect()
            stack.enter_context(connection.client.as_current())
            stack.enter_context(using(self))
            self._connection = connection
            self._stack = stack.pop_all()
        return self

    @property
    def client(self) -> Any:
        """The client of the open block, to look at the cluster."""
        return self._open().client

    def _open(self) -> Connection:
        if self._connection is None:
            raise ParameterError("Dask: use it in a with block, as in: with Dask('local:4'): ...")
        return self._connection

    def __exit__(self, *details: Any) -> None:
        self._connection = None
        self._stack.close()

    def _scratch_folder(self, stack: contextlib.ExitStack, *, is_local: bool) -> Path | None:
        if self.scratch is not None:
            folder = Path(self.scratch).absolute()
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise DataError(f"scratch: {folder} cannot be made ({error}).") from error
            return folder
        if is_local:
            return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lowland-")))
        return None

    # --- the engine ---------------------------------------------------------------------------

    def run(self, job: Job, monitor: Monitor) -> Iterator[Any]:
        """The result of each task, in the order of the tasks; few of them wait to be fetched."""
        with self._sending(job, monitor) as sent:
            waiting: deque[Any] = deque()
            for place in range(len(job.tasks)):
                while len(waiting) >= sent.window:
                    yield sent.result(waiting.popleft())
                waiting.append(sent.task(place))
            while waiting:
                yield sent.result(waiting.popleft())

    def fold(self, job: Job, merge: Merge, monitor: Monitor) -> Any:
        """The results of all tasks merged in the tree of ``TreeFold``, on the workers."""
        with self._sending(job, monitor) as sent:
            tree = TreeFold(merge, sent.merging(merge))
            for place in range(len(job.tasks)):
                sent.wait(lambda: sent.n_tasks < sent.window)
                tree.add(sent.task(place))
            return sent.result(tree.result())

    @contextlib.contextmanager
    def _sending(self, job: Job, monitor: Monitor) -> Iterator[Sending]:
        total = sum(task.n_rows for task in job.tasks)
        with monitor.phase(job.name, total=total) as phase:
            sent = Sending(self, job, phase)
            try:
                yield sent
            finally:
                sent.release()


class Sending:
    """The futures of one job. Those that are under way are released when the job ends anyhow, so
    that the scheduler forgets them."""

    def __init__(self, engine: Dask, job: Job, phase: Phase) -> None:
        self.engine, self.job, self.phase = engine, job, phase
        self.connection, self.shipping = engine._open(), engine._shipping
        self.held: dict[str, Any] = {}  # all futures that the scheduler must not forget
        self.live: dict[str, Task | None] = {}  # those under way; None: a merge
        self.spent: set[str] = set()  # those that nobody needs when they are done
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.n_tasks = self.n_sent = 0
        self.window = FEWEST_AHEAD
        packed, data = self.shipping.pack((job.work, job.steps))
        self.digest = digest(data)
        self.packed = [packed]  # everything that may lie in a file
        self.shared = self._submit(f"lowland-work-{self.digest}", remote.load, packed)

    # --- sending ------------------------------------------------------------------------------

    def task(self, place: int) -> Any:
        """The future of one task of the job."""
        if self.n_sent % LOOK == 0:
            self.window = max(FEWEST_AHEAD, AHEAD * self.connection.inspect())
        self.n_sent += 1
        task, parts = split_inputs(self.job.tasks[place])
        packed, data = self.shipping.pack((task, self.job.argument(place)))
        key = f"lowland-{self.job.name}-{task_digest(self.digest, data, task)}"
        inputs = self.connection.client.compute(list(parts)) if parts else []
        options = (lowland.__version__, self.engine.threads)
        future = self._submit(key, remote.run_remotely, self.shared, packed, *options, *inputs)
        self.n_tasks += 1
        if isinstance(packed, Path):
            self.packed.append(packed)
        return self._watched(future, self.job.tasks[place])

    def merging(self, merge: Merge) -> Callable[[list[Any]], Any]:
        """What gives the future of the merge of some futures, which is one task."""
        packed, data = self.shipping.pack(merge)
        self.packed.append(packed)
        name = digest(data)

        def merged(values: list[Any]) -> Any:
            key = f"lowland-merge-{digest(name, *(future.key for future in values))}"
            future = self._submit(key, remote.merge_values, packed, self.engine.threads, *values)
            for value in values:
                self.spent.add(value.key)
                self._forget_spent(value.key)
            return self._watched(future, None)

        return merged

    def _submit(self, key: str, function: Callable[..., Any], *arguments: Any) -> Any:
        client, retries = self.connection.client, self.engine.retries
        try:
            future = client.submit(function, *arguments, key=key, retries=retries)
        except (OSError, RuntimeError) as error:
            raise remote.lost(self.connection.address) from error
        self.held[key] = future
        return future

    def _watched(self, future: Any, task: Task | None) -> Any:
        self.live[future.key] = task
        future.add_done_callback(self.done.put)
        return future

    # --- waiting ------------------------------------------------------------------------------

    def result(self, future: Any) -> Any:
        """The result, fetched; the cluster may forget it."""
        self.wait(lambda: future.key not in self.live)
        try:
            return future.result()
        except Exception as error:
            raise self._failure(error, None) from error
        finally:
            self.spent.add(future.key)
            self._forget_spent(future.key)

    def wait(self, ready: Callable[[], bool]) -> None:
        """Wait until something is so; note what is done, and raise what went wrong."""
        patience = time.monotonic() + self.engine.timeout
        while not ready():
            try:
                self._note(self.done.get(timeout=POLL))
            except queue.Empty:
                self.phase.advance(0)  # it raises when the run was cancelled
                if self.connection.has_workers():
                    patience = time.monotonic() + self.engine.timeout
                elif time.monotonic() > patience:
                    address = self.connection.address
                    raise ClusterError(
                        f"{address}: the scheduler has had no workers for "
                        f"{self.engine.timeout:.0f} s; start some with `dask worker {address}`, "
                        "then go on with resume=True (--resume)."
                    ) from None

    def _note(self, future: Any) -> None:
        if future.key not in self.live:
            return
        task = self.live.pop(future.key)
        if task is not None:
            self.n_tasks -= 1
        if future.status != "finished":
            error = future.exception() if future.status == "error" else None
            if task is None:  # a merge fails because of a task, which the error may name
                task = self.live.get(getattr(error, "task", ""))
            raise self._failure(error, task) from error
        self._forget_spent(future.key)
        if task is not None:
            self.phase.advance(task.n_rows)

    def _forget_spent(self, key: str) -> None:
        if key in self.spent and key not in self.live:
            self.spent.discard(key)
            self.held.pop(key).release()

    def _failure(self, error: BaseException | None, task: Task | None) -> BaseException:
        address = self.connection.address
        return remote.lost(address) if error is None else remote.failure(error, address, task)

    def release(self) -> None:
        """Let the scheduler forget everything; workers drop what they have not begun."""
        # Explicitly: a traceback that somebody keeps would keep the futures.
        for future in self.held.values():
            future.release()
        for packed in self.packed:  # not earlier: a task may be done again when its result is lost
            self.shipping.discard(packed)
        self.held.clear()
        self.live.clear()
        self.packed.clear()
