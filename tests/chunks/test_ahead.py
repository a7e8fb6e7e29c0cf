"""Blocks that are read in a second thread: in order, each once, errors where they belong."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from lowland._base.monitor import Monitor
from lowland._base.rows.arrays import ArrayChunk, array_rows
from lowland._base.rows.engines import ReadAhead, Stream
from lowland._base.rows.table import Rows
from lowland.errors import DataError


def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("lowland-reader")]


class BadChunk(ArrayChunk):
    """Rows that cannot be read."""

    def read(self, start):
        raise DataError(f"bad.parquet: rows from {start} on are damaged.")


def with_bad_chunk(n_good):
    X = np.zeros((10, 2))
    chunks = [ArrayChunk(X, 10 * i) for i in range(n_good)] + [BadChunk(X, 10 * n_good)]
    return Rows(chunks, 2, task_rows=10)


def test_every_block_comes_once_and_in_order():
    X = np.random.default_rng(0).random((1000, 3))
    rows = array_rows(X, task_rows=70)
    with ReadAhead(rows.tasks) as reader:
        found = [block.X for _ in rows.tasks for block in reader.blocks()]
        assert readers()
    assert np.array_equal(np.concatenate(found), X)
    assert not readers()


def test_what_a_task_leaves_unread_is_passed_over():
    chunks = [chunk for i in range(6) for chunk in array_rows(np.full((5, 1), float(i))).chunks]
    rows = Rows(chunks, 1, task_rows=10)
    assert [len(task.chunks) for task in rows.tasks] == [2, 2, 2]
    first = [block.X[0, 0] for block in rows.results(lambda blocks, _: next(blocks))]
    assert first == [0.0, 2.0, 4.0]


def test_an_error_of_reading_is_raised_where_the_block_is_wanted():
    rows = with_bad_chunk(3)
    results = rows.results(lambda blocks, _: sum(block.n_rows for block in blocks))
    assert [next(results) for _ in range(3)] == [10, 10, 10]
    with pytest.raises(DataError, match="rows from 30 on"):
        next(results)
    assert not readers()


def test_an_error_of_the_work_ends_the_reader():
    rows = array_rows(np.zeros((1000, 2)), task_rows=10)

    def work(blocks, _):
        next(blocks)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        next(Stream().run(rows.job("rows", work, rows.tasks), Monitor()))
    assert not readers()


def test_a_run_that_is_given_up_ends_the_reader():
    rows = array_rows(np.zeros((1000, 2)), task_rows=10)
    results = rows.results(lambda blocks, _: next(blocks).start)
    assert next(results) == 0
    results.close()
    assert not readers()


def test_no_more_than_one_block_waits():
    read = []

    class Noted(ArrayChunk):
        def read(self, start):
            read.append(start)
            return super().read(start)

    chunks = [Noted(np.zeros((10, 1)), 10 * i) for i in range(20)]
    rows = Rows(chunks, 1, task_rows=10)
    results = rows.results(lambda blocks, _: next(blocks).start)
    next(results)
    threading.Event().wait(0.3)
    assert len(read) <= 2  # the one worked on, and one that waits
    results.close()
