"""The thread pool: nested loops, several callers at once, fork, and the GIL let go."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

from lowland._native import all_finite, count_nested, inner, project
from support.cases import each


def a_product(threads, n=2000, p=60):
    x = np.sin(np.arange(n * p, dtype=np.float64)).reshape(n, p)
    v = np.cos(np.arange(p * 9, dtype=np.float64)).reshape(p, 9)
    out = np.empty((n, 9))
    project(x, x[0], v, out, threads)
    return out


@each("threads", [1, 2, 5, 16])
@each(("width", "depth"), [(0, 1), (1, 1), (1000, 1), (20, 2), (6, 4), (2, 10)])
def test_nested_loops_run_every_task_exactly_once(width, depth, threads):
    assert count_nested(width, depth, threads) == width**depth


def test_many_callers_at_once_all_get_their_result():
    expected = a_product(1)
    failures = []

    def call(threads):
        for _ in range(15):
            if not np.array_equal(a_product(threads), expected):
                failures.append("wrong bytes")
            if count_nested(7, 3, threads) != 343:
                failures.append("lost tasks")

    callers = [threading.Thread(target=call, args=(1 + i % 4,)) for i in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=60)
    assert not any(caller.is_alive() for caller in callers)
    assert not failures


def test_thousands_of_tiny_loops_leave_nothing_behind():
    # Every loop withdraws the helpers it did not need: a forgotten one would touch a dead job.
    x = np.zeros(3 << 16, np.float32)
    for _ in range(2000):
        assert count_nested(3, 1, 4) == 3
    assert all(all_finite(x, 4) for _ in range(300))


def in_a_child(task):
    """Whether ``task()`` is true in a forked child; a child that hangs is ended and fails."""
    with warnings.catch_warnings():
        # Python warns because this process has threads; that they do no harm is the claim.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        fine = False
        try:
            fine = task()
        finally:
            os._exit(0 if fine else 1)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@needs_fork
def test_the_pool_works_in_a_forked_child_and_in_its_child():
    expected = a_product(4)

    def right():
        return np.array_equal(a_product(4), expected) and count_nested(6, 3, 4) == 216

    assert in_a_child(lambda: right() and in_a_child(right) and right())
    assert right()


@needs_fork
def test_the_pool_works_in_a_child_forked_while_it_was_busy():
    expected = a_product(3)
    done = threading.Event()

    def keep_busy():
        while not done.is_set():
            a_product(3)

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:
        answers = [in_a_child(lambda: np.array_equal(a_product(3), expected)) for _ in range(10)]
    finally:
        done.set()
        busy.join()
    assert all(answers)


def test_other_python_threads_run_while_a_kernel_does():
    n = 12_000_000
    ones = np.broadcast_to(np.float64(1), (n, 12))  # a view of one number
    times = []

    def work():
        out = np.empty((12, 12))
        times.append(time.perf_counter())
        inner(ones, ones, ones, ones, False, out, 1)
        times.append(time.perf_counter())

    worker = threading.Thread(target=work)
    worker.start()
    ticks = []
    while worker.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    start, end = times
    margin = (end - start) / 4
    inside = [tick for tick in ticks if start + margin < tick < end - margin]
    # With the GIL held there would be none; half of the time allows hundreds of 1 ms naps.
    assert len(inside) >= 3
