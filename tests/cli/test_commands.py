"""``compare``, ``score`` and ``info``, as a user types them."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from lowland._base import registry
from lowland.datasets import iris


def test_compare_makes_one_table_one_picture_one_report_and_all_maps(run, tmp_path):
    outcome = run("compare", "iris", "-m", "pca,sne", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert [method["method"] for method in found["methods"]] == ["pca", "sne"]
    assert found["methods"][0]["quality"]["trustworthiness"]["value"] > 0.9
    assert set(found["outputs"]["maps"]) == {"pca", "sne"}
    folder = tmp_path / "lowland-out" / "iris-compare"
    assert sorted(path.name for path in folder.iterdir()) == [
        "comparison.csv", "map-pca.csv", "map-sne.csv", "maps.png", "report.html",
    ]  # fmt: skip


def test_a_method_that_cannot_is_a_warning_and_nothing_that_works_is_refused(run, tmp_path):
    np.save(tmp_path / "t.npy", np.random.default_rng(0).standard_normal((30, 4)))
    outcome = run("compare", "t.npy", "-m", "lda,pca", "-o", "out")
    assert outcome.code == 1
    assert "lda: LDA learns from classes" in outcome.err
    assert "not made: LDA learns from classes" in (tmp_path / "out" / "report.html").read_text()
    outcome = run("compare", "t.npy", "-m", "lda", "-o", "other")
    assert outcome.code == 2
    assert not (tmp_path / "other").exists()


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


def test_info_says_what_does_not_fit(run, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "100MB")
    text = run("info", "digits").out
    (line,) = [line for line in text.split("\n") if line.startswith("sne ")]
    assert "more than is available" in line
