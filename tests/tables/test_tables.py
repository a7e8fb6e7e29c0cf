"""Sources of tables and the roles of their columns."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowland import datasets
from lowland._base.errors import DataError
from lowland.tables import read_table
from lowland.tables.sources import READERS
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


def test_a_file_with_the_name_of_a_data_set_is_read_when_it_has_a_suffix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris.csv").write_text("a\n1\n2\n")
    assert read_table("iris.csv").shape == (2, 1)
    assert read_table("iris").shape == (150, 4)


@each("suffix", ["csv", "parquet", "arrow", "ndjson"])
def test_a_name_is_no_pattern(tmp_path, suffix):
    writers = {"csv": "csv", "parquet": "parquet", "arrow": "ipc", "ndjson": "ndjson"}
    for name, value in (("[t]*", 1), ("t1", 2), ("[t]1", 3)):
        write = getattr(pl.DataFrame({"a": [value]}), f"write_{writers[suffix]}")
        write(tmp_path / f"{name}.{suffix}")
    assert read_table(tmp_path / f"[t]*.{suffix}").features.rows() == [(1.0,)]


def test_chosen_columns_come_in_the_order_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,kind\n1,2,3,x\n4,5,,y\n")  # c has a hole, but nobody asked for c
    table = read_table(path, columns=["b", "a"])
    assert table.features.rows() == [(2.0, 1.0), (5.0, 4.0)]
    assert table.unused == ("c",)
    assert table.labels.columns == ["kind"]


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
