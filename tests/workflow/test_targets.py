"""The column that a method learns from: when, as what, and what is said about it."""

from __future__ import annotations

import html

import numpy as np
import polars as pl
import pytest

import lowland
from lowland.cli import main
from lowland.errors import DataError, ParameterError
from lowland.workflow import compare_methods, make_map
from support.cases import each

STEPS = {"n_epochs": 60, "seed": 3}


@pytest.fixture(scope="module")
def frame():
    """Three overlapping groups, and columns of several kinds that a method may learn from."""
    rng = np.random.default_rng(0)
    kind = np.arange(90) % 3
    X = rng.normal(size=(90, 4)) + kind[:, None] * [0.5, 0, 0, 0]
    columns = {f"x{i}": X[:, i] for i in range(4)}
    labels = {
        "kind": np.array(["a", "b", "c"])[kind],
        "price": rng.uniform(1, 9, 90),
        "age": 20 + np.arange(90) % 40,
        "some": [None if i % 9 == 0 else "xyz"[i % 3] for i in range(90)],
        "gaps": [None if i % 9 == 0 else i / 4 for i in range(90)],
    }
    return pl.DataFrame({**columns, **labels})


def mapped(frame, target=None, labels=("price", "age", "gaps"), **parameters):
    return make_map(frame, "umap", target=target, labels=list(labels), **STEPS, **parameters)


def expected(frame, y=None, **parameters):
    X = frame.select("x0", "x1", "x2", "x3").to_numpy()
    model = lowland.UMAP(n_epochs=60, random_state=3, **parameters)
    return model.fit_transform(X, y)


def test_a_method_that_can_do_without_learns_only_from_a_column_that_is_named(frame):
    plain = mapped(frame)
    np.testing.assert_array_equal(plain.coordinates, expected(frame))
    assert plain.to_dict()["learned_from"] is None
    assert not [line for line in plain.log if "learned" in line]
    told = mapped(frame, "kind")
    np.testing.assert_array_equal(told.coordinates, expected(frame, frame["kind"].to_numpy()))
    assert told.to_dict()["learned_from"] == "kind"
    assert "learned from the column kind, as 3 classes" in told.log
    assert "target='kind'" in told.summary()["command"]
    given = make_map(
        frame.select("x0", "x1", "x2", "x3"), "umap", target=frame["kind"].to_numpy(), **STEPS
    )
    np.testing.assert_array_equal(given.coordinates, told.coordinates)
    assert "target=..." in given.summary()["command"]


def test_the_kind_of_the_values_decides_what_they_are_learned_as(frame):
    price = frame["price"].to_numpy()
    numbers = mapped(frame, "price")
    np.testing.assert_array_equal(
        numbers.coordinates, expected(frame, price, target_metric="euclidean")
    )
    assert numbers.estimator.target_metric == "euclidean"
    said = "learned from the column price, as numbers, because it has fractions"
    assert f"{said} (target_metric euclidean)" in numbers.log
    whole = mapped(frame, "age", measure=False)
    assert whole.estimator.target_metric == "categorical"
    said = "learned from the column age, as 40 classes"
    assert f"{said} (target_metric='euclidean' takes them as numbers)" in whole.log
    asked = mapped(frame, "age", measure=False, target_metric="euclidean")
    assert "learned from the column age, as numbers" in asked.log
    assert not np.array_equal(asked.coordinates, whole.coordinates)
    some = mapped(frame, "some", measure=False)
    line = "learned from the column some, as 3 classes; the class of 10 rows is unknown"
    assert line in some.log
    ignored = mapped(frame, "kind", measure=False, target_weight=0)
    assert ignored.to_dict()["learned_from"] is None
    assert "not learned from the column kind, because target_weight is 0" in ignored.log
    np.testing.assert_array_equal(ignored.coordinates, expected(frame))


@each(
    ("target", "parameters", "error", "message"),
    [
        (
            "price",
            {"target_metric": "categorical"},
            ParameterError,
            "target_metric='categorical': the column 'price' holds",
        ),
        (
            "kind",
            {"target_metric": "euclidean"},
            ParameterError,
            "target_metric='euclidean': the column 'kind' holds no numbers; take",
        ),
        ("gaps", {}, DataError, "target: the column 'gaps' has no number in 10 rows; leave"),
        ("knd", {}, DataError, "unknown column 'knd'; did you mean 'kind'?"),
    ],
    ids=str,
)
def test_a_column_that_cannot_be_learned_is_refused(target, parameters, error, message, frame):
    with pytest.raises(error) as caught:
        mapped(frame, target, **parameters)
    assert message in str(caught.value)


def test_the_report_says_that_separation_is_no_evidence(frame, tmp_path):
    for target in (None, "kind"):
        mapped(frame, target).report(tmp_path / "report.html")
        page = html.unescape((tmp_path / "report.html").read_text())
        told = target is not None
        assert ("The method was given the column kind and draws rows" in page) == told
        assert ("as evidence that groups exist: the method was given the column" in page) == told
        assert ("learned from the column kind" in page) == told


def test_a_method_that_needs_classes_says_which_it_took(frame):
    found = make_map(frame, "lda", labels=["price", "age", "gaps"], measure=False)
    assert "learned from the column kind" in found.log


def test_only_methods_that_learn_get_the_target_of_a_comparison(frame, tmp_path, capsys):
    methods = [("umap", {"n_epochs": 60}), "lda", "pca"]
    keywords = {"labels": ["price", "age", "gaps", "some"], "seed": 3}
    for target, learned in ((None, [None, "kind", None]), ("kind", ["kind", "kind", None])):
        found = compare_methods(frame, methods, target=target, **keywords)
        assert [row["learned_from"] for row in found.to_dict()["methods"]] == learned
        y = None if target is None else frame["kind"].to_numpy()
        made = found.maps["umap:n_epochs=60"].select("x", "y").to_numpy()
        np.testing.assert_array_equal(made, expected(frame, y))
    frame.drop("some", "gaps", "price").write_csv(tmp_path / "t.csv")
    arguments = ["-m", "umap:n_epochs=20,lda,pca", "--target", "kind", "-o", str(tmp_path / "out")]
    assert main(["compare", str(tmp_path / "t.csv"), *arguments]) == 0
    assert "  learned from the column kind: umap:n_epochs=20, lda\n" in capsys.readouterr().out


def test_refits_learn_from_the_same_column(frame, monkeypatch):
    seen = []
    fit_transform = lowland.UMAP.fit_transform

    def watched(self, X, y=None):
        seen.append((self.target_metric, None if y is None else len(y), len(X)))
        return fit_transform(self, X, y)

    monkeypatch.setattr(lowland.UMAP, "fit_transform", watched)
    found = mapped(frame, "price", check=True)
    assert found.trust.stability is not None
    assert len(seen) > 2
    assert all(metric == "euclidean" and rows == n for metric, rows, n in seen)


def test_rows_read_in_chunks_are_learned_from_the_column_too(frame, tmp_path, capsys):
    frame.drop("some", "gaps").write_csv(tmp_path / "t.csv")
    logs = {}
    for target in ("kind", "price"):
        made = make_map(
            tmp_path / "t.csv", "umap", target=target, labels=["age"], engine="stream", **STEPS
        )
        logs[target] = made.log
        assert made.to_dict()["learned_from"] == target
    assert "learned from the column kind, as 3 classes" in logs["kind"]
    assert any(
        line.startswith("learned from the column price, as numbers") for line in logs["price"]
    )


def test_few_rows_have_all_others_as_neighbors(frame):
    few = frame.head(12).select("x0", "x1", "x2", "x3")
    line = (
        "all other rows are neighbors of each row, because there are only 12 rows "
        "(n_neighbors is {})"
    )
    assert line.format(15) in make_map(few, "umap", **STEPS).log
    assert line.format(20) in make_map(few, "umap", n_neighbors=20, **STEPS).log
    enough = make_map(few, "umap", n_neighbors=12, **STEPS)
    assert not [text for text in enough.log if "neighbors of each" in text]


def test_the_command_line_names_its_options(frame, tmp_path, capsys):
    frame.drop("some", "gaps").write_csv(tmp_path / "t.csv")
    common = ["map", str(tmp_path / "t.csv"), "-m", "umap", "--n-epochs", "20", "--no-report"]
    assert main([*common, "--target", "age", "-o", str(tmp_path / "one")]) == 0
    said = "learned from the column age, as 40 classes (--target-metric euclidean takes them"
    assert said in capsys.readouterr().out
    wrong = [*common, "--target", "price", "--target-metric", "categorical"]
    assert main([*wrong, "-o", str(tmp_path / "two")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("lowland: error: --target-metric categorical: the column 'price' holds")
    assert "take --target-metric euclidean, or name a column of classes with --target." in error
