"""Columns that hold one vector per row: lists, arrays, structs, and lists written as text."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from lowland._base.errors import DataError, MemoryLimitError
from lowland.tables import as_table, read_table
from lowland.workflow import make_map, place_rows
from support.cases import each

V = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
NAMES = tuple(f"embedding_{i}" for i in range(4))


def frame(vectors=V):
    column = pl.Series("embedding", vectors)
    return pl.DataFrame(
        {
            "id": range(100, 112),
            "year": [2000 + i % 3 for i in range(12)],
            "text": list("abcdefghijkl"),
        }
    ).with_columns(column)


def written_text(form):
    rows = [[f"{value:.6f}" for value in row] for row in V]
    marks = {"json": ("[", ", ", "]"), "numpy": ("[", "  ", "]"), "plain": ("", " ", "")}
    first, between, last = marks[form]
    return frame().with_columns(
        pl.Series("embedding", [first + between.join(row) + last for row in rows])
    )


WRITERS = {
    "array.parquet": lambda path: frame().write_parquet(path),
    "list.parquet": lambda path: frame(V.tolist()).write_parquet(path),
    "array.arrow": lambda path: frame().write_ipc(path),
    "list.arrow": lambda path: frame(V.tolist()).write_ipc(path),
    "list.ndjson": lambda path: frame().write_ndjson(path),
    "json.csv": lambda path: written_text("json").write_csv(path),
    "json.tsv": lambda path: written_text("json").write_csv(path, separator="\t"),
    "semicolons.csv": lambda path: written_text("json").write_csv(path, separator=";"),
    "numpy.csv": lambda path: written_text("numpy").write_csv(path),
    "plain.csv": lambda path: written_text("plain").write_csv(path),
}


@each("name", list(WRITERS))
def test_a_vector_is_the_features_and_numbers_beside_it_are_labels(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    table = read_table(path)
    assert table.feature_names == NAMES
    np.testing.assert_allclose(table.features, V, atol=1e-6)
    assert table.ids.name == "id"
    assert table.ids.to_list() == list(range(100, 112))
    assert set(table.labels.columns) == {"year", "text"}
    assert any("vector of 4 numbers" in note for note in table.notes)
    assert any("year" in note and "label" in note for note in table.notes)


def test_float32_stays_float32(tmp_path):
    WRITERS["array.parquet"](tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").features.dtypes == [pl.Float32] * 4
    assert as_table(frame()).features.dtypes == [pl.Float32] * 4


@pytest.mark.parametrize("kind", ["arrays", "lists", "polars"])
def test_data_frames_in_memory_have_vectors_too(kind):
    given = frame()
    if kind != "polars":
        pandas = pytest.importorskip("pandas", reason="reads a data frame")
        values = list(V) if kind == "arrays" else V.tolist()
        given = pandas.DataFrame({"id": range(12), "embedding": values, "label": list("ab") * 6})
    table = as_table(given)
    np.testing.assert_allclose(table.features, V, atol=1e-6)
    assert table.feature_names == NAMES
    assert table.ids.name == "id"


@each(
    ("columns", "expected"),
    [
        (["embedding_3", "embedding_0"], ("embedding_3", "embedding_0")),
        (["embedding"], NAMES),
        (["year", "embedding"], ("year", *NAMES)),
        (["year"], ("year",)),
    ],
)
def test_columns_choose_numbers_of_a_vector_or_leave_it_out(tmp_path, columns, expected):
    for name in ("list.parquet", "json.csv", "list.ndjson"):
        WRITERS[name](tmp_path / name)
        assert read_table(tmp_path / name, columns=columns).feature_names == expected


def test_a_struct_of_numbers_has_named_fields(tmp_path):
    table = frame().select("id", place=pl.struct(x=pl.lit(1.5), y=pl.col("year")))
    for name, write in [("t.parquet", table.write_parquet), ("t.ndjson", table.write_ndjson)]:
        write(tmp_path / name)
        found = read_table(tmp_path / name)
        assert found.feature_names == ("place.x", "place.y")
        assert found.ids.name == "id"
        assert found.features["place.y"].to_list() == table["place"].struct.field("y").to_list()
    # Two numbers beside more columns of measurements are two of them.
    wide = table.with_columns(a=1, b=2, c=3).drop("id")
    assert as_table(wide).feature_names == ("a", "b", "c", "place.x", "place.y")


def test_one_of_several_vectors_is_chosen_by_name(tmp_path):
    both = frame().with_columns(other=pl.col("embedding").arr.to_list().list.head(2))
    both.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(
        DataError, match=r"2 columns hold vectors: 'embedding' .*'other' .*--vector"
    ):
        read_table(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", vector="other")
    assert table.feature_names == ("other_0", "other_1")
    assert any("left out: 'embedding'" in note for note in table.notes)
    assert as_table(both, vector="other").feature_names == table.feature_names
    assert as_table(both, drop=["other"]).feature_names == NAMES
    made = make_map(tmp_path / "t.parquet", "pca", vector="embedding", measure=False)
    assert make_map(both, "pca", drop=["other"], measure=False).map.equals(made.map)


@each(
    ("values", "message"),
    [
        ([[1.0, 2.0], [3.0]], r"'v' holds vectors of different lengths: 2 .* row 0, 1 in row 1"),
        ([[1.0, 2.0], []], "'v' holds an empty list in row 1"),
        ([[], []], "'v' holds an empty list in row 0"),
        ([[1.0, 2.0], [3.0, None]], r"'v_1' \(1, first in row 1\)"),
        ([[1.0, 2.0], None], r"'v_0' \(1, first in row 1\)"),
        ([[1.0, 2.0], [3.0, float("inf")]], r"infinite values in 1 column: 'v_1' .*row 1"),
    ],
)
def test_vectors_that_do_not_fit_are_refused_with_column_and_row(tmp_path, values, message):
    given = pl.DataFrame({"id": [1, 2], "v": values}, schema_overrides={"v": pl.List(pl.Float64)})
    given.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=message):
        as_table(given)


def test_lists_of_lists_are_no_vectors(tmp_path):
    given = pl.DataFrame({"x": [1, 2], "v": [[[1.0], [2.0]], [[3.0], [4.0]]]})
    with pytest.raises(DataError, match="'v' holds lists of lists"):
        as_table(given, vector="v")
    with pytest.raises(DataError, match="'x' is not a column of lists of numbers"):
        as_table(given, vector="x")
    with pytest.raises(DataError, match=r"'y' is not a column of lists .* no such column"):
        as_table(given, vector="y")
    assert any("left out: 'v'" in note for note in as_table(given).notes)
    square = pl.DataFrame({"v": pl.Series(np.arange(12.0).reshape(2, 2, 3))})
    assert as_table(square).features.rows()[1] == (6.0, 7.0, 8.0, 9.0, 10.0, 11.0)


@each(
    ("values", "message"),
    [
        (
            ["[1, 2]", "[3]"],
            r"'v' holds vectors of different lengths: 2 numbers in row 0, 1 in row 1",
        ),
        (["[1, 2]", "[]"], "holds an empty list in row 1"),
        (["[1, 2]", "[3, x]"], "'v' holds 'x' in the vector of row 1"),
        (["[1 ... 2]", "[3 ... 4]"], "'v' holds a shortened vector in row 0"),
        (["[1, 2]", "[3, null]"], r"'v_1' \(1, first in row 1\)"),
        (["[1, 2]", ""], r"'v_0' \(1, first in row 1\)"),
    ],
)
def test_vectors_in_text_that_do_not_fit_are_refused(tmp_path, values, message):
    path = tmp_path / "t.csv"
    pl.DataFrame({"k": [1, 2], "v": values}).write_csv(path)
    with pytest.raises(DataError, match=message):
        read_table(path)
    assert read_table(path, labels=["v"]).labels["v"].to_list() == values


def test_a_row_without_a_vector_is_missing(tmp_path):
    given = frame(V.tolist()).with_columns(
        embedding=pl.when(pl.col("id") == 103).then(None).otherwise(pl.col("embedding"))
    )
    table = as_table(given, allow_missing=True)
    assert np.isnan(np.asarray(table.features)[3]).all()
    np.testing.assert_array_equal(np.delete(table.features, 3, 0), np.delete(V, 3, 0))


def test_a_vector_that_does_not_fit_into_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    vectors = np.zeros((2000, 300), np.float32)
    pl.DataFrame({"v": pl.Series(vectors).cast(pl.List(pl.Float32))}).write_parquet(
        tmp_path / "t.parquet", compression="uncompressed", use_pyarrow=False
    )
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "2MB")
    with pytest.raises(MemoryLimitError, match=r"t\.parquet: reading 2000 rows"):
        read_table(tmp_path / "t.parquet")


def test_a_name_that_is_taken_is_refused():
    given = pl.DataFrame({"v": [[1.0, 2.0], [3.0, 4.0]], "v_1": ["a", "b"]})
    with pytest.raises(DataError, match="makes a column 'v_1'"):
        as_table(given)


def test_new_rows_are_placed_from_the_same_kind_of_file_and_from_plain_columns(tmp_path):
    for name in ("list.parquet", "json.csv", "list.ndjson"):
        WRITERS[name](tmp_path / name)
    made = make_map(tmp_path / "list.parquet", "pca", measure=False)
    apart = pl.DataFrame(V, schema=list(NAMES)).with_columns(other=7)
    apart.write_csv(tmp_path / "apart.csv")
    expected = made.map.select("x", "y").to_numpy()
    for name in ("list.parquet", "json.csv", "list.ndjson", "apart.csv"):
        placed = place_rows(made.model, tmp_path / name)
        np.testing.assert_allclose(placed.coordinates, expected, atol=1e-4)
        assert placed.table.ids.name == ("row" if name == "apart.csv" else "id")
    for given in (frame(), frame(V.tolist()), V):
        np.testing.assert_allclose(place_rows(made.model, given).coordinates, expected, atol=1e-4)
    with pytest.raises(DataError, match="1 needed column is missing: 'embedding_3'"):
        place_rows(made.model, frame(V[:, :3]))


def test_whole_numbers_in_json_lines_are_vectors(tmp_path):
    lines = [json.dumps({"id": f"r{i}", "v": [i, 2 * i, i * i]}) for i in range(5)]
    (tmp_path / "t.ndjson").write_text("\n".join(lines))
    table = read_table(tmp_path / "t.ndjson")
    assert table.features.rows()[4] == (4.0, 8.0, 16.0)
    assert table.ids.to_list() == [f"r{i}" for i in range(5)]
