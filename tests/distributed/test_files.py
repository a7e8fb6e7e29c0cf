"""Files as tables in leaves: Parquet, Arrow, NPY and Zarr; what is refused, and when."""

from __future__ import annotations

import datetime
import os
import pickle
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import lowland.distributed.files.columnar as columnar
import lowland.distributed.files.leaves as file_leaves
from lowland import PCA
from lowland.distributed import open_rows
from lowland.errors import DataError, ParameterError
from lowland.io import read_table
from support.cases import each

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


def write(frame, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        frame.write_parquet(path, row_group_size=12)
    elif path.suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_ipc(path, record_batch_size=12)
    return path


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
def test_leaves_of_any_length_hold_the_numbers_of_the_whole_table(
    frame, tmp_path, suffix, task_rows
):
    path = write(frame, tmp_path / f"a{suffix}")
    rows = open_rows(path, task_rows=task_rows)
    whole = read_table(path, guess=False, allow_missing=True)
    assert rows.names == tuple(whole.feature_names) == tuple(NUMBERS)
    assert rows.beside == ("name", "kind", "day")
    assert alike(rows, np.asarray(whole.features))
    assert beside(rows)["kind"].to_list() == frame["kind"].to_list()
    assert len(rows.leaves) == -(-N // task_rows)


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


def test_categories_go_along_through_several_leaves(tmp_path):
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
def test_bytes_do_not_depend_on_how_many_leaves_are_read_together(
    frame, tmp_path, monkeypatch, span
):
    monkeypatch.setattr(file_leaves, "SPAN_BYTES", span)
    path = write(frame, tmp_path / "a.parquet")
    rows = open_rows(path, task_rows=30)
    rows.leaves = open_rows(path, task_rows=4).leaves  # several leaves in a task
    assert alike(rows, frame.select(NUMBERS).cast(pl.Float64).to_numpy())


def test_bytes_do_not_depend_on_how_many_columns_are_read_together(frame, tmp_path, monkeypatch):
    path = write(frame, tmp_path / "a.parquet")
    expected = [block.X for block in open_rows(path, frames=True, task_rows=9).blocks()]
    monkeypatch.setattr(columnar, "GROUP_BYTES", 1)
    found = [block.X for block in open_rows(path, frames=True, task_rows=9).blocks()]
    assert all(a.equals(b) for a, b in zip(found, expected, strict=True))
    assert alike(open_rows(path), frame.select(NUMBERS).cast(pl.Float64).to_numpy())


def test_leaves_are_light_and_know_what_they_depend_on(tmp_path):
    X = np.random.default_rng(0).standard_normal((1000, 50))
    path = tmp_path / "a.parquet"
    pl.from_numpy(X, schema=[f"column number {i}" for i in range(50)]).write_parquet(path)
    rows = open_rows(path, task_rows=100)
    task = rows.tasks[0]._replace(leaves=open_rows(path, task_rows=10).leaves)
    assert len(task.leaves) == 100
    assert len(pickle.dumps(task)) < 20_000
    again = pickle.loads(pickle.dumps(task))
    assert np.array_equal(np.concatenate([block.X for block in again.blocks()]), X)
    facts = path.stat()
    identity = rows.leaves[1].identity
    assert str(path) in identity
    assert (facts.st_size, facts.st_mtime_ns) in identity
    assert identity[-2:] == (100, 100)
    assert identity == open_rows(path, task_rows=100).leaves[1].identity
    assert (
        identity != open_rows(path, columns=["column number 3"], task_rows=100).leaves[1].identity
    )
    os.utime(path, ns=(0, 1))
    assert identity != open_rows(path, task_rows=100).leaves[1].identity


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
        assert single[1] in rows.leaves[3].identity
    with pytest.raises(DataError, match=r"file://.*/no\.parquet: cannot be read"):
        open_rows(f"file://{tmp_path}/no.parquet")


def damaged(frame, folder):
    """A source per problem, and what its message says; every message names the bad file."""
    good = write(frame, folder / "a.parquet")

    def bad(part, name="bad.parquet"):
        return write(part, folder / name)

    def raw(content, name="bad.parquet"):
        (folder / name).write_bytes(content)
        return folder / name

    np.save(folder / "bad1d.npy", np.arange(5))
    np.save(folder / "badtext.npy", np.array([["a"]]))
    np.save(folder / "bad0.npy", np.empty((0, 3)))
    np.save(folder / "badobject.npy", np.array([[{}]]), allow_pickle=True)
    np.save(folder / "bad3.npy", np.ones((4, 3)))
    np.save(folder / "good2.npy", np.ones((4, 2)))
    np.savez(folder / "bad.npz", X=np.ones((4, 3)))
    return [
        ([good, folder / "bad.parquet"], "no such file"),
        ([good, raw(b"", "bad0.parquet")], "the file is empty"),
        ([good, raw(b"PAR1 something PAR1", "bad1.parquet")], "cannot be read as Parquet"),
        ([good, raw(good.read_bytes()[:-9], "bad2.parquet")], "cannot be read as Parquet"),
        ([good, raw(b"\x00\x01\x02\x03", "bad3.parquet")], "cannot be read as Parquet"),
        ([good, bad(frame[:0], "bad4.parquet")], "there are no rows"),
        ([good, bad(frame.drop("a"), "bad5.parquet")], "lacks 'a'"),
        ([good, bad(frame.with_columns(a=pl.lit("x")), "bad6.parquet")], "'a' holds text"),
        ([good, bad(frame.with_columns(more=1.0), "bad7.parquet")], "has 'more' beside"),
        ([good, bad(frame.with_columns(kind=1.0), "bad8.parquet")], "'kind' holds numbers"),
        ([raw(b"", "bad.csv")], "the file is empty"),
        ([raw(b"a,b\n", "bad2.csv")], "there are no rows"),
        ([raw(b"\x1f\x8b\x08abc", "bad.csv.gz")], "gunzip bad.csv.gz"),
        ([folder / "bad1d.npy"], "expected two dimensions"),
        ([folder / "badtext.npy"], "expected real numbers"),
        ([folder / "bad0.npy"], "there are no rows"),
        ([folder / "badobject.npy"], "pickled objects"),
        ([raw((folder / "bad3.npy").read_bytes()[:-1], "badcut.npy")], "cut short"),
        ([folder / "good2.npy", folder / "bad3.npy"], "has 3 columns, but .*good2.npy has 2"),
        ([good, folder / "bad3.npy"], "has another form than"),
        ([folder / "bad.npz"], "NPZ cannot be read in parts; .*Parquet, Arrow, delimited text"),
        ([raw(b"PK\x03\x04", "bad.xlsx")], "cannot be read in parts"),
        ([raw(b"%%MatrixMarket x", "bad.mtx")], "MatrixMarket cannot be read in parts"),
        ([raw(b"\x89HDF\r\n", "bad.h5ad")], "H5AD cannot be read in parts"),
        ([raw(b'{"a": 1}\n', "bad.ndjson")], "NDJSON cannot be read in parts"),
    ]


def test_bad_files_are_refused_when_they_are_opened_and_named(frame, tmp_path):
    for source, message in damaged(frame, tmp_path):
        with pytest.raises(DataError, match=message) as caught:
            open_rows(source)
        assert str(source[-1]) in str(caught.value), message
        assert "\n" not in str(caught.value)


def test_the_first_of_several_bad_files_is_named(frame, tmp_path):
    paths = [write(frame, tmp_path / f"{i:02d}.parquet") for i in range(40)]
    for i in (31, 17, 25):
        paths[i].write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"17\.parquet: cannot be read"):
        open_rows(tmp_path)


def test_a_file_is_given_once(frame, tmp_path):
    path = write(frame, tmp_path / "a.parquet")
    other = write(frame, tmp_path / "b.parquet")
    (tmp_path / "link.parquet").symlink_to(path)
    for source in ([path, other, path], [path, tmp_path / "." / "x" / ".." / "link.parquet"]):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(DataError, match="is given more than once"):
            open_rows(source)


def test_folders_of_several_kinds_or_of_none_are_refused(frame, tmp_path):
    write(frame, tmp_path / "a.parquet")
    np.save(tmp_path / "b.npy", np.ones((2, 2)))
    with pytest.raises(DataError, match=r"several kinds: Parquet \(a.parquet\) and NPY \(b.npy\)"):
        open_rows(tmp_path)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    with pytest.raises(DataError, match=r"deep: holds no files.*deep/\*\*/\*.parquet"):
        open_rows(tmp_path / "deep")


REFUSED = [
    ({"columns": ["nothing"]}, DataError, r"a\.parquet: .*'nothing'"),
    ({"labels": ["nothing"]}, DataError, r"a\.parquet: .*'nothing'"),
    ({"id_column": "nothing"}, DataError, r"a\.parquet: .*'nothing'"),
    ({"columns": ["kind"]}, DataError, r"a\.parquet: column 'kind' holds text"),
    ({"columns": ["a"], "labels": ["a"]}, DataError, "cannot be a label"),
    ({"columns": []}, DataError, "no columns of numbers"),
    ({"columns": "a"}, ParameterError, "columns='a' is not allowed"),
    ({"columns": ["a", "a"]}, ParameterError, "more than once"),
    ({"labels": [3]}, ParameterError, "labels holds 3"),
    ({"id_column": 3}, ParameterError, "id_column=3"),
    ({"task_rows": 0}, ParameterError, "task_rows=0"),
    ({"task_rows": 2.5}, ParameterError, "task_rows=2.5"),
]


@each("options, error, message", REFUSED)
def test_a_choice_that_makes_no_sense_is_refused(frame, tmp_path, options, error, message):
    path = write(frame, tmp_path / "a.parquet")
    with pytest.raises(error, match=message):
        open_rows(path, **options)


@each("source", ["", " ", "a\0b", [], "https://example.org/a.parquet", "no/such/*.parquet"])
def test_sources_that_are_none_are_refused(source):
    with pytest.raises(DataError):
        open_rows(source)


@each("suffix", [".parquet", ".arrow", ".csv", ".npy"])
def test_a_file_that_changes_later_is_refused(frame, tmp_path, suffix):
    path = tmp_path / f"a{suffix}"

    def fill(n):
        np.save(path, np.ones((n, 3))) if suffix == ".npy" else write(frame[:n], path)

    fill(20)
    rows = open_rows(path, task_rows=10)
    rows.to_numpy()
    fill(21)
    with pytest.raises(DataError, match=rf"a\{suffix}: changed since it was opened"):
        rows.to_numpy()
    path.unlink()
    with pytest.raises(DataError, match=rf"a\{suffix}: no such file"):
        rows.to_numpy()


def test_damage_in_the_middle_is_found_when_it_is_read(tmp_path):
    frame = pl.from_numpy(np.random.default_rng(0).standard_normal((5000, 4)))
    path = tmp_path / "a.parquet"
    frame.write_parquet(path, row_group_size=1000)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 6000] = bytes(6000)
    path.write_bytes(content)
    rows = open_rows(path, task_rows=1000)
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read as Parquet"):
        rows.to_numpy()


def test_fits_of_files_name_the_rows_with_missing_values(frame, tmp_path):
    rows = open_rows(write(frame, tmp_path / "a.parquet"), columns=["a", "holes"], task_rows=5)
    with pytest.raises(DataError, match=r"a\.parquet, rows 0 to 4: .*NaN"):
        PCA(1).fit(rows)


MEMORY = """
import resource, sys
import numpy as np
from lowland.distributed import open_rows
rows = open_rows(sys.argv[1], task_rows=1 << 14)
next(rows.blocks())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
n = sum(block.n_rows for block in rows.blocks())
print(n, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@each("kind", ["parquet", "npy", "csv"])
def test_memory_holds_some_leaves_and_not_the_file(tmp_path, kind):
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
    assert grown < 8 * n * p / 2  # a leaf has 5 MB
