"""``lowland transform``: new rows in an old map."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def model(run, cells):
    """A model of three named columns."""
    assert run("map", cells, "-o", "out").code == 0
    return "out/model.lowland"


@pytest.fixture
def placed(run, model, tmp_path):
    """The map of a frame, through a CSV file and the model."""

    def place(frame: pl.DataFrame, *options: str) -> pl.DataFrame:
        frame.write_csv(tmp_path / "new.csv")
        assert (
            run("transform", model, "new.csv", "-o", "new-map.csv", "--force", *options).code == 0
        )
        return pl.read_csv(tmp_path / "new-map.csv")

    return place


def test_columns_are_found_by_name_in_any_order(placed, cells, tmp_path):
    expected = pl.read_csv(tmp_path / "out" / "map.csv").select("x", "y").to_numpy()
    frame = pl.read_csv(cells)
    for order in (frame.columns, frame.columns[::-1]):
        again = placed(frame.select(order)).select("x", "y").to_numpy()
        np.testing.assert_allclose(again, expected, atol=1e-9)


def test_labels_and_ids_are_carried_along(placed, cells):
    frame = placed(pl.read_csv(cells), "--id", "sample")
    assert frame.columns == ["sample", "x", "y", "kind", "day"]


def test_columns_the_model_does_not_know_are_left_out_and_named(run, model, cells, tmp_path):
    frame = pl.read_csv(cells).with_columns(extra=pl.lit(None, dtype=pl.Float64))
    frame.write_parquet(tmp_path / "new.parquet")
    outcome = run("transform", model, "new.parquet")
    assert outcome.code == 0
    assert "left out: extra" in outcome.err
    assert "extra" not in pl.read_parquet(tmp_path / "new-map.parquet").columns


def test_an_array_fits_a_model_with_names_by_position(run, refused, model, cells, tmp_path):
    X = pl.read_csv(cells).select("height", "width", "depth").to_numpy()
    np.save(tmp_path / "new.npy", X)
    assert run("transform", model, "new.npy").code == 0
    placed = pl.read_csv(tmp_path / "new-map.csv").select("x", "y")
    expected = pl.read_csv(tmp_path / "out" / "map.csv").select("x", "y")
    np.testing.assert_allclose(placed.to_numpy(), expected.to_numpy(), atol=1e-9)
    np.save(tmp_path / "narrow.npy", X[:, :2])
    assert "narrow.npy: has 2 columns where 3 are needed" in refused(
        "transform", model, "narrow.npy"
    )


def test_json_is_all_there_is_on_stdout(run, model, cells):
    result = json.loads(run("transform", model, cells, "--json", "-o", "new.csv").out)
    assert result["command"] == "transform"
    assert result["rows"] == 12
    assert result["unused"] == []
    assert result["outputs"] == {"map": "new.csv"}


def test_an_existing_file_is_replaced_only_by_force(run, refused, model, cells, tmp_path):
    (tmp_path / "new.csv").write_text("mine")
    assert "--force" in refused("transform", model, cells, "-o", "new.csv")
    assert (tmp_path / "new.csv").read_text() == "mine"
    assert run("transform", model, cells, "-o", "new.csv", "--force").code == 0
    assert "also the input" in refused("transform", model, cells, "-o", cells, "--force")
