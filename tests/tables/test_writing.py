"""Results appear whole or not at all."""

from __future__ import annotations

import datetime
import os

import numpy as np
import polars as pl
import pytest

from lowland._base.errors import DataError
from lowland.tables import Table, coordinate_names, map_frame, staged_outputs, write_frame
from support.cases import each


def table(labels: dict, ids: pl.Series | None = None, rows: int = 2) -> Table:
    ids = pl.Series("row", list(range(rows))) if ids is None else ids
    return Table("source", np.ones((rows, 3)), pl.DataFrame(labels), ids)


def write_and_fail(targets):
    with staged_outputs(targets, force=True) as staged:
        staged[0].write_text("half")
        raise RuntimeError


def write_first(targets, count):
    with staged_outputs(targets, force=True) as staged:
        for path in staged[:count]:
            path.write_text("new")


def folder_contents(folder):
    return {p.relative_to(folder): p.is_file() and p.read_bytes() for p in folder.rglob("*")}


@each(
    ("n", "names"),
    [(1, ["x"]), (2, ["x", "y"]), (3, ["x", "y", "z"]), (4, ["x1", "x2", "x3", "x4"])],
)
def test_coordinates_are_named_by_one_rule(n, names):
    assert coordinate_names(n) == names


def test_labels_named_like_coordinates_are_renamed_and_nothing_is_lost():
    labels = {"y": [1, 2], "row": ["a", "b"], "y_label": [5, 6], "kind": ["u", "v"]}
    frame = map_frame(table(labels), np.zeros((2, 2)))
    assert frame.columns == ["row", "x", "y", "y_label_", "row_label", "y_label", "kind"]
    assert frame["y_label_"].to_list() == [1, 2]


def test_an_id_named_like_a_coordinate_is_renamed():
    frame = map_frame(table({}, ids=pl.Series("x", ["a", "b"])), np.zeros((2, 2)))
    assert frame.columns == ["x_id", "x", "y"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_map_comes_back_as_it_was_written(tmp_path, suffix):
    Y = np.random.default_rng(0).standard_normal((2, 2))
    frame = map_frame(table({"kind": ['a,"b', None]}), Y)
    write_frame(frame, tmp_path / f"map{suffix}")
    read = pl.read_csv if suffix == ".csv" else pl.read_parquet
    assert read(tmp_path / f"map{suffix}").equals(frame)


def test_durations_can_be_written_to_csv(tmp_path):
    frame = pl.DataFrame({"x": [1.0], "age": [datetime.timedelta(days=1)]})
    write_frame(frame, tmp_path / "map.csv")
    assert "P1D" in (tmp_path / "map.csv").read_text()


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"ending in \.csv or \.parquet"):
        write_frame(pl.DataFrame({"x": [1]}), tmp_path / "map.xlsx")


def test_a_new_folder_appears_with_everything_in_it(tmp_path):
    targets = [tmp_path / "deep" / "out" / name for name in ("a", "b")]
    with staged_outputs(targets) as staged:
        for path in staged:
            path.write_text(path.name)
            assert not targets[0].parent.exists()
    assert folder_contents(tmp_path / "deep" / "out").keys() == {
        target.relative_to(targets[0].parent) for target in targets
    }
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_a_failure_leaves_an_existing_folder_as_it_was(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "mine").write_text("kept")
    before = folder_contents(tmp_path)
    targets = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(RuntimeError):
        write_and_fail(targets)
    assert folder_contents(tmp_path) == before


def test_a_move_that_fails_midway_puts_back_what_was_there(tmp_path):
    (tmp_path / "a").write_text("old")
    before = folder_contents(tmp_path)
    targets = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    with pytest.raises(FileNotFoundError):  # the third file is never made
        write_first(targets, count=2)
    assert folder_contents(tmp_path) == before


def test_existing_files_are_replaced_only_by_force(tmp_path):
    (tmp_path / "a").write_text("old")
    with (
        pytest.raises(DataError, match="exists already; overwrite it"),
        staged_outputs([tmp_path / "a"]),
    ):
        pytest.fail("the block must not run")
    with staged_outputs([tmp_path / "a"], force=True) as [staged]:
        staged.write_text("new")
    assert (tmp_path / "a").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_in_place_of_a_file_is_refused_even_by_force(tmp_path):
    (tmp_path / "a").mkdir()
    with (
        pytest.raises(DataError, match="is a folder"),
        staged_outputs([tmp_path / "a"], force=True),
    ):
        pytest.fail("the block must not run")


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("a file")
    with (
        pytest.raises(DataError, match="there is a file of that name"),
        staged_outputs([tmp_path / "out" / "a"]),
    ):
        pytest.fail("the block must not run")


def test_results_have_the_permissions_that_the_user_gives_new_files(tmp_path):
    previous = os.umask(0o022)
    try:
        with staged_outputs([tmp_path / "out" / "a"]) as [staged]:
            staged.write_text("x")
    finally:
        os.umask(previous)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "out" / "a").stat().st_mode & 0o777 == 0o644


def test_a_failure_leaves_no_trace_of_a_new_folder(tmp_path):
    with pytest.raises(RuntimeError):
        write_and_fail([tmp_path / "deep" / "out" / "a"])
    assert list(tmp_path.iterdir()) == []
