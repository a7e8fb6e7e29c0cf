"""Sources of tables and the roles of their columns."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowland import datasets
from lowland._core.errors import DataError
from lowland.io import read_table
from lowland.io.sources import READERS
from support.cases import each


@each("name", datasets.names())
def test_every_bundled_data_set_is_a_table(name):
    data = datasets.load_dataset(name)
    if data.distances:
        with pytest.raises(DataError, match=f"{name}: holds distances between rows, no columns"):
            read_table(name)
        return
    table = read_table(name)
    assert table.feature_names == tuple(data.feature_names)
    np.testing.assert_array_equal(table.features.to_numpy(), data.X)
    assert table.labels.height in (0, len(data.X))


def test_named_rows_of_a_bundled_data_set_are_its_ids():
    assert read_table("swiss").ids.to_list()[:2] == ["Courtelary", "Delemont"]
    assert read_table("swiss").labels.columns == []
    assert read_table("coffee").labels.columns == ["class"]


def test_classes_of_a_bundled_data_set_come_as_names():
    assert read_table("iris").labels["class"].unique().sort().to_list()[0] == "setosa"


def test_a_file_with_the_name_of_a_data_set_is_read_when_it_has_a_suffix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris.csv").write_text("a\n1\n2\n")
    assert read_table("iris.csv").shape == (2, 1)
    assert read_table("iris").shape == (150, 4)


def test_parquet_keeps_types_and_nulls_of_labels(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pl.DataFrame({"a": [1, 2], "kind": ["x", None], "b": [1.5, 2.5]})
    frame.write_parquet(path)
    table = read_table(path)
    assert table.feature_names == ("a", "b")
    assert table.labels["kind"].to_list() == ["x", None]


@each("suffix", ["csv", "parquet", "arrow", "ndjson"])
def test_a_name_is_no_pattern(tmp_path, suffix):
    writers = {"csv": "csv", "parquet": "parquet", "arrow": "ipc", "ndjson": "ndjson"}
    for name, value in (("[t]*", 1), ("t1", 2), ("[t]1", 3)):
        write = getattr(pl.DataFrame({"a": [value]}), f"write_{writers[suffix]}")
        write(tmp_path / f"{name}.{suffix}")
    assert read_table(tmp_path / f"[t]*.{suffix}").features.rows() == [(1.0,)]


def test_float32_columns_stay_float32(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1.0, 2.0]}, schema={"a": pl.Float32}).write_parquet(path)
    assert read_table(path).features.dtypes == [pl.Float32]


def test_nested_columns_are_left_out_and_the_table_says_so(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1, 2], "parts": [["x"], ["y"]]}).write_parquet(path)
    table = read_table(path)
    assert table.labels.columns == []
    assert "'parts'" in table.notes[0]


def test_the_index_of_a_pandas_parquet_is_the_row_id(tmp_path):
    pandas = pytest.importorskip("pandas", reason="reads a data frame")
    pandas.DataFrame({"a": [1.0, 2.0]}, index=["r", "s"]).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").ids.to_list() == ["r", "s"]


def test_chosen_columns_come_in_the_order_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,kind\n1,2,3,x\n4,5,,y\n")  # c has a hole, but nobody asked for c
    table = read_table(path, columns=["b", "a"])
    assert table.features.rows() == [(2.0, 1.0), (5.0, 4.0)]
    assert table.unused == ("c",)
    assert table.labels.columns == ["kind"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [(["a", "z"], "1 needed column is missing: 'z'"), (["kind"], "'kind' must hold numbers")],
)
def test_chosen_columns_must_be_there_and_hold_numbers(tmp_path, columns, message):
    path = tmp_path / "t.csv"
    path.write_text("a,kind\n1,x\n2,y\n")
    with pytest.raises(DataError, match=message):
        read_table(path, columns=columns)


def test_an_unknown_label_or_id_gets_the_nearest_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,species\n1,x\n2,y\n")
    with pytest.raises(DataError, match="unknown column 'specie'; did you mean 'species'"):
        read_table(path, labels=["specie"])
    with pytest.raises(DataError, match="did you mean 'species'"):
        read_table(path, id_column="specie")


def test_a_color_may_be_a_label_or_a_feature(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,kind\n1,x\n2,y\n")
    table = read_table(path)
    assert table.column("a").to_list() == [1.0, 2.0]
    assert table.column("kind").to_list() == ["x", "y"]
    with pytest.raises(DataError, match="did you mean 'kind'"):
        table.column("kinds")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.csv", "absent.csv: no such file"),
        ("digit", "no such file, and unknown data set 'digit'; did you mean 'digits'"),
        (".", "is a folder"),
    ],
)
def test_what_is_not_there_is_named(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        read_table(name)


def test_an_unknown_suffix_gets_the_list_of_known_ones(tmp_path):
    path = tmp_path / "t.docx"
    path.write_text("a")
    with pytest.raises(DataError, match=", ".join(sorted(READERS))):
        read_table(path)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all, but long enough"])
def test_a_damaged_parquet_file_is_refused_in_one_line(tmp_path, damage):
    path = tmp_path / "t.parquet"
    path.write_bytes(damage)
    with pytest.raises(DataError, match=r"t\.parquet") as caught:
        read_table(path)
    assert "\n" not in str(caught.value)
