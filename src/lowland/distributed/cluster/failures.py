"""What goes wrong on clusters, in one line each."""

from __future__ import annotations

from typing import Any

from lowland._core.errors import ClusterError, LowlandError
from lowland._core.rows.leaves import Task

# What distributed raises when the scheduler goes away, depending on what it was waiting for.
BROKEN = ("CancelledError", "CommClosedError", "FutureCancelledError", "FuturesCancelledError")


def missing_extra() -> ClusterError:
    """The error without the package ``distributed``."""
    return ClusterError("clusters need the package distributed: pip install 'lowland[dask]'")


def unreachable(address: str, error: BaseException) -> ClusterError:
    """The error when nothing answers."""
    return ClusterError(
        f"{address}: no scheduler answers there ({_brief(error)}); start one with `dask scheduler` "
        "and workers with `dask worker`, or use 'local:4'."
    )


def lost(address: str) -> ClusterError:
    """The error when the connection breaks."""
    return ClusterError(
        f"{address}: the scheduler ended, or the connection to it broke; parts that were written "
        "are whole: start it again and go on with resume=True (--resume)."
    )


def no_workers(address: str, seconds: float) -> ClusterError:
    """The error when nobody is left to work."""
    return ClusterError(
        f"{address}: the scheduler has had no workers for {seconds:.0f} s; start some with "
        f"`dask worker {address}`, then go on with resume=True (--resume)."
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
            f"{address}: a worker cannot import what the work needs ({_brief(error)}); install the "
            "same version of lowland on all workers."
        )
    return error


def _place(task: Task | None) -> str:
    """What a message calls a task: its files."""
    if task is None or not task.leaves:
        return "a merge of results"
    first, last = task.leaves[0].source, task.leaves[-1].source
    files = first if first == last else f"{first} to {last}"
    stop: Any = task.start + task.n_rows - 1
    return f"{files} (rows {task.start} to {stop})"


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
