"""What the other commands do, from Python."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist

from lowland import PCA
from lowland.datasets import iris
from lowland.errors import DataError, ParameterError
from lowland.metrics import trustworthiness
from lowland.workflow import (
    compare_methods,
    describe_table,
    make_map,
    place_rows,
    score_map,
    select_columns,
)


def test_methods_are_compared_on_the_same_rows(tmp_path):
    found = compare_methods(iris(), ["pca", "lda"])
    assert found.table["method"].to_list() == ["pca", "lda"]
    Y = make_map("iris", "pca").coordinates
    np.testing.assert_array_equal(found.maps["pca"].select("x", "y").to_numpy(), Y)
    assert found.table["trustworthiness"][0] == pytest.approx(trustworthiness(iris().X, Y))
    names = dict(zip("abcd", iris().feature_names, strict=True))
    files = found.write(tmp_path / "out")
    assert pl.read_csv(files.table)["method"].to_list() == ["pca", "lda"]
    assert found.models["lda"].transform(iris_with_a_constant()[:2, :4].rename(names)).shape == (
        2,
        2,
    )


def test_drawn_maps_are_turned_to_resemble_the_first():
    found = compare_methods(iris(), ["pca", "lda"])
    first, second = (entry["coordinates"] for entry in found._entries)
    maps = [found.maps[name].select("x", "y").to_numpy() for name in ("pca", "lda")]
    np.testing.assert_array_equal(first, maps[0])
    # the second keeps its shape, and no rotation or scale brings it nearer to the first
    here, there = pdist(second), pdist(maps[1])
    np.testing.assert_allclose(here, there * (here.max() / there.max()), atol=1e-9 * here.max())
    left = ((first - second) ** 2).sum() / ((first - first.mean(axis=0)) ** 2).sum()
    assert left == pytest.approx(procrustes(maps[0], maps[1])[2], rel=1e-9)


def test_a_method_that_cannot_does_not_stop_the_others(tmp_path):
    found = compare_methods(iris().X, ["lda", "pca"])
    assert list(found.maps) == ["pca"]
    assert "learns from classes" in found.failures["lda"]
    files = found.write(tmp_path / "out")
    assert list(files.maps) == ["pca"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "comparison.csv", "map-pca.csv", "maps.png", "report.html",
    ]  # fmt: skip
    with pytest.raises(DataError, match="no method could do it: lda: LDA learns from classes"):
        compare_methods(iris().X, ["lda"])
    with pytest.raises(ParameterError, match="give at least one method"):
        compare_methods("iris", [])


def test_several_methods_share_one_reduction_by_pca(monkeypatch):
    reduced_to = []
    original = PCA.fit_transform

    def fit_transform(self, X):
        reduced_to.append(self.n_components)
        return original(self, X)

    monkeypatch.setattr(PCA, "fit_transform", fit_transform)
    X = np.random.default_rng(0).standard_normal((60, 55))
    assert not compare_methods(X, ["tsne", "symmetric_sne"]).failures
    assert reduced_to.count(50) == 1


def test_new_rows_are_placed_by_name_or_by_number():
    made = make_map("wine", "pca", scale="standard")
    placed = place_rows(made.model, "wine")
    assert placed.map.equals(made.map)
    assert placed.method == "PCA"
    data = iris()
    bare = make_map(data.X, "pca").model
    np.testing.assert_allclose(place_rows(bare, data.X[:4]).coordinates, bare.transform(data.X[:4]))
    with pytest.raises(DataError, match="has 3 columns of numbers, but the model was fitted with"):
        place_rows(bare, data.X[:, :3])


def test_a_map_of_another_tool_is_scored(tmp_path):
    data = iris()
    Y = data.X[:, 2:]
    score = score_map(data.X, Y)
    assert score.quality["trustworthiness"].value == trustworthiness(data.X, Y)
    score.report(tmp_path / "r.html")
    assert "A map that was made elsewhere." in (tmp_path / "r.html").read_text()
    with pytest.raises(DataError, match="has 10 rows, but data has 150"):
        score_map(data.X, Y[:10])
    with pytest.raises(DataError, match="map: is a sparse matrix"):
        score_map(data.X, scipy.sparse.csr_matrix(Y))


def test_a_table_is_described():
    found = describe_table(iris_with_a_constant())
    assert (found["rows"], found["columns"]) == (150, 5)
    assert found["constant"] == ["one"]
    assert found["components"] == {"90%": 1, "95%": 2, "99%": 3}
    assert {"method", "estimated_seconds", "estimated_bytes", "fits"} == set(found["methods"][0])
    assert describe_table(np.ones((20, 3)))["intrinsic_dimension"] is None


def iris_with_a_constant() -> pl.DataFrame:
    frame = pl.from_numpy(iris().X, schema=list("abcd"), orient="row")
    return frame.with_columns(one=pl.lit(1.0))


def test_columns_are_selected(tmp_path):
    found = select_columns("iris", "anova_f", n_features=2)
    assert found.target == "class"
    assert found.frame.columns == ["petal length (cm)", "petal width (cm)", "class"]
    found.write(tmp_path / "kept.csv")
    assert pl.read_csv(tmp_path / "kept.csv").columns == found.frame.columns
    with pytest.raises(DataError, match="name its column with target"):
        select_columns(iris().X, "anova_f")


def test_disparities_tell_how_much_maps_differ():
    found = compare_methods(iris(), ["pca", "classical_mds", "lda"])
    table = found.disparities
    assert table.columns == ["method", "pca", "classical_mds", "lda"]
    values = table.drop("method").to_numpy()
    np.testing.assert_allclose(values, values.T, atol=1e-12)
    np.testing.assert_array_equal(np.diag(values), 0.0)
    assert values[0, 1] < 1e-12  # the same map
    maps = [found.maps[name].select("x", "y").to_numpy() for name in ("pca", "lda")]
    assert values[0, 2] == pytest.approx(procrustes(*maps)[2], rel=1e-9)
    assert found.summary()["preparation"][-1].startswith(
        "Procrustes disparity from pca (0: the same map, 1: un"
    )
    assert compare_methods(iris(), ["pca"]).disparities.shape == (1, 2)
