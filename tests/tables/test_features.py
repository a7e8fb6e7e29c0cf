"""How features reach an estimator: missing values, types, memory, copies."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowland._base.errors import DataError, MemoryLimitError
from lowland.tables import finite, read_table
from lowland.tables.formats import delimited
from support.cases import each

HOLES = np.array([[1.0, np.nan], [2.0, 3.0]])
WRITERS = {
    "t.csv": lambda path: path.write_text("a,b\n1,\n2,3\n"),
    "marks.csv": lambda path: path.write_text("a,b\n1,NA\n2,3\n"),
    "t.parquet": lambda path: pl.DataFrame({"a": [1, 2], "b": [None, 3]}).write_parquet(path),
    "nan.parquet": lambda path: pl.DataFrame({"a": [1, 2], "b": [np.nan, 3]}).write_parquet(path),
    "t.ndjson": lambda path: path.write_text('{"a": 1}\n{"a": 2, "b": 3}\n'),
    "t.npy": lambda path: np.save(path, HOLES),
    "t.npz": lambda path: np.savez(path, X=HOLES, feature_names=["a", "b"]),
}


@pytest.fixture(params=WRITERS)
def holed(request, tmp_path):
    WRITERS[request.param](tmp_path / request.param)
    return tmp_path / request.param


def test_missing_values_are_refused_unless_they_are_allowed(holed):
    with pytest.raises(DataError, match=r"missing values .* in 1 column: .* \(1, first in row 0\)"):
        read_table(holed)
    np.testing.assert_array_equal(np.asarray(read_table(holed, allow_missing=True).features), HOLES)


@pytest.mark.parametrize("name", ["t.npy", "t.csv"])
def test_infinite_values_are_never_allowed(tmp_path, name):
    if name == "t.npy":
        np.save(tmp_path / name, [[1.0, np.nan], [np.inf, 2.0]])
    else:
        (tmp_path / name).write_text("column_0,b\n1,\ninf,2\n")
    with pytest.raises(DataError, match=r"infinite values in 1 column: 'column_0' \(1, first in"):
        read_table(tmp_path / name, allow_missing=True)


# A small bound stands in for the size from which memory counts.
@each(
    ("columns", "dtype"),
    [
        ({"a": [0, 65535], "b": [-65535, 1]}, "f4"),
        ({"a": [0, 65536], "b": [1, 1]}, "f8"),
        ({"a": [0, -65536], "b": [1, 1]}, "f8"),
        ({"a": [0, 1], "b": [True, False]}, "f4"),
        ({"a": [0, 1], "b": [0.5, 0.25]}, "f8"),
    ],
)
@each("suffix", ["parquet", "csv", "npy"])
def test_a_large_table_of_small_whole_numbers_becomes_float32(
    tmp_path, monkeypatch, suffix, columns, dtype
):
    frame = pl.DataFrame(columns)
    path = tmp_path / f"t.{suffix}"
    if suffix == "npy":
        np.save(path, frame.cast(pl.Float64 if dtype == "f8" and 0.5 in columns["b"] else pl.Int64))
    else:
        frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    assert np.asarray(read_table(path).features).dtype == np.float64
    monkeypatch.setattr(finite, "LARGE", 4)
    features = np.asarray(read_table(path).features)
    assert features.dtype == dtype
    np.testing.assert_array_equal(features, frame.cast(pl.Float64).to_numpy())


def test_a_column_of_nothing_does_not_make_a_table_wide(tmp_path, monkeypatch):
    monkeypatch.setattr(finite, "LARGE", 4)
    frame = pl.DataFrame({"a": [0, 1], "b": [None, None]}, schema={"a": pl.Int64, "b": pl.Int64})
    frame.write_parquet(tmp_path / "t.parquet")
    features = read_table(tmp_path / "t.parquet", allow_missing=True).features
    assert features.dtypes == [pl.Float32, pl.Float32]
    assert features["b"].is_nan().all()


def test_the_same_table_has_the_same_type_from_every_file(tmp_path, monkeypatch):
    monkeypatch.setattr(finite, "LARGE", 4)
    X = np.array([[1, 2], [3, 40_000]])
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X.astype(np.uint16))
    np.save(tmp_path / "c.npy", X.astype(">i4"))
    pl.from_numpy(X).write_csv(tmp_path / "d.csv")
    for path in sorted(tmp_path.iterdir()):
        features = np.asarray(read_table(path).features)
        assert features.dtype == np.float32
        np.testing.assert_array_equal(features, X)


def test_floats_of_the_other_byte_order_keep_their_size(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[1.5, 2.5]], ">f4"))
    features = read_table(tmp_path / "t.npy").features
    assert features.dtype == np.float32
    assert features.dtype.isnative
    np.testing.assert_array_equal(features, [[1.5, 2.5]])


@pytest.fixture
def foreseen(monkeypatch):
    """Look ahead even into small files."""
    monkeypatch.setattr(delimited, "LARGE", 0)
    monkeypatch.setattr(delimited, "GUESS_FIELDS", 0)  # 100 rows


@each(
    ("late", "value"),
    [("1", 1.0), ("40000", 40000.0), ("-40000", -40000.0), ("1.5", 1.5), (" 7", 7.0), ("", None)],
)
@each("early", ["3", "-3", "65535", "70000"])
def test_a_number_that_does_not_fit_the_foreseen_type_is_read(
    tmp_path, foreseen, early, late, value
):
    (tmp_path / "t.csv").write_text("a,b,kind\n" + f"{early},2,x\n" * 300 + f"{late},2,y\n")
    table = read_table(tmp_path / "t.csv", allow_missing=True)
    assert table.features.shape == (301, 2)
    assert table.features["a"][0] == float(early)
    last = table.features["a"][-1]
    assert np.isnan(last) if value is None else last == value
    assert table.labels["kind"][-1] == "y"


def test_a_word_late_in_a_foreseen_file_makes_a_label(tmp_path, foreseen):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 300 + "low,2\n")
    assert read_table(tmp_path / "t.csv").labels["a"][-1] == "low"


def test_a_broken_line_of_a_foreseen_file_is_named(tmp_path, foreseen):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 300 + "1,2,3\n")
    with pytest.raises(DataError, match="line 302: 3 fields where the first line has 2"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 300 + "1\n")
    with pytest.raises(DataError, match="line 302: 1 fields where the first line has 2"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("header", ["a,b\n", ""])
def test_a_foreseen_file_keeps_its_columns_and_lines(tmp_path, foreseen, header):
    (tmp_path / "t.csv").write_text(header + "".join(f"{i},{i * 300}\n\n" for i in range(200)))
    features = read_table(tmp_path / "t.csv").features
    assert features.columns == (["a", "b"] if header else ["column_0", "column_1"])
    np.testing.assert_array_equal(features.to_numpy(), [(i, i * 300) for i in range(200)])


@pytest.mark.parametrize("content", ["0.5,0.25\n", "1,2\n"])
def test_a_csv_too_large_for_memory_is_refused_unread(tmp_path, foreseen, little_memory, content):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + content * 300_000)
    with pytest.raises(MemoryLimitError, match=r"t\.csv: reading about 300000 rows x 2"):
        read_table(path)


def test_an_array_too_large_for_memory_is_refused_unread(tmp_path, little_memory):
    np.save(tmp_path / "t.npy", np.zeros((500, 1000), np.uint8))
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((500, 1000)))
    for name in ("t.npy", "t.npz"):
        with pytest.raises(MemoryLimitError, match=rf"{name}: reading 500 rows x 1000 columns"):
            read_table(tmp_path / name)


def test_float32_with_missing_values_stays_float32(tmp_path):
    frame = pl.DataFrame({"a": [1.0, None]}, schema={"a": pl.Float32})
    frame.write_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", allow_missing=True).features.dtypes == [pl.Float32]


@each("name", ["t.csv", "t.parquet", "t.ndjson", "t.npz"])
def test_an_estimator_sees_named_columns_without_a_copy(tmp_path, name):
    WRITERS[name](tmp_path / name)
    features = read_table(tmp_path / name, allow_missing=True).features
    assert np.shares_memory(np.asarray(features), np.asarray(features))
