"""``compare``, ``score`` and ``info``, as a user types them."""

from __future__ import annotations

import json

import h5py
import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp

from lowland._core import registry
from lowland.datasets import iris
from lowland.metrics import trustworthiness


def test_compare_makes_one_table_one_picture_one_report_and_all_maps(run, tmp_path):
    outcome = run("compare", "iris", "-m", "pca,tsne,lda")
    assert outcome.code == 0
    assert outcome.err == ""
    folder = tmp_path / "lowland-out" / "iris-compare"
    assert sorted(path.name for path in folder.iterdir()) == [
        "comparison.csv", "map-lda.csv", "map-pca.csv", "map-tsne.csv", "maps.png", "report.html",
    ]  # fmt: skip
    table = pl.read_csv(folder / "comparison.csv")
    assert table["method"].to_list() == ["pca", "tsne", "lda"]
    X = iris().X
    for method, found in table.select("method", "trustworthiness").iter_rows():
        Y = pl.read_csv(folder / f"map-{method}.csv").select("x", "y").to_numpy()
        assert found == pytest.approx(trustworthiness(X, Y), abs=1e-3)
    page = (folder / "report.html").read_text()
    for name in ("PCA", "TSNE", "LDA"):
        assert name in page


def test_compare_goes_on_when_one_method_cannot(run, tmp_path):
    np.save(tmp_path / "t.npy", np.random.default_rng(0).standard_normal((30, 4)))
    outcome = run("compare", "t.npy", "-m", "lda,pca", "-o", "out")
    assert outcome.code == 1
    assert "lda: LDA learns from classes" in outcome.err
    assert not (tmp_path / "out" / "map-lda.csv").exists()
    assert (tmp_path / "out" / "map-pca.csv").exists()
    assert "not made: LDA learns from classes" in (tmp_path / "out" / "report.html").read_text()


def test_compare_of_nothing_that_works_is_refused(run, tmp_path):
    np.save(tmp_path / "t.npy", np.random.default_rng(0).standard_normal((30, 4)))
    outcome = run("compare", "t.npy", "-m", "lda", "-o", "out")
    assert outcome.code == 2
    assert "no method could do it" in outcome.err
    assert not (tmp_path / "out").exists()


def test_compare_as_json(run):
    found = json.loads(run("compare", "iris", "-m", "pca,sne", "--json").out)
    assert [method["method"] for method in found["methods"]] == ["pca", "sne"]
    assert found["methods"][0]["quality"]["trustworthiness"]["value"] > 0.9
    assert set(found["outputs"]["maps"]) == {"pca", "sne"}


def test_an_unknown_method_is_named_before_anything_is_read(refused):
    assert "unknown method 'pcaa'; did you mean 'pca'?" in refused(
        "compare", "nowhere.csv", "-m", "pcaa"
    )


@pytest.mark.parametrize("names", [["x", "y"], ["x1", "x2"], ["UMAP_1", "UMAP_2"]])
def test_score_measures_a_map_of_any_tool(run, tmp_path, names):
    X, Y = iris().X, iris().X[:, 2:]
    pl.from_numpy(Y, schema=names).with_row_index("row").write_csv(tmp_path / "map.csv")
    found = json.loads(run("score", "iris", "map.csv", "--json").out)
    assert found["coordinates"] == names
    assert found["quality"]["trustworthiness"]["value"] == pytest.approx(trustworthiness(X, Y))
    assert "trustworthiness" in run("score", "iris", "map.csv").out


def test_score_matches_rows_by_name(run, refused, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    names = [f"s{i}" for i in range(50)]
    table = pl.DataFrame({"id": names}).hstack(pl.from_numpy(X, schema=list("abc")))
    table.write_csv(tmp_path / "t.csv")
    order = rng.permutation(50)
    shuffled = pl.DataFrame({"id": [names[i] for i in order]})
    shuffled.hstack(pl.from_numpy(X[order, :2], schema=["x", "y"])).write_csv(tmp_path / "m.csv")
    expected = trustworthiness(X, X[:, :2])
    found = json.loads(run("score", "t.csv", "m.csv", "--id", "id", "--json").out)
    assert found["quality"]["trustworthiness"]["value"] == pytest.approx(expected)
    assert json.loads(run("score", "t.csv", "m.csv", "--json").out) == found
    shuffled.head(49).with_columns(x=0.5, y=0.5).write_csv(tmp_path / "short.csv")
    for option in ([], ["--id", "id"]):
        message = refused("score", "t.csv", "short.csv", *option)
        assert "1 of 50 rows are missing there, such as 's" in message
    shuffled.head(49).with_columns(x=0.5, y=0.5).drop("id").write_csv(tmp_path / "short.csv")
    assert "has 49 rows, but t.csv has 50" in refused("score", "t.csv", "short.csv")


def test_score_writes_a_report_on_request(run, refused, tmp_path):
    Y = iris().X[:, 2:]
    np.save(tmp_path / "map.npy", Y)
    assert run("score", "iris", "map.npy", "-o", "r.html").code == 0
    assert "A map that was made elsewhere." in (tmp_path / "r.html").read_text()
    assert "--force" in refused("score", "iris", "map.npy", "-o", "r.html")
    assert ".html" in refused("score", "iris", "map.npy", "-o", "r.csv")


def test_info_tells_what_the_table_is_like(run, tmp_path):
    found = json.loads(run("info", "digits", "--json").out)
    assert (found["rows"], found["columns"]) == (1797, 64)
    assert found["constant"] == ["pixel_0_0", "pixel_4_0", "pixel_4_7"]
    assert found["components"] == {"90%": 21, "95%": 29, "99%": 41}
    assert 5 < found["intrinsic_dimension"] < 15
    assert {method["method"] for method in found["methods"]} == set(registry.names())
    assert all(method["estimated_seconds"] > 0 for method in found["methods"])
    text = run("info", "digits").out
    assert "principal components needed: 21 for 90%" in text
    assert "estimates" in text


def test_info_counts_missing_values(run, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n,3\n4,\n5,\n6,7\n8,1\n")
    found = json.loads(run("info", "t.csv", "--json").out)
    assert found["missing"] == {"a": 1, "b": 2}


def test_info_of_a_sparse_table_is_that_of_the_dense_one(run, tmp_path):
    X = sp.random(60, 20, density=0.3, random_state=0, format="csr")
    sp.save_npz(tmp_path / "t.npz", X)
    scipy.io.mmwrite(tmp_path / "t.mtx", X)
    with h5py.File(tmp_path / "t.h5ad", "w") as store:
        group = store.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "shape": X.shape})
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(X, name)
    np.save(tmp_path / "t.npy", X.toarray())
    dense = json.loads(run("info", "t.npy", "--json").out)
    takers = [cls.__name__ for cls in registry.all_methods() if cls.accepts_sparse]
    for name in ("t.npz", "t.mtx", "t.h5ad"):
        outcome = run("info", name, "--json")
        assert (outcome.code, outcome.err) == (0, "")
        found = json.loads(outcome.out)
        assert found["sparse"]
        assert len(found["methods"]) == len(takers)
        for key in ("rows", "columns", "components", "rows_measured", "constant"):
            assert found[key] == dense[key], key
        for key in ("intrinsic_dimension", "concentration"):
            assert found[key] == pytest.approx(dense[key], rel=1e-6), key
        assert "60 rows, 20 sparse columns" in run("info", name).out


def test_info_of_distances_lists_the_methods_that_take_them(run, refused, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "d.npy", D)
    rows = json.loads(run("info", "x.npy", "--json").out)
    found = json.loads(run("info", "d.npy", "--distances", "--json").out)
    assert (found["rows"], found["columns"], found["missing"]) == (40, None, {})
    assert found["intrinsic_dimension"] == pytest.approx(rows["intrinsic_dimension"])
    assert found["concentration"] == pytest.approx(rows["concentration"])
    takers = [cls for cls in registry.all_methods() if cls.accepts_distances]
    assert [m["method"] for m in found["methods"]] == [
        registry.snake_case(cls.__name__) for cls in takers
    ]
    assert "21 rows, distances between them" in run("info", "eurodist").out  # known without asking
    D[3, 5] = D[5, 3] = np.nan
    np.save(tmp_path / "d.npy", D)
    found = json.loads(run("info", "d.npy", "--distances", "--json").out)
    assert found["missing"] == {"distances": 1}
    assert found["intrinsic_dimension"] is None
    assert "--columns" in refused("info", "d.npy", "--distances", "--columns", "a")


def test_info_of_equal_rows_has_no_dimension_to_tell(run, tmp_path):
    np.save(tmp_path / "t.npy", np.ones((20, 3)))
    outcome = run("info", "t.npy", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["intrinsic_dimension"] is None


def test_info_says_what_does_not_fit(run, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "100MB")
    text = run("info", "digits").out
    (line,) = [line for line in text.split("\n") if line.startswith("sne ")]
    assert "more than there is" in line


@pytest.mark.parametrize("command", ["compare", "info", "score"])
def test_bad_input_is_one_line(refused, tmp_path, command):
    (tmp_path / "empty.csv").write_text("")
    rest = ["map.csv"] if command == "score" else []
    assert "empty.csv: the file is empty" in refused(command, "empty.csv", *rest)
