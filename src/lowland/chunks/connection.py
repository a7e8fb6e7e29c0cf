"""What goes wrong on clusters, in one line each."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lowland
from lowland._base.errors import ClusterError, DataError, LowlandError, ParameterError, shown
from lowland._base.memory import VARIABLE, available_memory
from lowland._base.rows.chunks import Task
from lowland._base.rows.engines import run_task
from lowland._base.rows.folding import merge_all
from lowland._base.threads import limit_threads
from lowland.chunks.dask_collections import with_inputs

# What distributed raises when the scheduler goes away, depending on what it was waiting for.
BROKEN = ("CancelledError", "CommClosedError", "FutureCancelledError", "FuturesCancelledError")


def lost(address: str) -> ClusterError:
    """The error when the connection breaks."""
    return ClusterError(
        f"{address}: the scheduler ended, or the connection to it broke; parts that were written "
        "are whole: start it again and go on with resume=True (--resume)."
    )


def other_version(worker: str, theirs: str, ours: str) -> ClusterError:
    """The error when a worker has another version of lowland."""
    return ClusterError(
        f"{worker} has lowland {theirs}, but this process {ours}; install one version everywhere."
    )


def failure(error: BaseException, address: str, task: Task | None) -> BaseException:
    """The error of a task as users should see it."""
    name = type(error).__name__
    if isinstance(error, LowlandError):
        return error
    if name in BROKEN:
        return lost(address)
    if name == "KilledWorker":
        n = int(getattr(error, "allowed_failures", 3)) + 1
        died = "a worker died" if n == 1 else f"{n} workers died, one after another,"
        return ClusterError(
            f"{_place(task)}: {died} while this was worked on, most often because of too little "
            "memory; give workers more memory or fewer threads, or open the rows with a smaller "
            "task_rows."
        )
    if isinstance(error, ImportError):
        return ClusterError(
            f"{address}: a worker cannot import what the work needs ({_one_line(error)}); install "
            "the same version of lowland on all workers."
        )
    return error


def _place(task: Task | None) -> str:
    """What a message calls a task: its files."""
    if task is None or not task.chunks:
        return "a merge of results"
    first, last = task.chunks[0].source, task.chunks[-1].source
    files = first if first == last else f"{first} to {last}"
    return f"{files} (rows {task.start} to {task.start + task.n_rows - 1})"


# What runs on a worker: one task of a job, one merge, and the loading of what tasks share.


Packed = bytes | Path  # a pickled object, or a file with it that all workers see


class Shared:
    """An object that many tasks of a job use. Its size is reported to the scheduler, which counts
    it when it decides where a task runs."""

    def __init__(self, value: Any, size: int) -> None:
        self.value, self.size = value, size

    def __sizeof__(self) -> int:
        return self.size


def load(packed: Packed) -> Shared:
    """The object behind bytes or a file: a task, so it is done again when its holder dies."""
    data = _bytes(packed)
    return Shared(pickle.loads(data), len(data))


def run_remotely(shared: Shared, packed: Packed, version: str, threads: int, *inputs: Any) -> Any:
    """The work on one task. ``inputs`` are the parts of a collection that its chunks are made of.

    A worker runs as many tasks at once as it has threads, so a task gets ``threads`` of them,
    whatever the machine has.
    """
    if version != lowland.__version__:
        raise other_version("a worker", lowland.__version__, version)
    work, steps = shared.value
    task, argument = pickle.loads(_bytes(packed))
    with limit_threads(threads):
        try:
            return run_task(with_inputs(task, inputs), work, argument, *steps)
        except OSError as error:
            if isinstance(error, LowlandError):
                raise
            source = task.chunks[0].source if task.chunks else f"task {task.number}"
            raise DataError(
                f"{source}: {_one_line(error)}; every worker must be able to read the table and to "
                "write the result."
            ) from error


def merge_values(packed: Packed, threads: int, *values: Any) -> Any:
    """One node of the tree of merges."""
    with limit_threads(threads):
        return merge_all(values, pickle.loads(_bytes(packed)))


def facts() -> tuple[str, tuple[str, ...]]:
    """What must be the same on all workers: the version, and the instruction set in use."""
    from lowland import _native

    return lowland.__version__, (_native.instruction_set(),)


def _bytes(packed: Packed) -> bytes:
    if isinstance(packed, bytes):
        return packed
    try:
        return packed.read_bytes()
    except OSError as error:
        raise ClusterError(
            f"scratch: a worker cannot read {packed} ({_one_line(error)}); give a folder that "
            "all workers see, or None."
        ) from error


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 500 else f"{text[:500]}..."


# The connection to a cluster: an address, processes of this machine, or a client that exists.


# A process that is seen to be away some seconds after it died is given up for good, even if it died
# a second time meanwhile and is about to start again.
KEEP = {"distributed.deploy.lost-worker-timeout": "1 hour"}
MOST_WORKERS = 256  # processes of this machine
LONGEST_WAIT = 10.0  # seconds, for an answer of the scheduler
ADDRESS = re.compile(r"([a-z]+://)?(\[[0-9a-fA-F:.]+\]|[\w.-]+):\d{1,5}/?")


class Connection:
    """A client, the address of its scheduler for messages, and what is known of its workers."""

    def __init__(self, client: Any, address: str, *, is_local: bool) -> None:
        self.client, self.address, self.is_local = client, address, is_local
        self.known: dict[str, tuple[str, ...]] = {}  # instruction sets of the workers
        self.warned = False

    def inspect(self) -> int:
        """The number of threads of all workers. New workers must have our version of lowland."""
        try:
            threads = self.client.nthreads()
            new = sorted(set(threads) - set(self.known))
            told = self.client.run(facts, workers=new, on_error="return") if new else {}
        except (OSError, RuntimeError):  # of a scheduler that ended: the futures tell it
            return 0
        for worker, found in told.items():
            if isinstance(found, ImportError):
                raise ClusterError(
                    f"{worker}: the worker has no lowland; install it there ({found})."
                )
            if isinstance(found, BaseException):  # it died meanwhile
                continue
            version, self.known[worker] = found
            if version != lowland.__version__:
                raise other_version(f"{worker}: the worker", version, lowland.__version__)
        if len(set(self.known.values())) > 1 and not self.warned:
            self.warned = True
            sets = sorted({found[-1] for found in self.known.values()})
            warnings.warn(
                f"{self.address}: the workers have different instruction sets ({', '.join(sets)}), "
                "so the last bits of results may depend on which worker did what.",
                stacklevel=2,
            )
        return sum(threads.values())

    def has_workers(self) -> bool:
        """Whether there are workers; also if the scheduler ended, which the futures tell."""
        try:
            return bool(self.client.nthreads())
        except (OSError, RuntimeError):
            return True


@contextlib.contextmanager
def connected(scheduler: Any, timeout: float) -> Iterator[Connection]:
    """The connection that ``scheduler`` asks for, closed at the end if it was opened here."""
    try:
        import distributed
    except ImportError:
        raise ClusterError(
            "clusters need the package distributed: pip install 'lowland[dask]'"
        ) from None
    if isinstance(scheduler, distributed.Client):
        if scheduler.asynchronous:
            raise ParameterError("scheduler: the client is asynchronous; give a synchronous one.")
        yield Connection(scheduler, _address(scheduler), is_local=False)
        return
    if not isinstance(scheduler, str) or not ADDRESS.fullmatch(scheduler):
        raise _not_a_scheduler(scheduler)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        is_local = scheduler.startswith("local:")
        target = stack.enter_context(_processes(scheduler)) if is_local else scheduler
        patience = min(timeout, LONGEST_WAIT)
        try:
            client = distributed.Client(target, timeout=patience, set_as_default=False)
        except Exception as error:  # of the network, of TLS, of another protocol
            raise ClusterError(
                f"{scheduler}: no scheduler answers there ({_one_line(error)}); start one with "
                "`dask scheduler` and workers with `dask worker`, or use 'local:4'."
            ) from error
        stack.callback(_close, client)
        yield Connection(client, _address(client), is_local=is_local)


@contextlib.contextmanager
def _processes(scheduler: str) -> Iterator[Any]:
    """Worker processes of this machine, with one thread each, which share its memory."""
    import dask
    import distributed

    n = int(scheduler.removeprefix("local:").rstrip("/"))
    if not 1 <= n <= MOST_WORKERS:
        raise _not_a_scheduler(scheduler)
    environment = {"POLARS_MAX_THREADS": "1"}
    if os.environ.get(VARIABLE):  # the limit is one for all processes
        environment[VARIABLE] = str(available_memory() // n)
    try:
        cluster = distributed.LocalCluster(
            n_workers=n,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            # Memory is refused before it is allocated. The limits of Dask would pause or end a
            # worker that has reached some share, and tables that fit would never be done.
            memory_limit=0,
            env=environment,
        )
    except Exception as error:
        raise ClusterError(
            f"{scheduler}: the worker processes do not start ({_one_line(error)}); a "
            'script must call them below `if __name__ == "__main__":`.'
        ) from error
    with cluster, dask.config.set(KEEP):
        yield cluster


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep tracebacks of lost connections out of the terminal: they become errors in one line."""
    known = ("distributed", *logging.root.manager.loggerDict)
    loggers = [logging.getLogger(name) for name in known if name.split(".")[0] == "distributed"]
    before = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)


def _address(client: Any) -> str:
    return str(getattr(client.scheduler, "address", client.scheduler))


def _close(client: Any) -> None:
    """Close a client, also one whose scheduler is gone."""
    with contextlib.suppress(OSError, RuntimeError):
        client.close(timeout=2)


def _not_a_scheduler(value: object) -> ParameterError:
    return ParameterError(
        f"scheduler={shown(value)} is not allowed; expected an address as 'tcp://host:8786', "
        f"'local:4' for so many processes of this machine (at most {MOST_WORKERS}), or a "
        "distributed.Client."
    )
