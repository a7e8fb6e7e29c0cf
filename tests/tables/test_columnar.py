"""Parquet and Arrow files, whole and broken."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest

from lowland._base.errors import DataError, MemoryLimitError
from lowland.tables import read_table

FRAME = pl.DataFrame(
    {"a": [1.5, 2.5, 3.5], "n": [1, 2, 3], "kind": ["u", None, "w"], "yes": [True, False, True]}
)
WRITERS = {
    "t.parquet": FRAME.write_parquet,
    "t.arrow": FRAME.write_ipc,
    "t.ipc": lambda path: FRAME.write_ipc(path, compression="zstd"),
    "t.feather": lambda path: pyarrow.feather.write_feather(FRAME.to_arrow(), path),
    "stream.arrow": FRAME.write_ipc_stream,
}


@pytest.fixture(params=WRITERS)
def path(request, tmp_path):
    WRITERS[request.param](tmp_path / request.param)
    return tmp_path / request.param


def test_a_table_comes_back_as_it_was_written(path):
    table = read_table(path)
    assert table.feature_names == ("a", "n", "yes")
    assert table.features.rows() == [(1.5, 1.0, 1.0), (2.5, 2.0, 0.0), (3.5, 3.0, 1.0)]
    assert table.labels["kind"].to_list() == ["u", None, "w"]


def test_numbers_that_nobody_asked_for_are_named_but_not_read(path):
    table = read_table(path, columns=["n"])
    assert table.features.columns == ["n"]
    assert table.unused == ("a", "yes")
    assert table.labels.columns == ["kind"]


def test_labels_and_ids_are_read_beside_chosen_columns(path):
    table = read_table(path, columns=["a"], labels=["yes"], id_column="n")
    assert table.labels.columns == ["kind", "yes"]
    assert table.ids.to_list() == [1, 2, 3]
    assert table.unused == ()


def test_a_column_that_is_not_there_is_named(path):
    with pytest.raises(DataError, match="1 needed column is missing: 'z'"):
        read_table(path, columns=["z"])
    with pytest.raises(DataError, match="did you mean 'yes'"):
        read_table(path, columns=["a"], labels=["yess"])


def test_a_file_that_is_cut_short_is_refused(path, damage):
    # No flipped bits here: in rare cases polars itself aborts on those in Arrow files.
    assert damage(path, read_table, trials=50, flips=0) == 50


def test_damaged_parquet_files_never_end_in_another_error(tmp_path, damage):
    FRAME.write_parquet(tmp_path / "t.parquet")
    assert damage(tmp_path / "t.parquet", read_table) > 100


def test_types_of_arrow_that_are_no_plain_numbers_keep_their_role(tmp_path):
    columns = {
        "price": pa.array([1, 2], pa.decimal128(9, 2)),
        "day": pa.array([1, 2], pa.date32()),
        "group": pa.array(["x", "y"]).dictionary_encode(),
        "blob": pa.array([b"1", b"2"]),
        "nothing": pa.array([None, None], pa.null()),
    }
    pyarrow.feather.write_feather(pa.table(columns), tmp_path / "t.feather")
    table = read_table(tmp_path / "t.feather")
    assert table.features.rows() == [(1.0,), (2.0,)]
    assert table.labels.columns == ["day", "group", "nothing"]
    assert "'blob'" in table.notes[0]


def test_a_numeric_pandas_index_is_no_feature_even_beside_chosen_columns(tmp_path):
    pl.DataFrame({"a": [1.0, 2.0], "__index_level_0__": [7, 8]}).write_parquet(
        tmp_path / "t.parquet"
    )
    table = read_table(tmp_path / "t.parquet", columns=["a"])
    assert table.ids.to_list() == [7, 8]
    assert table.unused == ()


def test_feather_1_is_refused_by_its_name(tmp_path):
    (tmp_path / "t.feather").write_bytes(b"FEA1" + bytes(40))
    with pytest.raises(DataError, match="is Feather 1, an old format"):
        read_table(tmp_path / "t.feather")


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_table_too_large_for_memory_is_refused_unread(tmp_path, little_memory, suffix):
    frame = pl.from_numpy(np.zeros((5_000, 40)), schema=[f"c{i}" for i in range(40)])
    path = tmp_path / f"t.{suffix}"
    frame.write_parquet(path) if suffix == "parquet" else frame.write_ipc(path)
    with pytest.raises(MemoryLimitError, match=r"5000 rows x 40 columns needs 3\.5 MB") as caught:
        read_table(path)
    assert path.name in str(caught.value)
    assert read_table(path, columns=["c3"]).shape == (5_000, 1)


def test_a_stream_that_claims_a_huge_buffer_is_refused(tmp_path):
    frame = pl.DataFrame({"a": [1.0, 2.0], "t": ["x" * 40, "y" * 50]})
    path = tmp_path / "claims.arrow"
    frame.write_ipc_stream(path)
    assert read_table(path).shape == (2, 1)
    content = bytearray(path.read_bytes())
    size = (90).to_bytes(8, "little")  # of the buffer of texts
    place = content.rindex(size)
    content[place : place + 8] = (1 << 40).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as Arrow"):
        read_table(path)
