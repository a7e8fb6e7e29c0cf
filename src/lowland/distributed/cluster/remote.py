"""What runs on a worker: one task of a job, one merge, and the loading of what tasks share."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NamedTuple

import lowland
from lowland._core.errors import ClusterError, DataError, LowlandError
from lowland._core.rows.collections import with_inputs
from lowland._core.rows.engines import run_task
from lowland._core.rows.folding import merge_all
from lowland._core.threads import limit_threads


class Stored(NamedTuple):
    """Pickled bytes in a file that all workers see."""

    path: str


class Shared:
    """An object that many tasks of a job use. Its size is told to the scheduler, which counts it
    when it decides where a task runs."""

    def __init__(self, value: Any, size: int) -> None:
        self.value, self.size = value, size

    def __sizeof__(self) -> int:
        return self.size


def load(packed: bytes | Stored) -> Shared:
    """The object behind bytes or a file: a task, so it is done again when its holder dies."""
    data = _bytes(packed)
    return Shared(pickle.loads(data), len(data))


def run_remotely(
    shared: Shared, packed: bytes | Stored, version: str, threads: int, *inputs: Any
) -> Any:
    """The work on one task. ``inputs`` are the parts of a collection that its leaves are made of.

    A worker runs as many tasks at once as it has threads, so a task gets ``threads`` of them,
    whatever the machine has.
    """
    if version != lowland.__version__:
        raise ClusterError(
            f"a worker has lowland {lowland.__version__}, but this process {version}; install one "
            "version everywhere."
        )
    work, steps = shared.value
    task, argument = pickle.loads(_bytes(packed))
    with limit_threads(threads):
        try:
            return run_task(with_inputs(task, inputs), work, argument, *steps)
        except OSError as error:
            if isinstance(error, LowlandError):
                raise
            source = task.leaves[0].source if task.leaves else f"task {task.number}"
            raise DataError(
                f"{source}: {_one_line(error)}; every worker must be able to read the table and to "
                "write the result."
            ) from error


def merge_values(packed: bytes | Stored, threads: int, *values: Any) -> Any:
    """One node of the tree of merges."""
    with limit_threads(threads):
        return merge_all(values, pickle.loads(_bytes(packed)))


def facts() -> tuple[str, tuple[str, ...]]:
    """What must be the same on all workers: the version, and the instruction set in use."""
    from lowland import _native

    return lowland.__version__, (_native.instruction_set(),)


def _bytes(packed: bytes | Stored) -> bytes:
    if isinstance(packed, bytes):
        return packed
    try:
        return Path(packed.path).read_bytes()
    except OSError as error:
        raise ClusterError(
            f"scratch: a worker cannot read {packed.path} ({_one_line(error)}); give a folder that "
            "all workers see, or None."
        ) from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
