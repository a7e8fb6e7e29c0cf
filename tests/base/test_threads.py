"""Cores, n_jobs and the bound on BLAS."""

import multiprocessing
import os
import threading

import numpy as np
import pytest
import threadpoolctl

from lowland._base import threads
from lowland._base.errors import ParameterError
from lowland._base.threads import available_cpus, limit_blas, resolve_n_jobs
from support.cases import each


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A file system root to write into, on a machine of 16 cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)

    def write(**files):
        for path, text in files.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path

    return lambda files: write(**files)


def test_without_control_groups_the_affinity_counts(machine):
    assert available_cpus(machine({})) == 16


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 16), ("150000 100000", 2), ("400000 100000", 4), ("1000 100000", 1)],
)
def test_a_quota_of_version_2_is_rounded_up(machine, quota, cores):
    files = {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": f"{quota}\n"}
    assert available_cpus(machine(files)) == cores


def test_the_smallest_quota_of_all_ancestors_counts(machine):
    files = {
        "proc/self/cgroup": "0::/a/b\n",
        "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
        "sys/fs/cgroup/a/cpu.max": "300000 100000\n",
        "sys/fs/cgroup/cpu.max": "500000 100000\n",
    }
    assert available_cpus(machine(files)) == 3


def test_quotas_of_strangers_do_not_count(machine):
    files = {"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/b/cpu.max": "100000 100000\n"}
    assert available_cpus(machine(files)) == 16


@pytest.mark.parametrize(("quota", "cores"), [("-1", 16), ("250000", 3)])
def test_a_quota_of_version_1_counts(machine, quota, cores):
    group = "sys/fs/cgroup/cpu,cpuacct/docker"
    files = {
        "proc/self/cgroup": "9:memory:/x\n4:cpu,cpuacct:/docker\n0::/\n",
        f"{group}/cpu.cfs_quota_us": f"{quota}\n",
        f"{group}/cpu.cfs_period_us": "100000\n",
    }
    assert available_cpus(machine(files)) == cores


def test_a_container_that_sees_its_hosts_path_asks_its_mount(machine):
    files = {
        "proc/self/cgroup": "4:cpu:/docker/0123\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    assert available_cpus(machine(files)) == 2


def test_systems_without_affinity_count_their_processors(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert available_cpus(tmp_path) == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cpus(tmp_path) == 1


@each(
    ("n_jobs", "expected"),
    [(None, 8), (1, 1), (20, 20), (np.int64(3), 3), (-1, 8), (-2, 7), (-99, 1)],
)
def test_n_jobs_counts_as_in_joblib(monkeypatch, n_jobs, expected):
    monkeypatch.setattr(threads, "available_cpus", lambda: 8)
    assert resolve_n_jobs(n_jobs) == expected


@each("n_jobs", [0, 1.5, "2", True])
def test_an_impossible_n_jobs_is_refused_by_name_and_value(n_jobs):
    with pytest.raises(ParameterError, match=f"n_jobs={n_jobs!r}"):
        resolve_n_jobs(n_jobs)


def blas_threads():
    return [
        info["num_threads"]
        for info in threadpoolctl.threadpool_info()
        if info["user_api"] == "blas"
    ]


def test_blas_is_bounded_inside_the_block_and_restored_after_an_error():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert 2 in before, "numpy's BLAS should be visible to threadpoolctl"
        inside = []

        def fail():
            with limit_blas(1):
                inside.extend(blas_threads())
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert set(inside) == {1}
        assert blas_threads() == before


def test_a_block_never_raises_the_number_of_blas_threads():
    with limit_blas(1), limit_blas(2):
        assert set(blas_threads()) == {1}


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive()


@pytest.fixture
def two_blas_threads():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        yield
        assert 2 in blas_threads()


@pytest.mark.usefixtures("two_blas_threads")
def test_blas_is_bounded_in_every_python_thread():
    with limit_blas(2):  # the main thread was the first to set a number
        pass
    inside = []

    def bounded():
        with limit_blas(1):
            inside.extend(blas_threads())

    in_thread(bounded)
    assert set(inside) == {1}


@pytest.mark.usefixtures("two_blas_threads")
def test_a_block_that_ends_does_not_lift_the_bound_of_another():
    first, second = limit_blas(1), limit_blas(1)
    first.__enter__()
    in_thread(second.__enter__)
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    in_thread(lambda: second.__exit__(None, None, None))
    assert 2 in blas_threads()


@pytest.mark.usefixtures("two_blas_threads")
def test_the_smallest_bound_of_all_open_blocks_holds():
    with limit_blas(2):
        assert 2 in blas_threads()
        inner = limit_blas(1)
        in_thread(inner.__enter__)
        assert set(blas_threads()) == {1}
        in_thread(lambda: inner.__exit__(None, None, None))
        assert 2 in blas_threads()


def _bounded_in_child(answer):
    with limit_blas(1):
        answer.put(blas_threads())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_wait_for_the_lock_of_its_parent():
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    held, release = threading.Event(), threading.Event()

    def hold():
        with threads._bound.lock:
            held.set()
            release.wait(timeout=30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(timeout=30)
    child = context.Process(target=_bounded_in_child, args=(answer,))
    child.start()
    try:
        assert set(answer.get(timeout=30)) == {1}
    finally:
        child.kill()
        release.set()
        holder.join()
