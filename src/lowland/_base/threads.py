"""What work runs on: the cores this process may use, ``n_jobs``, the bound on BLAS, and the
instruction set of the kernels."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import numbers
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lowland import _native
from lowland._base.errors import ParameterError, shown
from lowland._base.memory import control_groups, read_numbers

MOST_THREADS = 1024
VARIABLE = "LOWLAND_INSTRUCTION_SET"


def available_cpus(root: str | Path = "/") -> int:
    """Cores this process may use: its CPU affinity, cut by its container's quota; at least 1.

    A quota of 1.5 cores counts as 2. ``root`` is the root of the file system, for tests.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:  # macOS and Windows; process_cpu_count came with Python 3.13
        cores = getattr(os, "process_cpu_count", os.cpu_count)() or 1
    return max(1, min([cores, *_quotas(str(root))]))


@functools.lru_cache(maxsize=4)
def _quotas(root: str) -> list[int]:
    """Cores that each control group of the process allows; read once, files are slow."""
    found = [_quota(folder) for folder in control_groups("cpu", root)]
    return [quota for quota in found if quota is not None]


def _quota(group: Path) -> int | None:
    """Cores that a control group allows, rounded up; None when it sets no bound."""
    numbers_read = read_numbers(group / "cpu.max")  # "150000 100000", or "max 100000"
    if len(numbers_read) != 2:
        numbers_read = [
            *read_numbers(group / "cpu.cfs_quota_us"),  # -1 when there is no quota
            *read_numbers(group / "cpu.cfs_period_us"),
        ]
    if len(numbers_read) != 2 or min(numbers_read) <= 0:
        return None
    quota, period = numbers_read
    return -(-quota // period)


def resolve_n_jobs(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` asks for.

    ``None`` means all the cores the process may use, a positive number means itself, and negative
    numbers count from the end as in joblib: -1 all cores, -2 all but one, never fewer than 1.
    Within :func:`limit_threads`, "all cores" are at most so many. All code that runs kernels asks
    here first, so a wrong ``LOWLAND_INSTRUCTION_SET`` is also reported here.

    >>> resolve_n_jobs(3)
    3
    """
    check_instruction_set()
    if n_jobs is None:
        return _all_cores()
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ParameterError(
            f"n_jobs={shown(n_jobs)} is not allowed; give None or -1 for all cores, "
            "a positive number of threads, or -2 for all cores but one."
        )
    if n_jobs > MOST_THREADS:
        raise ParameterError(
            f"n_jobs={shown(n_jobs)} is more than the {MOST_THREADS} threads that a process may "
            "start here; give None for all cores."
        )
    if n_jobs > 0:
        return int(n_jobs)
    return max(1, _all_cores() + 1 + int(n_jobs))


def check_instruction_set() -> None:
    """Refuse a ``LOWLAND_INSTRUCTION_SET`` that the kernels cannot follow."""
    try:
        _native.instruction_set()
    except ValueError:
        given = os.environ.get(VARIABLE, "")
        why = "this processor does not have it" if given == "avx2" else "there is no such set"
        choices = ", ".join(repr(name) for name in ("auto", *_native.instruction_sets()))
        raise ParameterError(
            f"environment variable {VARIABLE}={shown(given)} is not allowed: {why}; the choices "
            f"here are {choices}."
        ) from None


_most: contextvars.ContextVar[int | None] = contextvars.ContextVar("most threads", default=None)


def _all_cores() -> int:
    most = _most.get()
    return available_cpus() if most is None else min(most, available_cpus())


@contextlib.contextmanager
def limit_threads(n: int) -> Iterator[None]:
    """Let "all cores" mean at most ``n`` of them inside the block, in this Python thread.

    A worker of a cluster runs several tasks at once, and each of them sees all cores of the
    machine. A number of threads that a caller asked for stays. Blocks within blocks only lower.

    >>> with limit_threads(1):
    ...     resolve_n_jobs(None), resolve_n_jobs(-1), resolve_n_jobs(3)
    (1, 1, 3)
    """
    outer = _most.get()
    token = _most.set(max(1, n if outer is None else min(n, outer)))
    try:
        yield
    finally:
        _most.reset(token)


@functools.lru_cache(maxsize=1)
def _blas_libraries(n_modules: int) -> Any:
    """The BLAS libraries of the process. Finding them takes milliseconds, so it is done anew only
    when modules were imported since: those may have brought another library."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


class _BlasBound:
    """The bound on BLAS that all blocks of the process have agreed on: the smallest one.

    BLAS holds one number of threads for the whole process. If each block set and restored it,
    a block that ends would lift the bound of another block in another Python thread, and bytes
    would depend on what else the process does. So the number that was there before is restored
    when the last block ends.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.lock = threading.RLock()  # reentrant: a signal handler may fit a model
        self.wanted: collections.Counter[int] = collections.Counter()
        self.before: dict[str, tuple[Any, int]] = {}  # library and number, by path

    def enter(self, n: int) -> None:
        with self.lock:
            self.wanted[n] += 1
            # Libraries that were imported since the last block are found here.
            for library in filter(_is_shared, _libraries().lib_controllers):
                self.before.setdefault(library.filepath, (library, library.num_threads))
            self._apply()

    def leave(self, n: int) -> None:
        with self.lock:
            self.wanted[n] -= 1
            self.wanted += collections.Counter()  # drops zeros
            self._apply()
            if not self.wanted:
                self.before.clear()

    def _apply(self) -> None:
        most = min(self.wanted, default=None)
        for library, number in self.before.values():
            allowed = number if most is None else min(number, most)
            if library.num_threads != allowed:
                _set_number(library, allowed)


def _set_number(library: Any, n: int) -> None:
    """Set the number of threads of a library from any Python thread.

    Version 3.8 of threadpoolctl listens only to the first thread that set the number of OpenBLAS,
    so that threads do not fight over it. Here a lock and one bound for all prevent that.
    """
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(n)
    release(force=True)


_bound = _BlasBound()
if hasattr(os, "register_at_fork"):  # a child must not wait for a lock that no thread of it holds
    os.register_at_fork(after_in_child=_bound.reset)


@contextlib.contextmanager
def limit_blas(n: int) -> Iterator[None]:
    """Let BLAS use at most ``n`` threads inside the block; afterwards all is as before.

    It only ever lowers: a smaller number set by the user (``OPENBLAS_NUM_THREADS``) or by another
    block stays. Blocks in several Python threads may overlap in any order: the smallest bound
    of those that are open holds for all.
    """
    with _own_numbers(n):
        _bound.enter(n)
        try:
            yield
        finally:
            _bound.leave(n)


def _libraries() -> Any:
    return _blas_libraries(len(sys.modules))


def _is_shared(library: Any) -> bool:
    """Whether the library has one number for the process; with OpenMP each thread has its own."""
    return getattr(library, "threading_layer", None) != "openmp"


def _own_numbers(n: int) -> contextlib.AbstractContextManager[Any]:
    """The bound for libraries in which each Python thread has its own number."""
    libraries = _libraries()
    above = [
        library.filepath
        for library in libraries.lib_controllers
        if not _is_shared(library) and library.num_threads > n
    ]
    if not above:
        return contextlib.nullcontext()
    return libraries.select(filepath=above).limit(limits=n)
