"""``lowland.workflow.make_map``: every kind of input, the result's parts, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import lowland
from lowland.cli import main
from lowland.datasets import iris
from lowland.errors import DataError, ParameterError
from lowland.workflow import MapResult, make_map


@pytest.fixture(scope="module")
def result() -> MapResult:
    return make_map("iris", "pca")


def iris_frame() -> pl.DataFrame:
    data = iris()
    frame = pl.from_numpy(data.X, schema=list(data.feature_names), orient="row")
    return frame.with_columns(pl.Series("class", data.labels))


def test_the_result_has_all_its_parts(result):
    assert result.map.columns == ["row", "x", "y", "class"]
    np.testing.assert_array_equal(result.map.select("x", "y").to_numpy(), result.coordinates)
    assert result.color == "class"
    assert type(result.estimator) is lowland.PCA
    assert result.model is result.estimator
    assert 0.9 < result.quality["trustworthiness"].value < 1
    assert result.quality["knn_accuracy"].value > 0.9
    assert result.log[0].startswith("150 rows, 4 columns of numbers (")
    assert result.log[-1].startswith("not scaled (")
    assert not result.stopped_early
    assert result.dropped_rows == []
    assert "MapResult(PCA of 150 rows, 2 dimensions, trustworthiness 0.98" in repr(result)


@pytest.mark.parametrize("method", ["tsne", "pca"])
def test_the_map_is_that_of_the_command_line_byte_for_byte(method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["map", "wine", "-m", method, "-o", "cli", "--quiet", "--seed", "3"]) == 0
    files = make_map("wine", method, seed=3).write("python")
    for kind in ("map", "picture"):
        path = getattr(files, kind)
        assert path.read_bytes() == (tmp_path / "cli" / path.name).read_bytes(), kind
    assert files.report.exists()
    data = lowland.datasets.wine()
    rows = pl.from_numpy(data.X[:5], schema=list(data.feature_names), orient="row")
    one, two = (lowland.load(f"{folder}/model.lowland") for folder in ("cli", "python"))
    np.testing.assert_array_equal(one.transform(rows), two.transform(rows))


def test_every_kind_of_input_gives_the_same_map(result, tmp_path):
    data, frame = iris(), iris_frame()
    frame.write_csv(tmp_path / "iris.csv")
    with_index = pd.DataFrame(data.X, index=[f"flower {i}" for i in range(150)])
    given = {
        "dataset": data,
        "path": tmp_path / "iris.csv",
        "polars": frame,
        "lazy": frame.lazy().collect(),
        "pandas": pd.DataFrame(frame.to_dict(as_series=False)),
        "index": with_index,
        "array": data.X,
        "list": data.X.tolist(),
        "sparse": scipy.sparse.csc_array(data.X),
    }
    for kind, table in given.items():
        made = make_map(table, "pca", measure=False)
        np.testing.assert_allclose(
            np.abs(made.coordinates), np.abs(result.coordinates), atol=1e-8, err_msg=kind
        )
    assert make_map(with_index, "pca").map["row"][:2].to_list() == ["flower 0", "flower 1"]


def test_columns_of_pandas_keep_their_meaning():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.standard_normal(12),
            "b": np.arange(12) % 5,
            "c": pd.array([1, 2, None] * 4, dtype="Int64"),
            "kind": pd.Categorical(["u", "v", None] * 4),
            "day": pd.date_range("2024-01-01", periods=12),
            "mixed": ["x", 1, None] * 4,
        }
    )
    before = frame.copy()
    made = make_map(frame, "pca", missing="mean", measure=False)
    assert list(made.model.feature_names_in_) == ["a", "b", "c"]
    assert made.map.columns == ["row", "x", "y", "kind", "day", "mixed"]
    assert made.map["kind"].to_list() == ["u", "v", None] * 4
    assert made.map["mixed"].to_list() == ["x", "1", None] * 4
    assert "filled 4 missing values with the column's mean" in made.log
    pd.testing.assert_frame_equal(frame, before)


def test_the_data_are_not_changed():
    X = np.random.default_rng(0).standard_normal((40, 60)) * np.logspace(0, 3, 60)
    before = X.copy()
    make_map(X, "tsne", scale="standard", max_iter=20, perplexity=5)
    np.testing.assert_array_equal(X, before)


def test_labels_are_names_of_columns_or_values():
    X = iris().X
    kinds = np.repeat(["a", "b", "c"], 50)
    assert make_map(X, "pca", labels=kinds, measure=False).color == "label"
    assert make_map(X, "pca", labels=list(kinds), measure=False).color == "label"
    many = make_map(X, "pca", labels={"kind": kinds, "size": X[:, 0]}, measure=False)
    assert many.map.columns == ["row", "x", "y", "kind", "size"]
    frame = iris_frame().with_columns(batch=pl.lit(1))
    assert make_map(frame, "pca", labels="batch", measure=False).map.columns[-1] == "batch"
    beside = make_map(frame.drop("batch"), "pca", labels=kinds, measure=False)
    assert beside.map.columns == ["row", "x", "y", "class", "label"]
    assert beside.map["label"].to_list() == kinds.tolist()
    colored = make_map("iris", "pca", color=pl.Series("weight", X[:, 1]), measure=False)
    assert colored.color == "weight"
    assert colored.map["weight"].to_list() == X[:, 1].tolist()


def test_a_label_of_one_value_neither_colors_the_map_nor_is_learned_from():
    kinds = np.repeat(["a", "b", "c"], 50)
    frame = pl.DataFrame(iris().X).with_columns(site=pl.lit("Basel"), kind=pl.Series(kinds))
    assert make_map(frame, "pca", measure=False).color == "kind"
    assert make_map(frame, "lda", measure=False).color == "kind"
    assert make_map(frame.drop("kind"), "pca", measure=False).color == "site"  # there is no other


def test_a_supervised_method_takes_its_target_as_values():
    data = iris()
    made = make_map(data.X, lowland.LDA, target=data.y)
    expected = lowland.LDA(2).fit_transform(data.X, data.y)
    np.testing.assert_allclose(made.coordinates, expected, atol=1e-9)
    assert made.color == "target"
    with pytest.raises(DataError, match="name the column of classes with target"):
        make_map(data.X, "lda")


def test_distances_may_be_given_as_a_matrix():
    X = np.random.default_rng(0).standard_normal((40, 3))
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    made = make_map(D, "classical_mds", distances=True, n_components=3, labels=np.arange(40) % 2)
    between = np.sqrt(((made.coordinates[:, None] - made.coordinates) ** 2).sum(axis=2))
    np.testing.assert_allclose(between, D, atol=1e-6)
    assert made.color == "label"
    condensed = D[np.triu_indices(40, 1)]
    again = make_map(condensed, "classical_mds", distances=True, n_components=3, measure=False)
    np.testing.assert_allclose(again.coordinates, made.coordinates, atol=1e-6)


def test_wide_tables_are_reduced_by_pca_which_is_also_the_baseline():
    X = np.random.default_rng(0).standard_normal((90, 70)) * np.linspace(3, 1, 70)
    made = make_map(X, "tsne", max_iter=20, perplexity=5)
    assert "reduced from 70 to 50 columns by PCA" in made.log[-2]
    assert made.log[-2].endswith("(leave this out with pca='none')")
    assert made.log[-1] == "points are judged by their neighbors in the 50 columns of PCA"
    expected = lowland.metrics.quality(X, lowland.PCA(2).fit_transform(X))
    found = made.quality["trustworthiness"].pca
    assert found == pytest.approx(expected["trustworthiness"].value, abs=1e-12)
    assert made.model.transform(X[:3]).shape == (3, 2)
    assert make_map(X, "tsne", pca=5, max_iter=20).model.steps[0].n_components == 5
    for method, options in (("pca", {}), ("tsne", {"pca": "none", "max_iter": 5})):
        log = make_map(X, method, measure=False, **options).log
        assert not any("reduced" in line for line in log)


def test_wide_tables_of_another_metric_keep_their_columns():
    X = np.random.default_rng(0).standard_normal((90, 70))
    made = make_map(X, "tsne", max_iter=5, perplexity=5, metric="manhattan", measure=False)
    assert not any("by PCA" in line for line in made.log)
    assert made.estimator.n_features_in_ == 70


def test_the_seed_is_that_of_the_method():
    X = iris().X
    given = {"max_iter": 5, "init": "random", "measure": False, "scale": "none"}
    one, other = (make_map(X, "tsne", seed=seed, **given).coordinates for seed in (3, 4))
    assert not np.allclose(one, other)
    direct = lowland.TSNE(random_state=3, max_iter=5, init="random").fit_transform(X)
    np.testing.assert_array_equal(one, direct)


def test_parameters_of_the_method_are_keywords():
    made = make_map("iris", "tsne", perplexity=7, max_iter=10, algorithm="exact", measure=False)
    assert made.estimator.perplexity == 7
    assert made.estimator.method == "exact"
    assert made.quality is None
    assert "quality" in made.to_dict()


def test_the_files_are_all_written_or_none_if_the_map_cannot_be(result, tmp_path, monkeypatch):
    files = result.write(tmp_path / "out", file_format="parquet")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "map.parquet", "map.png", "model.lowland", "report.html", "trust.parquet",
    ]  # fmt: skip
    assert pl.read_parquet(files.map).equals(result.map)
    with pytest.raises(DataError, match="exists already"):
        result.write(tmp_path / "out", file_format="parquet")
    result.write(tmp_path / "out", file_format="parquet", force=True)
    monkeypatch.setattr("lowland.workflow.outputs.write_frame", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        result.write(tmp_path / "other")
    assert not (tmp_path / "other").exists()
    with pytest.raises(DataError, match=r"files ending in \.csv or \.parquet"):
        result.write(tmp_path / "third", file_format="xlsx")


def test_report_and_model_can_be_written_alone(result, tmp_path):
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "lowland.workflow.make_map(&#39;iris&#39;, &#39;pca&#39;)" in page
    result.save(tmp_path / "model.lowland")
    again = lowland.load(tmp_path / "model.lowland").transform(iris_frame().drop("class"))
    np.testing.assert_allclose(again, result.coordinates, atol=1e-12)


def test_the_stages_are_timed_as_far_as_they_are_done(tmp_path):
    made = make_map("iris", "pca")
    assert list(made.seconds) == ["reading", "preparing", "fitting", "measuring", "judging"]
    made.write(tmp_path / "out")
    assert list(made.seconds) == [
        "reading", "preparing", "fitting", "measuring", "judging", "drawing", "writing",
    ]  # fmt: skip
    assert all(seconds > 0 for seconds in made.seconds.values())


@pytest.mark.parametrize(
    ("data", "keywords", "message"),
    [
        ("iris", {"method": "pcaa"}, "unknown method 'pcaa'; did you mean 'pca'?"),
        ("iris", {"method": 3}, "method: 3 is not allowed"),
        ("iris", {"perplexitty": 3}, "unknown parameter 'perplexitty'; did you mean 'perplexity'"),
        ("iris", {"random_state": 3}, "random_state: a run calls this parameter seed"),
        ("iris", {"color": "clas"}, "unknown column 'clas'; did you mean 'class'?"),
        ("iris", {"scale": "much"}, "scale: 'much' is not allowed; expected auto, none"),
        ("iris", {"missing": "zero"}, "missing: 'zero' is not allowed; expected refuse, drop"),
        ("iris", {"pca": 0}, "pca: 0 is not allowed; expected an integer >= 1 or auto, none"),
        ("iris", {"labels": np.arange(3)}, "label 'label' has 3 values for 150 rows"),
        ("nowhere.csv", {}, "nowhere.csv: no such file"),
        ([[1.0, 2.0], [3.0]], {}, "data cannot be read as an array"),
        (np.array([[1.0, np.nan], [2.0, 3.0]]), {}, "choose missing='mean', missing='median'"),
    ],
)
def test_what_cannot_be_done_is_refused_in_the_words_of_python(data, keywords, message):
    with pytest.raises((DataError, ParameterError)) as error:
        make_map(data, **keywords)
    assert message in str(error.value)
    assert "--" not in str(error.value)


def test_study_and_report_are_loaded_when_they_are_used():
    assert lowland.workflow.make_map is make_map
    assert callable(lowland.report.make_report)


def test_a_result_can_be_pickled(result):
    again = pickle.loads(pickle.dumps(result))
    assert again.map.equals(result.map)


def test_masked_values_and_ragged_lists_are_refused_as_data_and_as_labels():
    X = np.random.default_rng(0).random((30, 3))
    masked = np.ma.masked_greater(X, 0.5)
    for bad, message in ((masked, "data is a masked array"), ([[1.0], [1.0, 2.0]], "lengths")):
        with pytest.raises(DataError, match=message):
            make_map(bad, "pca")
    for bad in (masked[:, 0], [[1], [1, 2]] * 15):
        with pytest.raises(DataError, match="label 'label'"):
            make_map(X, "pca", labels=bad)


def test_labels_of_one_name_are_refused():
    twice = pd.DataFrame(np.arange(60).reshape(30, 2), columns=["a", "a"])
    with pytest.raises(DataError, match="several label columns are called 'a'"):
        make_map(np.arange(90.0).reshape(30, 3) ** 2, "pca", labels=twice)
