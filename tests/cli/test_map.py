"""``lowland map`` from files on disk, as a user types it."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import lowland
from lowland._base import registry


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_bundled_data_set_gives_a_map_a_picture_a_report_and_a_model(run, tmp_path):
    outcome = run("map", "digits", "--max-iter", 60)
    assert outcome.code == 0
    assert outcome.err == ""
    folder = tmp_path / "lowland-out" / "digits-tsne"
    assert sorted(contents(folder)) == [
        "map.csv", "map.png", "model.lowland", "report.html", "trust.csv",
    ]  # fmt: skip
    frame = pl.read_csv(folder / "map.csv")
    assert frame.columns == ["row", "x", "y", "class"]
    assert frame["row"].to_list() == list(range(1797))
    assert (folder / "map.png").read_bytes().startswith(b"\x89PNG")
    for name in contents(folder):
        assert f"lowland-out/digits-tsne/{name}" in outcome.out
    assert "1797 rows, 64 columns" in outcome.out
    assert "not scaled (the columns are of one kind: nearly all start at 0)" in outcome.out
    assert "reduced from 64 to 50 columns by PCA, which keep 100.0% of the variance" in outcome.out
    assert "trustworthiness 0." in outcome.out
    page = (folder / "report.html").read_text()
    assert "lowland map digits --max-iter 60" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("t.parquet", [], "map.parquet"),
        ("t.parquet", ["--format", "csv"], "map.csv"),
        ("t.npy", [], "map.csv"),
        ("t.npy", ["--format", "parquet"], "map.parquet"),
    ],
)
def test_the_map_is_written_like_the_input_or_as_asked(run, tmp_path, name, options, expected):
    X = np.random.default_rng(0).standard_normal((9, 4))
    if name.endswith(".npy"):
        np.save(tmp_path / name, X)
    else:
        pl.from_numpy(X, schema=list("abcd"), orient="row").write_parquet(tmp_path / name)
    assert run("map", name, "-o", "out", *options).code == 0
    read = pl.read_csv if expected.endswith("csv") else pl.read_parquet
    assert read(tmp_path / "out" / expected).columns == ["row", "x", "y"]


@pytest.mark.parametrize(
    ("n", "names"), [(1, ["x"]), (3, ["x", "y", "z"]), (4, ["x1", "x2", "x3", "x4"])]
)
def test_maps_of_other_dimensions_are_written_and_drawn(run, tmp_path, n, names):
    assert run("map", "iris", "-o", "out", "--n-components", n).code == 0
    assert pl.read_csv(tmp_path / "out" / "map.csv").columns == ["row", *names, "class"]


def test_json_is_all_there_is_on_stdout(run, cells):
    outcome = run("map", cells, "-m", "pca", "-o", "out", "--json", "--color", "day", "--seed", "7")
    assert outcome.code == 0
    result = json.loads(outcome.out)
    assert result.keys() == {
        "command", "input", "rows", "columns", "features", "labels", "id", "color", "method",
        "parameters", "dimensions", "explained_variance_ratio", "seconds", "outputs", "notes",
        "preparation", "dropped_rows", "stopped_early", "quality", "stages", "not_made",
        "trust", "not_judged", "learned_from",
    }  # fmt: skip
    assert (result["rows"], result["columns"], result["dimensions"]) == (12, 3, 2)
    assert result["features"] == ["height", "width", "depth"]
    assert (result["id"], result["labels"]) == ("sample", ["kind", "day"])
    assert result["color"] == "day"
    assert result["parameters"]["random_state"] == 7
    assert result["outputs"] == {
        "map": "out/map.csv", "picture": "out/map.png", "report": "out/report.html",
        "model": "out/model.lowland", "trust": "out/trust.csv",
    }  # fmt: skip
    assert len(result["explained_variance_ratio"]) == 2
    assert list(result["stages"]) == [
        "reading", "preparing", "fitting", "measuring", "judging", "checking", "drawing",
        "writing",
    ]  # fmt: skip
    assert [stage for stage, seconds in result["stages"].items() if not seconds] == ["checking"]


def test_quiet_says_nothing(run, tmp_path):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n5,7\n")
    outcome = run("map", "t.csv", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_what_the_reader_decided_is_noted_on_stderr(run, tmp_path):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n5,7\n")
    assert "lowland: note: no header line" in run("map", "t.csv").err


def test_a_terminal_sees_progress_and_the_model_forgets_it(run, tmp_path, monkeypatch):
    monkeypatch.setattr("lowland.cli.console.Console.shows_progress", True)
    outcome = run("map", "iris", "-m", "pca", "-o", "out")
    assert "PCA" in outcome.err
    assert "PCA" in outcome.out
    assert lowland.load(tmp_path / "out" / "model.lowland").verbose is False


def test_results_are_replaced_only_by_force(run, refused, tmp_path):
    assert run("map", "iris", "-o", "out").code == 0
    before = contents(tmp_path / "out")
    message = refused("map", "iris", "-o", "out", "--n-components", "3")
    assert "out/map.csv" in message
    assert "--force" in message
    assert contents(tmp_path / "out") == before
    assert run("map", "iris", "-o", "out", "--n-components", "3", "--force").code == 0
    assert contents(tmp_path / "out")["map.csv"] != before["map.csv"]
    assert sorted(contents(tmp_path / "out")) == sorted(before)


def test_the_input_is_never_overwritten(run, refused, tmp_path):
    (tmp_path / "map.csv").write_text("a,b\n1,2\n3,4\n5,7\n")
    assert "also the input" in refused("map", "map.csv", "-o", ".", "--force")
    assert (tmp_path / "map.csv").read_text().startswith("a,b\n")


def test_warnings_of_a_method_are_lines_on_stderr(run, monkeypatch):
    import warnings

    cls = registry.get("pca")
    original = cls.fit_transform

    def warn(self, X, y=None):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("not\nconverged", stacklevel=1)
        return original(self, X, y)

    monkeypatch.setattr(cls, "fit_transform", warn)
    assert run("map", "iris", "-m", "pca", "--no-report").err == "lowland: warning: not converged\n"


def test_rows_that_are_all_equal_make_a_map_without_numbers(run, tmp_path):
    np.save(tmp_path / "t.npy", np.ones((20, 3)))
    outcome = run("map", "t.npy", "-m", "pca", "-o", "out")
    assert outcome.code == 1
    assert "the map was not measured: X: all rows are equal" in outcome.err
    assert (tmp_path / "out" / "report.html").exists()


def test_a_color_may_be_any_column(run, cells):
    for column in ("kind", "height"):
        assert run("map", cells, "-o", f"out-{column}", "--color", column).code == 0
