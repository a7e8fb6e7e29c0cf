"""How many threads: the cores this process may use, ``n_jobs``, and the bound on BLAS."""

from __future__ import annotations

import contextlib
import functools
import numbers
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lowland._core.cgroup import control_groups, read_numbers
from lowland._core.errors import ParameterError
from lowland._core.wording import shown

__all__ = ["available_cpus", "limit_blas", "resolve_n_jobs"]


MOST_THREADS = 1024


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

    >>> resolve_n_jobs(3)
    3
    """
    if n_jobs is None:
        return available_cpus()
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
    return max(1, available_cpus() + 1 + int(n_jobs))


@functools.lru_cache(maxsize=1)
def _blas_libraries(n_modules: int) -> Any:
    """The BLAS libraries of the process. Finding them takes milliseconds, so it is done anew only
    when modules were imported since: those may have brought another library."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextlib.contextmanager
def limit_blas(n: int) -> Iterator[None]:
    """Let BLAS use at most ``n`` threads inside the block; afterwards all is as before.

    It only ever lowers: a smaller number set by the user (``OPENBLAS_NUM_THREADS``) or by an outer
    block stays. Most BLAS libraries hold one number for the whole process, so concurrent blocks
    in several Python threads share it.
    """
    loaded = _blas_libraries(len(sys.modules))
    above = [library.filepath for library in loaded.lib_controllers if library.num_threads > n]
    with loaded.select(filepath=above).limit(limits=n):
        yield
