"""``lowland select``: a ranking on the screen, the kept columns in a file."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import lowland
from lowland._base import registry
from lowland.datasets import iris


@pytest.fixture
def flowers(tmp_path):
    """Iris with an id, a text label and a number as a possible target."""
    frame = pl.DataFrame(iris().X, schema=["sl", "sw", "pl", "pw"], orient="row")
    frame = frame.with_columns(
        kind=pl.Series([f"k{c}" for c in iris().y]),
        flat=pl.lit(3.0),
        plant=pl.Series([f"p{i}" for i in range(150)]),
    )
    frame.write_csv(tmp_path / "flowers.csv")
    return frame


def test_the_kept_columns_and_the_labels_are_written(run, flowers, tmp_path):
    outcome = run("select", "flowers.csv", "--target", "kind", "-k", 2, "--id", "plant")
    assert (outcome.code, outcome.err) == (0, "")
    kept = pl.read_csv(tmp_path / "flowers-selected.csv")
    assert kept.columns == ["plant", "pl", "pw", "kind"]
    assert kept.equals(flowers.select(kept.columns))


def test_the_table_shows_rank_column_and_score(run, flowers):
    lines = run(
        "select", "flowers.csv", "--target", "kind", "-k", 2, "-m", "anova"
    ).out.splitlines()
    assert lines[0] == "flowers.csv: 150 rows, 5 columns of numbers; target kind"
    assert lines[1].startswith("AnovaF: 2 of 5 columns kept in ")
    assert lines[2].split() == ["rank", "column", "score"]
    assert lines[3].split() == ["1", "pl", "1180.2"]
    assert lines[4].split()[:2] == ["2", "pw"]
    assert lines[-1].split() == ["file", "flowers-selected.csv"]


@pytest.mark.parametrize("name", registry.selector_names())
def test_every_selector_runs_by_name(run, flowers, tmp_path, name):
    cls = registry.get_selector(name)
    target = {True: ["--target", "sl" if name == "correlation_score" else "kind"]}
    arguments = ["-k", "2", *target.get(cls.needs_target, [])]
    outcome = run("select", "flowers.csv", "-m", name, *arguments, "-o", "out.parquet", "--json")
    assert outcome.code == 0, outcome.err
    result = json.loads(outcome.out)
    assert result["method"] == name
    assert result["kept"] == 2
    assert [entry["rank"] for entry in result["ranking"]] == list(
        range(1, len(result["ranking"]) + 1)
    )
    assert result["ranking"][-1]["column"] == "flat"
    kept = [entry["column"] for entry in result["ranking"] if entry["kept"]]
    assert set(kept) < set(pl.read_parquet(tmp_path / "out.parquet").columns)


def test_without_a_target_columns_stand_for_the_others(run, tmp_path):
    np.save(tmp_path / "bare.npy", iris().X)
    result = json.loads(run("select", "bare.npy", "--json").out)
    assert result["method"] == "principal_variables"
    assert result["target"] is None
    kept = pl.read_csv(tmp_path / "bare-selected.csv")
    expected = lowland.PrincipalVariables().fit(iris().X)
    assert kept.columns == list(expected.get_feature_names_out())
    np.testing.assert_allclose(kept.to_numpy(), expected.transform(iris().X))


def test_parameters_of_the_method_are_options(run, refused, flowers):
    arguments = ("select", "flowers.csv", "--target", "kind", "--json", "--force")
    result = json.loads(run(*arguments, "-m", "relief", "--n-neighbors", 3, "-k", 0.5).out)
    assert result["parameters"]["n_neighbors"] == 3
    assert result["parameters"]["n_features"] == 0.5
    result = json.loads(run(*arguments, "--method=sequential", "--floating", "--cv=2", "-k1").out)
    assert result["parameters"]["floating"] is True
    assert "did you mean --n-neighbors?" in refused(*arguments, "-m", "relief", "--n-neighbor", "3")
    assert "--n-neighbors: '0' is not allowed" in refused(
        *arguments, "-m", "relief", "--n-neighbors", "0"
    )


def test_bad_input_is_one_line_and_writes_nothing(refused, flowers, tmp_path):
    for arguments, message in (
        (["--target", "kinds"], "unknown column 'kinds'; did you mean 'kind'?"),
        (["-k", "9"], "n_features=9 is more than the 5 columns"),
        (["-k", "0"], "--n-features: '0' is not allowed"),
        (["-m", "nonsense"], "unknown selector 'nonsense'"),
        (["-m", "pca"], "unknown selector 'pca'"),
        (["-m", "variance", "--target", "kind"], "variance_score looks at no target"),
        (["-m", "relief", "--target", "pw"], "Unknown label type: continuous"),
        (["-o", "out.xlsx"], ".csv or .parquet"),
    ):
        assert message in refused("select", "flowers.csv", *arguments)
    np.save(tmp_path / "bare.npy", iris().X)
    assert "needs a target; name its column" in refused("select", "bare.npy", "-m", "relief")
    assert not list(tmp_path.glob("*selected*"))


def test_existing_files_are_replaced_only_by_force_and_quiet_is_quiet(
    run, refused, flowers, tmp_path
):
    (tmp_path / "flowers-selected.csv").write_text("mine")
    assert "--force" in refused("select", "flowers.csv", "-k", 1)
    outcome = run("select", "flowers.csv", "-k", 1, "--force", "--quiet")
    assert outcome == (0, "", "")
    assert "also the input" in refused("select", "flowers.csv", "-o", "flowers.csv", "--force")


def test_a_selector_is_not_a_method_of_map(refused, run, flowers):
    assert "use it with 'lowland select'" in refused("map", "flowers.csv", "-m", "relief_f")
    assert "relief" not in run("methods").out


def test_scale_is_an_option_of_a_selector_that_has_it(run, flowers):
    given = ("select", "flowers.csv", "-m", "principal_variables", "--json", "--force")
    plain = json.loads(run(*given, "--no-scale").out)
    scaled = json.loads(run(*given, "--scale").out)
    assert (plain["parameters"]["scale"], scaled["parameters"]["scale"]) == (False, True)
    assert plain["kept"] < scaled["kept"]  # petal length alone has most of the unscaled variance
