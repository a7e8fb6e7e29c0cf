"""Labels in a file of their own."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowland._base.errors import DataError
from lowland.tables.preparing import read_labels
from lowland.workflow import compare_methods, make_map, place_rows
from support.cases import each

ROWS = 12
X = np.random.default_rng(0).normal(size=(ROWS, 3)).round(3)
NUMBERS = pl.from_numpy(X, schema=["a", "b", "c"], orient="row")
KINDS = ["red", "blue", "green"] * (ROWS // 3)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def with_ids(ids, name="id"):
    return NUMBERS if ids is None else NUMBERS.clone().insert_column(0, pl.Series(name, ids))


def mapped(frame, path, **options):
    return make_map(frame, "pca", measure=False, label_file=path, **options)


NAMES = [f"s{i:02d}" for i in range(ROWS)]
SHUFFLED = np.random.default_rng(1).permutation(ROWS)


@each("key", ["id", "sample_id", "who"])  # the name of the table's ids, another id, any first one
def test_labels_are_joined_by_id_in_any_order(folder, key):
    labels = pl.DataFrame({key: NAMES, "kind": KINDS, "dose": np.arange(ROWS) / 2})
    labels[SHUFFLED.tolist()].write_csv("labels.csv")
    made = mapped(with_ids(NAMES), "labels.csv")
    assert made.map.columns == ["id", "x", "y", "kind", "dose"]
    assert made.map["kind"].to_list() == KINDS
    assert made.map["dose"].to_list() == (np.arange(ROWS) / 2).tolist()
    assert made.color == "kind"
    assert f"labels of labels.csv are joined by the ids in column {key!r}" in made.log


@each("suffix", ["csv", "parquet", "ndjson"])
def test_numbers_and_their_text_are_the_same_ids(folder, suffix):
    numbers = list(range(100, 100 + ROWS))
    labels = pl.DataFrame({"id": [float(i) for i in numbers], "kind": KINDS})
    getattr(labels.reverse(), f"write_{suffix}")(f"labels.{suffix}")
    made = mapped(with_ids(numbers), f"labels.{suffix}")
    assert made.map["kind"].to_list() == KINDS
    texts = with_ids([str(i) for i in numbers])
    assert mapped(texts, f"labels.{suffix}").map["kind"].to_list() == KINDS


def test_the_column_may_come_anywhere(folder):
    pl.DataFrame({"kind": KINDS, "id": NAMES})[SHUFFLED.tolist()].write_csv("labels.csv")
    made = mapped(with_ids(NAMES), "labels.csv")
    assert made.map["kind"].to_list() == KINDS


def test_rows_without_labels_are_counted(folder):
    labels = pl.DataFrame({"id": [*NAMES[2:], "t1"], "kind": [*KINDS[2:], "red"]})
    labels.write_csv("labels.csv")
    made = mapped(with_ids(NAMES), "labels.csv")
    assert made.map["kind"].to_list() == [None, None, *KINDS[2:]]
    assert "caution: 2 of 12 rows have no labels in labels.csv, such as 's00', 's01'" in made.log
    assert "labels.csv has labels of 1 row that the table lacks, such as 't1'" in made.log


def test_no_match_shows_ids_of_both(folder):
    pl.DataFrame({"id": ["A", "B"], "kind": ["x", "y"]}).write_csv("labels.csv")
    with pytest.raises(DataError, match=r"12 of 12 rows are missing.* 's00'.*'A', 'B'"):
        mapped(with_ids(NAMES), "labels.csv")


def test_two_labels_of_one_row_are_refused(folder):
    pl.DataFrame({"id": ["s01", "s01", "s02"], "kind": list("xyz")}).write_csv("labels.csv")
    with pytest.raises(DataError, match=r"labels\.csv: column 'id' names rows twice.* 's01'"):
        mapped(with_ids(NAMES), "labels.csv")


def test_rows_of_one_id_share_a_label(folder):
    donors = [f"d{i % 4}" for i in range(ROWS)]
    pl.DataFrame({"donor": ["d3", "d1", "d0", "d2"], "sick": list("wxyz")}).write_csv("labels.csv")
    made = mapped(with_ids(donors, "donor"), "labels.csv", id_column="donor")
    assert made.map["sick"].to_list() == ["y", "x", "z", "w"] * (ROWS // 4)


def test_without_ids_the_order_counts_and_is_said(folder):
    pl.DataFrame({"kind": KINDS}).write_csv("labels.csv")
    for frame in (with_ids(None), with_ids(NAMES)):  # one column holds no ids
        made = mapped(frame, "labels.csv")
        assert made.map["kind"].to_list() == KINDS
        said = "labels of labels.csv are joined by the order of the rows, without ids"
        assert said in made.log
    np.save("labels.npy", np.arange(ROWS))
    assert mapped(with_ids(None), "labels.npy").map["label"].to_list() == list(range(ROWS))
    np.save("texts.npy", np.array([KINDS, NAMES]).T)
    both = mapped(with_ids(None), "texts.npy").map
    assert (both["label_1"].to_list(), both["label_2"].to_list()) == (KINDS, NAMES)
    pl.DataFrame({"kind": KINDS[1:]}).write_csv("short.csv")
    with pytest.raises(DataError, match=r"has 11 rows for the 12 of data.*id_column"):
        mapped(with_ids(None), "short.csv")


def test_a_label_may_be_color_or_target_and_may_have_the_name_of_a_column(folder):
    pl.DataFrame({"id": NAMES, "a": KINDS, "kind": KINDS}).write_csv("labels.csv")
    made = mapped(with_ids(NAMES), "labels.csv", color="a_label")
    assert made.map.columns == ["id", "x", "y", "a_label", "kind"]
    learned = make_map(
        with_ids(NAMES), "lda", target="kind", label_file="labels.csv", measure=False
    )
    assert learned.color == "kind"


def test_distances_comparisons_and_new_rows_have_labels_too(folder):
    pl.DataFrame({"row": ["Athens", "Rome"], "sea": ["yes", "near"]}).write_csv("cities.csv")
    made = make_map("eurodist", "classical_mds", label_file="cities.csv")
    assert made.map.filter(pl.col("row") == "Rome")["sea"].item() == "near"
    pl.DataFrame({"id": NAMES, "kind": KINDS}).write_csv("labels.csv")
    frame = with_ids(NAMES)
    compared = compare_methods(frame, ["pca"], label_file="labels.csv")
    assert compared is not None
    model = mapped(frame, "labels.csv").model
    placed = place_rows(model, frame.reverse(), label_file="labels.csv")
    assert placed.map["kind"].to_list() == KINDS[::-1]


@each(
    ("name", "text", "message"),
    [
        ("none.csv", None, "none.csv: no such file"),
        ("empty.csv", "", "empty"),
        ("head.csv", "id,kind\n", "no labels|no rows"),
    ],
)
def test_a_file_without_labels_is_refused(folder, name, text, message):
    if text is not None:
        (folder / name).write_text(text)
    with pytest.raises(DataError, match=message):
        read_labels(folder / name)
