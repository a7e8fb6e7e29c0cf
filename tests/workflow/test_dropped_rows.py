"""Rows with missing values that are dropped take their labels, ids and classes with them.

The oracle is the same table without these rows from the beginning.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowland.report.payload import pack
from lowland.workflow import compare_methods, make_map, place_rows, score_map
from support.cases import each

HOLES = (0, 3, 4, 17, 39)
TOLD = {"id_column": "name", "labels": ["weight"]}


@pytest.fixture
def tables():
    """A table with holes, and the same one without the rows that have holes."""
    rng = np.random.default_rng(0)
    frame = pl.from_numpy(rng.normal(size=(40, 4)), schema=list("abcd"))
    frame = frame.with_columns(
        pl.when(pl.int_range(40).is_in(HOLES)).then(None).otherwise(pl.col("b")).alias("b"),
        name=pl.Series([f"s{i * i}" for i in range(40)]),
        kind=pl.Series(["uvw"[int(k)] for k in rng.integers(0, 3, 40)]),
        weight=pl.Series(rng.normal(size=40)),
    )
    return frame, frame.filter(~pl.int_range(40).is_in(HOLES))


@each("method", ["pca", "lda"])
def test_map_picture_and_report_belong_to_the_rows_that_stay(tables, tmp_path, method):
    frame, whole = tables
    found = make_map(frame, method, missing="drop", color="kind", **TOLD)
    expected = make_map(whole, method, color="kind", **TOLD)
    assert found.dropped_rows == [f"s{i * i}" for i in HOLES]
    assert any("dropped 5 rows with missing values: s0, s9" in line for line in found.log)
    assert found.map.equals(expected.map)
    assert found.quality.to_dict() == expected.quality.to_dict()
    assert pack(found.summary()) == pack(expected.summary())
    ours, theirs = found.write(tmp_path / "a"), expected.write(tmp_path / "b")
    assert ours.picture.read_bytes() == theirs.picture.read_bytes()
    # the coordinates are those of the row that is named
    placed = place_rows(found.model, whole, **TOLD)
    np.testing.assert_allclose(placed.coordinates, found.coordinates, rtol=1e-9, atol=1e-12)
    assert placed.map.select("name", "weight").equals(found.map.select("name", "weight"))


def test_compared_and_scored_maps_belong_to_the_rows_that_stay(tables):
    frame, whole = tables
    found = compare_methods(frame, ["pca", "lda"], missing="drop", **TOLD)
    expected = compare_methods(whole, ["pca", "lda"], **TOLD)
    for name in ("pca", "lda"):
        assert found.maps[name].equals(expected.maps[name])
    measures = ("trustworthiness", "continuity", "neighbor_recall")
    assert found.table.select(measures).equals(expected.table.select(measures))
    # the map of all rows in another order, matched by name
    shuffled = expected.maps["pca"].sample(fraction=1, shuffle=True, seed=1)
    score = score_map(frame, shuffled, missing="drop", **TOLD)
    np.testing.assert_array_equal(score.coordinates, expected.maps["pca"].select("x", "y"))
    for name in measures:
        assert score.quality[name].value == expected.table[name][0]


def test_a_table_without_labels_and_names_loses_rows_too(tables):
    frame, whole = (table.select("a", "b", "c", "d") for table in tables)
    for data, rest in ((frame, whole), (frame.to_numpy(), whole.to_numpy())):
        found = make_map(data, "pca", missing="drop", measure=False).map
        assert found["row"].to_list() == [i for i in range(40) if i not in HOLES]
        assert found.drop("row").equals(make_map(rest, "pca", measure=False).map.drop("row"))


def test_categories_and_values_beside_an_array_lose_the_same_rows(tables):
    frame, whole = tables
    one_hot = {"columns": ["a", "b", "kind"], "one_hot": "kind", "id_column": "name"}
    found = make_map(frame, "pca", missing="drop", measure=False, **one_hot)
    assert found.map.equals(make_map(whole, "pca", measure=False, **one_hot).map)

    def values(table):
        numbers = table.select("a", "b", "c").to_numpy()
        beside = {"kind": table["kind"].to_numpy(), "weight": table["weight"].to_numpy()}
        return {"data": numbers, "labels": beside, "target": table["kind"].to_numpy()}

    found = make_map(**values(frame), method="lda", missing="drop", measure=False)
    expected = make_map(**values(whole), method="lda", measure=False)
    assert found.map.drop("row").equals(expected.map.drop("row"))
    assert found.map["row"].to_list() == [i for i in range(40) if i not in HOLES]
