"""What happens to columns and rows before a method sees them, and that the model remembers it."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import lowland


@pytest.fixture
def mixed(tmp_path):
    """60 rows: two columns in very different units, one of text, one of numbers with holes."""
    rng = np.random.default_rng(0)
    n = 60
    frame = pl.DataFrame(
        {
            "name": [f"s{i}" for i in range(n)],
            "mass": rng.normal(5e4, 1e3, n),
            "size": rng.normal(0.1, 0.01, n),
            "kind": [["red", "green", "blue"][i % 3] for i in range(n)],
            "depth": [None if i in (3, 17) else float(i % 7) for i in range(n)],
        }
    )
    frame.write_csv(tmp_path / "mixed.csv")
    return frame


def test_units_that_differ_are_scaled_and_the_log_says_why(run, mixed, tmp_path):
    outcome = run("map", "mixed.csv", "--drop", "depth", "-m", "pca", "--id", "name", "-o", "out")
    assert outcome.code == 0
    assert "scaled: standard (units seem to differ: deviations range from 0.0" in outcome.out
    assert "('size') to " in outcome.out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "units seem to differ" in page
    model = lowland.load(tmp_path / "out" / "model.lowland")
    X = mixed.select("mass", "size").to_numpy()
    expected = lowland.PCA(2).fit_transform((X - X.mean(axis=0)) / X.std(axis=0))
    made = pl.read_csv(tmp_path / "out" / "map.csv").select("x", "y").to_numpy()
    np.testing.assert_allclose(np.abs(made), np.abs(expected), atol=1e-9)
    np.testing.assert_allclose(model.transform(mixed.select("mass", "size")), made, atol=1e-9)


@pytest.mark.parametrize(("scale", "word"), [("none", "not scaled"), ("robust", "scaled: robust")])
def test_the_user_may_say_how_to_scale(run, mixed, scale, word):
    outcome = run("map", "mixed.csv", "--drop", "depth", "-m", "pca", "--scale", scale)
    assert f"{word} (as asked)" in outcome.out


def test_missing_values_are_refused_with_their_columns(refused, mixed):
    message = refused("map", "mixed.csv")
    assert "missing values in 1 column: 'depth' (2)" in message
    assert "--missing drop (loses 2 of 60 rows, 3.3%)" in message


def test_rows_with_missing_values_are_dropped_and_listed(run, mixed, tmp_path):
    outcome = run(
        "map", "mixed.csv", "--impute", "drop-rows", "--id", "name", "-m", "pca", "-o", "out",
        "--json",
    )  # fmt: skip
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert found["dropped_rows"] == ["s3", "s17"]
    assert found["rows"] == 58
    assert any(
        "dropped 2 rows with missing values: s3, s17" in line for line in found["preparation"]
    )
    ids = pl.read_csv(tmp_path / "out" / "map.csv")["name"].to_list()
    assert ids == [name for name in mixed["name"] if name not in ("s3", "s17")]
    assert "s17" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("how", ["mean", "median"])
def test_missing_values_are_filled_and_new_rows_in_the_same_way(run, mixed, tmp_path, how):
    command = ("map", "mixed.csv", "--impute", how, "-m", "pca", "-o", "out", "--id", "name")
    outcome = run(*command)
    assert f"filled 2 missing values with the column's {how}" in outcome.out
    values = mixed["depth"].drop_nulls().to_numpy()
    fill = values.mean() if how == "mean" else np.median(values)
    model = lowland.load(tmp_path / "out" / "model.lowland")
    assert model.steps[0].fill_[2] == pytest.approx(fill)
    assert run("transform", "out/model.lowland", "mixed.csv", "-o", "again.csv").code == 0
    again = pl.read_csv(tmp_path / "again.csv").select("x", "y").to_numpy()
    made = pl.read_csv(tmp_path / "out" / "map.csv").select("x", "y").to_numpy()
    np.testing.assert_allclose(again, made, atol=1e-9)


def test_holes_that_the_model_never_saw_are_refused(run, refused, mixed, tmp_path):
    assert run("map", "mixed.csv", "--drop", "depth", "-m", "pca", "-o", "out").code == 0
    lines = (tmp_path / "mixed.csv").read_text().split("\n")
    cells = lines[5].split(",")
    lines[5] = ",".join([cells[0], "", *cells[2:]])
    (tmp_path / "holes.csv").write_text("\n".join(lines))
    message = refused("transform", "out/model.lowland", "holes.csv")
    assert "'mass'" in message
    assert "missing" in message


def test_text_becomes_numbers_only_on_request(run, refused, mixed, tmp_path):
    base = ("map", "mixed.csv", "--drop", "depth,name", "-m", "pca")
    assert run(*base, "-o", "plain").code == 0
    assert lowland.load(tmp_path / "plain" / "model.lowland").n_features_in_ == 2
    outcome = run(*base, "--one-hot", "kind", "-o", "hot")
    assert "turned kind into 3 columns of 0 and 1" in outcome.out
    model = lowland.load(tmp_path / "hot" / "model.lowland")
    assert model.steps[0].column_names_out() == [
        "mass", "size", "kind=blue", "kind=green", "kind=red",
    ]  # fmt: skip
    assert run("transform", "hot/model.lowland", "mixed.csv", "-o", "again.csv").code == 0
    again = pl.read_csv(tmp_path / "again.csv").select("x", "y").to_numpy()
    made = pl.read_csv(tmp_path / "hot" / "map.csv").select("x", "y").to_numpy()
    np.testing.assert_allclose(again, made, atol=1e-9)
    mixed.drop("kind").write_csv(tmp_path / "less.csv")
    assert "1 needed column is missing: 'kind'" in refused(
        "transform", "hot/model.lowland", "less.csv"
    )
    assert "unknown column 'kinds'" in refused(*base, "--one-hot", "kinds")


def test_a_value_that_the_model_does_not_know_is_said(run, mixed, tmp_path):
    base = ("map", "mixed.csv", "--drop", "depth", "--one-hot", "kind", "-m", "pca", "-o", "out")
    assert run(*base).code == 0
    mixed.with_columns(kind=pl.lit("violet")).write_csv(tmp_path / "new.csv")
    outcome = run("transform", "out/model.lowland", "new.csv")
    assert outcome.code == 0
    assert "column 'kind' has values that the model does not know" in outcome.err
    assert "'violet'" in outcome.err


def test_columns_can_be_chosen_and_dropped_by_name(run, refused, mixed, tmp_path):
    assert run("map", "mixed.csv", "--columns", "mass,size", "-m", "pca", "-o", "one").code == 0
    assert run("map", "mixed.csv", "--drop", "depth", "--drop", "name", "-m", "pca", "-o", "two")
    for folder in ("one", "two"):
        model = lowland.load(tmp_path / folder / "model.lowland")
        assert list(model.feature_names_in_) == ["mass", "size"]
    assert "'name'" not in pl.read_csv(tmp_path / "two" / "map.csv").columns
    assert "unknown column 'masss'; did you mean 'mass'?" in refused(
        "map", "mixed.csv", "--drop", "masss"
    )
    assert "leaves no column of numbers" in refused("map", "mixed.csv", "--drop", "mass,size,depth")


def test_wide_tables_go_through_pca_first_for_neighbor_methods_only(run, tmp_path):
    X = np.random.default_rng(0).standard_normal((80, 70)).astype(np.float32)
    np.save(tmp_path / "wide.npy", X)
    quick = ("--max-iter", 20)
    assert "reduced from 70 to 50 columns by PCA" in run("map", "wide.npy", *quick, "-o", "a").out
    assert "reduced" not in run("map", "wide.npy", *quick, "--pca", "none", "-o", "b").out
    assert "reduced from 70 to 5 " in run("map", "wide.npy", *quick, "--pca", "5", "-o", "c").out
    assert "reduced" not in run("map", "wide.npy", "-m", "pca", "-o", "d").out
    model = lowland.load(tmp_path / "c" / "model.lowland")
    assert [type(step).__name__ for step in model.steps] == ["PCA", "TSNE"]
    made = pl.read_csv(tmp_path / "c" / "map.csv").select("x", "y").to_numpy()
    assert np.abs(model.transform(X) - made).max() < 1e-3 * np.abs(made).max()


def test_nonsense_for_pca_is_refused(refused, tmp_path):
    np.save(tmp_path / "t.npy", np.ones((9, 3)))
    assert "--pca: 'many' is not allowed" in refused("map", "t.npy", "--pca", "many")


def test_a_small_table_gets_a_perplexity_that_suits_it(run, cells):
    outcome = run("map", cells)
    assert outcome.code == 0
    assert "perplexity 3.67, because there are only 12 rows" in outcome.out


def test_two_classes_have_one_discriminant_axis(run, tmp_path):
    outcome = run("map", "breast_cancer", "-m", "lda", "-o", "out")
    assert outcome.code == 0
    assert "one dimension, because LDA has no more for these data" in outcome.out
    assert pl.read_csv(tmp_path / "out" / "map.csv").columns == ["row", "x", "class"]


def test_distances_are_mapped_and_scored(run, refused, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    np.save(tmp_path / "d.npy", D)
    outcome = run("map", "d.npy", "--distances", "-o", "out")
    assert outcome.code == 0
    assert "distances between 40 rows, as they are" in outcome.out
    assert run("score", "d.npy", "out/map.csv", "--distances").code == 0
    message = refused("map", "d.npy", "--distances", "-m", "pca")
    assert "PCA works on columns, not on distances" in message
    assert "tsne" in message
    message = refused("map", "d.npy", "--distances", "-m", "linear-mds")
    assert "LinearMDS works on columns, not on distances" in message
    assert "linear_mds" not in message
    assert "no columns to choose, fill or scale" in refused(
        "map", "d.npy", "--distances", "--scale", "standard"
    )
    np.save(tmp_path / "bad.npy", D[:, :5])
    assert "square" in refused("map", "bad.npy", "--distances")


def test_unknown_distances_are_for_methods_that_do_without(run, refused, tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3))
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    D[2, 5] = D[5, 2] = np.nan
    np.save(tmp_path / "d.npy", D)
    outcome = run("map", "d.npy", "--distances", "-m", "mds", "-o", "out")
    assert outcome.code == 1
    assert "distances between 40 rows, as they are; 1 of them not known" in outcome.out
    assert "the map was not measured" in outcome.err
    assert run("transform", "out/model.lowland", "d.npy", "-o", "again.csv").code == 0
    message = refused("map", "d.npy", "--distances", "-m", "classical-mds")
    assert "is not known; fill it in, or allow missing distances (mds, nonmetric_mds" in message
