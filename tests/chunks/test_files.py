"""Files as tables in chunks: Parquet, Arrow, NPY and Zarr; what is refused, and when."""

from __future__ import annotations

import datetime
import os
import pickle
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import lowland.tables.file_chunks as file_chunks
import lowland.tables.formats.columnar as columnar
from lowland import PCA
from lowland.chunks import open_rows
from lowland.errors import DataError
from lowland.tables import read_table
from support.cases import each
from support.rows import write_in_groups as write

N = 31


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "name": [f"row {i}" for i in range(N)],
            "a": rng.standard_normal(N),
            "b, 'c' [*]": rng.integers(-9, 9, N),
            "kind": rng.choice(["x", "y, z", "two\nlines"], N),
            "yes": rng.random(N) < 0.5,
            "holes": [None if i % 7 == 0 else i / 3 for i in range(N)],
            "day": [datetime.date(2020, 1, 1) + datetime.timedelta(i) for i in range(N)],
        }
    )


NUMBERS = ["a", "b, 'c' [*]", "yes", "holes"]


def beside(rows):
    return pl.concat([block.beside for block in rows.blocks()])


def alike(rows, X):
    """Whether blocks of any kind hold these numbers, with the right starts."""
    starts, parts = [0], []
    for block in rows.blocks():
        assert block.start == starts[-1]
        assert block.X.dtype == rows.dtype
        assert block.X.flags.c_contiguous
        starts.append(block.start + block.n_rows)
        parts.append(block.X)
    assert starts[-1] == len(rows)
    return np.array_equal(np.concatenate(parts), X, equal_nan=True)


@each("suffix", [".parquet", ".arrow", ".csv"])
@each("task_rows", [*range(1, N + 2), 1 << 18])
def test_chunks_of_any_length_hold_the_numbers_of_the_whole_table(
    frame, tmp_path, suffix, task_rows
):
    path = write(frame, tmp_path / f"a{suffix}")
    rows = open_rows(path, task_rows=task_rows)
    whole = read_table(path, guess=False, allow_missing=True)
    assert rows.names == tuple(whole.feature_names) == tuple(NUMBERS)
    assert rows.beside == ("name", "kind", "day")
    assert alike(rows, np.asarray(whole.features))
    assert beside(rows)["kind"].to_list() == frame["kind"].to_list()
    assert len(rows.chunks) == -(-N // task_rows)


@each("suffix", [".parquet", ".arrow"])
def test_the_name_of_a_folder_is_no_column(frame, tmp_path, suffix):
    (tmp_path / "year=2020").mkdir()
    rows = open_rows(write(frame, tmp_path / "year=2020" / f"a{suffix}"), frames=True)
    assert next(rows.blocks()).X.columns == frame.columns


@each("suffix", [".parquet", ".arrow", ".csv"])
def test_columns_labels_and_id_are_taken_as_asked(frame, tmp_path, suffix):
    path = write(frame, tmp_path / f"a{suffix}")
    rows = open_rows(
        path, columns=["holes", "a"], labels=["yes", "name"], id_column="name", task_rows=9
    )
    assert rows.names == ("holes", "a")
    assert rows.beside == ("name", "yes")
    assert rows.id_name == "name"
    assert alike(rows, frame.select("holes", "a").to_numpy())
    assert beside(rows).equals(frame.select("name", "yes"))


@each("suffix", [".parquet", ".arrow", ".csv"])
def test_frames_have_all_columns_in_their_own_types(frame, tmp_path, suffix):
    if suffix == ".csv":
        frame = frame.drop("day")  # a text has no dates
    path = write(frame, tmp_path / f"a{suffix}")
    rows = open_rows(path, frames=True, task_rows=9)
    assert rows.dtype == object
    assert rows.beside == ()
    assert pl.concat([block.X for block in rows.blocks()]).equals(frame)
    some = open_rows(path, frames=True, columns=["yes", "a"])
    assert next(some.blocks()).X.equals(frame.select("yes", "a"))


TYPES = [
    (["f4", "f4"], np.float32),
    (["f4", "f8"], np.float64),
    (["i2", "u1"], np.float32),
    (["f4", "?"], np.float32),
    (["f4", "i4"], np.float64),
    (["u2", "i8"], np.float64),
]


@each("types, expected", TYPES)
def test_numbers_are_float32_where_that_is_exact(tmp_path, types, expected):
    columns = [np.arange(5).astype(kind) for kind in types]
    frame = pl.DataFrame([pl.Series(f"c{i}", column) for i, column in enumerate(columns)])
    rows = open_rows(write(frame, tmp_path / "a.parquet"))
    assert rows.dtype == expected
    assert alike(rows, np.column_stack(columns).astype(expected))
    np.save(tmp_path / "a.npy", columns[1][:, None])
    bare = open_rows(tmp_path / "a.npy")
    wide = types[1] in ("f8", "i4", "i8")
    assert bare.dtype == (np.float64 if wide else np.float32)
    assert alike(bare, columns[1][:, None].astype(bare.dtype))


def test_several_files_are_one_table_in_their_order(frame, tmp_path):
    parts = [frame[:20], frame[20:21], frame[21:]]
    for i, part in enumerate(parts):
        write(part, tmp_path / f"data/part {i}.parquet")
    (tmp_path / "data/_SUCCESS").touch()
    (tmp_path / "data/.part 0.parquet.crc").write_bytes(b"x")
    (tmp_path / "data/notes.md").write_text("hello")
    whole = frame.select(NUMBERS).cast(pl.Float64).to_numpy()
    folder, pattern = tmp_path / "data", str(tmp_path / "data/*.parquet")
    for source in (folder, str(folder), pattern, sorted(folder.glob("*.parquet"))):
        for task_rows in (7, 1 << 18):
            assert alike(open_rows(source, task_rows=task_rows), whole)
    backward = open_rows(sorted(folder.glob("*.parquet"), reverse=True))
    assert alike(backward, np.concatenate([whole[21:], whole[20:21], whole[:20]]))
    stacked = read_table(pattern, guess=False, allow_missing=True)
    assert np.array_equal(np.asarray(stacked.features), whole, equal_nan=True)


def test_files_may_differ_in_order_and_width_of_numbers_and_in_kind(tmp_path):
    one = pl.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "t": ["x", "y"]})
    two = pl.DataFrame({"t": ["z"], "b": [3], "a": pl.Series([4.5], dtype=pl.Float32)})
    none = pl.DataFrame({"t": [None], "b": [None], "a": [6]})
    paths = [write(one, tmp_path / "1.parquet"), write(two, tmp_path / "2.arrow")]
    paths += [write(none, tmp_path / "3.parquet"), write(one, tmp_path / "4.csv")]
    rows = open_rows(paths)
    expected = np.array([[1, 0.5], [2, 1.5], [4.5, 3], [6, np.nan], [1, 0.5], [2, 1.5]])
    assert alike(rows, expected)
    assert beside(rows)["t"].to_list() == ["x", "y", "z", None, "x", "y"]
    frames = open_rows(paths, frames=True)
    assert frames.sample(10).shape == (6, 3)


def test_categories_go_along_through_several_chunks(tmp_path):
    kinds = pl.Series("kind", ["a", "b", None, "c"], dtype=pl.Categorical)
    frame = pl.DataFrame([kinds, pl.Series("x", [1.0, 2.0, 3.0, 4.0])])
    paths = [write(frame, tmp_path / "1.parquet"), write(frame[2:], tmp_path / "2.parquet")]
    rows = open_rows(paths, task_rows=1)
    assert beside(rows)["kind"].cast(pl.String).to_list() == ["a", "b", None, "c", None, "c"]


def test_the_index_that_pandas_stored_names_the_rows(tmp_path):
    frame = pl.DataFrame({"x": [1.0, 2.0], "__index_level_0__": [7, 9]})
    rows = open_rows(write(frame, tmp_path / "a.parquet"))
    assert rows.names == ("x",)
    assert rows.id_name == "row"
    assert beside(rows)["row"].to_list() == [7, 9]


@each("order", ["C", "F"])
@each("dtype", ["f2", "f4", "f8", ">f8", "i2", "i8", "u1", "?"])
@each("task_rows", [1, 7, 50, 1 << 18])
def test_arrays_are_read_by_ranges(tmp_path, order, dtype, task_rows):
    X = np.asarray(np.random.default_rng(1).integers(0, 2, (50, 3)), dtype, order=order)
    np.save(tmp_path / "a.npy", X)
    rows = open_rows(tmp_path / "a.npy", task_rows=task_rows)
    assert rows.names is None
    assert alike(rows, X.astype(rows.dtype))
    named = open_rows(tmp_path / "a.npy", columns=["u", "v", "w"], task_rows=task_rows)
    assert named.names == ("u", "v", "w")
    assert alike(named, X.astype(rows.dtype))
    frame = open_rows(tmp_path / "a.npy", frames=True).sample(99)
    assert frame.columns == ["column_0", "column_1", "column_2"]


def test_zarr_arrays_are_read_by_ranges(tmp_path):
    zarr = pytest.importorskip("zarr")
    X = np.random.default_rng(1).standard_normal((50, 3)).astype(np.float32)
    array = zarr.create_array(str(tmp_path / "a.zarr"), shape=X.shape, chunks=(8, 2), dtype="f4")
    array[:] = X
    assert alike(open_rows(tmp_path / "a.zarr", task_rows=7), X)
    (tmp_path / "b.zarr").mkdir()
    with pytest.raises(DataError, match=r"b\.zarr: cannot be read as a Zarr array"):
        open_rows(tmp_path / "b.zarr")


@each("span", [1, 300, 1 << 28])
def test_bytes_do_not_depend_on_how_many_chunks_are_read_together(
    frame, tmp_path, monkeypatch, span
):
    monkeypatch.setattr(file_chunks, "SPAN_BYTES", span)
    path = write(frame, tmp_path / "a.parquet")
    rows = open_rows(path, task_rows=30)
    rows.chunks = open_rows(path, task_rows=4).chunks  # several chunks in a task
    assert alike(rows, frame.select(NUMBERS).cast(pl.Float64).to_numpy())


def test_bytes_do_not_depend_on_how_many_columns_are_read_together(frame, tmp_path, monkeypatch):
    path = write(frame, tmp_path / "a.parquet")
    expected = [block.X for block in open_rows(path, frames=True, task_rows=9).blocks()]
    monkeypatch.setattr(columnar, "GROUP_BYTES", 1)
    found = [block.X for block in open_rows(path, frames=True, task_rows=9).blocks()]
    assert all(a.equals(b) for a, b in zip(found, expected, strict=True))
    assert alike(open_rows(path), frame.select(NUMBERS).cast(pl.Float64).to_numpy())


def test_chunks_are_light_and_know_what_they_depend_on(tmp_path):
    X = np.random.default_rng(0).standard_normal((1000, 50))
    path = tmp_path / "a.parquet"
    pl.from_numpy(X, schema=[f"column number {i}" for i in range(50)]).write_parquet(path)
    rows = open_rows(path, task_rows=100)
    task = rows.tasks[0]._replace(chunks=open_rows(path, task_rows=10).chunks)
    assert len(task.chunks) == 100
    assert len(pickle.dumps(task)) < 20_000
    again = pickle.loads(pickle.dumps(task))
    assert np.array_equal(np.concatenate([block.X for block in again.blocks()]), X)
    facts = path.stat()
    identity = rows.chunks[1].identity
    assert str(path) in identity
    assert (facts.st_size, facts.st_mtime_ns) in identity
    assert identity[-2:] == (100, 100)
    assert identity == open_rows(path, task_rows=100).chunks[1].identity
    assert (
        identity != open_rows(path, columns=["column number 3"], task_rows=100).chunks[1].identity
    )
    os.utime(path, ns=(0, 1))
    assert identity != open_rows(path, task_rows=100).chunks[1].identity


def test_addresses_are_read_as_files_are(frame, tmp_path, monkeypatch):
    """Those of a local disk stand for an object store here."""
    monkeypatch.setattr(columnar, "STORES", ("file",))
    for i in range(3):
        write(frame[10 * i : 10 * i + 10], tmp_path / f"{i}.parquet")
    whole = frame[:30].select(NUMBERS).cast(pl.Float64).to_numpy()
    pattern = f"file://{tmp_path}/*.parquet"
    single = [f"file://{tmp_path}/{i}.parquet" for i in range(3)]
    for source in (pattern, single):
        rows = open_rows(source, task_rows=4)
        assert alike(rows, whole)
        assert single[1] in rows.chunks[3].identity
    with pytest.raises(DataError, match=r"file://.*/no\.parquet: cannot be read"):
        open_rows(f"file://{tmp_path}/no.parquet")


def test_fits_of_files_name_the_rows_with_missing_values(frame, tmp_path):
    rows = open_rows(write(frame, tmp_path / "a.parquet"), columns=["a", "holes"], task_rows=5)
    with pytest.raises(DataError, match=r"a\.parquet, rows 0 to 4: .*NaN"):
        PCA(1).fit(rows)


MEMORY = """
import resource, sys
import numpy as np
from lowland.chunks import open_rows
rows = open_rows(sys.argv[1], task_rows=1 << 14)
next(rows.blocks())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
n = sum(block.n_rows for block in rows.blocks())
print(n, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.slow
@each("kind", ["parquet", "npy", "csv"])
def test_memory_holds_some_chunks_and_not_the_file(tmp_path, kind):
    n, p = 1 << 17, 40
    X = np.random.default_rng(0).integers(0, 99, (n, p)).astype(np.float64)  # 42 MB
    path = tmp_path / f"a.{kind}"
    if kind == "npy":
        np.save(path, X)
    else:
        frame = pl.from_numpy(X if kind == "parquet" else X.astype(np.int8))
        frame.write_parquet(path) if kind == "parquet" else frame.write_csv(path)
    command = [sys.executable, "-c", MEMORY, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found, grown = map(int, done.stdout.split())
    assert found == n
    assert grown < 8 * n * p / 2  # a chunk has 5 MB
