"""Every map of a run is judged; a check makes it again; nothing of this loses the map."""

from __future__ import annotations

import json
import os
import signal
import warnings

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from lowland._base import registry
from lowland.cli import main
from lowland.datasets import iris
from lowland.errors import MemoryLimitError
from lowland.metrics.home import KINDS
from lowland.report import make_report
from lowland.report.summary import check_summary
from lowland.trust import trust
from lowland.workflow import compare_methods, make_map, score_map
from support.methods import sampled

PARTS = {"stability", "chance"}


@pytest.fixture(scope="module")
def groups():
    """Three groups of rows without negative numbers, their classes and their distances."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((54, 4)) + np.repeat(4 * np.eye(3, 4), 18, axis=0))
    return X, np.repeat(["a", "b", "c"], 18), np.linalg.norm(X[:, None] - X[None], axis=2)


@pytest.mark.parametrize("cls", sampled(registry.all_methods()))
def test_every_method_can_be_checked(groups, cls):
    X, y, D = groups
    holes = X.copy()
    holes[3, 1] = holes[40, 2] = np.nan
    tables = [(X, {"target": y})]
    tables += [(D, {"distances": True})] if cls.accepts_distances else []
    tables += [(holes, {"target": y, "missing": "keep"})] if cls.allows_nan else []
    few = {"max_iter": 5} if "max_iter" in cls.parameters() else {}
    for data, how in tables:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 5 steps are too few for most
            result = make_map(data, cls, check=True, n_jobs=1, **how, **few)
        assert result.not_made == {}
        if cls.wraps:
            assert result.trust is None
            assert result.to_dict()["not_judged"] == "the map is a torus, whose edges meet"
            continue
        found = result.trust
        assert found.reasons == {}
        assert len(found.stability.refits) == 3
        assert all(len(other.rows) == 40 for other in found.stability.refits)
        assert 0 < found.chance.recall <= 1
        questions = [sentence.question for sentence in found.sentences]
        assert set(questions) > PARTS
        assert len(questions) == len(set(questions)) <= 6
        assert result.seconds["checking"] > 0
        json.dumps(result.to_dict())


def test_a_refit_is_the_method_with_its_parameters_and_classes(groups, monkeypatch):
    X, y, _ = groups
    made = []
    LDA, TSNE = registry.get("lda"), registry.get("tsne")
    for cls in (LDA, TSNE):
        fit_transform = cls.fit_transform

        def telling(self, X, y=None, fit_transform=fit_transform):
            made.append((self, X, y))
            return fit_transform(self, X, y)

        monkeypatch.setattr(cls, "fit_transform", telling)
    result = make_map(X, "lda", target=y, shrinkage=0.5, check=True, seed=7)
    _, *refits = made
    assert len(refits) == 4
    assert [method.random_state for method, _, _ in refits] == [8, 9, 10, 11]
    assert {method.shrinkage for method, _, _ in refits} == {0.5}
    for (_, rows, classes), other in zip(refits, result.trust.stability.refits, strict=False):
        np.testing.assert_array_equal(rows, X[other.rows])
        np.testing.assert_array_equal(classes, y[other.rows])
    made.clear()
    # a perplexity that parts of the rows do not allow is lowered; a start for all rows is left out
    given = {"perplexity": 17, "init": X[:, :2], "max_iter": 10}
    assert make_map(X, "tsne", check=True, **given).trust.reasons == {}
    assert [method.perplexity for method, _, _ in made] == [17, 13, 13, 13, 13]
    assert all(isinstance(method.init, str) for method, _, _ in made[1:])


def test_parameters_that_belong_to_all_rows_make_a_check_impossible(groups):
    X, _, _ = groups
    result = make_map(X, "mds", weights=np.ones((54, 54)), check=True)
    reason = "weights was given for all rows, and parts of them cannot be mapped with it"
    assert result.trust.reasons == dict.fromkeys(PARTS, reason)
    assert result.not_made == {}
    result = make_map(X, "tcie", boundary=[0, 5, 9], check=True)
    assert "boundary was given for all rows" in result.trust.reasons["stability"]


def test_neighbors_are_those_of_the_columns_that_the_method_saw(monkeypatch):
    X = np.random.default_rng(0).standard_normal((200, 70)) * np.linspace(3, 0.1, 70)
    searched = []
    from lowland.metrics import _views

    neighbor_graph = _views.neighbor_graph

    def telling(X, *args, **options):
        searched.append(X.shape[1])
        return neighbor_graph(X, *args, **options)

    monkeypatch.setattr("lowland.metrics._views.neighbor_graph", telling)
    result = make_map(X, "tsne", perplexity=20, max_iter=20)
    assert set(searched) <= {2, 70}  # 70: the measures, which compare with all columns
    assert "points are judged by their neighbors in the 50 columns of PCA" in result.log
    scores = result.model.steps[0].transform(X)
    expected = trust(scores, result.coordinates)
    np.testing.assert_array_equal(result.trust.points.kind, expected.points.kind)
    np.testing.assert_array_equal(result.trust.neighbors, expected.neighbors)
    assert result.trust.sentences == expected.sentences


def test_the_metric_of_the_method_says_what_is_near(groups):
    X, _, D = groups
    by_cosine = make_map(X, "tsne", metric="cosine", check=True, max_iter=20)
    assert "points are judged by their neighbors in the cosine distance" in by_cosine.log
    directions = X / np.linalg.norm(X, axis=1)[:, None]
    nearest = np.argsort(-(directions @ directions.T), axis=1)[:, 1]
    np.testing.assert_array_equal(by_cosine.trust.neighbors[:, 0], nearest)
    assert set(by_cosine.trust.reasons) == {"chance"}
    by_distances = make_map(D, "classical_mds", distances=True).trust
    by_columns = make_map(X, "pca", scale="none").trust
    np.testing.assert_array_equal(by_distances.neighbors, by_columns.neighbors)


def test_few_rows_and_odd_tables_are_not_judged_and_said_to_be():
    X = np.random.default_rng(0).standard_normal((30, 3))
    for rows, reason in ((3, "3 rows are too few"), (9, "9 rows are too few")):
        result = make_map(X[:rows], "pca", check=True)
        assert result.trust is None
        assert result.to_dict()["not_judged"].startswith(reason)
        assert any(f"not judged: {reason}" in line for line in result.log)
        assert result.not_made == {}
    few = make_map(X[:12], "pca", check=True).trust
    reason = "12 rows are too few to make maps of parts of them"
    assert few.reasons == dict.fromkeys(PARTS, reason)
    for data in (X[:, :1], np.ones((30, 2)), np.repeat(X[:3], 10, axis=0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # equal rows cannot be measured
            judged = make_map(data, "pca", n_components=1).trust
        assert (judged.points.kind >= 0).all()
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    D[0, 1] = D[1, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it cannot be measured either
        unknown = make_map(D, "mds", distances=True)
    assert unknown.to_dict()["not_judged"] == "some distances are not known"
    sparse = make_map(scipy.sparse.random(80, 90, 0.1, "csr", rng=np.random.default_rng(0)), "pca",
                      check=True)  # fmt: skip
    assert sparse.trust.stability is not None


def test_a_map_that_is_not_measured_is_not_judged():
    result = make_map("iris", "pca", measure=False)
    assert result.trust is None
    assert result.to_dict()["not_judged"] is None
    assert "judging" not in result.seconds
    with pytest.raises(ValueError, match="check: a map that is not measured"):
        make_map("iris", "pca", measure=False, check=True)


def test_many_points_of_a_fast_map_are_a_sample(monkeypatch):
    monkeypatch.setattr("lowland.workflow.trusting.affordable_rows", lambda *_: 60)
    result = make_map("iris", "pca")
    assert "60 of 150 points are judged, as time and memory allow" in result.log
    assert (result.trust.points.kind >= 0).sum() == 60


def test_the_table_of_points_and_the_summary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((40, 3)).round(3)
    frame = pl.DataFrame({"kind": [f"k{i}" for i in range(40)], "a": X[:, 0], "b": X[:, 1]})
    frame.write_csv("t.csv")
    result = make_map("t.csv", "pca", id_column="kind", check=True)
    files = result.write("out")
    points = pl.read_csv(files.trust)
    # a column of the table about the points has the name of the id
    assert points.columns == ["kind_id", "missing", "strangers", "kind", "home_x", "home_y",
                              "island"]  # fmt: skip
    assert points["kind_id"].to_list() == result.map["kind"].to_list()
    assert set(points["kind"]) <= set(KINDS)
    assert files.named()["trust"] == "out/trust.csv"
    summary = result.summary()
    check_summary(summary)
    assert summary["maps"][0]["trust"] is result.trust
    assert summary["neighbors"] is result.trust.neighbors
    assert result.trust.sentences[0].text in result._repr_html_()
    # an older table does not stay beside a map that has none
    make_map(X[:5], "pca").write("out", force=True)
    assert not (tmp_path / "out" / "trust.csv").exists()


def failing(*_, **__):
    raise MemoryLimitError("the lists need 37 GB.")


def interrupting(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)
    raise AssertionError("the signal did not arrive")


def test_what_fails_or_is_stopped_keeps_the_map(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    call = ["map", "iris", "-m", "pca", "--check", "-o", "out", "--force"]
    for part, fail, lost in [
        ("trust", failing, "the points of the map were not judged: the lists need 37 GB"),
        ("with_refits", failing, "the map was not made again, so that stability and chance are "
                                 "not known: the lists need 37 GB"),
        ("with_refits", interrupting, "the map was not made again, so that stability and chance "
                                      "are not known: it was stopped by Ctrl-C"),
    ]:  # fmt: skip
        with monkeypatch.context() as patched:
            patched.setattr(f"lowland.workflow.trusting.{part}", fail)
            assert main(call) == 1
        out, err = capsys.readouterr()
        assert err == f"lowland: warning: {lost}; the map is kept\n"
        assert lost in out  # in the log
        there = {path.name for path in (tmp_path / "out").iterdir()}
        assert {"map.csv", "map.png", "model.lowland", "report.html"} <= there
        assert ("trust.csv" in there) == (part == "with_refits")
        assert ("points lie among their neighbors" in out) == (part == "with_refits")


def test_a_refit_that_fails_keeps_what_is_known(groups, monkeypatch):
    X, _, _ = groups
    PCA = registry.get("pca")
    fit_transform = PCA.fit_transform

    def only_all(self, X, y=None):
        if X.shape[0] < 54:
            raise MemoryLimitError("too many rows.")
        return fit_transform(self, X, y)

    monkeypatch.setattr(PCA, "fit_transform", only_all)
    with pytest.warns(UserWarning, match="was not made again.*too many rows"):
        result = make_map(X, "pca", check=True)
    assert result.not_made == {"check": "too many rows."}
    assert result.trust.reasons == dict.fromkeys(PARTS, "too many rows.")


def test_a_judgment_that_fails_says_why(monkeypatch):
    monkeypatch.setattr("lowland.workflow.trusting.trust", failing)
    with pytest.warns(UserWarning, match="were not judged: the lists need 37 GB; the map is kept"):
        result = make_map("iris", "pca")
    assert result.trust is None
    assert result.quality is not None
    found = result.to_dict()
    assert found["not_judged"] == "the lists need 37 GB."
    assert found["not_made"] == {"points": "the lists need 37 GB."}
    assert sum("not judged" in line for line in result.log) == 1


def test_a_comparison_judges_all_maps_by_the_same_neighbors(tmp_path, monkeypatch):
    X = np.vstack([np.random.default_rng(i).standard_normal((60, 60)) + 3 * i for i in range(3)])
    searched = []
    from lowland.neighbors import knn_graph

    def telling(X, *args, **options):
        searched.append(X.shape[1])
        return knn_graph(X, *args, **options)

    monkeypatch.setattr("lowland.workflow.comparing.running.knn_graph", telling)
    methods = ["pca:n_components=3", ("tsne", {"perplexity": 5, "max_iter": 50}), "classical_mds",
               "relational_perspective_map"]  # fmt: skip
    found = compare_methods(X, methods)
    assert searched == [50]
    cubic, tsne, scaled, torus = found._attempts
    np.testing.assert_array_equal(cubic.trust.neighbors, tsne.trust.neighbors)
    assert torus.trust is None
    assert found.not_made == {}
    rows = found.rows()
    assert [row["gaps"] is None for row in rows] == [False, False, False, True]
    assert rows[1]["gaps_not_in_data"] <= rows[1]["gaps"]
    # the report shows maps that are turned: so are the homes, which are places of points
    entries = found._entries
    for entry in entries[:3]:
        known = entry["trust"]
        Y = np.asarray(entry["coordinates"])
        assert known.points.home.shape == Y.shape
        apart = np.abs(known.points.home[:, None] - Y[None]).max(axis=2).min(axis=1)
        assert apart.max() < 1e-6 * np.ptp(Y)
        middle = Y[known.island_of == 1].mean(axis=0)
        np.testing.assert_allclose(known.islands[0].center, middle, atol=1e-6 * np.ptp(Y))
    sizes = [np.linalg.norm(np.std(Y, axis=0)) for Y in (scaled.fit.Y, entries[2]["coordinates"])]
    np.testing.assert_allclose(
        entries[2]["trust"].points.spread, scaled.trust.points.spread * sizes[1] / sizes[0]
    )
    files = found.write(tmp_path / "out")
    assert pl.read_csv(files.table)["gaps"].to_list() == [row["gaps"] for row in rows]
    assert found.to_dict()["methods"][0]["trust"]["points"]["judged"] == 180


def test_ctrl_c_ends_the_judging_of_a_comparison(monkeypatch):
    monkeypatch.setattr("lowland.workflow.trusting.trust", interrupting)
    with pytest.warns(UserWarning, match="pca was not judged: it was stopped by Ctrl-C") as told:
        found = compare_methods("iris", ["pca", "lda"], target="class")
    assert len(told) == 1
    assert list(found.maps) == ["pca", "lda"]
    assert found.not_made == {"trust of pca": "it was stopped by Ctrl-C"}


def test_rows_that_are_read_in_chunks_are_judged_in_their_sample(tmp_path):
    X = np.random.default_rng(0).standard_normal((400, 60)) * np.linspace(3, 0.1, 60)
    names = [f"c{i}" for i in range(60)]
    pl.DataFrame(X, schema=names).write_parquet(tmp_path / "t.parquet")
    whole = make_map(tmp_path / "t.parquet", "tsne", sample=200, check=True, max_iter=60)
    assert whole.trust.points.kind.shape == (400,)
    assert whole.trust.stability is not None
    assert "points are judged by their neighbors in the 50 columns of PCA" in whole.log
    assert whole.write(tmp_path / "out").trust is None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lowland.workflow.streaming.roles.LOOKED_AT", 100)
        patched.setattr("lowland.workflow.streaming.roles.NUMBERS", 1)
        patched.setattr("lowland.workflow.streaming.roles.FEWEST", 100)
        some = make_map(tmp_path / "t.parquet", "pca", engine="stream")
    assert len(some.trust.points.kind) == 100 == len(some.summary()["neighbors"])
    assert "the 100 rows of the sample are judged among one another" in some.log


def test_reports_about_maps_of_other_tools_judge_them(tmp_path, monkeypatch):
    seen = []
    from lowland.report import foreign, page

    def telling(summary):
        seen.append(summary)
        return page.render(summary)

    monkeypatch.setattr(foreign, "render", telling)
    X = iris().X
    make_report(X, X[:, 2:])
    make_report(X[:6], X[:6, 2:])
    judged, too_few = (summary["maps"][0]["trust"] for summary in seen)
    assert judged.sentences == trust(X, X[:, 2:]).sentences
    assert seen[0]["neighbors"] is judged.neighbors
    assert too_few is None
    monkeypatch.setattr("lowland.report.write_report", lambda summary, path: (
        seen.append(summary), path.write_text("page")))  # fmt: skip
    score_map("iris", X[:, 2:]).report(tmp_path / "r.html")
    assert seen[-1]["maps"][0]["trust"].points.kind.shape == (150,)
    score_map(X[:6], X[:6, 2:]).report(tmp_path / "few.html")
    assert seen[-1]["maps"][0]["trust"] is None
