"""The table: right numbers, baselines, texts and exports."""

import importlib
import json
import sys

import numpy as np
import pytest
import scipy.sparse

from lowland import PCA, metrics
from lowland.datasets import digits
from lowland.metrics import Comparison
from lowland.neighbors import knn_graph
from support.cases import each

NAMES = [
    "trustworthiness",
    "continuity",
    "neighbor_recall",
    "rnx_auc",
    "shepard_correlation",
    "scale_normalized_stress",
]


@pytest.fixture(scope="module")
def table():
    data = digits()
    X = data.X[:600]
    return metrics.quality(X, PCA(2).fit_transform(X), data.y[:600])


def test_it_has_the_numbers_that_matter(table):
    assert [row.name for row in table] == [*NAMES, "knn_accuracy"]
    X = digits().X[:600]
    Y = PCA(2).fit_transform(X)
    assert table["trustworthiness"].value == metrics.trustworthiness(X, Y)
    assert table["rnx_auc"].value == pytest.approx(metrics.rnx_auc(X, Y), abs=1e-12)
    assert table["scale_normalized_stress"].value == metrics.scale_normalized_stress(X, Y)


def test_a_pca_map_is_as_good_as_itself_and_better_than_chance(table):
    for row in table:
        assert row.value == pytest.approx(row.pca, abs=1e-9)
        better = row.value > row.random if row.better == "higher" else row.value < row.random
        assert better, row.name
    assert table["rnx_auc"].random == pytest.approx(0, abs=0.02)


@each("dimensions", [1, 2, 3, 5])
def test_the_pca_map_beside_it_has_as_many_dimensions(irregular, dimensions):
    X = irregular(80, 8)
    rng = np.random.default_rng(0)
    found = metrics.quality(X, rng.normal(size=(len(X), dimensions)))
    expected = metrics.quality(X, PCA(dimensions).fit_transform(X))
    for row in found:
        assert row.pca == pytest.approx(expected[row.name].value, abs=1e-9), row.name


def test_it_prints_one_line_per_measure(table):
    lines = str(table).splitlines()
    assert lines[0] == "Map of 600 rows (all of them), neighborhoods of 10"
    assert len(lines) == 2 + len(table)
    for line, row in zip(lines[2:], table, strict=True):
        assert line.startswith(row.name)
        assert f"{row.value:.3f}" in line
        assert row.meaning in line
    assert repr(table) == str(table)


def test_it_is_html_for_notebooks(table):
    page = table._repr_html_()
    assert page.count("<tr>") == 1 + len(table)
    assert "point&#x27;s" in page


def test_it_exports_to_dict_and_frame(table):
    found = json.loads(json.dumps(table.to_dict()))
    assert found["continuity"]["value"] == table["continuity"].value
    assert set(found["continuity"]) == {
        *("value", "standard_error", "sample_size", "pca", "random", "better", "meaning")
    }
    frame = pytest.importorskip("pandas", reason="makes a data frame") and table.to_frame()
    assert list(frame.index) == [row.name for row in table]
    assert frame.loc["continuity", "value"] == table["continuity"].value


def test_without_pandas_it_says_what_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        table.to_frame()


def test_an_unknown_measure_is_named(table):
    with pytest.raises(ValueError, match="did you mean 'trustworthiness'"):
        table["trustworthyness"]


def test_sampled_numbers_show_their_error(irregular):
    X = irregular(500, 5)
    table = metrics.quality(X, X[:, :2], sample=100)
    assert "(100 sampled)" in str(table)
    for row in table:
        assert row.value.standard_error > 0
        assert row.value.sample_size == 100
        assert f"{1.96 * row.value.standard_error:.3f}" in str(table)


def test_costly_measures_of_large_maps_take_fewer_rows(irregular, monkeypatch):
    monkeypatch.setattr("lowland.metrics._views.SECONDS", 3e-4)
    monkeypatch.setattr("lowland.metrics._views.SECONDS_PER_ROW", 0.0)
    monkeypatch.setattr("lowland.metrics._views.FEWEST", 10)
    module = importlib.import_module("lowland.metrics.quality_table")
    monkeypatch.setattr(module, "PAIR_ROWS", 80)
    X = irregular(300, 5)
    table = metrics.quality(X, X[:, :2])
    near, ranked, paired, summed = (table[name].value.sample_size for name in NAMES[2:])
    assert near == 300
    assert 10 < ranked < 300
    assert 10 < summed < 300
    assert paired == 80
    assert table["trustworthiness"].random.sample_size < 300
    exact = metrics.quality(X, X[:, :2], sample=None)
    for row in exact:
        assert {found.sample_size for found in (row.value, row.pca, row.random)} == {300}
        for name in ("value", "pca", "random"):
            sampled = getattr(table[row.name], name)
            assert abs(getattr(row, name) - sampled) <= 4 * sampled.standard_error


def test_a_given_pca_map_is_not_computed_again(irregular, monkeypatch):
    X = irregular(60, 5)
    scores = PCA(4, random_state=0).fit_transform(X)
    wanted = metrics.quality(X, X[:, :2]).to_dict()

    def refused(self, X, y=None):
        raise AssertionError("PCA was fitted")

    monkeypatch.setattr(PCA, "fit_transform", refused)
    for name, row in metrics.quality(X, X[:, :2], pca=scores).to_dict().items():
        assert row["pca"] == pytest.approx(wanted[name]["pca"], abs=1e-9)
    with pytest.raises(ValueError, match="pca has shape"):
        metrics.quality(X, X[:, :2], pca=scores[:, :1])
    with pytest.raises(ValueError, match="pca: X has no columns"):
        metrics.quality(knn_graph(X, 20), X[:, :2], pca=scores)


def test_distances_and_graphs_have_no_pca_beside_them(irregular, metric_distances):
    X, Y = irregular(80, 4), irregular(80, 2)
    given = metrics.quality(metric_distances(X, "euclidean"), Y, metric="precomputed")
    assert [row.name for row in given] == NAMES
    assert {row.pca for row in given} == {None}
    assert given["continuity"].value == metrics.continuity(X, Y)
    graph = metrics.quality(knn_graph(X, 15), Y)
    assert [row.name for row in graph] == ["continuity", "neighbor_recall"]
    assert " - " in str(graph)


def test_sparse_data_and_comparisons_are_taken(irregular):
    X = irregular(80, 6)
    X[X < 1] = 0
    Y = X[:, :2]
    sparse = metrics.quality(scipy.sparse.csr_array(X), Y)
    for row in metrics.quality(Comparison(X, Y)):
        other = sparse[row.name]
        assert (other.value, other.pca) == pytest.approx((row.value, row.pca), abs=1e-9)


def test_few_rows_have_small_neighborhoods(irregular):
    X = irregular(9, 3)
    table = metrics.quality(X, X[:, :2])
    assert table.n_neighbors == 4


def test_a_constant_map_is_measured_all_the_same(irregular):
    table = metrics.quality(irregular(40, 3), np.zeros((40, 2)))
    assert table["scale_normalized_stress"].value == 1.0
    assert table["shepard_correlation"].value == 0.0
