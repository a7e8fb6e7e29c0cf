"""Several files as one table."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from lowland._base.errors import DataError
from lowland.tables import read_table
from lowland.workflow import make_map, place_rows
from support.cases import each


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def files(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.csv").write_text(text)

    return files


def test_rows_are_stacked_and_a_label_names_the_file(write):
    write(a="name,x,y\np,1,2\nq,3,4\n", b="y;name;x\n6,5;r;5\n")
    table = read_table(["a.csv", "b.csv"])
    assert table.features.rows() == [(1.0, 2.0), (3.0, 4.0), (5.0, 6.5)]
    assert table.labels["file"].to_list() == ["a.csv", "a.csv", "b.csv"]
    assert table.source == "a.csv and b.csv"
    assert "rows of 2 files" in table.notes[0]
    assert any(note.startswith("b.csv: numbers in text") for note in table.notes)


def test_a_pattern_stands_for_its_files_in_order(write):
    write(b="x\n2\n", a="x\n1\n", c="x\n3\n")
    assert read_table("*.csv").features["x"].to_list() == [1.0, 2.0, 3.0]
    assert read_table("*.csv").source == "a.csv and 2 more files"
    assert read_table(["[ab].csv", "c.csv"]).shape == (3, 1)
    assert read_table("a*.csv").source == "a.csv"  # one match is one file
    with pytest.raises(DataError, match=r"d\*\.csv: no such file, and none matches"):
        read_table("d*.csv")


def test_files_of_the_same_name_are_told_apart_by_their_folder(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.csv").write_text("x\n1\n2\n")
    table = read_table([tmp_path / "one" / "t.csv", tmp_path / "two" / "t.csv"])
    assert table.labels["file"].n_unique() == 2


@each(
    ("other", "message"),
    [
        ("x,z\n1,2\n", r"b\.csv: lacks 'y' and has 'z' .* columns of a\.csv"),
        ("x\n1\n", r"b\.csv: lacks 'y'; all files"),
        ("x,y,z\n1,2,3\n", r"b\.csv: has 'z' in addition to the others; all files"),
        ("x,y\n1,low\n2,high\n", r"b\.csv: column 'y' holds text, but numbers in a\.csv"),
    ],
)
def test_other_columns_are_refused_by_name(write, other, message):
    write(a="x,y\n1,2\n", b=other)
    with pytest.raises(DataError, match=message):
        read_table(["a.csv", "b.csv"])


def test_ids_that_occur_twice_are_said(write):
    write(a=",x\np,1\nq,2\n", b=",x\nq,3\nr,4\n")
    table = read_table(["a.csv", "b.csv"])
    assert table.ids.to_list() == ["p", "q", "q", "r"]
    assert table.notes[-1] == "1 row ids occur more than once, such as q"
    write(b=",x\ns,3\nr,4\n")
    assert not any("more than once" in note for note in read_table(["a.csv", "b.csv"]).notes)


def test_a_label_called_file_is_kept(write):
    write(a="x,file\n1,u\n", b="x,file\n2,v\n")
    table = read_table(["a.csv", "b.csv"])
    assert table.labels["file"].to_list() == ["u", "v"]
    assert table.labels["file_label"].to_list() == ["a.csv", "b.csv"]


def test_arrays_and_sparse_matrices_are_stacked(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "a.npy", X[:1])
    np.save(tmp_path / "b.npy", X[1:])
    table = read_table([tmp_path / "a.npy", tmp_path / "b.npy"])
    np.testing.assert_array_equal(table.features, X)
    assert table.labels["file"].to_list() == ["a.npy", "b.npy", "b.npy", "b.npy"]
    for name, part in [("a", X[:1]), ("b", X[1:])]:
        scipy.sparse.save_npz(tmp_path / f"{name}.npz", scipy.sparse.csr_matrix(part))
    sparse = read_table([tmp_path / "a.npz", tmp_path / "b.npz"])
    np.testing.assert_array_equal(sparse.features.toarray(), X)
    np.save(tmp_path / "b.npy", X[:, :2])
    with pytest.raises(DataError, match=r"has 2 columns, but .* has 3"):
        read_table([tmp_path / "a.npy", tmp_path / "b.npy"])
    with pytest.raises(DataError, match="another form"):
        read_table([tmp_path / "a.npy", "iris"])


def test_vectors_of_several_files_are_stacked(tmp_path):
    for name, start in [("a", 0.0), ("b", 9.0)]:
        pl.DataFrame({"v": [[start, 1.0], [start, 2.0]]}).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    table = read_table([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert table.features["v_0"].to_list() == [0.0, 0.0, 9.0, 9.0]


@each(
    ("sources", "message"),
    [([], "empty"), (["a.csv", "a.csv"], "more than once"), (["a.csv", ""], "empty")],
)
def test_lists_of_inputs_that_make_no_sense_are_refused(write, sources, message):
    write(a="x\n1\n")
    with pytest.raises(DataError, match=message):
        read_table(sources)


def test_maps_and_models_take_several_files(write):
    rows = np.random.default_rng(0).normal(size=(30, 3)).round(3)
    texts = [",".join(map(str, row)) for row in rows]
    write(a="\n".join(["x,y,z", *texts[:10]]), b="\n".join(["x,y,z", *texts[10:]]))
    made = make_map(["a.csv", "b.csv"], "pca", measure=False)
    assert made.map.height == 30
    placed = place_rows(made.model, ["a.csv", "b.csv"])
    assert placed.map.equals(made.map)
    with pytest.raises(DataError, match="one file, not several"):
        make_map(["a.csv", "b.csv"], "mds", distances=True)
