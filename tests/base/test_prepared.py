"""What estimators keep between calls belongs to the arrays it was made from."""

import threading
import time
from types import SimpleNamespace

import numpy as np

from lowland._base.context import Prepared


def counting():
    made = []

    def make():
        made.append(1)
        return len(made)

    return made, make


def test_a_result_is_computed_once_for_the_same_array_and_options():
    kept, (made, make), X = Prepared(), counting(), np.ones((5, 2))
    assert [kept.get("index", (X,), (3, "l2"), make) for _ in range(3)] == [1, 1, 1]
    assert kept.get("field", (X,), (3, "l2"), make) == 2
    assert kept.get("index", (X,), (3, "l2"), make) == 1
    assert kept.get("index", (X,), (4, "l2"), make) == 3  # in place of the first
    assert kept.get("index", (X,), (3, "l2"), make) == 4
    assert len(made) == 4


def test_another_array_or_a_changed_one_is_noticed():
    kept, (_, make), X = Prepared(), counting(), np.random.default_rng(0).random((20_000, 2))
    assert kept.get("index", (X,), None, make) == 1
    assert kept.get("index", (X.copy(),), None, make) == 2
    assert kept.get("index", (X,), None, make) == 3
    for changed in (lambda: -X, lambda: X + 1, lambda: X[:, ::-1].copy()):
        before = kept.get("index", (X,), None, make)
        X[:] = changed()
        assert kept.get("index", (X,), None, make) == before + 1


def test_several_threads_wait_for_one():
    kept, made, X = Prepared(), [], np.ones(3)

    def make():
        time.sleep(0.05)
        made.append(1)
        return object()

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(kept.get("index", (X,), 1, make)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(set(map(id, found))) == 1


def test_what_takes_too_much_memory_is_dropped_after_the_call(monkeypatch):
    (made, _), X = counting(), np.ones(3)

    def large():
        made.append(1)
        return SimpleNamespace(nbytes=100_000_000)

    for limit, times in (("300MB", 2), ("1GB", 1)):
        kept, before = Prepared(), len(made)
        monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", limit)
        for _ in range(2):
            kept.get("index", (X,), 1, large)
            kept.trim()
        assert len(made) - before == times


def test_what_fails_is_not_kept():
    kept, X = Prepared(), np.ones(3)
    for _ in range(2):
        try:
            kept.get("index", (X,), 1, lambda: 1 / 0)
        except ZeroDivisionError:
            continue
        raise AssertionError
    assert kept.get("index", (X,), 1, lambda: 5) == 5
