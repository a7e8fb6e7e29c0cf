"""Missing and coded values: what is pointed out, what is declared, and what fills the gaps."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.impute import KNNImputer
from sklearn.preprocessing import StandardScaler

import lowland
from lowland.cli import main
from lowland.errors import DataError, ModelFileError, ParameterError
from lowland.preparation.preparation import Preparation
from lowland.tables import as_table
from lowland.workflow import compare_methods, describe_table, make_map, place_rows
from support.cases import each

RNG = np.random.default_rng(5)


def notes_of(frame: pl.DataFrame, **options) -> list[str]:
    return [n for n in make_map(frame, "pca", measure=False, **options).log if "occurs" in n]


def column(values, *others) -> pl.DataFrame:
    """A column between two others, so that a table has more than one."""
    values = np.asarray(values, dtype=float)
    return pl.DataFrame({"a": np.arange(len(values)) * 0.1, "v": values})


AGES = RNG.integers(18, 90, 60)
SENTINELS = {
    "-999 beside incomes": (np.r_[RNG.normal(3000, 500, 50), [-999] * 4], "-999 occurs 4 times"),
    "-9999 twice": (np.r_[RNG.random(50) * 40, [-9999] * 2], "-9999 occurs 2 times"),
    "-999 below negatives": (np.r_[RNG.normal(0, 10, 50), [-999] * 3], "-999 occurs 3 times"),
    "9999 above": (np.r_[RNG.random(50) * 300, [9999] * 3], "9999 occurs 3 times"),
    "99999 above": (np.r_[RNG.random(50) * 300, [99999] * 2], "99999 occurs 2 times"),
    "999 above": (np.r_[RNG.integers(0, 200, 50), [999] * 3], "999 occurs 3 times"),
    "99 beside grades": (np.r_[RNG.integers(1, 6, 50), [99] * 3], "99 occurs 3 times"),
    "-1 beside ages": (np.r_[AGES, [-1] * 3], "-1 occurs 3 times"),
    "-1 beside fractions": (np.r_[RNG.random(50), [-1] * 3], "-1 occurs 3 times"),
    "-1 beside counts": (np.r_[[0, 0], RNG.integers(0, 500, 50), [-1] * 3], "-1 occurs 3 times"),
    "-200 of sensors": (np.r_[RNG.random(50) * 1000, [-200] * 5], "-200 occurs 5 times"),
}
for mark in (-99999, -999.9, -999.99, -99.9, 9999999, 999999, 999.9, 99.9):  # beside small numbers
    SENTINELS[f"{mark}"] = np.r_[RNG.random(50), [mark] * 3], f"{mark} occurs 3 times"
INNOCENT = {
    "pixels up to 255": np.r_[RNG.integers(0, 255, 50), [255] * 9],
    "percent with 99": np.r_[RNG.integers(0, 101, 60), [99] * 5, [100]],
    "percent up to 99": np.r_[RNG.integers(0, 99, 60), [99] * 5],
    "temperatures from -1": np.r_[RNG.integers(0, 30, 60), [-1] * 4],
    "cold temperatures": np.r_[RNG.integers(-20, 10, 60), [-1] * 9],
    "two classes, -1 and 1": np.r_[[1] * 30, [-1] * 30],
    "three classes": np.r_[[1] * 30, [-1] * 30, [0] * 10],
    "standard scores": np.r_[RNG.standard_normal(60), [-1.0] * 3],
    "house numbers up to 999": np.r_[RNG.integers(1, 998, 60), [999] * 3],
    "one high value": np.r_[RNG.random(50) * 300, [9999]],
    "heavy tail": np.r_[RNG.pareto(0.6, 60) * 100, [999] * 3],
    "elevations": np.r_[RNG.integers(-400, 4000, 60), [-99] * 3],
    "a year": np.r_[RNG.integers(1900, 2024, 60), [1999] * 6],
}


@each(("values", "said"), SENTINELS.values(), ids=list(SENTINELS))
def test_sentinels_are_pointed_out_and_nothing_is_changed(values, said):
    notes = notes_of(column(values))
    assert len(notes) == 1
    assert notes[0].startswith(f"{said} in column 'v', far from the other values")
    (mark,) = re.findall(r"missing_values='([^']+)'", notes[0])
    advised = make_map(column(values), "pca", missing_values=[mark], missing="mean", measure=False)
    times = int(re.search(r"occurs (\d+) times", said)[1])
    assert advised.model.steps[0].n_filled_ == times  # the advice works
    made = make_map(column(values), "pca", measure=False, scale="none")
    np.testing.assert_allclose(np.ptp(made.coordinates[:, 0]), np.ptp(values), rtol=0.01, atol=6)


@each("values", INNOCENT.values(), ids=list(INNOCENT))
def test_ordinary_values_are_not_taken_for_sentinels(values):
    assert notes_of(column(values)) == []


def test_no_sentinel_is_found_in_bundled_data():
    for name in ("iris", "wine", "digits", "swiss", "breast_cancer"):
        if name in lowland.datasets.names():
            assert not [n for n in make_map(name, "pca", measure=False).log if "occurs" in n], name


def test_the_hint_names_the_column_where_the_value_may_be_right_elsewhere():
    frame = column(np.r_[AGES, [-1] * 3]).with_columns(
        b=pl.Series(np.r_[RNG.random(60), [-999] * 3]), c=pl.Series(np.r_[AGES, [-999] * 3])
    )
    notes = notes_of(frame)
    assert any(n.endswith("missing_values='v=-1'") for n in notes)
    assert any("-999 occurs 6 times in 2 columns ('b', 'c')" in n for n in notes)
    assert any(n.endswith("missing_values='-999'") for n in notes)
    assert notes_of(frame, missing_values=[-999, "v=-1"], missing="mean") == []


SURVEY = "name,age,score,kind\n" + "".join(
    f"p{i},{'unknown' if i % 7 == 0 else 20 + i},{'n.a.' if i % 5 == 0 else i * 3},{'xy'[i % 2]}\n"
    for i in range(40)
)


@pytest.fixture
def survey(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = SURVEY.splitlines()
    sized = [lines[0] + ",size"] + [f"{line},{i % 11}" for i, line in enumerate(lines[1:])]
    (tmp_path / "survey.csv").write_text("\n".join(sized) + "\n")
    return tmp_path


def test_words_in_columns_of_numbers_are_pointed_out_and_can_be_declared(survey, capsys):
    common = ["map", "survey.csv", "-m", "pca", "--id", "name"]
    assert main([*common, "-o", "a"]) == 0
    err = capsys.readouterr().err
    assert "column 'age' is text because of 'unknown' (6 values)" in err
    assert "--missing-values unknown" in err
    assert "column 'score' is text because of 'n.a.' (8 values)" in err
    declared = ["--missing-values", "unknown,n.a."]
    assert main([*common, *declared, "-o", "b"]) == 2
    err = capsys.readouterr().err
    assert "14 missing values in 2 columns: 'age' (6), 'score' (8)" in err
    assert "--missing drop (loses 12 of 40 rows, 30.0%)" in err
    assert main([*common, *declared, "--missing", "neighbors", "-o", "b"]) == 0
    out = capsys.readouterr().out
    assert "filled 14 missing values from the 5 nearest rows; the model keeps the fitted" in out
    # new rows are read and filled in the same way
    assert main(["transform", "b/model.lowland", "survey.csv", "--id", "name", "-o", "c.csv"]) == 0
    one, two = (pl.read_csv(path).select("x", "y").to_numpy() for path in ("b/map.csv", "c.csv"))
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_the_old_spelling_of_the_option_works(survey, capsys):
    common = ["map", "survey.csv", "-m", "pca", "--missing-values", "unknown,n.a.", "-q"]
    assert main([*common, "--impute", "drop-rows", "-o", "a"]) == 0
    assert main([*common, "--missing", "drop", "-o", "b"]) == 0
    assert (survey / "a/map.csv").read_bytes() == (survey / "b/map.csv").read_bytes()
    assert pl.read_csv("a/map.csv").height == 28


@each(
    ("given", "texts"),
    [
        (-999, ["-999"]),
        ([-999, "?"], ["-999", "?"]),
        ("-999, ?", ["-999", "?"]),
        ({"v": -1}, ["v=-1"]),
        ({"v": [-1, 99.0]}, ["v=-1", "v=99.0"]),
        (np.array([1.5]), ["1.5"]),
        (np.float32(2), ["2.0"]),
    ],
    ids=lambda value: str(value),
)
def test_declared_values_may_be_given_in_several_ways(given, texts):
    frame = pl.DataFrame({"v": [1.0, 2.0, 4.0, 7.0, -1.0, 99.0], "w": [0.1, 0.2, 0.4, 0.5, 0.3, 9]})
    made = make_map(frame, "pca", measure=False, missing="mean", missing_values=given)
    assert made.model.steps[0].missing_values == texts


@each(
    ("given", "message"),
    [
        (["="], "expected a value such as -999, or column=value"),
        (["v="], "expected a value such as"),
        (["x=-1"], "unknown column 'x'"),
        ([None], "expected numbers or text"),
    ],
    ids=lambda value: str(value),
)
def test_declarations_that_make_no_sense_are_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        make_map(column(AGES), "pca", missing_values=given)


def test_codes_of_one_column_leave_the_others_alone():
    frame = pl.DataFrame(
        {"v": [1.0, -1.0, 3.0, 4.0], "w": [-1.0, 2.0, 5.0, 1.0], "k": list("abca")}
    )
    table = as_table(frame, missing_values=["v=-1"], allow_missing=True)
    assert table.features["v"].is_nan().to_list() == [False, True, False, False]
    assert table.features["w"].to_list() == frame["w"].to_list()
    whole = frame.with_columns(pl.col("v").cast(pl.Int16))
    assert (
        as_table(whole, missing_values=["-1"], allow_missing=True).features["v"].is_nan().sum() == 1
    )
    bare = as_table(frame.select("v", "w").to_numpy(), missing_values=["1=5"], allow_missing=True)
    assert np.isnan(bare.features).nonzero()[1].tolist() == [1]
    bytes_ = np.arange(8, dtype=np.uint8).reshape(4, 2)
    found = as_table(bytes_, missing_values=["-999", "3"], allow_missing=True).features
    assert int(np.isnan(found).sum()) == 1
    with pytest.raises(DataError, match="a missing value in row 0"):
        as_table(scipy.sparse.eye(3, format="csr"), missing_values=["1"])


def test_labels_and_ids_are_not_touched():
    frame = pl.DataFrame({"v": [1.0, 2, 3, 4], "w": [2.0, 9, 1, 1], "y": [1, 2, 1, 2]})
    table = as_table(frame, labels=["y"], missing_values=["1"], allow_missing=True)
    assert table.labels["y"].to_list() == [1, 2, 1, 2]


# --- filling ----------------------------------------------------------------------------------


def gaps(n=80, p=6, share=0.15, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) * [1, 10, 100, 0.1, 1, 5][:p]
    holes = rng.random(X.shape) < share
    holes[np.arange(n), rng.integers(0, p, n)] = False  # no empty row
    return np.where(holes, np.nan, X)


def filled_by_hand(X, new, k=5):
    """Straight from the definition: standardize, nan-euclidean distances, k nearest donors."""
    mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    Z, W = (X - mean) / spread, (new - mean) / spread
    done = new.copy()
    for i, w in enumerate(W):
        d = np.array([np.nanmean((w - z) ** 2) if (~np.isnan(w - z)).any() else np.inf for z in Z])
        for j in np.flatnonzero(np.isnan(w)):
            donors = [r for r in np.argsort(d, kind="stable") if not np.isnan(X[r, j])]
            donors = [r for r in donors if np.isfinite(d[r])][:k]
            done[i, j] = X[donors, j].mean() if donors else mean[j]
    return done


def test_neighbors_fill_as_scikit_learn_does_on_standardized_columns():
    X, new = gaps(), gaps(30, seed=2)
    model = Preparation(scale="none", missing="neighbors").fit(X)
    scaler = StandardScaler().fit(X)
    imputer = KNNImputer(n_neighbors=5).fit(scaler.transform(X))
    for rows in (X, new):
        theirs = scaler.inverse_transform(imputer.transform(scaler.transform(rows)))
        np.testing.assert_allclose(model.transform(rows), theirs, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.transform(rows), filled_by_hand(X, rows), rtol=1e-9)
    assert model.n_filled_ == np.isnan(X).sum()
    np.testing.assert_array_equal(
        Preparation(scale="none", missing="neighbors").fit_transform(X), model.transform(X)
    )


def test_columns_that_are_nearly_empty_and_rows_without_company():
    X = gaps(90, 5, 0.1, seed=3)
    X[:, 4] = np.nan
    X[[3, 50, 89], 4] = [1.0, 2.0, 6.0]  # fewer donors than neighbors
    X[:, 3][:80] = np.nan  # the donors are not among the nearest rows
    new = np.full((2, 5), np.nan)
    new[0, 0] = 0.5  # the second row shares no column with any other
    model = Preparation(scale="none", missing="neighbors").fit(X)
    np.testing.assert_allclose(model.transform(X), filled_by_hand(X, X), rtol=1e-9)
    np.testing.assert_allclose(model.transform(new), filled_by_hand(X, new), rtol=1e-9)
    np.testing.assert_allclose(model.transform(new)[1], np.nanmean(X, axis=0))
    assert model.transform(new)[0, 4] == 3.0


def test_each_new_row_is_filled_as_if_it_came_alone_whatever_the_blocks(monkeypatch):
    X, new = gaps(150), gaps(20, seed=4)
    model = Preparation(missing="neighbors").fit(X)
    whole = model.transform(new)
    alone = np.vstack([model.transform(new[i : i + 1]) for i in range(len(new))])
    np.testing.assert_array_equal(whole, alone)
    monkeypatch.setattr("lowland.preparation._neighbors_fill.BUDGET", 8 * 150 * 3)
    monkeypatch.setattr("lowland.preparation._neighbors_fill.CACHE", 1)
    np.testing.assert_array_equal(model.transform(new), whole)
    assert model.transform(new.astype(np.float32)).dtype == np.float32


def test_units_do_not_change_which_rows_are_near():
    X = gaps(60)
    units = np.array([1e-3, 1e6, 1, 1e-9, 7, 1e60])
    one = Preparation(scale="none", missing="neighbors").fit_transform(X)
    two = Preparation(scale="none", missing="neighbors").fit_transform(X * units)
    np.testing.assert_allclose(one * units, two, rtol=1e-9)


def test_a_model_with_donors_survives_its_file_and_hostile_ones_do_not(tmp_path):
    frame = pl.DataFrame(gaps(40), schema=list("abcdef"), orient="row")
    made = make_map(frame, "pca", missing="neighbors", measure=False)
    made.save(tmp_path / "m.lowland")
    new = pl.DataFrame(gaps(9, seed=8), schema=list("abcdef"), orient="row")
    again = lowland.load(tmp_path / "m.lowland")
    np.testing.assert_array_equal(again.transform(new), made.model.transform(new))
    np.testing.assert_allclose(
        place_rows(made.model, new).coordinates, made.model.transform(new), atol=0
    )
    step = made.model.steps[0]
    step.donors_ = np.where(np.isnan(step.donors_), np.inf, step.donors_)
    made.save(tmp_path / "bad.lowland")
    with pytest.raises(ModelFileError, match="donors_"):
        lowland.load(tmp_path / "bad.lowland")


def test_a_plan_for_missing_values_holds_for_new_rows_of_complete_tables(tmp_path):
    frame = pl.DataFrame(np.random.default_rng(0).random((30, 3)), schema=list("abc"), orient="row")
    new = frame.head(2).with_columns(a=pl.lit(None, pl.Float64))
    for plan in ("mean", "median", "neighbors"):
        made = make_map(frame, "pca", missing=plan, measure=False)
        assert np.isfinite(place_rows(made.model, new).coordinates).all()
    with pytest.raises(DataError, match="missing values"):
        place_rows(make_map(frame, "pca", measure=False).model, new)


# --- columns without values, and what messages call missing -----------------------------------


def test_a_column_without_any_value_is_left_out_and_said():
    frame = pl.DataFrame(
        {"a": [1.0, 2, 3, 4], "b": [2.0, 1, 5, 3], "void": pl.Series([None] * 4, dtype=pl.Float64)}
    )
    made = make_map(frame, "pca", measure=False)
    assert "left out 1 column without any value: 'void'" in made.log
    assert list(made.model.feature_names_in_) == ["a", "b"]
    assert place_rows(made.model, frame).coordinates.shape == (4, 2)
    with pytest.raises(
        DataError, match=r"all values are missing in 'void'; leave such columns out \(see columns\)"
    ):
        make_map(frame, "pca", columns=["a", "void"])
    with pytest.raises(DataError, match="all values are missing in column 2"):
        make_map(frame.to_numpy(), "pca")
    with pytest.raises(DataError, match="all values are missing in 'void'"):
        make_map(frame.select("void"), "pca")
    assert describe_table(frame)["missing"] == {"void": 4}


HOLES = {
    "Int64": pd.DataFrame({"a": pd.array([1, 2, None, 4], dtype="Int64"), "b": [1.0, 3, 2, 5]}),
    "Float64": pd.DataFrame({"a": pd.array([1, 2, None, 4], dtype="Float64"), "b": [1.0, 3, 2, 5]}),
    "object, NA": pd.DataFrame({"a": [1, 2, pd.NA, 4], "b": [1.0, 3, 2, 5]}, dtype=object),
    "object, None": pd.DataFrame({"a": [1, 2, None, 4], "b": [1.0, 3, 2, 5]}, dtype=object),
    "boolean": pd.DataFrame(
        {"a": pd.array([True, False, None, True], dtype="boolean"), "b": [1.0, 3, 2, 5]}
    ),
    "NaN": pd.DataFrame({"a": [1, 2, np.nan, 4], "b": [1.0, 3, 2, 5]}),
}


@each("frame", HOLES.values(), ids=list(HOLES))
def test_holes_of_pandas_are_called_missing_everywhere(frame):
    with pytest.raises(DataError, match=r"1 missing value in 1 column: 'a' \(1\)"):
        make_map(frame, "pca")
    assert make_map(frame, "pca", missing="mean", measure=False).coordinates.shape == (4, 2)
    with pytest.raises(DataError, match=r"missing values \(NaN or empty\) in 1 column: 'a' \(1"):
        as_table(frame)
    for estimator in (lowland.PCA(1), lowland.TSNE(perplexity=1), lowland.MDS()):
        said = r"contains NaN: column 'a', first in row 2\. Drop or impute these missing values"
        with pytest.raises(ValueError, match=said):
            estimator.fit(frame)
    ready = Preparation(scale="none", missing="mean").fit_transform(frame)
    assert np.isfinite(ready).all()


def test_text_is_still_called_what_it_is():
    frame = pd.DataFrame({"a": [1, "x", None], "b": [1.0, 2, 3]})
    with pytest.raises(ValueError, match="column 'a', row 1: 'x' is not a number"):
        lowland.PCA(1).fit(frame)


# --- missing values that are kept ------------------------------------------------------------


def holey(n: int = 80) -> pl.DataFrame:
    X = RNG.gamma(2.0, size=(n, 4)) * [1.0, 30.0, 0.2, 5.0]
    X[::7, 1] = X[3::9, 2] = np.nan
    return pl.DataFrame(X, schema=["a", "b", "c", "d"])


@each("scale", ["standard", "robust", "none", "auto"])
def test_kept_values_stay_missing_and_columns_are_scaled_by_the_known_ones(scale):
    frame = holey()
    ready = Preparation(missing="keep", scale=scale)
    found = ready.fit_transform(frame)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(frame.to_numpy()))
    for j, name in enumerate(frame.columns):
        alone = Preparation(scale="none" if ready.chosen_ == "none" else ready.chosen_)
        known = frame[name].drop_nans().to_numpy()[:, None]
        there = ~np.isnan(found[:, j])
        np.testing.assert_allclose(
            found[there, j], alone.fit_transform(known)[:, 0], rtol=1e-12, atol=1e-13
        )
    np.testing.assert_array_equal(ready.transform(frame[5:20]), found[5:20])


def test_binary_columns_with_gaps_are_switches():
    values = np.tile([0.0, 1.0, np.nan, 1.0], 20)
    frame = pl.DataFrame({"yes": values, "n": RNG.normal(0, 900, 80)})
    found = Preparation(missing="keep").fit_transform(frame)[:, 0]
    np.testing.assert_allclose(found[:4], [0, np.sqrt(2), np.nan, np.sqrt(2)])


def test_kept_values_cannot_be_normalized():
    with pytest.raises(ParameterError, match=r"missing='keep' with normalize=\['l2'\]"):
        Preparation(missing="keep", normalize=["l2"]).fit(holey())


def test_a_method_that_needs_all_values_refuses_to_keep_gaps():
    with pytest.raises(DataError, match=r"missing='keep' is only for methods that take them"):
        make_map(holey(), "pca", missing="keep")


@each("method", ["som", "gtm", "ppca"])
def test_kept_values_are_used_from_the_table_to_new_rows(method, tmp_path):
    frame, new = holey(80), holey(30)
    assert new.to_numpy()[np.isnan(new.to_numpy())].size > 0
    made = make_map(frame, method, missing="keep")
    assert "kept 21 missing values; the measures fill them with the column's mean" in made.log
    assert made.map.select("x", "y").null_count().sum_horizontal().item() == 0
    path = tmp_path / "model.lowland"
    made.model.save(path)
    placed = place_rows(path, new).map
    assert np.isfinite(placed.select("x", "y").to_numpy()).all()
    unlike = place_rows(path, new.with_columns(a=pl.col("a") * 5)).map
    assert not unlike.equals(placed)
    made.write(tmp_path / "out")
    assert not made.not_made


def test_a_comparison_keeps_gaps_only_if_all_methods_take_them():
    assert list(compare_methods(holey(), ["som", "gtm"], missing="keep").maps) == ["som", "gtm"]
    with pytest.raises(DataError, match="only for methods that take them"):
        compare_methods(holey(), ["som", "pca"], missing="keep")
    with pytest.raises(ParameterError, match="PCA needs all values"):
        make_map(holey(), "som", missing="keep", pca=2)
