"""``lowland map`` from files on disk, as a user types it."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import lowland
from lowland._core import registry
from support.methods import dimensions, sampled


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


@pytest.mark.parametrize("cls", sampled(registry.all_methods()))
def test_every_method_maps_a_file_and_its_model_places_the_same_rows(run, cls, tmp_path):
    method = registry.snake_case(cls.__name__)
    assert run("map", "iris", "-m", method, "-o", "out").code == 0
    frame = pl.read_csv(tmp_path / "out" / "map.csv")
    assert frame.height == 150
    axes = ["x", "y"][: dimensions(registry.get(method))]
    assert frame.columns == ["row", *axes, "class"]
    model = lowland.load(tmp_path / "out" / "model.lowland")
    assert registry.snake_case(type(model).__name__) == method
    assert len(model.feature_names_in_) == 4
    assert run("transform", "out/model.lowland", "iris", "-o", "again.csv").code == 0
    again = pl.read_csv(tmp_path / "again.csv")
    assert again.columns == frame.columns
    scale = float(frame.select(pl.col(axes).std()).to_numpy().max())
    difference = (again.select(axes) - frame.select(axes)).to_numpy()
    assert np.abs(difference).max() < 1e-3 * scale


def test_a_supervised_method_learns_the_target_which_is_no_feature(run, tmp_path):
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 3
    rows = np.column_stack([rng.standard_normal((60, 4)) + kind[:, None], kind])
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header="a,b,c,d,kind", comments="")
    outcome = run("map", "t.csv", "-m", "lda", "--target", "kind", "-o", "out")
    assert outcome.code == 0
    assert "100.0% of the variance between classes" in outcome.out
    model = lowland.load(tmp_path / "out" / "model.lowland")
    assert list(model.feature_names_in_) == ["a", "b", "c", "d"]
    assert list(model.classes_) == [0, 1, 2]
    assert pl.read_csv(tmp_path / "out" / "map.csv").columns == ["row", "x", "y", "kind"]


def test_a_supervised_method_without_labels_is_refused(refused, tmp_path):
    np.savetxt(tmp_path / "t.csv", np.random.default_rng(0).random((9, 2)), delimiter=",",
               header="a,b", comments="")  # fmt: skip
    assert "t.csv has no column of labels; name the column of classes with --target" in refused(
        "map", "t.csv", "-m", "lda"
    )


def test_ids_and_labels_stay_beside_the_map(run, cells, tmp_path):
    outcome = run("map", cells, "--id", "sample", "--label", "depth", "-o", "out")
    assert outcome.code == 0
    frame = pl.read_csv(tmp_path / "out" / "map.csv")
    assert frame.columns == ["sample", "x", "y", "depth", "kind", "day"]
    assert frame["sample"].to_list() == [f"s{i}" for i in range(12)]
    model = lowland.load(tmp_path / "out" / "model.lowland")
    assert list(model.feature_names_in_) == ["height", "width"]


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


def test_the_same_seed_gives_the_same_bytes(run, tmp_path):
    for folder in ("one", "two"):
        assert run("map", "iris", "-o", folder, "--seed", "3").code == 0
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert one["map.csv"] == two["map.csv"]
    assert one["map.png"] == two["map.png"]


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


def test_a_failure_midway_leaves_nothing_behind(run, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "map.csv")

    monkeypatch.setattr("lowland.study._writing.write_frame", full)
    outcome = run("map", "iris", "-m", "pca")
    assert outcome.code == 2
    assert outcome.err == "lowland: error: map.csv: No space left on device.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_failure_midway_leaves_earlier_results_alone(run, tmp_path, monkeypatch):
    assert run("map", "iris", "-o", "out").code == 0
    before = contents(tmp_path / "out")
    monkeypatch.setattr("lowland.study._writing.write_frame", lambda *_, **__: 1 / 0)
    assert run("map", "digits", "-m", "pca", "-o", "out", "--force").code == 3
    assert contents(tmp_path / "out") == before


def test_the_input_is_never_overwritten(run, refused, tmp_path):
    (tmp_path / "map.csv").write_text("a,b\n1,2\n3,4\n5,7\n")
    assert "also the input" in refused("map", "map.csv", "-o", ".", "--force")
    assert (tmp_path / "map.csv").read_text().startswith("a,b\n")


def test_a_color_may_be_any_column(run, cells):
    for column in ("kind", "height"):
        assert run("map", cells, "-o", f"out-{column}", "--color", column).code == 0


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


def test_several_perplexities_make_a_map_and_a_report(run, tmp_path):
    outcome = run("map", "iris", "--perplexity", "5,20", "-o", "out", "--max-iter", 30, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["parameters"]["perplexity"] == [5.0, 20.0]
    assert (tmp_path / "out" / "report.html").exists()


def test_names_of_rows_are_no_classes(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"sample": [f"s{i}" for i in range(60)], "type": list("abc") * 20})
    frame = frame.hstack(pl.from_numpy(rng.standard_normal((60, 3)), schema=list("uvw")))
    frame.write_csv(tmp_path / "t.csv")
    found = json.loads(run("map", "t.csv", "-m", "lda", "-o", "out", "--json").out)
    assert found["color"] == "type"
    assert list(lowland.load(tmp_path / "out" / "model.lowland").classes_) == ["a", "b", "c"]


def test_rows_that_are_all_equal_make_a_map_without_numbers(run, tmp_path):
    np.save(tmp_path / "t.npy", np.ones((20, 3)))
    outcome = run("map", "t.npy", "-m", "pca", "-o", "out")
    assert outcome.code == 1
    assert "the map was not measured: X: all rows are equal" in outcome.err
    assert (tmp_path / "out" / "report.html").exists()


def test_an_empty_name_is_refused(refused):
    assert "the name of the input is empty" in refused("map", "")
