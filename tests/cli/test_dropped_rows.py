"""Rows with missing values that are dropped take their labels, ids and classes with them.

The oracle is the same table without these rows from the beginning.
"""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

from lowland.study import make_map

HOLES = (0, 3, 4, 17, 39)


@pytest.fixture
def tables(tmp_path):
    """``holes/t.csv``, and ``whole/t.csv`` without the rows that have holes."""
    rng = np.random.default_rng(0)
    frame = pl.from_numpy(rng.normal(size=(40, 4)), schema=list("abcd"))
    frame = frame.with_columns(
        pl.when(pl.int_range(40).is_in(HOLES)).then(None).otherwise(pl.col("b")).alias("b"),
        name=pl.Series([f"s{i * i}" for i in range(40)]),
        kind=pl.Series(["uvw"[int(k)] for k in rng.integers(0, 3, 40)]),
        weight=pl.Series(rng.normal(size=40)),
    )
    whole = frame.filter(~pl.int_range(40).is_in(HOLES))
    for name, table in (("holes", frame), ("whole", whole)):
        (tmp_path / name).mkdir()
        table.write_csv(tmp_path / name / "t.csv")
    return frame, whole


TOLD = ("--id", "name", "--label", "weight")


def payload(path):
    """What the script of a report draws."""
    page = path.read_text()
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
    return json.loads(found.group(1))


def made(run, *arguments):
    """What a run that succeeds says."""
    outcome = run(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def quality(found):
    return {name: line["value"] for name, line in found["quality"].items()}


@pytest.mark.parametrize("method", ["pca", "lda"])
def test_map_and_report_belong_to_the_rows_that_stay(run, tables, tmp_path, method):
    how = ["-m", method, *TOLD, "--color", "kind"]
    found = made(run, "map", "holes/t.csv", "--impute", "drop-rows", *how, "-o", "a")
    expected = made(run, "map", "whole/t.csv", *how, "-o", "b")
    assert found["dropped_rows"] == [f"s{i * i}" for i in HOLES]
    assert (tmp_path / "a" / "map.csv").read_bytes() == (tmp_path / "b" / "map.csv").read_bytes()
    assert (tmp_path / "a" / "map.png").read_bytes() == (tmp_path / "b" / "map.png").read_bytes()
    assert payload(tmp_path / "a" / "report.html") == payload(tmp_path / "b" / "report.html")
    assert quality(found) == quality(expected)
    # the coordinates are those of the row that is named
    placed = run("transform", "a/model.lowland", "whole/t.csv", *TOLD, "-o", "c.csv")
    assert placed.code == 0, placed.err
    table, again = pl.read_csv(tmp_path / "a" / "map.csv"), pl.read_csv(tmp_path / "c.csv")
    assert again.select("name", "kind", "weight").equals(table.select("name", "kind", "weight"))
    axes = [name for name in table.columns if name in "xy"]
    np.testing.assert_allclose(again.select(axes), table.select(axes), rtol=1e-9, atol=1e-12)


def test_compared_and_scored_maps_belong_to_the_rows_that_stay(run, tables, tmp_path):
    dropped = ["holes/t.csv", "--impute", "drop-rows", *TOLD]
    found = made(run, "compare", *dropped, "-m", "pca,lda", "-o", "a")
    expected = made(run, "compare", "whole/t.csv", *TOLD, "-m", "pca,lda", "-o", "b")
    for name in ("map-pca.csv", "map-lda.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert payload(tmp_path / "a" / "report.html") == payload(tmp_path / "b" / "report.html")
    for here, there in zip(found["methods"], expected["methods"], strict=True):
        assert quality(here) == quality(there)
    # the map of all rows in another order, matched by name
    shuffled = pl.read_csv(tmp_path / "b" / "map-pca.csv").sample(fraction=1, shuffle=True, seed=1)
    shuffled.write_csv(tmp_path / "shuffled.csv")
    scored = made(run, "score", dropped[0], "shuffled.csv", *dropped[1:], "-o", "r.html")
    assert quality(scored) == quality(expected["methods"][0])
    drawn, drawn_before = payload(tmp_path / "r.html"), payload(tmp_path / "b" / "report.html")
    assert drawn["ids"] == drawn_before["ids"]
    assert drawn["columns"] == drawn_before["columns"]


def test_a_table_without_labels_and_names_loses_rows_too(run, tables, tmp_path):
    frame, whole = tables
    for suffix in (".csv", ".npy"):
        for name, table in (("holes", frame), ("whole", whole)):
            numbers = table.select("a", "b", "c", "d")
            if suffix == ".csv":
                numbers.write_csv(tmp_path / f"plain-{name}.csv")
            else:
                np.save(tmp_path / f"plain-{name}.npy", numbers.to_numpy())
        how = ["-m", "pca", "--scale", "none"]
        made(run, "map", f"plain-holes{suffix}", "--impute", "drop-rows", *how, "-o", "a")
        made(run, "map", f"plain-whole{suffix}", *how, "-o", "b")
        table, expected = pl.read_csv("a/map.csv"), pl.read_csv("b/map.csv")
        assert table["row"].to_list() == [i for i in range(40) if i not in HOLES]
        assert table.drop("row").equals(expected.drop("row"))
        for folder in ("a", "b"):
            for path in (tmp_path / folder).iterdir():
                path.unlink()
            (tmp_path / folder).rmdir()


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
