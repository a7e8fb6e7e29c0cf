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
    assert "is taken as the row id" in (tmp_path / "out" / "report.html").read_text()


def test_info_shows_the_roles_and_their_reasons(run, articles):
    text = run("info", "articles.csv").out
    assert "  row id: article_id\n  labels: Type\n" in text
    assert "  set aside: Type, because its name is that of a class" in text
    assert "  not used: c, d" in run("info", "articles.csv", "--columns", "a,b").out
    roles = json.loads(run("info", "articles.csv", "--json").out)["roles"]
    assert roles["features"] == list("abcd")
    assert [(apart["column"], apart["role"]) for apart in roles["set_aside"]] == [
        ("article_id", "id"), ("Type", "class"),
    ]  # fmt: skip


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


def test_score_says_what_it_took(run, refused, articles, tmp_path):
    both = articles.select("article_id", tsne_1="a", tsne_2="b", UMAP1="c", UMAP2="d")
    both.reverse().write_csv(tmp_path / "m.csv")
    assert "--coordinates tsne_1,tsne_2" in refused("score", "articles.csv", "m.csv", "-q")
    outcome = run("score", "articles.csv", "m.csv", "--coordinates", "UMAP1,UMAP2")
    assert "m.csv: coordinates: UMAP1, UMAP2 (as asked for)" in outcome.out
    assert "  rows are matched by their ids in column 'article_id'" in outcome.out
    both.select("tsne_1", "tsne_2").write_csv(tmp_path / "n.csv")
    outcome = run("score", "articles.csv", "n.csv")
    assert "lowland: note: caution: n.csv has no column of ids" in outcome.err


def test_names_that_a_shell_would_split_are_quoted(run, tmp_path):
    frame = pl.DataFrame(
        {"my, odd id": range(ROWS), "a": np.sin(range(ROWS)), "b": np.cos(range(ROWS))}
    )
    frame.write_csv(tmp_path / "t.csv")
    outcome = run("info", "t.csv")
    assert """--use '"my, odd id"' maps it""" in outcome.err
    assert json.loads(run("info", "t.csv", "--use", '"my, odd id"', "--json").out)["columns"] == 3
