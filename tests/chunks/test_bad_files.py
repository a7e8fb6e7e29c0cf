"""Files that cannot be a table in chunks are refused, when they are opened or when they change."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowland.chunks import open_rows
from lowland.errors import DataError, ParameterError
from lowland.workflow import make_map
from support.cases import each
from support.rows import write_in_groups as write


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pl.DataFrame({"a": rng.standard_normal(31), "kind": rng.choice(["x", "y"], 31)})


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
        ([good, bad(frame.with_columns(more=1.0), "bad7.parquet")], "has 'more' in addition"),
        ([good, bad(frame.with_columns(kind=1.0), "bad8.parquet")], "'kind' holds numbers"),
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


@each("source", [3, None, [None], np.ones((3, 2)), b"a.csv", "", [" "], object()])
def test_what_is_no_name_of_a_file_is_refused(source):
    with pytest.raises(DataError, match="is not the name of a file, a folder or a pattern"):
        open_rows(source)


def test_rows_in_chunks_are_not_a_data_frame_and_say_how_to_get_an_array(frame, tmp_path):
    rows = open_rows(write(frame, tmp_path / "a.parquet"))
    with pytest.raises(DataError, match=r"read in chunks and are not an array; take rows\.sample"):
        make_map(rows, "pca")


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
    ({"columns": ["kind"]}, DataError, r"a\.parquet: column 'kind' must hold numbers"),
    ({"columns": ["a"], "labels": ["a"]}, DataError, "cannot be a label"),
    ({"columns": []}, DataError, "no column of numbers"),
    ({"columns": "a"}, ParameterError, "columns='a' is not allowed"),
    ({"columns": ["a", "a"]}, ParameterError, "more than once"),
    ({"labels": [3]}, ParameterError, r"labels=\[3\] is not allowed"),
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
