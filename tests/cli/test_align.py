"""``lowland align``: several tables in one map, matched by ids, by order or not at all."""

from __future__ import annotations

import contextlib
import io
import json
import os

import numpy as np
import polars as pl
import pytest

import lowland
from lowland.cli import main
from lowland.datasets import iris
from support.cases import each

N = 60
rng = np.random.default_rng(0)
HIDDEN = rng.uniform(-1, 1, (N, 2))
LEFT = np.column_stack([HIDDEN, HIDDEN[:, 0] * HIDDEN[:, 1]]) + 0.01 * rng.standard_normal((N, 3))
RIGHT = HIDDEN @ [[1.0, 2.0, -1.0, 0.5], [0.3, -1.0, 2.0, 1.0]]
RIGHT += 0.01 * rng.standard_normal(RIGHT.shape)
KIND = np.where(HIDDEN[:, 0] > 0, "warm", "cold")


def number(value: float, comma: bool) -> str:
    text = f"{value:.4f}"
    return text.replace(".", ",") if comma else text


def write_files(tmp_path):
    """Two files of the same objects: decimal commas and gaps in one, other rows in the other."""
    lines = ["code;a;b;c;kind"]
    for i in range(N):
        cells = [number(value, True) for value in LEFT[i]]
        cells[1] = "" if i in (4, 9) else cells[1]
        code = "" if i == 12 else "19" if i == 20 else str(i)
        lines.append(";".join([code, *cells, KIND[i]]))
    (tmp_path / "left.csv").write_text("\n".join(lines) + "\n")
    lines = ["code,p,q,r,s,remark"]
    for i in np.random.default_rng(1).permutation(N - 5):  # the last five are missing
        code = f" {i}" if i % 2 else f"{i}.0"
        lines.append(",".join([code, *(number(v, False) for v in RIGHT[i]), f"t{i % 3}"]))
    lines += ["900,1,1,1,1,new", "901,2,1,1,1,new", "33,0,0,0,0,twice"]
    (tmp_path / "right.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


GIVEN = ("align", "left.csv", "right.csv", "--match", "code", "--missing", "mean")


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One run of the program: its folder, what it printed as JSON, and its notes."""
    folder = write_files(tmp_path_factory.mktemp("made"))
    out, err, before = io.StringIO(), io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            assert main([*GIVEN, "--json", "-o", "out"]) == 0
    finally:
        os.chdir(before)
    return folder, json.loads(out.getvalue()), err.getvalue()


def test_every_row_is_in_the_map_in_order_with_its_set_its_id_and_its_labels(made):
    files = made[0]
    found = pl.read_csv(files / "out/map.csv", infer_schema_length=None)
    assert found.columns == ["set", "code", "x", "y", "kind", "remark"]
    assert found["set"].to_list() == ["left"] * N + ["right"] * (N - 2)
    assert found["code"][:4].to_list() == [0, 1, 2, 3]
    assert found["kind"][:N].to_list() == KIND.tolist()
    assert found["kind"][N:].null_count() == N - 2
    assert found["remark"].to_list()[-1] == "twice"
    assert np.isfinite(found.select("x", "y").to_numpy()).all()
    names = {"map.csv", "map.png", "labels.png", "model.lowland", "report.html"}
    assert {path.name for path in (files / "out").iterdir()} == names


def test_ids_that_match_nothing_are_reported(made):
    notes = made[2]
    assert "left: 1 id names several rows, such as '19'; these rows take part without" in notes
    assert "left: 1 row has no id, and so no partner" in notes
    assert "right: 1 id names several rows, such as '33'" in notes
    assert "right: 5 ids occur in no other table" in notes  # 900, 901, and those of left above


def test_numbers_of_the_result(made):
    result = made[1]
    assert result["command"] == "align"
    assert [one["set"] for one in result["sets"]] == ["left", "right"]
    assert [one["rows"] for one in result["sets"]] == [N, N - 2]
    assert [one["columns"] for one in result["sets"]] == [3, 4]
    # of 0 to 54: without 12 and 20, which have no id of their own, 19, twice here, and 33, there
    assert result["objects"] == 55 - 4
    assert [one["with_partner"] for one in result["sets"]] == [51, 51]
    tried = result["held_out"]
    assert tried["objects"] == 10
    assert tried["chance"] == {"nearest": pytest.approx(1 / 59, rel=0.05), "rank": 0.5}
    assert tried["nearest"] > 5 * tried["chance"]["nearest"]
    assert tried["rank"] < 0.1
    assert result["sets"][0]["quality"]["trustworthiness"]["value"] > 0.8
    assert result["color"] == "kind"
    assert set(result["outputs"]) == {"map", "picture", "report", "model", "labels"}


def test_the_lines_for_a_person_tell_matches_and_quality(run, files):
    lines = run(*GIVEN, "-o", "out").out.splitlines()
    text = "\n".join(lines)
    assert lines[0].startswith("left: 60 rows, 3 columns of numbers (a, b, c); row id: code")
    assert "ManifoldAlignment: 118 rows, 2 dimensions in " in text
    assert "51 objects in several tables (rows with the same code)" in text
    assert "10 of them held out of a second fit; the map has all:" in text
    assert "nearest row is the partner: " in text
    assert "chance 1.7%" in text
    assert "trustworthiness of right " in text


def test_the_map_is_that_of_the_estimator_with_all_pairs(run, files):
    run(*GIVEN, "-o", "out", "--n-neighbors", 7, "--mu", 3, "--no-report")
    model = lowland.load(files / "out/model.lowland")
    assert (model.alignment.n_neighbors, model.alignment.mu) == (7, 3.0)
    assert model.names == ("left", "right")
    found = pl.read_csv(files / "out/map.csv", infer_schema_length=None)
    expected = np.vstack(model.embeddings_)
    np.testing.assert_allclose(found.select("x", "y").to_numpy(), expected)


@each("which", [("left", 0), ("right", 1)])
def test_new_rows_of_either_table_are_placed(run, made, files, which):
    folder = made[0] / "out"
    found = pl.read_csv(folder / "map.csv").filter(pl.col("set") == which[0])
    for domain in which:
        given = (folder / "model.lowland", f"{which[0]}.csv", "--domain", domain)
        outcome = run("transform", *given, "-o", "new.csv", "--force")
        assert "placed by ManifoldAlignment" in outcome.out, outcome.err
        placed = pl.read_csv(files / "new.csv")
        np.testing.assert_allclose(placed.select("x", "y"), found.select("x", "y"), atol=1e-9)


def test_transform_asks_for_the_set_and_refuses_one_that_is_not_there(made, refused, files):
    model = made[0] / "out/model.lowland"
    assert "name the one that the rows belong to: left, right" in refused(
        "transform", model, "left.csv"
    )
    message = refused("transform", model, "left.csv", "--domain", "lft")
    assert "unknown set 'lft'; did you mean 'left'?" in message
    assert "unknown set '2'" in refused("transform", model, "left.csv", "--domain", "2")
    assert "needed columns are missing" in refused("transform", model, "left.csv", "--domain", 1)
    lowland.PCA(2).fit(iris().X).save(files / "plain.lowland")
    message = refused("transform", "plain.lowland", "iris", "--domain", "left")
    assert "the model is of one table and has no sets; leave it out" in message


def test_dropped_rows_do_not_shift_the_order(run, files):
    holes = LEFT.copy()
    holes[[0, 7], 1] = np.nan
    np.save(files / "one.npy", holes)
    np.save(files / "two.npy", RIGHT)
    given = ("align", "one.npy", "two.npy", "--same-order", "--missing", "drop", "--json")
    result = json.loads(run(*given).out)
    assert result["objects"] == N - 2
    assert result["held_out"]["rank"] < 0.1


def test_three_files_and_columns_of_other_names(run, files):
    third = pl.DataFrame({"key": [f"{i}" for i in range(10, 50)], "u": HIDDEN[10:50, 1] ** 3})
    third = third.with_columns(v=HIDDEN[10:50, 0]).with_columns(w=pl.col("u") + pl.col("v"))
    third.write_parquet(files / "third.parquet")
    given = ("left.csv", "right.csv", "third.parquet", "--match", "code=code=key")
    outcome = run("align", *given, "--missing", "mean", "--json", "-o", "out", "--no-report")
    assert outcome.code == 0, outcome.err
    result = json.loads(outcome.out)
    assert [one["set"] for one in result["sets"]] == ["left", "right", "third"]
    assert result["sets"][2]["with_partner"] == 40
    found = pl.read_csv(files / "out/map.csv", infer_schema_length=None)
    assert found.columns[:4] == ["set", "id", "x", "y"]
    assert len(found) == N + N - 2 + 40


def test_without_a_match_local_patterns_decide_and_ids_in_common_are_hinted_at(run, files):
    outcome = run("align", "left.csv", "right.csv", "--missing", "mean", "-o", "out", "--json")
    assert outcome.code == 0, outcome.err
    assert "match rows with --match code" in outcome.err
    result = json.loads(outcome.out)
    assert (result["objects"], result["held_out"]) == (0, None)
    assert "No pairs of rows are known" in (files / "out/report.html").read_text()


def test_the_report_shows_sets_matches_and_quality(made):
    page = (made[0] / "out/report.html").read_text()
    for text in (
        "118 rows of 2 tables, 51 objects in several of them",
        "Do partners lie together?",
        "10 of the 51 objects",
        "nearest row is the partner",
        "PCA and Procrustes",
        "rows with a partner",
        "trustworthiness",
        "Lines join rows that are the same object.",
        "lowland align left.csv right.csv --match code",
    ):
        assert text in page
    assert "was not measured" not in page


@each(
    "arguments, message",
    [
        (["left.csv"], "left.csv: an alignment puts several tables into one map; give two"),
        (["left.csv", "left.csv"], "left.csv: is given more than once"),
        (["left.csv", "right.csv", "--drop", "zz"], "--drop: unknown column 'zz'"),
        (["left.csv", "right.csv", "--match", "cod"], "unknown column 'cod'; did you mean 'code'?"),
        (["left.csv", "right.csv", "--match", "a=b=c"], "unknown column 'a=b=c'"),
        (["left.csv", "right.csv", "--match", "code=remark"], "no id of left (column 'code')"),
        (["left.csv", "right.csv", "--match", "code", "--same-order"], "by ids or by their order"),
        (["left.csv", "right.csv", "--match", "code", "--id", "code"], "leave --id out"),
        (["left.csv", "right.csv", "--hold-out", "2"], "--hold-out: '2' is not allowed"),
        (["left.csv", "right.csv", "-m", "procrustes"], "add --match COLUMN or --same-order"),
        (["left.csv", "right.csv", "--columns", "a,b"], "--columns: right has none of these"),
        (["left.csv", "right.csv", "--n-neighbor", "3"], "did you mean --n-neighbors?"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(refused, files, arguments, message):
    extra = [] if "--missing" in arguments else ["--missing", "mean"]
    before = {path.name for path in files.iterdir()}
    assert message in refused("align", *arguments, "-q", *extra)
    assert {path.name for path in files.iterdir()} == before


def test_nothing_is_overwritten_without_force_and_quiet_is_quiet(run, refused, files):
    (files / "out").mkdir()
    (files / "out/map.csv").write_text("mine")
    assert "--force" in refused(*GIVEN, "-o", "out")
    assert (files / "out/map.csv").read_text() == "mine"
    assert run(*GIVEN, "-o", "out", "--force", "-q", "--no-report") == (0, "", "")
    assert not (files / "out/report.html").exists()


def test_few_pairs_are_not_held_out(run, files):
    few = pl.DataFrame({"code": ["1", "2", "3", "x", "y"], "m": [1.0, 2, 5, 2, 8]})
    few.with_columns(o=pl.Series([2.0, 1, 1, 3, 0])).write_csv(files / "few.csv")
    given = ("align", "left.csv", "few.csv", "--match", "code", "--missing", "mean")
    outcome = run(*given, "-o", "out", "--json")
    assert outcome.code == 0, outcome.err
    assert "no pairs were held out: only 3 objects are known in several tables" in outcome.err
    result = json.loads(outcome.out)
    assert result["held_out"] is None
    assert result["parameters"]["n_neighbors"] == 4
    assert "4 neighbors of each row, because few has only 5 rows" in result["preparation"]


def test_the_method_is_described_by_the_program(run, refused):
    text = run("methods", "manifold_alignment").out
    assert "options of 'lowland align INPUT INPUT':" in text
    assert "--n-neighbors VALUE" in text
    assert "lowland align" in refused("map", "iris", "-m", "manifold_alignment")
