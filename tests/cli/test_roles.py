"""What commands say about ids, classes and labels of other files."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

ROWS = 60


@pytest.fixture
def articles(tmp_path):
    """An id in sequence, four measurements, and a class in numbers."""
    rng = np.random.default_rng(0)
    kind = np.arange(ROWS) % 3
    values = rng.normal(size=(ROWS, 4)) + 4 * kind[:, None]
    frame = pl.DataFrame({"article_id": 100_000 + 350 * np.arange(ROWS)})
    frame = frame.hstack(pl.from_numpy(values.round(3), schema=list("abcd"), orient="row"))
    frame = frame.with_columns(Type=pl.Series(kind))
    frame.write_csv(tmp_path / "articles.csv")
    return frame


ID_NOTE = "column 'article_id' is taken as the row id: its name is that of an id, and no value "
ID_NOTE += "occurs twice; --use article_id maps it"
CLASS_NOTE = "column 'Type' is taken as a label: its name is that of a class, and its values are "
CLASS_NOTE += "whole numbers; --use Type maps it"


@pytest.mark.parametrize("command", ["map", "compare", "info", "select", "score"])
def test_every_command_tells_the_same_roles(run, articles, tmp_path, command):
    rest = {
        "map": ["-m", "pca", "-o", "out"],
        "compare": ["-m", "pca", "-o", "out"],
        "score": ["points.csv"],
    }.get(command, [])
    articles.select("article_id", x="a", y="b").reverse().write_csv(tmp_path / "points.csv")
    outcome = run(command, "articles.csv", *rest)
    assert outcome.code == 0
    assert outcome.err.splitlines() == [f"lowland: note: {ID_NOTE}", f"lowland: note: {CLASS_NOTE}"]
    force = [] if command == "info" else ["--force"]
    outcome = run(command, "articles.csv", *rest, "--use", "article_id,Type", "--json", *force)
    assert outcome.err == ""
    assert "article_id" in str(json.loads(outcome.out).get("features", "article_id"))


def test_the_report_and_json_of_a_map_have_the_notes(run, articles, tmp_path):
    found = json.loads(run("map", "articles.csv", "-m", "pca", "-o", "out", "--json").out)
    assert found["notes"] == [ID_NOTE, CLASS_NOTE]
    assert (found["id"], found["labels"], found["color"]) == ("article_id", ["Type"], "Type")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "is taken as the row id" in page
    assert (
        "row id: article_id; kept as labels: Type"
        in run("map", "articles.csv", "-m", "pca", "-o", "two").out
    )


def test_info_shows_the_roles_and_their_reasons(run, articles, tmp_path):
    text = run("info", "articles.csv").out
    assert "  row id: article_id\n  labels: Type\n" in text
    assert "  set aside: Type, because its name is that of a class" in text
    roles = json.loads(run("info", "articles.csv", "--json").out)["roles"]
    assert roles["features"] == list("abcd")
    assert [(apart["column"], apart["role"]) for apart in roles["set_aside"]] == [
        ("article_id", "id"), ("Type", "class"),
    ]  # fmt: skip
    articles.write_parquet(tmp_path / "t.parquet")
    roles = json.loads(run("info", "t.parquet", "--columns", "a,b", "--json").out)["roles"]
    assert (roles["id"], roles["labels"], roles["not_used"]) == ("article_id", ["Type"], ["c", "d"])


def test_info_says_what_map_would_refuse(run, refused, tmp_path):
    texts = pl.DataFrame({f"t{i}": [f"{j} is {i}" for j in range(ROWS)] for i in range(5)})
    texts.with_columns(a=pl.Series(range(7, 7 + ROWS))).write_csv(tmp_path / "t.csv")
    message = refused("map", "t.csv", "-m", "pca", "-o", "out")
    assert "t.csv: only 1 of 6 columns would be mapped" in message
    assert "--columns names the columns to map; --label t0,t1,t2,t3,t4 keeps text" in message
    assert not (tmp_path / "out").exists()
    outcome = run("info", "t.csv")
    assert outcome.code == 0
    assert "'lowland map' refuses this table as it is: t.csv: only 1 of 6" in outcome.err
    assert run("map", "t.csv", "-m", "pca", "--label", "t0,t1,t2,t3,t4", "-o", "out").code == 0


def test_new_rows_are_placed_whatever_their_ids(run, articles, tmp_path):
    assert run("map", "articles.csv", "-m", "pca", "-o", "plain").code == 0
    assert run("map", "articles.csv", "-m", "pca", "--use", "article_id", "-o", "used").code == 0
    for folder, id_name in (("plain", "article_id"), ("used", "row")):
        outcome = run("transform", f"{folder}/model.lowland", "articles.csv", "-o", f"{folder}.csv")
        assert (outcome.code, outcome.err) == (0, "")
        placed = pl.read_csv(tmp_path / f"{folder}.csv")
        made = pl.read_csv(tmp_path / folder / "map.csv")
        assert placed.columns == made.columns == [id_name, "x", "y", "Type"]
        np.testing.assert_allclose(placed["x"], made["x"], atol=1e-9)
    articles.drop("article_id", "Type").write_csv(tmp_path / "bare.csv")
    assert run("transform", "plain/model.lowland", "bare.csv", "-o", "b.csv").code == 0


def test_labels_of_a_file_are_joined(run, refused, articles, tmp_path):
    labels = articles.select("article_id", place=pl.col("Type").cast(pl.String) + " town")
    labels.reverse().tail(ROWS - 1).write_csv(tmp_path / "labels.csv")
    outcome = run("map", "articles.csv", "-m", "pca", "-o", "out", "--labels", "labels.csv",
                  "--color", "place")  # fmt: skip
    assert "labels of labels.csv are joined by the ids in column 'article_id'" in outcome.err
    assert "caution: 1 of 60 rows have no labels in labels.csv" in outcome.err
    made = pl.read_csv(tmp_path / "out" / "map.csv")
    assert made["place"].to_list()[:3] == ["0 town", "1 town", "2 town"]
    assert "nope.csv: no such file" in refused(
        "map", "articles.csv", "-m", "pca", "--labels", "nope.csv"
    )


def test_score_says_what_it_took(run, refused, articles, tmp_path):
    both = articles.select(
        "article_id", tsne_1="a", tsne_2="b", UMAP1="c", UMAP2="d", cluster="Type"
    )
    both.reverse().write_csv(tmp_path / "m.csv")
    assert "--coordinates tsne_1,tsne_2" in refused("score", "articles.csv", "m.csv", "-q")
    outcome = run("score", "articles.csv", "m.csv", "--coordinates", "UMAP1,UMAP2")
    assert "m.csv: coordinates: UMAP1, UMAP2 (as asked for)" in outcome.out
    assert "  rows are matched by their ids in column 'article_id'" in outcome.out
    both.drop("article_id", "UMAP1", "UMAP2").write_csv(tmp_path / "n.csv")
    outcome = run("score", "articles.csv", "n.csv")
    assert "n.csv: coordinates: tsne_1, tsne_2 (by their names)" in outcome.out
    assert "lowland: note: caution: n.csv has no column of ids" in outcome.err


def test_names_that_a_shell_would_split_are_quoted(run, tmp_path):
    frame = pl.DataFrame(
        {"my, odd id": range(ROWS), "a": np.sin(range(ROWS)), "b": np.cos(range(ROWS))}
    )
    frame.write_csv(tmp_path / "t.csv")
    outcome = run("info", "t.csv")
    assert """--use '"my, odd id"' maps it""" in outcome.err
    assert json.loads(run("info", "t.csv", "--use", '"my, odd id"', "--json").out)["columns"] == 3
