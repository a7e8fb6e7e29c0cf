"""Tables of categories: surveys without numbers, text beside numbers, yes and no."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import lowland
from lowland.cli import main
from lowland.errors import DataError, ParameterError
from lowland.neighbors import knn_graph
from lowland.preparation.preparation import Preparation
from lowland.workflow import describe_table, make_map, place_rows
from support.cases import each


def survey(n: int = 120, seed: int = 0) -> pl.DataFrame:
    """Answers of three groups of people; no column of numbers."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    answers = {
        "color": ["red", "green", "blue", "black"],
        "pet": ["cat", "dog", "none"],
        "smoker": ["no", "yes"],
        "town": ["A", "B", "C", "D", "E"],
    }
    columns: dict[str, list[str]] = {"person": [f"p{i}" for i in range(n)]}
    for name, values in answers.items():
        shares = rng.dirichlet(np.full(len(values), 0.5), size=3)
        columns[name] = [values[rng.choice(len(values), p=shares[g])] for g in group]
    columns["type"] = ["uvw"[g] for g in group]
    return pl.DataFrame(columns)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    everyone = survey()
    everyone.head(90).write_csv("survey.csv")
    everyone.tail(30).write_csv("new.csv")
    return everyone


def coordinates(path: str) -> np.ndarray:
    return pl.read_csv(path).select("x", "y").to_numpy()


def naive(fitted: pl.DataFrame, rows: pl.DataFrame) -> np.ndarray:
    """The columns of a survey: sqrt(2) for yes, then 0 and 1 for each value, sorted."""
    parts = [np.sqrt(2) * (rows["smoker"] == "yes").to_numpy()]
    for name in ("color", "pet", "town"):
        for value in sorted(set(fitted[name])):
            parts.append((rows[name] == value).to_numpy().astype(float))
    return np.column_stack(parts)


def test_a_survey_without_numbers_is_mapped_and_new_rows_are_placed_alike(files, capsys):
    assert main(["map", "survey.csv", "-m", "pca", "-o", "out"]) == 0
    said = capsys.readouterr().out
    assert "text takes part, because there is no column of numbers (--categories label" in said
    assert "type stays a label (--categories one-hot maps it, too)" in said
    assert "turned color, pet, smoker, town into 13 columns of 0 and 1" in said
    X = naive(files.head(90), files.head(90))
    model = lowland.PCA(2).fit(X)
    np.testing.assert_allclose(coordinates("out/map.csv"), model.transform(X), atol=1e-9)
    assert main(["transform", "out/model.lowland", "new.csv", "-o", "placed.csv"]) == 0
    expected = model.transform(naive(files.head(90), files.tail(30)))
    np.testing.assert_allclose(coordinates("placed.csv"), expected, atol=1e-9)


def test_a_class_stays_a_label_and_colors_the_map(files):
    made = make_map("survey.csv", "pca")
    assert made.color == "type"
    assert "type" in made.map.columns
    learned = make_map("survey.csv", "lda")
    assert list(learned.model.feature_names_in_) == ["color", "pet", "smoker", "town"]
    colored = make_map("survey.csv", "pca", color="pet")
    assert "pet" not in colored.model.feature_names_in_
    # without such a name, a method that learns still keeps what it learns from apart
    files.drop("type").write_csv("other.csv")
    learned = make_map("other.csv", "lda")
    assert list(learned.model.feature_names_in_) == ["pet", "smoker", "town"]


def test_every_choice_of_categories_makes_another_table(files):
    mixed = files.with_columns(
        age=pl.Series(np.arange(120) % 17 + 0.5), weight=pl.Series(np.arange(120) ** 0.5)
    ).with_columns(pl.when(pl.col("age") > 9).then(True).otherwise(False).alias("old"))
    mixed.write_csv("mixed.csv")

    def features(**options):
        made = make_map("mixed.csv", "pca", measure=False, **options)
        names = getattr(made.model, "feature_names_in_", [])
        return {*names}, made

    numbers = {"age", "weight", "old"}
    for how in ("auto", "label"):
        names, made = features(categories=how)
        assert names == numbers
        assert {"color", "pet"} <= {*made.map.columns}
    assert any("categories='one-hot' maps it" in line for line in features()[1].log)
    names, _ = features(categories="one-hot")
    assert names == numbers | {"color", "pet", "smoker", "town", "type"}
    names, made = features(categories="drop")
    assert names == numbers
    assert made.map.columns == ["row", "x", "y"]
    names, made = features(categories="drop", color="pet")
    assert made.map.columns == ["row", "x", "y", "pet"]
    names, _ = features(one_hot=["pet"])
    assert names == numbers | {"pet"}
    with pytest.raises(ParameterError, match="categories: 'no' is not allowed; expected auto, one"):
        features(categories="no")


def test_one_number_does_not_make_a_table_of_numbers(files):
    files.with_columns(age=pl.Series(np.arange(120.0))).write_csv("one.csv")
    made = make_map("one.csv", "pca", measure=False)
    assert {*made.model.feature_names_in_} == {"age", "color", "pet", "smoker", "town"}
    assert any("there is 1 column of numbers" in line for line in made.log)
    scaled = made.model.steps[0]
    assert scaled.spread_[0] == pytest.approx(np.arange(120.0).std())


def test_a_table_of_nothing_but_names_is_refused_with_what_to_do(files):
    files.select("person").write_csv("names.csv")
    with pytest.raises(DataError, match=r"no column of numbers; found 'person' \(String\); text"):
        make_map("names.csv", "pca")
    with pytest.raises(DataError, match="categories='one-hot' maps text of few values"):
        make_map("survey.csv", "pca", categories="label")
    # text can be named for all that
    made = make_map("names.csv", "pca", one_hot="person", measure=False)
    assert made.model.steps[0].levels_.shape == (120,)


def test_text_may_be_named_among_the_columns(files):
    made = make_map("survey.csv", "pca", columns=["color", "smoker"], measure=False)
    assert list(made.model.feature_names_in_) == ["color", "smoker"]
    assert place_rows(made.model, "new.csv").coordinates.shape == (30, 2)
    with pytest.raises(DataError, match="1 needed column is missing: 'smoker'"):
        place_rows(made.model, files.drop("smoker"))


def test_numbers_may_be_categories_in_any_form(files):
    """Codes 1, 2, 3 are the same levels as 1.0, 2.0, 3.0 and as text."""
    codes = np.arange(120) % 3 + 1
    files.with_columns(code=pl.Series(codes), a=pl.Series(codes**2 * 1.0)).write_csv("codes.csv")
    made = make_map("codes.csv", "pca", one_hot=["code", "pet"], measure=False)
    first = made.model.steps[0]
    assert list(first.levels_[first.level_columns_ == "code"]) == ["1", "2", "3"]
    for other in (codes.astype(float), codes.astype(str)):
        rows = files.with_columns(code=pl.Series(other), a=pl.Series(codes**2 * 1.0))
        placed = place_rows(made.model, rows)
        np.testing.assert_allclose(placed.coordinates, made.coordinates, atol=1e-12)


def test_unknown_and_missing_values_of_new_rows(files):
    made = make_map("survey.csv", "pca", measure=False)
    new = files.tail(3).with_columns(
        pet=pl.Series(["cat", "snake", None]), smoker=pl.Series(["yes", "maybe", "no"])
    )
    pets = pytest.warns(
        UserWarning, match="'pet' has values that were not in the fitted table.*'snake'"
    )
    with pets, pytest.warns(UserWarning, match="'smoker' has values that are neither 'no' nor"):
        ready = made.model.steps[0].transform(new.select(made.model.feature_names_in_))
    names = made.model.steps[0].column_names_out()
    assert not ready[1:, [names.index(f"pet={pet}") for pet in ("cat", "dog", "none")]].any()
    smoker = ready[:, names.index("smoker=yes")]
    np.testing.assert_allclose(smoker, [np.sqrt(2), np.sqrt(0.5), 0])


@each(
    ("no", "yes"),
    [("no", "yes"), ("false", "true"), ("N", "Y"), ("F", "T"), ("No", "YES"), (False, True)],
)
def test_no_and_yes_is_one_column(no, yes):
    frame = pl.DataFrame({"a": [1.0, 5.0, 2.0], "b": [no, yes, yes]})
    ready = Preparation(scale="none").fit(frame)
    np.testing.assert_array_equal(ready.transform(frame)[:, 1], [0, 1, 1])
    assert ready.transform(frame).shape[1] == 2


def test_answers_with_gaps_have_a_level_of_their_own():
    frame = pl.DataFrame({"b": ["no", None, "yes"]})
    ready = Preparation().fit(frame)
    assert ready.column_names_out() == ["b=missing", "b=no", "b=yes"]


def test_two_levels_are_as_far_apart_as_two_numbers_are_on_average():
    """Squared distance 2, whether levels are rare or not; also for yes and no, and for cycles."""
    rng = np.random.default_rng(0)
    n = 4000
    frame = pl.DataFrame(
        {
            "number": rng.gamma(2.0, 50.0, n),
            "rare": ["x" if i < 20 else "abcd"[i % 4] for i in range(n)],
            "answer": ["yes" if i < 20 else "no" for i in range(n)],
            "bit": [float(i < 20) for i in range(n)],
            "hour": rng.uniform(0, 24, n),
        }
    )
    for scale in ("auto", "standard", "robust"):
        ready = Preparation(scale=scale, cyclic={"hour": 24}).fit(frame)
        X, names = ready.transform(frame), ready.column_names_out()
        levels = [names.index(f"rare={level}") for level in "abcdx"]
        between = ((X[0, levels] - X[20:24, levels]) ** 2).sum(axis=1)
        np.testing.assert_allclose(between, 2.0)
        assert np.ptp(X[:, names.index("answer=yes")]) == pytest.approx(np.sqrt(2))
        circle = X[:, [names.index("sin(hour)"), names.index("cos(hour)")]]
        assert 2 * circle.var(axis=0).sum() == pytest.approx(2.0, abs=0.05)
        if scale == "auto":
            assert X[:, 0].std() == pytest.approx(1.0)
            assert np.ptp(X[:, names.index("bit")]) == pytest.approx(np.sqrt(2))
    # as asked: standardized like any number
    assert np.ptp(Preparation(scale="standard").fit_transform(frame)[:, names.index("bit")]) > 10


def test_a_rare_level_makes_no_island():
    """Its rows have neighbors that are like them in all other columns, not only each other."""
    rng = np.random.default_rng(1)
    n, rare = 1000, 5
    group = rng.integers(3, size=n)
    shares = rng.dirichlet(np.ones(4), size=(3, 5))
    columns = {f"q{j}": ["abcd"[rng.choice(4, p=shares[g, j])] for g in group] for j in range(5)}
    columns["q0"][:rare] = ["z"] * rare
    frame = pl.DataFrame({**columns, "a": rng.normal(group * 2.0), "b": rng.normal(-group * 2.0)})
    X = Preparation().fit_transform(frame)

    def own(rows):
        return (knn_graph(rows, 4).indices[:rare] < rare).mean()

    assert own(X) < 0.3
    assert own((X - X.mean(axis=0)) / X.std(axis=0)) > 0.9  # what standardized columns would do


def test_info_tells_what_a_map_would_do(files, capsys):
    found = describe_table("survey.csv")
    assert found["taking_part"] == ["color", "pet", "smoker", "town"]
    assert found["labels"] == ["person", "type"]
    assert describe_table("survey.csv", categories="one-hot")["labels"] == ["person"]
    assert main(["info", "survey.csv"]) == 0
    said = capsys.readouterr().out
    assert "taking part: color, pet, smoker, town" in said
    assert "e+" not in said  # tied distances tell no dimension
