"""Rows brought together by part: each pair of row and part once, in a fixed order, no file left."""

from __future__ import annotations

import shutil

import numpy as np
import polars as pl
import pytest

from lowland._base.rows import exchange
from lowland._base.rows.arrays import array_rows
from lowland._base.rows.engines import using
from lowland.errors import DataError, MemoryLimitError, ParameterError
from support.cases import each
from support.row_engines import Backward

N, PARTS = 1003, 6


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((N, 4)).astype(np.float32)


def parts_of(block):
    """Two parts of each row, by its number; never part 4."""
    number = np.arange(block.start, block.start + block.n_rows)
    first = number % 3
    return np.column_stack([first, np.where(number % 7 == 0, 5, 3)])


def received(part, X, numbers):
    return part, X.copy(), numbers.copy()


def failing(part, X, numbers):
    if part == 3:
        raise DataError("part 3 is bad.")


def bad_parts(block):
    return np.full((block.n_rows, 2), block.start + 1)


@each("task_rows", [64, 1000, 5000])
@each("section", [1, 1 << 12, 1 << 28])
def test_every_part_gets_its_rows_once_and_in_order(X, tmp_path, monkeypatch, task_rows, section):
    monkeypatch.setattr(exchange, "SECTION_BYTES", section)
    rows = array_rows(X, task_rows=task_rows)
    found = list(rows.exchange(parts_of, received, PARTS, copies=2, folder=tmp_path))
    assert [part for part, _, _ in found] == [*range(PARTS)]
    everyone = parts_of(next(array_rows(X).blocks()))
    for part, there, numbers in found:
        assert np.array_equal(numbers, np.flatnonzero((everyone == part).any(axis=1)))
        assert (numbers.dtype, there.dtype) == (np.int64, X.dtype)
        assert np.array_equal(there, X[numbers])
    assert not len(found[4][2])
    assert not [*tmp_path.iterdir()]


def test_any_order_of_tasks_gives_the_same_bytes(X, tmp_path):
    rows = array_rows(X, task_rows=100)
    here = list(rows.exchange(parts_of, received, PARTS, copies=2, folder=tmp_path))
    with using(Backward()):
        there = list(rows.exchange(parts_of, received, PARTS, copies=2, folder=tmp_path))
    for one, other in zip(here, there, strict=True):
        assert [np.asarray(value).tobytes() for value in one] == [
            np.asarray(value).tobytes() for value in other
        ]
    assert not [*tmp_path.iterdir()]


def test_rows_that_go_nowhere_are_left_out(X):
    def some(block):
        number = np.arange(block.start, block.start + block.n_rows)
        return np.column_stack([np.where(number % 2, 0, -1), np.where(number % 3, 1, -1)])

    (_, _, odd), (_, _, others) = array_rows(X, task_rows=99).exchange(some, received, 2, copies=2)
    assert np.array_equal(odd, np.arange(1, N, 2))
    assert np.array_equal(others, np.flatnonzero(np.arange(N) % 3))


def test_steps_and_named_columns_go_along(X):
    frame = pl.from_numpy(X.astype(np.float64), schema=["a", "b", "c", "d"])
    rows = array_rows(frame, task_rows=200).map(np.negative)
    found = list(rows.exchange(parts_of, received, PARTS, copies=2))
    assert np.array_equal(found[5][1], -X[::7].astype(np.float64))


@each(
    ("part_of", "f", "error", "message"),
    [
        (parts_of, failing, DataError, "part 3 is bad"),
        (bad_parts, received, ParameterError, "X, rows 0 to 99: part_of gave a part twice"),
        (lambda block: [[9, 0]] * block.n_rows, received, ParameterError, "part 9; parts are 0"),
        (lambda block: [[-2, 0]] * block.n_rows, received, ParameterError, "the part -2"),
        (lambda block: [[0.5, 0]] * block.n_rows, received, ParameterError, "must give integers"),
        (lambda block: [[1]] * block.n_rows, received, ParameterError, r"of shape \(100, 2\)"),
    ],
)
def test_errors_leave_no_files(X, tmp_path, part_of, f, error, message):
    rows = array_rows(X, task_rows=100)
    with pytest.raises(error, match=message):
        list(rows.exchange(part_of, f, PARTS, copies=2, folder=tmp_path))
    assert not [*tmp_path.iterdir()]


def test_a_caller_who_stops_early_leaves_no_files(X, tmp_path):
    found = array_rows(X).exchange(parts_of, received, PARTS, copies=2, folder=tmp_path)
    next(found)
    assert [*tmp_path.iterdir()]
    found.close()
    assert not [*tmp_path.iterdir()]


def test_too_little_disk_is_told_before_anything_is_written(X, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=10_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(DataError, match=r"writes 48 kB, .* has 10 kB left; .*folder=.*TMPDIR"):
        array_rows(X).exchange(parts_of, received, PARTS, copies=2, folder=tmp_path)


def test_a_part_beyond_memory_names_the_number_of_parts(X, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "5kB")
    with pytest.raises(MemoryLimitError, match=r"a part of .* rows x 4 columns .*n_parts"):
        list(array_rows(X).exchange(parts_of, received, PARTS, copies=2))


@each(
    ("options", "message"),
    [
        ({"n_parts": 0}, "n_parts=0"),
        ({"n_parts": 2**40}, "n_parts="),
        ({"n_parts": 2.5}, "n_parts=2.5"),
        ({"copies": 7}, "copies=7"),
        ({"copies": True}, "copies=True"),
        ({"folder": "/no/such/folder"}, "does not exist"),
    ],
)
def test_nonsense_is_refused(X, options, message):
    options = {"n_parts": PARTS, "copies": 2, **options}
    with pytest.raises(ParameterError, match=message):
        array_rows(X).exchange(parts_of, received, options.pop("n_parts"), **options)


def test_a_truncated_file_is_named(X, tmp_path):
    def cut(part, X, numbers):
        for path in tmp_path.glob("lowland-*/rows-*.bin"):
            path.write_bytes(path.read_bytes()[:100])

    with pytest.raises(DataError, match=r"rows-000000\.bin: ends before"):
        list(array_rows(X).exchange(parts_of, cut, PARTS, copies=2, folder=tmp_path))
    assert not [*tmp_path.iterdir()]
